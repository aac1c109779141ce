"""What `soak.py` is made of: workspaces, gates forked from a warm process, faults, and the checker."""
