"""Remove secrets from everything that is kept, shown or sent.

Three kinds are found: secrets that show themselves by their form (`tokens.py`, `command_secrets.py`, `document_secrets.py`),
values under a secret name (`assignments.py`), and values that are known (`literals.py`). References, numbers and hashes stay.
In doubt a value is hidden: a mark too many can be undone by the user, a leaked secret cannot.
"""
