"""The lessons of several stores made one, and what came of showing them."""
