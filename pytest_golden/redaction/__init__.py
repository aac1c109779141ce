"""Secrets out of everything that is kept, shown or sent.

Three kinds are found: secrets that show themselves by their form (`tokens.py`, `urls.py`), values under a secret name
(`names.py`, `assignments.py`), and values that are known (`literals.py`). References, numbers and hashes stay.
In doubt a value is hidden: a mark too many can be undone by the user, a leaked secret cannot.
"""

from pytest_golden.redaction.literals import literals_in_file, secret_arguments, secret_literals
from pytest_golden.redaction.redactor import Redactor, redact

__all__ = ["Redactor", "literals_in_file", "redact", "secret_arguments", "secret_literals"]
