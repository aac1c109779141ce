"""Runs dbt's command line in dbt's interpreter and ends with dbt's exit code, or 1 when dbt had nothing to do.

dbt ends with 0 when no node matched its selection. `--warn-error-options` catches a criterion that matches nothing
(NoNodesForSelectionCriteria), but not an `--exclude` that leaves nothing or a project whose models are all disabled:
"Nothing to do" is no warning. So the result itself is looked at.

A script of its own: it runs where this package may be missing, and needs the standard library and dbt only.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    # The folder of this script has a dbt.py of its own.
    del sys.path[0]

NOTHING_DONE = (
    "dbt ended without an error and without running anything: no node matched the selection, or none is enabled. "
    "A golden project that does nothing proves nothing: correct --select and --exclude."
)


def main() -> int:
    """Run dbt with this script's arguments and return the exit code, by dbt's own meaning of 0, 1 and 2."""
    sys.argv[0] = "dbt"
    answer = import_module("dbt.cli.main").dbtRunner().invoke(sys.argv[1:])
    if answer.exception is not None:
        # dbt prints every error but those about its own command line.
        if type(answer.exception).__name__ == "DbtUsageException":
            print(f"dbt: {answer.exception}", file=sys.stderr)
        return 2
    if not answer.success:
        return 1
    results = getattr(answer.result, "results", None)
    if results is not None and len(results) == 0:
        print(NOTHING_DONE, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
