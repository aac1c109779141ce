"""One recorded result with all that is kept of it, and what it says of a failure."""
