"""Find what is known of a failure: lessons, when it was seen and which commit ended it, and memories with its words.

A memory that shares only a few words with it is left out: no answer is better than noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.learning.gate_learning import GATE_AGENT
from pytest_golden.learning.lessons.likeness import measure_likeness, read_causes, read_features
from pytest_golden.learning.lessons.model import Recalled
from pytest_golden.learning.lessons.recalling import is_hidden
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memories import is_typed, list_telling, measure_coverage, words_of
from pytest_golden.learning.model import MemoryHit
from pytest_golden.learning.seen_before import TALLIES, SeenBefore, Tally, describe_tally, find_seen_before
from pytest_golden.learning.signature import cause_of, find_causes
from pytest_golden.learning.store import list_namespaces, search
from pytest_golden.redaction.redactor import redact
from pytest_golden.values.checking import check_count
from pytest_golden.values.shape import Shape, form, in_form

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.likeness import ErrorFeatures
    from pytest_golden.storage.store import Store

_MOST_WORDS, _MOST_LESSONS = 32, 3
# The least shares of a typed text's words and of a failure's words that a hit contains, and the least likeness of two failures.
_LEAST_TYPED, _LEAST_COVERED, _LEAST_LIKENESS = 0.5, 0.6, 0.5
# A training example repeats its outcome, and tallies are shown separately.
_SHOWN_OTHERWISE = frozenset({TALLIES[0], "training"})


@dataclass(frozen=True, slots=True)
class Recollection(Shape):
    """The knowledge about a failure: lessons, failures seen before, the same ones first, and other memories with its words."""

    seen: tuple[SeenBefore, ...] = ()
    memories: tuple[MemoryHit, ...] = ()
    lessons: tuple[Recalled, ...] = field(default=(), metadata=form(key="recalled"))

    @property
    @in_form(first=True)
    def recall_id(self) -> str | None:
        """The recall of the first lesson; None without one, and where no recall is kept."""
        return (self.lessons[0].recall_id or None) if self.lessons else None


def recall_memories(
    store: Store,
    text: str,
    *,
    project: str | None = None,
    language: str | None = None,
    limit: int = 5,
    root: Path | None = None,
) -> Recollection:
    """Find what is known of a failure by its text: the same failure by its signature, or similar ones.

    The store records that lessons were shown, if it can.

    Args:
        store: the store of the memories.
        text: the failure's message, or any words of it.
        project: return only this project's failures and memories, and its lessons first.
        language: leave out lessons that come from files of other languages alone.
        limit: the most of each kind; of lessons up to three.
        root: the folder that is worked in: what has changed there makes a lesson stale.

    Raises:
        ValueError: the limit is below 1.
        StorageError: the store cannot be read.
    """
    check_count("limit", limit, least=1)
    most = min(limit, _MOST_LESSONS)
    lessons = Lessons(store).recall(text, project=project, language=language, limit=most, root=root)
    with store.read() as connection:
        same = find_seen_before(connection, text, project=project, limit=limit)
        known = {(one.signature, one.project) for one in same}
        asked = _Asked.read(text)
        alike = _find_alike(connection, asked, project, limit)
        alike = [one for one in alike if (one.signature, one.project) not in known]
        shown = frozenset(one.lesson.id for one in lessons)
        memories = tuple(_find_memories(connection, asked, project, limit, shown))
    return Recollection((*same, *alike)[:limit], memories, lessons)


class _Asked(NamedTuple):
    """The question: its words, and its causes, the main one first, when it is a failure's text."""

    words: tuple[str, ...]
    causes: tuple[ErrorFeatures, ...]

    @classmethod
    def read(cls, text: str) -> _Asked:
        causes = [redact(cause) for cause in find_causes(cause_of(text))]
        main = " ".join(causes[:1])
        features = () if is_typed(main) else tuple(read_causes(cause_of(text), redact).values())
        return cls(tuple(list_telling(main)[:_MOST_WORDS]), features)

    @property
    def query(self) -> str:
        return " ".join(self.words)


def _find_alike(connection: Connection, asked: _Asked, project: str | None, limit: int) -> list[SeenBefore]:
    hits = search(connection, TALLIES, asked.query, limit * (2 if project is None else 10)) if asked.words else ()
    tallies = [Tally.from_dict(hit.memory.value) for hit in hits]
    wanted = [tally for tally in tallies if project in {None, tally.project} and _reads_alike(tally, asked)]
    return [describe_tally(connection, tally, "words") for tally in wanted[:limit]]


def _reads_alike(tally: Tally, asked: _Asked) -> bool:
    if not asked.causes:
        return measure_coverage(asked.words, f"{tally.words} {tally.message}") >= _LEAST_TYPED
    own = read_features(tally.signature)
    return any(measure_likeness(own, cause) >= _LEAST_LIKENESS for cause in asked.causes)


def _find_memories(
    connection: Connection, asked: _Asked, project: str | None, limit: int, shown: frozenset[str]
) -> list[MemoryHit]:
    if not asked.words:
        return []
    prefixes = {namespace[0] for namespace in list_namespaces(connection, ())} - _SHOWN_OTHERWISE
    hits = [hit for prefix in prefixes for hit in search(connection, (prefix,), asked.query, limit * 10)]
    wanted = [
        hit
        for hit in hits
        # A tally describes a failure of the gate.
        if hit.memory.namespace != ("outcomes", GATE_AGENT) or hit.memory.value.get("success") is not False
        if hit.memory.key not in shown
        and not is_hidden(hit.memory)
        and (project is None or _is_of(hit, project))
        and measure_coverage(asked.words, words_of(hit.memory.value, hit.memory.key, hit.memory.tags)) >= _LEAST_COVERED
    ]
    return sorted(wanted, key=lambda hit: -hit.score)[:limit]


def _is_of(hit: MemoryHit, project: str) -> bool:
    value = hit.memory.value
    parts = (value, value.get("context"), value.get("evidence"))
    return any(isinstance(part, dict) and part.get("project") == project for part in parts)
