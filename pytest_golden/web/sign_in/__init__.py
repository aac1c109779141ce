"""Who may come in: the token, the session that it opens, and how often a wrong one may be tried."""
