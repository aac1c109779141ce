"""What is known of a failure: how often it was seen, where, and which commit ended it; and memories that its words are in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.learning.results.reading import GATE_AGENT
from pytest_golden.learning.results.store import find_pass
from pytest_golden.learning.signature import cause_of, digest_signature, error_signature
from pytest_golden.learning.store import find_by_keys, list_below_key, list_namespaces, search
from pytest_golden.learning.tally import TALLIES, Tally
from pytest_golden.storage.moments import from_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from pytest_golden.learning.model import MemoryHit
    from pytest_golden.learning.results.model import Occasion
    from pytest_golden.storage.store import Store

_MOST_LINES, _MOST_WORDS, _MOST_PROJECTS = 50, 32, 20
_WORD = re.compile(r"\w{2,64}")
_SHORT_COMMIT = 7
# A training example says the same as its outcome, and a tally is told in its own way.
_TOLD_OTHERWISE = frozenset({TALLIES[0], "training"})


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
        if not self.is_fixed:
            return f"{told}; last fixed{_by_commit(self.fixed)}, and broken again since"
        if self.fixed.commit is not None and _checkout(self.fixed) == _checkout(self.last):
            return f"{told}; passed again at the same commit"
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


@dataclass(frozen=True, slots=True)
class Recollection:
    """What is known: failures seen before, the same ones first, and other memories with the words."""

    seen: tuple[SeenBefore, ...] = ()
    memories: tuple[MemoryHit, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give both as JSON-safe values."""
        return {"seen": [one.to_dict() for one in self.seen], "memories": [hit.to_dict() for hit in self.memories]}


def recall_memories(store: Store, text: str, *, project: str | None = None, limit: int = 5) -> Recollection:
    """Find what is known of a failure by its text: the same failure by its signature, else what reads alike.

    Args:
        store: where the memories are.
        text: the failure's message, or any words of it.
        project: tell of this project alone.
        limit: how many of each kind at most.

    Raises:
        ValueError: the limit is below 1.
        StorageError: the store cannot be read.
    """
    if limit < 1:
        raise ValueError(f"limit must be 1 or more, not {limit!r}")
    with store.read() as connection:
        same = find_seen_before(connection, text, project=project, limit=limit)
        known = {(one.signature, one.project) for one in same}
        words = _words(text)
        alike = [
            one for one in _find_alike(connection, words, project, limit) if (one.signature, one.project) not in known
        ]
        memories = tuple(_find_memories(connection, words, project, limit))
    return Recollection((*same, *alike)[:limit], memories)


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
    return tuple(_seen(connection, tally, "signature") for tally in ranked[:limit])


def _signatures(text: str) -> Iterator[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    causes = dict.fromkeys(error_signature(cause_of(one)) for one in (text, *lines[:_MOST_LINES]))
    return (signature for signature in causes if signature)


def _find_alike(connection: Connection, words: str, project: str | None, limit: int) -> list[SeenBefore]:
    hits = search(connection, TALLIES, words, limit if project is None else limit * 10) if words else ()
    tallies = [Tally.from_value(hit.memory.value) for hit in hits]
    wanted = [tally for tally in tallies if project in {None, tally.project}]
    return [_seen(connection, tally, "words") for tally in wanted[:limit]]


def _find_memories(connection: Connection, words: str, project: str | None, limit: int) -> list[MemoryHit]:
    if not words:
        return []
    rooms = {namespace[0] for namespace in list_namespaces(connection, ())} - _TOLD_OTHERWISE
    hits = [hit for room in rooms for hit in search(connection, (room,), words, limit * 10)]
    wanted = [hit for hit in hits if not _is_told(hit) and (project is None or _is_of(hit, project))]
    return sorted(wanted, key=lambda hit: -hit.score)[:limit]


def _is_told(hit: MemoryHit) -> bool:
    """Tell whether it is a failure of the gate, which a tally tells of."""
    return hit.memory.namespace == ("outcomes", GATE_AGENT) and hit.memory.value.get("success") is False


def _is_of(hit: MemoryHit, project: str) -> bool:
    value = hit.memory.value
    places = (value, value.get("context"), value.get("evidence"))
    return any(isinstance(place, dict) and place.get("project") == project for place in places)


def _words(text: str) -> str:
    return " ".join(list(dict.fromkeys(_WORD.findall(text[:10_000])))[:_MOST_WORDS])


def _seen(connection: Connection, tally: Tally, why: str) -> SeenBefore:
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
