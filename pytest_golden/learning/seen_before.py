"""Count the failures of a project by their signature, and say when one was seen before and which commit ended it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.learning.gate_results_store import find_pass
from pytest_golden.learning.memories import MemoryDraft, add_words
from pytest_golden.learning.model import Occasion
from pytest_golden.learning.signature import cause_of, digest_signature, error_signature
from pytest_golden.learning.store import find_by_keys, list_below_key
from pytest_golden.storage.columns import from_ms, storable
from pytest_golden.values.shape import Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

TALLIES = ("signatures", "golden")
_MOST_OF_MESSAGE, _MOST_WORDS = 500, 2_000
_MOST_LINES, _MOST_PROJECTS, _MOST_READ = 50, 20, 20_000
_SHORT_COMMIT = 7


def _plain(occasion: Occasion) -> dict[str, Any]:
    return {**occasion.to_dict(), "at": iso_utc(from_ms(occasion.at))}


@dataclass(frozen=True, slots=True)
class SeenBefore(Shape):
    """One project's failures of one kind. `why` is `signature` (the same failure) or `words` (one that reads alike).

    `fixed` is the first pass after the last failure, else the one before it; None when it never passed again.
    """

    why: str
    project: str
    count: int
    message: str
    signature: str
    first: Occasion = field(metadata=form(key="first_seen", write=_plain, as_type=Mapping[str, Any]))
    last: Occasion = field(metadata=form(key="last_seen", write=_plain, as_type=Mapping[str, Any]))
    fixed: Occasion | None = field(metadata=form(key="last_fixed", write=_plain, as_type=Mapping[str, Any] | None))
    is_fixed: bool

    @property
    @in_form()
    def text(self) -> str:
        """The sentence that `str` gives."""
        return str(self)

    def __str__(self) -> str:
        """Return one sentence: how often, in which project, when last, and which commit ended it."""
        times = "once" if self.count == 1 else f"{self.count} times"
        at = "" if self.last.commit is None else f" at {_commit(self.last)}"
        seen = f"seen before {times} in {self.project}, last on {_day(self.last)}{at}"
        return f"{seen}; {self.describe_end() or 'it has not passed since'}"

    def describe_end(self) -> str | None:
        """Return a clause on what ended the failure; None when its project has not passed since."""
        if self.fixed is None:
            return None
        came_and_went = self.fixed.commit is not None and _checkout(self.fixed) == _checkout(self.last)
        # Uncommitted edits may differ between the two.
        edits = " with uncommitted changes" if self.fixed.dirty else ""
        if not self.is_fixed:
            fixed = (
                f"passed before at the same commit{edits}" if came_and_went else f"last fixed{_by_commit(self.fixed)}"
            )
            return f"{fixed}, but it broke again"
        if came_and_went:
            return f"passed again at the same commit{edits}"
        return f"last fixed{_by_commit(self.fixed)}"


@dataclass(frozen=True, slots=True)
class Tally(Shape):
    """The record of one kind of failure of one project. `fixed` is the first pass after the failure before the last."""

    signature: str
    project: str
    message: str
    count: int
    first: Occasion
    last: Occasion
    fixed: Occasion | None = None
    words: str = ""

    @property
    def key(self) -> str:
        """Return the key of its memory, which begins with the signature, so that all projects with it are found together."""
        return f"{digest_signature(self.signature)}/{self.project}"

    @classmethod
    def begin(cls, message: str, project: str, occasion: Occasion) -> Tally:
        """Return the tally of a first failure."""
        cause = cause_of(message)
        shown = cause[:_MOST_OF_MESSAGE]
        words = storable(add_words(project, shown, _MOST_WORDS))
        return cls(error_signature(cause), project, shown, 1, occasion, occasion, words=words)

    def count_on(self, later: Tally, fixed: Occasion | None) -> Tally:
        """Add another failure of the same kind; `fixed` is the first pass after this tally's last failure, if there was one.

        A failure that is older than the last one, as after a merge of stores, is counted and changes nothing else.
        """
        newest = self if later.last.at < self.last.at else later
        return replace(
            newest,
            count=self.count + later.count,
            first=min(self.first, later.first, key=lambda occasion: occasion.at),
            fixed=fixed or self.fixed,
            words=add_words(self.words, later.words, _MOST_WORDS),
        )

    def to_draft(self) -> MemoryDraft:
        """Return the tally as a memory to store."""
        return MemoryDraft(TALLIES, self.key, self.to_dict(), ("signature",), None, self.words)


def find_seen_before(
    connection: Connection, text: str, *, project: str | None = None, prefer: str | None = None, limit: int = 5
) -> tuple[SeenBefore, ...]:
    """Find the same failure by its signature alone: one index lookup, however much is stored.

    Call it before the present run is learned from, or it counts itself. A text of many lines is also tried line by line.

    Args:
        connection: to the store.
        text: the failure's message.
        project: return only this project's failures.
        prefer: return this project's failures first; then the most frequent ones.
        limit: the most projects to return.
    """
    digests = [digest_signature(signature) for signature in _signatures(text)]
    own = project or prefer
    found = find_by_keys(connection, TALLIES, [f"{digest}/{own}" for digest in digests]) if own else ()
    if project is None:
        for digest in digests:
            found += list_below_key(connection, TALLIES, digest, _MOST_PROJECTS)
    tallies = {memory.key: Tally.from_dict(memory.value) for memory in found}.values()
    ranked = sorted(tallies, key=lambda tally: (tally.project != own, -tally.count))
    return tuple(describe_tally(connection, tally, "signature") for tally in ranked[:limit])


def describe_tally(connection: Connection, tally: Tally, why: str) -> SeenBefore:
    """Return a tally in the form for faces, with the pass that came after it."""
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


def _signatures(text: str) -> Iterator[str]:
    lines = [line for line in text[-_MOST_READ:].splitlines() if line.strip()]
    causes = dict.fromkeys(error_signature(cause_of(one)) for one in (text, *lines[-_MOST_LINES:]))
    return (signature for signature in causes if signature)


def _checkout(occasion: Occasion) -> tuple[str | None, bool | None]:
    return occasion.commit, occasion.dirty


def _day(occasion: Occasion) -> str:
    return f"{from_ms(occasion.at):%Y-%m-%d}"


def _by_commit(occasion: Occasion) -> str:
    return f" on {_day(occasion)}" if occasion.commit is None else f" by {_commit(occasion)}"


def _commit(occasion: Occasion) -> str:
    changes = " with uncommitted changes" if occasion.dirty else ""
    return f"{str(occasion.commit)[:_SHORT_COMMIT]}{changes}"
