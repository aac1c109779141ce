"""Where an entry stands: read to be changed, assessed, and written back with its history."""
