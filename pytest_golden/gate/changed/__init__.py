"""Which projects need not run, since nothing that they are made of changed since a git ref: `--golden-changed`.

In doubt a project runs. `reading.py` loads the database library, and is imported by itself.
"""

from pytest_golden.gate.changed.model import Selection

__all__ = ["Selection"]
