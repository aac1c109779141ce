"""The step that a running pipeline has reached, read from the end of what it appends to its steps file."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from pytest_golden.trajectory.readers.files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

_TAIL_BYTES = 4096


def read_present_step(steps_file: Path) -> str | None:
    """Give the name on the last whole line, None when there is none yet."""
    try:
        # Never by opening it up: the pipeline still runs, and could swap it for a link meanwhile.
        with open_regular(steps_file) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            tail = file.read()
    except OSError:
        return None
    for line in reversed(tail.splitlines()):
        try:
            name = json.loads(line)["name"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        return str(name)
    return None
