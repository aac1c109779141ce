"""The journal as JSON Lines, into a file and out of one, and how two copies of an entry become one."""
