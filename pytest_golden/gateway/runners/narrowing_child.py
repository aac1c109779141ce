"""Shared by the scripts that let an engine run only the part of a project that depends on changed files.

`GOLDEN_CHANGED_FILES` is a JSON list of paths, relative to the folder of the pipeline's file. A path that does not exist there may stand for
a baseline. The scripts list the outputs that they left out in `.golden-left-out.json`. Needs only the standard library.
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
    """The whole project must run; the message says why."""


def take_changed() -> list[str]:
    """Return the changed files; none if the whole project must run. Child processes do not see them."""
    changed: list[str] = json.loads(os.environ.pop(CHANGED_FILES, "[]"))
    return changed


def explain_whole(error: Exception) -> None:
    """Print why the whole project runs. If the project itself is broken, the engine reports that when it runs next."""
    reason = str(error) if isinstance(error, WholeError) else f"{type(error).__name__}: {error}"
    print(f"golden: the whole project runs: {reason}", flush=True)


def tell_left_out(told: Path, names: list[str]) -> None:
    """List what was left out. Called last, even for an empty list, so that no code of the pipeline can change the list afterwards."""
    told.unlink(missing_ok=True)
    told.write_text(json.dumps(sorted(names)), encoding="utf-8")


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path is this folder or is below it."""
    return path == folder or path.startswith(f"{folder}{os.sep}")


class OpenedFiles:
    """Records the files that this process opens while an engine loads its project. A change of any of them may change the graph."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._watches = True
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watches and event == "open" and isinstance(arguments[0], str | bytes):
            self._paths.add(os.path.abspath(os.fsdecode(arguments[0])))

    def end(self) -> set[str]:
        """Stop recording, and return the real paths of the files that were opened or imported."""
        self._watches = False
        imported = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return {os.path.realpath(path) for path in (*self._paths, *imported) if path}
