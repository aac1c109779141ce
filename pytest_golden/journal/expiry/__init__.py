"""What becomes of expectations whose time is over."""
