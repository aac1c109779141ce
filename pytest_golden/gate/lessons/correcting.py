"""Takes up the corrections that the journal has heard, each once, as lesson candidates of the agents that were corrected."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.lessons.store import find_last_signal, list_corrections
from pytest_golden.gate.lessons.wording import word_correction
from pytest_golden.learning.draft import MemoryDraft
from pytest_golden.learning.lessons.adding import add_lesson
from pytest_golden.learning.lessons.store import find_lesson
from pytest_golden.learning.results.turns import PROGRESS
from pytest_golden.learning.store import find_memory, rewrite_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from pytest_golden.gate.lessons.model import Correction
    from pytest_golden.learning.lessons.model import LessonVerdict
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
_KEY = "corrections"
# More than the overlap may hold, so that something new is always among them.
_AT_ONCE = 1_500
# Writers of a server number their signals before they are done: one may come to light after a later one.
_OVERLAP = 1_000
_WORTH_KEEPING = 1_000


def learn_corrections(store: Store, moment: int) -> tuple[LessonVerdict, ...]:
    """Make candidates of the corrections that were heard since the last time, and give what became of them.

    Raises:
        StorageError: the store cannot be read or written.
    """
    with store.read() as connection:
        if not _has_news(connection):
            return ()
    with store.write() as connection:
        place = _read_place(connection)
        last = find_last_signal(connection)
        # Asked again: another process may have been first.
        found = list_corrections(connection, place["number"] - _OVERLAP, _AT_ONCE)
        new = [one for one in found if one.signal_id not in place["learned"]]
        verdicts = tuple(verdict for one in new for verdict in _learn(connection, one, moment))
        number = found[-1].number if len(found) == _AT_ONCE else last
        recent = [one.signal_id for one in found if one.number > number - _OVERLAP]
        rewrite_memory(connection, MemoryDraft(PROGRESS, _KEY, {"number": number, "learned": recent}), moment)
    return verdicts


def _learn(connection: Connection, correction: Correction, moment: int) -> Iterator[LessonVerdict]:
    try:
        skill = word_correction(correction)
        # It may have come from another store.
        if find_lesson(connection, skill.id) is None:
            yield add_lesson(connection, skill, correction.agent, moment)
    except ValueError as error:
        details = {"signal": correction.signal_id, "error": repr(error)}
        _log.warning("a correction cannot be learned from", extra=details)


def _has_news(connection: Connection) -> bool:
    place = _read_place(connection)
    if find_last_signal(connection) - place["number"] >= _WORTH_KEEPING:
        return True
    found = list_corrections(connection, place["number"] - _OVERLAP, _AT_ONCE)
    return any(one.signal_id not in place["learned"] for one in found)


def _read_place(connection: Connection) -> dict[str, Any]:
    memory = find_memory(connection, PROGRESS, _KEY)
    kept = {} if memory is None else memory.value
    return {"number": int(kept.get("number", 0)), "learned": set(kept.get("learned", ()))}
