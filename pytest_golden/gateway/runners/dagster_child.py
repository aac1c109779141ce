"""Runs Dagster's command line in Dagster's interpreter, with an instance that keeps nothing and prints what its steps print. It can materialize a part of the assets.

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
    narrowing, dagster_narrowing = import_module("narrowing_child"), import_module("dagster_narrowing_child")
    import_module("steps_child").forget_own_folder()
    changed, told = narrowing.take_changed(), Path(narrowing.LEFT_OUT).absolute()
    narrowed = dagster_narrowing.Narrowing(changed, find_folder(sys.argv)) if changed else None
    if not os.environ.get("DAGSTER_HOME"):
        folder = tempfile.mkdtemp(prefix="golden-dagster-")
        Path(folder, "dagster.yaml").write_text(SETTINGS)
        os.environ["DAGSTER_HOME"] = folder
    sys.argv[0] = "dagster"
    if narrowed is not None:
        narrowed.install()
    try:
        import_module("dagster._cli").main()
    finally:
        if narrowed is not None:
            narrowing.tell_left_out(told, narrowed.left_out)


def find_folder(arguments: list[str]) -> str:
    """Return the folder of the file with the definitions; `-m` names it as a module."""
    target = arguments[-1]
    return os.path.dirname(os.path.join(*target.split("."))) if arguments[-2] == "-m" else os.path.dirname(target)


if __name__ == "__main__":
    main()
