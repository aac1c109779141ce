"""Leaves steps in the file that `GOLDEN_STEPS` names, from inside an engine's own process. Needs the standard library only.

The scripts that stand between the gateway and an engine import it from their own folder, which they then forget: the folder
holds a module that is named like the engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from datetime import UTC, datetime
from typing import Any

FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK


def forget_own_folder() -> None:
    """Import from the working folder from now on, as `python -m` does, and no longer from this script's."""
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        sys.path[0] = os.getcwd()


def begin(key: str, name: str, **facts: Any) -> None:
    """Note that a task began."""
    _write({"id": key, "name": name, "timestamp": datetime.now(UTC).isoformat(), "status": "unfinished", **facts})


def end(key: str, name: str, seconds: float | None = None, error: BaseException | None = None, **facts: Any) -> None:
    """Note how a task ended."""
    step: dict[str, Any] = {"id": key, "name": name, "status": "success" if error is None else "failed", **facts}
    if seconds is not None:
        step["duration_ms"] = seconds * 1000
    if error is not None:
        step["error"] = f"{type(error).__name__}: {_tell(error)}"
    _write(step)


def _tell(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "its message cannot be read"


def _write(step: dict[str, Any]) -> None:
    place = os.environ.get("GOLDEN_STEPS")
    if not place:
        return
    # Whatever happens here, on a full disk for example, the pipeline goes on.
    with contextlib.suppress(OSError, TypeError, ValueError):
        handle = os.open(place, FLAGS, 0o600)
        # One write for one line, so that processes do not mix theirs.
        with os.fdopen(handle, "wb", buffering=0) as file:
            file.write(json.dumps(step).encode() + b"\n")
