"""GROUND: values that any room may hold: frozen containers, and one JSON form for all of them."""
