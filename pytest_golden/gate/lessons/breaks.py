"""Breaks: what had changed when a project failed for the first time after a pass. Kept as memories, asked before the fact. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.lessons.changes_told import choose_files
from pytest_golden.learning.draft import MemoryDraft
from pytest_golden.learning.signature import cause_of
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pytest_golden.gate.lessons.model import Difference, Point

BREAKS = ("breaks", "golden")
# A commit that changed more tells nothing of one file.
_MOST_FILES = 100
_FEW_FILES = 10
_MOST_OF_ERROR, _MOST_COMMITS = 500, 5


@dataclass(frozen=True, slots=True)
class Break:
    """That a project broke: when (milliseconds since the epoch), by which commits, and which files had changed.

    `commits` are `{commit, subject}`, the newest first; `inside` are the files of the project's own folder.
    """

    project: str
    entry: str
    at: int
    error: str
    commit_range: str | None
    commits: tuple[Mapping[str, str], ...]
    files: tuple[str, ...]
    inside: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give all fields, JSON-safe."""
        plain = asdict(self)
        return {**plain, **{name: list(plain[name]) for name in ("commits", "files", "inside")}}

    def to_draft(self) -> MemoryDraft:
        """Give it as a memory to store. It is found by its files alone."""
        return MemoryDraft(BREAKS, self.entry, redact(self.to_dict()), ("break",))

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Break:
        """Read back what `to_draft` stores.

        Raises:
            KeyError, TypeError: it is none.
        """
        return cls(
            **{name: value[name] for name in ("project", "entry", "at", "error", "commit_range")},
            commits=tuple(dict(one) for one in value["commits"]),
            files=tuple(map(str, value["files"])),
            inside=tuple(map(str, value["inside"])),
        )

    def overlap(self, files: Collection[str]) -> tuple[str, ...]:
        """Give those of these files that had changed too, where that tells something: few had, or they are its own."""
        among = self.files if len(self.files) <= _FEW_FILES else self.inside
        return tuple(file for file in among if file in files)


def make_break(failed: Point, difference: Difference, manifest: str) -> Break | None:
    """Give the break of a first failure; None where no file is to blame, or too many."""
    files = choose_files(difference.files, manifest)
    if not 0 < len(files) <= _MOST_FILES:
        return None
    own = set(difference.inside)
    return Break(
        project=failed.project,
        entry=failed.entry_id,
        at=failed.created_at,
        error=cause_of(failed.message or "")[:_MOST_OF_ERROR],
        commit_range=difference.commit_range,
        commits=tuple({"commit": one.id, "subject": one.subject} for one in difference.commits[:_MOST_COMMITS]),
        files=files,
        inside=tuple(file for file in files if file in own),
    )


@dataclass(frozen=True, slots=True)
class BrokeBefore:
    """That a project broke when some of these files changed: how often of all its breaks, and the last time."""

    project: str
    count: int
    break_count: int
    files: tuple[str, ...]
    last: Break


def find_broken(breaks: Iterable[Break], files: Collection[str]) -> tuple[BrokeBefore, ...]:
    """Find the projects that broke when these files changed, those that broke most often first; `breaks` are in their order."""
    by_project: dict[str, list[Break]] = {}
    for one in breaks:
        by_project.setdefault(one.project, []).append(one)
    found = []
    for project, known in by_project.items():
        met = [(one, overlap) for one in known if (overlap := one.overlap(files))]
        if met:
            named = tuple(dict.fromkeys(file for _, overlap in reversed(met) for file in overlap))
            found.append(BrokeBefore(project, len(met), len(known), named, met[-1][0]))
    return tuple(sorted(found, key=lambda one: (-one.count, one.project)))
