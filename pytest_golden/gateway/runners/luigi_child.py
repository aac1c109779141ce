"""Runs Luigi's command line in Luigi's interpreter: it leaves each task as a step, and a failed task is an exit code.

Luigi itself ends with 0 when tasks failed, unless its configuration has a section `[retcode]`.

A script of its own: it runs where this package may be missing, and needs the standard library and Luigi only.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import steps_child as steps  # type: ignore[import-not-found]  # it stands beside this script

#: As Luigi's documentation proposes them.
EXIT_CODES = {
    "already_running": 10,
    "missing_data": 20,
    "not_run": 25,
    "task_failed": 30,
    "scheduling_error": 35,
    "unhandled_exception": 40,
}


def main() -> None:
    """Run Luigi with this script's arguments, and end the process by its exit code."""
    steps.forget_own_folder()
    luigi: Any = import_module("luigi")
    event = luigi.Event
    handlers = {
        event.START: lambda task: steps.begin(task.task_id, str(task)),
        event.PROCESSING_TIME: lambda task, seconds: steps.end(task.task_id, str(task), seconds),
        event.FAILURE: lambda task, error: steps.end(task.task_id, str(task), error=error),
        event.BROKEN_TASK: lambda task, error: steps.end(task.task_id, str(task), error=error),
        event.DEPENDENCY_MISSING: _tell_missing,
    }
    for kind, handler in handlers.items():
        luigi.Task.event_handler(kind)(handler)
    settings = import_module("luigi.configuration").get_config()
    for name, code in EXIT_CODES.items():
        if not settings.has_option("retcode", name):
            settings.set("retcode", name, str(code))
    sys.argv[0] = "luigi"
    import_module("luigi.cmdline").luigi_run(sys.argv[1:])


def _tell_missing(task: Any) -> None:
    missing = FileNotFoundError("its output does not exist, and this task makes none")
    steps.end(task.task_id, str(task), error=missing)


if __name__ == "__main__":
    main()
