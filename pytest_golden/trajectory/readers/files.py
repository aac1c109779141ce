"""Find and read files that a pipeline wrote. The pipeline is not trusted: only regular files are opened, and nothing hangs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.trajectory.readers.model import RunFacts, ViewFiles

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


def read_json(path: Path) -> Any:
    """Read one JSON document of at most 64 MiB; NaN and infinities become text.

    Raises:
        OSError: it cannot be read.
        ValueError: it is larger, not JSON, or nested deeper than the interpreter can follow.
    """
    with open_regular(path) as file:
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it is larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return json.loads(content, parse_constant=str)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def find_written(view: ViewFiles, outcome: RunFacts, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Path]]:
    """Return relative and host path of each wanted file that this run wrote, sorted. Files that existed unchanged before are left out."""
    for relative in sorted({*outcome.write_set.created, *outcome.write_set.changed}):
        path = view.find_file(relative) if is_wanted(relative) else None
        if path is not None:
            yield relative, path
