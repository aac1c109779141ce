"""The lessons of one store as rows of another, and what came of showing them. Works on open connections; decides nothing."""

from __future__ import annotations

import json
import logging
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, insert, select, update

from pytest_golden.learning.lessons.model import LessonChange
from pytest_golden.learning.lessons.store import LESSONS, put_signatures, tag_lesson, words_of_lesson
from pytest_golden.learning.merging.lessons.rules import fold_versions, settle_lessons, unite_versions
from pytest_golden.storage.inserting import insert_if_absent
from pytest_golden.storage.namespaces import write_namespace
from pytest_golden.storage.schema import lesson_recalls, memories
from pytest_golden.storage.search import index_memory, unindex_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory

    Row = dict[str, Any]

_log = logging.getLogger(__name__)
_DEPTH = 2
_AT_ONCE = 500
_COLUMNS: tuple[Any, ...] = tuple(column for column in memories.c if column.name != "number")
_RECALL_COLUMNS = tuple(column for column in lesson_recalls.c if column.name != "number")


def is_of_lesson(namespace: tuple[str, ...]) -> bool:
    """Tell whether a memory is a lesson."""
    return len(namespace) == _DEPTH and namespace[0] == LESSONS


class LessonMerger:
    """Takes in the lessons of other stores; when all are in, `finish` settles what they are together."""

    def __init__(self, target: Connection) -> None:
        self._target = target
        self._agents: set[str] = set()

    def take(self, agent: str, key: str, versions: Sequence[Row]) -> bool:
        """Take in the versions of a lesson, and tell whether there was something new among them."""
        present = _read_versions(self._target, agent, key)
        own = unite_versions(present, ())
        united = unite_versions(present, versions)
        self._agents.add(agent)
        if len(united) == len(own):
            return False
        _write_versions(self._target, agent, key, united)
        return True

    def take_recalls(self, source: Connection) -> None:
        """Take in what came of showing lessons; of two words about one recall the first counts."""
        for rows in _page_recalls(source):
            ids = [row["id"] for row in rows]
            query = select(*_RECALL_COLUMNS).where(lesson_recalls.c.id.in_(ids))
            known = {row["id"]: row for row in self._target.execute(query).mappings()}
            new = [row for row in rows if row["id"] not in known]
            if new:
                self._target.execute(insert_if_absent(lesson_recalls), new)
            for row in rows:
                if row["id"] in known and _settled_key(row) < _settled_key(known[row["id"]]):
                    values = {name: row[name] for name in ("settled_at", "passed")}
                    self._target.execute(update(lesson_recalls).where(lesson_recalls.c.id == row["id"]).values(values))

    def finish(self) -> None:
        """Store what the lessons of each agent are now, and by what they are found."""
        for agent in sorted(self._agents):
            self._finish_agent(agent)
        self._agents.clear()

    def _finish_agent(self, agent: str) -> None:
        histories: dict[str, list[Row]] = {}
        for key, rows in _read_all(self._target, agent):
            histories[key] = unite_versions(rows, ())
        folded = {key: skill for key, rows in histories.items() for skill in _fold(key, rows)}
        for key, skill in settle_lessons(folded).items():
            rows = histories[key]
            if _write(rows[-1]["value"]) != _write(skill.to_dict()):
                rows = [*rows, _merged_row(rows[-1], skill)]
            _write_versions(self._target, agent, key, rows, skill)
            put_signatures(self._target, skill, agent)


def _fold(key: str, rows: Sequence[Row]) -> Iterator[SkillMemory]:
    try:
        yield fold_versions(rows)
    except (TypeError, ValueError, IndexError):
        _log.warning("a memory among the lessons is none", extra={"key": key})


def _merged_row(last: Row, skill: SkillMemory) -> Row:
    return {
        **last,
        "value": skill.to_dict(),
        "tags": list(tag_lesson(skill)),
        "provenance": {"why": LessonChange.MERGED.value, "by": None},
    }


def _write_versions(
    target: Connection, agent: str, key: str, rows: Sequence[Row], skill: SkillMemory | None = None
) -> None:
    """Store the versions in place of those that are there; the newest has words to be found by."""
    place = write_namespace((LESSONS, agent))
    last = len(rows)
    created_at = min(row["created_at"] for row in rows)
    wanted = [
        {
            **row,
            "version": version,
            "is_newest": version == last,
            "words": _words(row, skill) if version == last else None,
            "created_at": created_at,
        }
        for version, row in enumerate(rows, 1)
    ]
    if wanted == _read_versions(target, agent, key):
        return
    of_key = (memories.c.namespace == place, memories.c.key == key)
    for number, words in target.execute(
        select(memories.c.number, memories.c.words).where(*of_key, memories.c.is_newest.is_(True))
    ):
        unindex_memory(target, number, words or "")
    target.execute(delete(memories).where(*of_key))
    for row in wanted:
        number = target.scalar(insert(memories).returning(memories.c.number), row)
        if row["is_newest"]:
            index_memory(target, int(number or 0), row["words"])


def _words(row: Row, skill: SkillMemory | None) -> str:
    return (row["words"] or "") if skill is None else words_of_lesson(skill)


def _read_versions(connection: Connection, agent: str, key: str) -> list[Row]:
    query = select(*_COLUMNS).where(memories.c.namespace == write_namespace((LESSONS, agent)), memories.c.key == key)
    return [dict(row) for row in connection.execute(query.order_by(memories.c.version)).mappings()]


def _read_all(connection: Connection, agent: str) -> Iterator[tuple[str, list[Row]]]:
    query = select(*_COLUMNS).where(memories.c.namespace == write_namespace((LESSONS, agent)))
    rows = connection.execute(query.order_by(memories.c.key, memories.c.version)).mappings()
    for key, versions in groupby(map(dict, rows), key=lambda row: row["key"]):
        yield key, list(versions)


def _page_recalls(source: Connection) -> Iterator[list[Row]]:
    after = 0
    while True:
        query = select(lesson_recalls).where(lesson_recalls.c.number > bindparam("after"))
        rows = (
            source.execute(query.order_by(lesson_recalls.c.number).limit(_AT_ONCE), {"after": after}).mappings().all()
        )
        if not rows:
            return
        yield [{name: row[name] for name in row if name != "number"} for row in rows]
        after = rows[-1]["number"]


def _settled_key(row: Any) -> tuple[bool, int, bool]:
    """Order what came of a recall: what is settled before what is not, and the first word before later ones."""
    return row["settled_at"] is None, row["settled_at"] or 0, bool(row["passed"])


def _write(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
