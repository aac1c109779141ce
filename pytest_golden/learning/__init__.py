"""LEARNED: outcomes, plans and memories kept of what was recorded, found again when it breaks. No status depends on it."""
