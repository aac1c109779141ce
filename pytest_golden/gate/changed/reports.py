"""Which untracked files are reports of earlier runs or by-products of tools, lying about in a checkout: nobody's input.

They are known by their names, or by how they begin, which is all that is read of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.gate.inputs import is_by_product

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_MOST_READ = 200
_BEGINNING_BYTES = 1024
_REPORTS = {
    ".xml": re.compile(rb"<(?:testsuites?|coverage)\b"),
    ".json": re.compile(rb'\A\{\s*"schema_version": \d+,\s*"final_status": '),
    ".html": re.compile(rb"\A\s*<!doctype html", re.IGNORECASE),
}


def list_reports(root: Path, untracked: Iterable[str]) -> tuple[str, ...]:
    """Give those of the untracked paths that are reports or by-products."""
    found, left = [], _MOST_READ
    for path in untracked:
        if any(map(is_by_product, path.split("/"))):
            found.append(path)
        elif path.endswith(tuple(_REPORTS)) and left:
            left -= 1
            found += [path] if _is_report(root / path) else []
    return tuple(found)


def _is_report(file: Path) -> bool:
    try:
        # A pipe would never give an answer.
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            beginning = opened.read(_BEGINNING_BYTES)
    except OSError:
        return False
    return _REPORTS[file.suffix].search(beginning) is not None
