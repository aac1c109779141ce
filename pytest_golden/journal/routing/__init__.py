"""How news finds its place: by hint, session, time window, the entry that it names, or not yet."""
