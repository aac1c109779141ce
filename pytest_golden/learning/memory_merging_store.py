"""Write the memories and lessons of one store into another, as rows. The rules are in `memory_merging.py`."""

from __future__ import annotations

import json
import logging
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, Text, and_, bindparam, delete, insert, or_, select, update

from pytest_golden.learning.lessons.model import LessonChange
from pytest_golden.learning.lessons.store import LESSONS, put_signatures, tag_lesson, words_of_lesson
from pytest_golden.learning.memories import check_key, check_texts
from pytest_golden.learning.memory_merging import (
    find_learned_entry,
    fold_versions,
    is_tally,
    merge_versions,
    settle_lessons,
    unite_versions,
)
from pytest_golden.manifest.units import show
from pytest_golden.storage.columns import read_namespace, write_namespace
from pytest_golden.storage.schema import gate_results, lesson_recalls, memories
from pytest_golden.storage.search import index_memory, unindex_memory
from pytest_golden.storage.statements import Prepared, insert_if_absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from pytest_golden.learning.lessons.model import SkillMemory

    Row = dict[str, Any]

_log = logging.getLogger(__name__)
_LESSON_DEPTH = 2
_RECALLS_AT_ONCE = 500
_COLUMNS: tuple[Any, ...] = tuple(column for column in memories.c if column.name != "number")
_RECALL_COLUMNS = tuple(column for column in lesson_recalls.c if column.name != "number")
_MEMORIES_AT_ONCE = 200
_PLACE, _KEY = bindparam("the_place", type_=Text()), bindparam("the_key", type_=Text())
_PAGE = select(*_COLUMNS).order_by(memories.c.namespace, memories.c.key, memories.c.version).limit(_MEMORIES_AT_ONCE)
_AFTER = _PAGE.where(
    memories.c.namespace >= _PLACE,
    or_(
        memories.c.namespace > _PLACE,
        memories.c.key > _KEY,
        and_(memories.c.key == _KEY, memories.c.version > bindparam("the_version", type_=Integer())),
    ),
)
_OF_KEY = select(*_COLUMNS).where(memories.c.namespace == _PLACE, memories.c.key == _KEY).order_by(memories.c.version)
_NEWEST = select(memories.c.number, memories.c.words).where(
    memories.c.namespace == _PLACE, memories.c.key == _KEY, memories.c.is_newest.is_(True)
)
_DELETE = delete(memories).where(memories.c.namespace == _PLACE, memories.c.key == _KEY)
_INSERT = insert(memories).returning(memories.c.number)
_HAS_RESULT = Prepared(
    select(gate_results.c.number).where(gate_results.c.entry_id == bindparam("the_entry", type_=Text()))
)


def merge_memories(source: Connection, target: Connection) -> int:
    """Write the new memories of a store into another, and return how many keys have something new.

    The gate's results must already be in the target: what they teach is skipped, since it is learned from them again. Each
    change of a lesson counts once.

    Raises:
        ValueError: a row is not a valid memory.
    """
    changed = 0
    lessons = LessonMerger(target)
    lessons.take_recalls(source)
    for (place, key), versions in groupby(_page_memories(source), key=lambda row: (row["namespace"], row["key"])):
        if not place.endswith("/"):
            raise ValueError(f"memories: {show(place)} is no namespace")
        namespace = read_namespace(place)
        if is_of_lesson(namespace):
            changed += lessons.take(namespace[1], key, list(versions))
        elif not _is_learned_again(target, namespace, key):
            changed += _merge_key(target, {"the_place": place, "the_key": key}, list(versions))
    lessons.finish()
    return changed


def _page_memories(source: Connection) -> Iterator[dict[str, Any]]:
    rows = source.execute(_PAGE).mappings().all()
    while rows:
        yield from map(_check_row, rows)
        last = rows[-1]
        names = {"the_place": last["namespace"], "the_key": last["key"], "the_version": last["version"]}
        rows = source.execute(_AFTER, names).mappings().all()


def _check_row(row: Any) -> dict[str, Any]:
    """Return a row, after checking what readers of memories rely on."""
    check_key(row["key"])
    check_texts("tags of a memory", row["tags"])
    for name in ("value", "provenance"):
        if not isinstance(row[name], dict) and (name == "value" or row[name] is not None):
            raise ValueError(f"memories: the {name} of {show(row['key'])} is no object")
    return dict(row)


def _is_learned_again(target: Connection, namespace: tuple[str, ...], key: str) -> bool:
    entry_id = find_learned_entry(namespace, key)
    if entry_id is None:
        return is_tally(namespace)
    return _HAS_RESULT.first(target, {"the_entry": entry_id}) is not None


def _merge_key(target: Connection, names: dict[str, str], versions: list[dict[str, Any]]) -> bool:
    present = [dict(row) for row in target.execute(_OF_KEY, names).mappings()]
    merged = merge_versions(present, versions)
    if merged == present:
        return False
    newest = target.execute(_NEWEST, names).one_or_none()
    if newest is not None:
        unindex_memory(target, newest.number, newest.words or "")
    target.execute(_DELETE, names)
    for row in merged:
        number = target.scalar(_INSERT, row)
        if row["is_newest"]:
            index_memory(target, int(number or 0), row["words"])
    return True


def is_of_lesson(namespace: tuple[str, ...]) -> bool:
    """Tell whether a memory is a lesson."""
    return len(namespace) == _LESSON_DEPTH and namespace[0] == LESSONS


class LessonMerger:
    """Merges the lessons of other stores; when all are read, `finish` settles how they stand together."""

    def __init__(self, target: Connection) -> None:
        self._target = target
        self._agents: set[str] = set()

    def take(self, agent: str, key: str, versions: Sequence[Row]) -> bool:
        """Merge the versions of a lesson, and tell whether one of them is new."""
        present = _read_versions(self._target, agent, key)
        own = unite_versions(present, ())
        united = unite_versions(present, versions)
        self._agents.add(agent)
        if len(united) == len(own):
            return False
        _write_versions(self._target, agent, key, united)
        return True

    def take_recalls(self, source: Connection) -> None:
        """Merge what came of showing lessons; of two results of one recall the first counts."""
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
        """Store the merged lessons of each agent, and the signatures that find them."""
        for agent in sorted(self._agents):
            self._finish_agent(agent)
        self._agents.clear()

    def _finish_agent(self, agent: str) -> None:
        histories: dict[str, list[Row]] = {}
        for key, rows in _read_lessons(self._target, agent):
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
    """Replace the stored versions with these; the newest has search words."""
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


def _read_lessons(connection: Connection, agent: str) -> Iterator[tuple[str, list[Row]]]:
    query = select(*_COLUMNS).where(memories.c.namespace == write_namespace((LESSONS, agent)))
    rows = connection.execute(query.order_by(memories.c.key, memories.c.version)).mappings()
    for key, versions in groupby(map(dict, rows), key=lambda row: row["key"]):
        yield key, list(versions)


def _page_recalls(source: Connection) -> Iterator[list[Row]]:
    after = 0
    while True:
        query = select(lesson_recalls).where(lesson_recalls.c.number > bindparam("after"))
        rows = (
            source.execute(query.order_by(lesson_recalls.c.number).limit(_RECALLS_AT_ONCE), {"after": after})
            .mappings()
            .all()
        )
        if not rows:
            return
        yield [{name: row[name] for name in row if name != "number"} for row in rows]
        after = rows[-1]["number"]


def _settled_key(row: Any) -> tuple[bool, int, bool]:
    """Return a key that orders recalls: settled ones first, the earliest of them first."""
    return row["settled_at"] is None, row["settled_at"] or 0, bool(row["passed"])


def _write(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
