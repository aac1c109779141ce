"""Which files the entries of `outputs:` stand for, among what was written and what has a baseline. Pure text over paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.regression.unexpected import is_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_golden.manifest.model import DeclaredOutput

EXISTS = "exists"


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file that is expected: each of `entries` names it, and it is held to all of them."""

    path: str
    entries: tuple[DeclaredOutput, ...]
    is_written: bool

    @property
    def needs_baseline(self) -> bool:
        """Tell whether any of its entries compares it with a baseline."""
        return any(entry.compare != EXISTS for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Matched:
    """What is declared, as files.

    `files` are sorted. `unmatched` are entries that name nothing at all. `unused` are baselines that are compared with
    nothing, since no entry names them or those that do want none.
    """

    files: tuple[ExpectedFile, ...]
    unmatched: tuple[DeclaredOutput, ...]
    unused: tuple[str, ...]


def match_outputs(outputs: Sequence[DeclaredOutput], written: Iterable[str], kept: Sequence[str]) -> Matched:
    """Find the files that are declared among the `written` paths and those that are `kept` as baselines."""
    written = frozenset(written)
    files = []
    for path in sorted(written.union(kept)):
        entries = tuple(entry for entry in outputs if is_named(path, entry.path))
        if entries:
            files.append(ExpectedFile(path, entries, path in written))
    expected = tuple(file for file in files if file.is_written or file.needs_baseline)
    named = {id(entry) for file in expected for entry in file.entries}
    compared = {file.path for file in expected if file.needs_baseline}
    return Matched(
        expected,
        tuple(entry for entry in outputs if id(entry) not in named),
        tuple(path for path in sorted(kept) if path not in compared),
    )
