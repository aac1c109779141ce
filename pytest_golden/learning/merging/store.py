"""Memories of one store as rows of another. Works on open connections; what is kept is decided in `rules.py`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, Text, and_, bindparam, delete, insert, or_, select

from pytest_golden.learning.draft import check_key
from pytest_golden.learning.limits import check_texts
from pytest_golden.learning.merging.lessons.store import LessonMerger, is_of_lesson
from pytest_golden.learning.merging.rules import find_learned_entry, is_tally, merge_versions
from pytest_golden.manifest.unquoted import show
from pytest_golden.storage.namespaces import read_namespace
from pytest_golden.storage.prepared import Prepared
from pytest_golden.storage.schema import gate_results, memories
from pytest_golden.storage.search import index_memory, unindex_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

_AT_ONCE = 200
_COLUMNS: tuple[Any, ...] = tuple(column for column in memories.c if column.name != "number")
_PLACE, _KEY = bindparam("the_place", type_=Text()), bindparam("the_key", type_=Text())
_PAGE = select(*_COLUMNS).order_by(memories.c.namespace, memories.c.key, memories.c.version).limit(_AT_ONCE)
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
    """Take in the memories of a store that are new, and give of how many keys there is something new.

    The gate's results are there: what they teach is passed over, since it is learned from them. Of lessons each thing that
    was done to them counts once.

    Raises:
        ValueError: one is no memory.
    """
    changed = 0
    lessons = LessonMerger(target)
    lessons.take_recalls(source)
    for (place, key), versions in groupby(_read_versions(source), key=lambda row: (row["namespace"], row["key"])):
        if not place.endswith("/"):
            raise ValueError(f"memories: {show(place)} is no namespace")
        namespace = read_namespace(place)
        if is_of_lesson(namespace):
            changed += lessons.take(namespace[1], key, list(versions))
        elif not _is_learned_again(target, namespace, key):
            changed += _merge_key(target, {"the_place": place, "the_key": key}, list(versions))
    lessons.finish()
    return changed


def _read_versions(source: Connection) -> Iterator[dict[str, Any]]:
    rows = source.execute(_PAGE).mappings().all()
    while rows:
        yield from map(_check_row, rows)
        last = rows[-1]
        names = {"the_place": last["namespace"], "the_key": last["key"], "the_version": last["version"]}
        rows = source.execute(_AFTER, names).mappings().all()


def _check_row(row: Any) -> dict[str, Any]:
    """Check what whoever reads a memory relies on."""
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
