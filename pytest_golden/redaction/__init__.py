"""Secrets out of everything that is kept, shown or sent.

Three kinds are found: secrets that show themselves by their form (`tokens.py`, `urls.py`), values under a secret name
(`names.py`, `assignments.py`), and values that are known (`literals.py`). References, numbers and hashes stay.
In doubt a value is hidden: a mark too many can be undone by the user, a leaked secret cannot.
"""
