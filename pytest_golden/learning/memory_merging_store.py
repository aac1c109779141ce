"""Write the memories and lessons of one store into another, as rows. `memory_merging.py` has the rules."""

from __future__ import annotations

import json
import logging
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, Text, and_, bindparam, delete, insert, or_, select, update

from pytest_golden.learning import memory_merging as merging
from pytest_golden.learning.lessons.model import LessonChange
from pytest_golden.learning.lessons.store import LESSONS, put_signatures, tag_lesson, words_of_lesson
from pytest_golden.learning.memories import check_key, check_texts
from pytest_golden.manifest.units import show
from pytest_golden.storage.columns import read_namespace, write_namespace
from pytest_golden.storage.schema import gate_results, lesson_recalls, memories
from pytest_golden.storage.search import index_memory, unindex_memory
from pytest_golden.storage.statements import insert_if_absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    Row = dict[str, Any]

_log = logging.getLogger(__name__)
_LESSON_DEPTH = 2
_RECALLS_AT_ONCE, _MEMORIES_AT_ONCE = 500, 200
_COLUMNS: tuple[Any, ...] = tuple(column for column in memories.c if column.name != "number")
_RECALL_COLUMNS = tuple(column for column in lesson_recalls.c if column.name != "number")
_NAMESPACE, _KEY = bindparam("the_namespace", type_=Text()), bindparam("the_key", type_=Text())
_PAGE = select(*_COLUMNS).order_by(memories.c.namespace, memories.c.key, memories.c.version).limit(_MEMORIES_AT_ONCE)
_AFTER = _PAGE.where(
    memories.c.namespace >= _NAMESPACE,
    or_(
        memories.c.namespace > _NAMESPACE,
        memories.c.key > _KEY,
        and_(memories.c.key == _KEY, memories.c.version > bindparam("the_version", type_=Integer())),
    ),
)
_IS_OF_KEY = (memories.c.namespace == _NAMESPACE, memories.c.key == _KEY)
_OF_KEY = select(*_COLUMNS).where(*_IS_OF_KEY).order_by(memories.c.version)
_NEWEST = select(memories.c.number, memories.c.words).where(*_IS_OF_KEY, memories.c.is_newest.is_(True))
_DELETE = delete(memories).where(*_IS_OF_KEY)
_INSERT = insert(memories).returning(memories.c.number)
_HAS_RESULT = select(gate_results.c.number).where(gate_results.c.entry_id == bindparam("the_entry", type_=Text()))


def merge_memories(source: Connection, target: Connection) -> int:
    """Write the new memories of a store into another, and return how many keys have something new.

    The target must already have the gate's results: what they teach is skipped, since it is learned from them again. Each
    change of a lesson counts once.

    Raises:
        ValueError: a row is not a valid memory.
    """
    changed = 0
    agents: set[str] = set()
    _merge_recalls(source, target)
    for (namespace, key), rows in groupby(_page_memories(source), key=lambda row: (row["namespace"], row["key"])):
        if not namespace.endswith("/"):
            raise ValueError(f"memories: {show(namespace)} is no namespace")
        elements = read_namespace(namespace)
        is_lesson = len(elements) == _LESSON_DEPTH and elements[0] == LESSONS
        if is_lesson:
            agents.add(elements[1])
        elif _is_learned_again(target, elements, key):
            continue
        changed += _merge_key(target, {"the_namespace": namespace, "the_key": key}, list(rows), is_lesson=is_lesson)
    for agent in sorted(agents):
        _settle_agent(target, agent)
    return changed


def _page_memories(source: Connection) -> Iterator[Row]:
    rows = source.execute(_PAGE).mappings().all()
    while rows:
        yield from map(_check_row, rows)
        last = rows[-1]
        names = {"the_namespace": last["namespace"], "the_key": last["key"], "the_version": last["version"]}
        rows = source.execute(_AFTER, names).mappings().all()


def _check_row(row: Any) -> Row:
    """Return a row. Raise a `ValueError` when readers of memories could not use it."""
    check_key(row["key"])
    check_texts("tags of a memory", row["tags"])
    for name in ("value", "provenance"):
        if not isinstance(row[name], dict) and (name == "value" or row[name] is not None):
            raise ValueError(f"memories: the {name} of {show(row['key'])} is no object")
    return dict(row)


def _is_learned_again(target: Connection, namespace: tuple[str, ...], key: str) -> bool:
    entry_id = merging.find_learned_entry(namespace, key)
    if entry_id is None:
        return merging.is_tally(namespace)
    return target.scalar(_HAS_RESULT, {"the_entry": entry_id}) is not None


def _merge_key(target: Connection, names: dict[str, str], versions: list[Row], *, is_lesson: bool) -> bool:
    """Merge the versions of a key, and return whether one of them is new."""
    present = [dict(row) for row in target.execute(_OF_KEY, names).mappings()]
    unite = merging.unite_lessons if is_lesson else merging.unite_memories
    merged = unite(present, versions)
    if is_lesson and len(merged) == len(unite(present)):
        return False
    return _replace_versions(target, names, present, merging.number_versions(merged))


def _replace_versions(target: Connection, names: dict[str, str], present: list[Row], wanted: list[Row]) -> bool:
    """Store these versions of a key in place of the present ones; return False when they are equal."""
    if wanted == present:
        return False
    newest = target.execute(_NEWEST, names).one_or_none()
    if newest is not None:
        unindex_memory(target, newest.number, newest.words or "")
    target.execute(_DELETE, names)
    for row in wanted:
        number = target.scalar(_INSERT, row)
        if row["is_newest"]:
            index_memory(target, int(number or 0), row["words"])
    return True


def _settle_agent(target: Connection, agent: str) -> None:
    """Store the lessons of an agent as they follow from all their versions, and the signatures that find them."""
    namespace = write_namespace((LESSONS, agent))
    query = select(*_COLUMNS).where(memories.c.namespace == namespace)
    rows = target.execute(query.order_by(memories.c.key, memories.c.version)).mappings()
    present = {key: list(versions) for key, versions in groupby(map(dict, rows), key=lambda row: row["key"])}
    histories = {key: merging.unite_lessons(versions) for key, versions in present.items()}
    lessons = {}
    for key, versions in histories.items():
        try:
            lessons[key] = merging.fold_versions(versions)
        except (TypeError, ValueError, IndexError):
            _log.warning("a memory among the lessons is none", extra={"key": key})
    for key, skill in merging.settle_lessons(lessons).items():
        versions = histories[key]
        value = skill.to_dict()
        if _write(versions[-1]["value"]) != _write(value):
            why = {"why": LessonChange.MERGED.value, "by": None}
            versions.append({**versions[-1], "value": value, "tags": list(tag_lesson(skill)), "provenance": why})
        wanted = merging.number_versions(versions, words_of_lesson(skill))
        _replace_versions(target, {"the_namespace": namespace, "the_key": key}, present[key], wanted)
        put_signatures(target, skill, agent)


def _merge_recalls(source: Connection, target: Connection) -> None:
    """Merge what came of showing lessons; of two results of one recall the first counts."""
    for rows in _page_recalls(source):
        query = select(*_RECALL_COLUMNS).where(lesson_recalls.c.id.in_([row["id"] for row in rows]))
        known = {row["id"]: row for row in target.execute(query).mappings()}
        new = [row for row in rows if row["id"] not in known]
        if new:
            target.execute(insert_if_absent(lesson_recalls), new)
        for row in rows:
            if row["id"] in known and _settled_key(row) < _settled_key(known[row["id"]]):
                values = {name: row[name] for name in ("settled_at", "passed")}
                target.execute(update(lesson_recalls).where(lesson_recalls.c.id == row["id"]).values(values))


def _page_recalls(source: Connection) -> Iterator[Sequence[Row]]:
    query = select(*_RECALL_COLUMNS).order_by(lesson_recalls.c.id).limit(_RECALLS_AT_ONCE)
    rows = source.execute(query).mappings().all()
    while rows:
        yield [dict(row) for row in rows]
        rows = source.execute(query.where(lesson_recalls.c.id > rows[-1]["id"])).mappings().all()


def _settled_key(row: Any) -> tuple[bool, int, bool]:
    """Return a key that orders recalls: settled ones first, the earliest of them first."""
    return row["settled_at"] is None, row["settled_at"] or 0, bool(row["passed"])


def _write(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
