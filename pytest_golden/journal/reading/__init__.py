"""Looks into the journal: reviews, what is open, orphans, sums."""
