"""How often a failure was seen before, where, and which commit ended it: by its signature alone, for a gate that has just failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.learning.results.store import find_pass
from pytest_golden.learning.signature import cause_of, digest_signature, error_signature
from pytest_golden.learning.store import find_by_keys, list_below_key
from pytest_golden.learning.tally import TALLIES, Tally
from pytest_golden.storage.moments import from_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from pytest_golden.learning.results.model import Occasion

_MOST_LINES, _MOST_PROJECTS, _MOST_READ = 50, 20, 20_000
_SHORT_COMMIT = 7


@dataclass(frozen=True, slots=True)
class SeenBefore:
    """One project's failures of one kind. `why` is `signature` (the same failure) or `words` (one that reads alike).

    `fixed` is the first pass after the last failure, else the one before it; None when it never passed again.
    """

    why: str
    project: str
    count: int
    message: str
    signature: str
    first: Occasion
    last: Occasion
    fixed: Occasion | None
    is_fixed: bool

    def __str__(self) -> str:
        """Give one sentence: how often, in which project, when last, and which commit ended it."""
        times = "once" if self.count == 1 else f"{self.count} times"
        told = f"seen before {times} in {self.project}, last on {_day(self.last)}{_at_commit(self.last)}"
        if self.fixed is None:
            return f"{told}; it has not passed since"
        came_and_went = self.fixed.commit is not None and _checkout(self.fixed) == _checkout(self.last)
        # Of edits it is not known whether they were the same.
        edits = " with uncommitted changes" if self.fixed.dirty else ""
        if not self.is_fixed:
            fixed = (
                f"passed before at the same commit{edits}" if came_and_went else f"last fixed{_by_commit(self.fixed)}"
            )
            return f"{told}; {fixed}, and broken again since"
        if came_and_went:
            return f"{told}; passed again at the same commit{edits}"
        return f"{told}; last fixed{_by_commit(self.fixed)}"

    def to_dict(self) -> dict[str, Any]:
        """Give the fields as JSON-safe values, and the sentence as `text`."""
        return {
            "why": self.why,
            "text": str(self),
            "project": self.project,
            "count": self.count,
            "message": self.message,
            "signature": self.signature,
            "first_seen": _plain(self.first),
            "last_seen": _plain(self.last),
            "last_fixed": None if self.fixed is None else _plain(self.fixed),
            "is_fixed": self.is_fixed,
        }


def find_seen_before(
    connection: Connection, text: str, *, project: str | None = None, prefer: str | None = None, limit: int = 5
) -> tuple[SeenBefore, ...]:
    """Find the same failure by its signature alone: a look at an index, however much is stored.

    Ask before the present run is learned from, or it counts itself. A text of many lines is tried line by line, too.

    Args:
        connection: of the store.
        text: the failure's message.
        project: tell of this project alone.
        prefer: tell of this project first; of the others, the most frequent come first.
        limit: of how many projects at most.
    """
    digests = [digest_signature(signature) for signature in _signatures(text)]
    own = project or prefer
    found = find_by_keys(connection, TALLIES, [f"{digest}/{own}" for digest in digests]) if own else ()
    if project is None:
        for digest in digests:
            found += list_below_key(connection, TALLIES, digest, _MOST_PROJECTS)
    tallies = {memory.key: Tally.from_value(memory.value) for memory in found}.values()
    ranked = sorted(tallies, key=lambda tally: (tally.project != own, -tally.count))
    return tuple(describe_tally(connection, tally, "signature") for tally in ranked[:limit])


def _signatures(text: str) -> Iterator[str]:
    lines = [line for line in text[-_MOST_READ:].splitlines() if line.strip()]
    causes = dict.fromkeys(error_signature(cause_of(one)) for one in (text, *lines[-_MOST_LINES:]))
    return (signature for signature in causes if signature)


def describe_tally(connection: Connection, tally: Tally, why: str) -> SeenBefore:
    """Give what a tally says, and which pass came after it."""
    since = find_pass(connection, tally.project, after=tally.last.entry)
    return SeenBefore(
        why=why,
        project=tally.project,
        count=tally.count,
        message=tally.message,
        signature=tally.signature,
        first=tally.first,
        last=tally.last,
        fixed=since or tally.fixed,
        is_fixed=since is not None,
    )


def _checkout(occasion: Occasion) -> tuple[str | None, bool | None]:
    return occasion.commit, occasion.dirty


def _day(occasion: Occasion) -> str:
    return f"{from_ms(occasion.at):%Y-%m-%d}"


def _at_commit(occasion: Occasion) -> str:
    return "" if occasion.commit is None else f" at {_commit(occasion)}"


def _by_commit(occasion: Occasion) -> str:
    return f" on {_day(occasion)}" if occasion.commit is None else f" by {_commit(occasion)}"


def _commit(occasion: Occasion) -> str:
    changes = " with uncommitted changes" if occasion.dirty else ""
    return f"{str(occasion.commit)[:_SHORT_COMMIT]}{changes}"


def _plain(occasion: Occasion) -> dict[str, Any]:
    return {**occasion.to_dict(), "at": iso_utc(from_ms(occasion.at))}
