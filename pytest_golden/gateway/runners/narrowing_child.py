"""What the scripts share that let an engine run only what comes after changed files. Needs the standard library only.

`GOLDEN_CHANGED_FILES` is a JSON list of paths relative to the folder of the pipeline's file; one that is no file there may be that of a
baseline. What was left out is listed in `.golden-left-out.json`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CHANGED_FILES = "GOLDEN_CHANGED_FILES"
LEFT_OUT = ".golden-left-out.json"


class WholeError(Exception):
    """All of it must run; says why."""


def take_changed() -> list[str]:
    """Return the changed files; none if all must run. What is started from here does not see them."""
    changed: list[str] = json.loads(os.environ.pop(CHANGED_FILES, "[]"))
    return changed


def explain_whole(error: Exception) -> None:
    """Say why all of it runs. What is wrong with a project is told by its engine, which runs next."""
    reason = str(error) if isinstance(error, WholeError) else f"{type(error).__name__}: {error}"
    print(f"golden: all of it runs: {reason}", flush=True)


def tell_left_out(told: Path, names: list[str]) -> None:
    """List what was left out, last and also if that is nothing: no part of the pipeline can have the last word."""
    told.unlink(missing_ok=True)
    told.write_text(json.dumps(sorted(names)), encoding="utf-8")


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path is this folder or lies below it."""
    return path == folder or path.startswith(f"{folder}{os.sep}")


class OpenedFiles:
    """The files that this process opens while an engine reads its project: what it makes of them may change with any of them."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._watches = True
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watches and event == "open" and isinstance(arguments[0], str | bytes):
            self._paths.add(os.path.abspath(os.fsdecode(arguments[0])))

    def end(self) -> set[str]:
        """Watch no longer, and return the real paths of what was opened or imported."""
        self._watches = False
        imported = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return {os.path.realpath(path) for path in (*self._paths, *imported) if path}
