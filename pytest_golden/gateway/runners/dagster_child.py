"""Runs Dagster's command line in Dagster's interpreter, with an instance that keeps nothing and prints what its steps print.

Without an instance Dagster writes what steps print into files, and copies it to the terminal by a process that may come
too late. Where `DAGSTER_HOME` is set, that instance is used as it is.

A script of its own: it runs where this package may be missing, and needs the standard library and Dagster only.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

SETTINGS = """\
telemetry: {enabled: false}
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def main() -> None:
    """Run Dagster with this script's arguments."""
    # Dagster's processes load this script too, and do not find what stands beside it.
    import_module("steps_child").forget_own_folder()
    if not os.environ.get("DAGSTER_HOME"):
        folder = tempfile.mkdtemp(prefix="golden-dagster-")
        Path(folder, "dagster.yaml").write_text(SETTINGS)
        os.environ["DAGSTER_HOME"] = folder
    sys.argv[0] = "dagster"
    import_module("dagster._cli").main()


if __name__ == "__main__":
    main()
