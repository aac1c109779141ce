"""Store memories as rows, and read them. Each function works on an open connection; values are checked and redacted before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, select, update

from pytest_golden.learning.model import Memory, MemoryHit
from pytest_golden.storage.columns import from_ms, namespace_range, read_namespace, write_namespace
from pytest_golden.storage.schema import memories
from pytest_golden.storage.search import find_memories, index_memories, index_memory, unindex_memory
from pytest_golden.storage.statements import Prepared, insert_if_absent
from pytest_golden.trajectory.vocabulary import freeze_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection, Row, Select

    from pytest_golden.learning.memories import MemoryDraft

#: The condition of the index of the newest, word for word.
IS_NEWEST: Any = literal_column("memories.is_newest")
_COLUMNS: tuple[Any, ...] = tuple(column for column in memories.c if column.name not in {"is_newest", "words"})
_NEWEST: Select[Any] = select(*_COLUMNS, memories.c.words).where(
    memories.c.namespace == bindparam("in_namespace"),
    memories.c.key == bindparam("of_key"),
    memories.c.is_newest.is_(True),
)
# One statement stores a memory if its key is new, as most are.
_INSERT_IF_NEW = Prepared(
    insert_if_absent(memories, memories.c.number), *(column.name for column in memories.c if column.name != "number")
)
_INSERT_ALL_NEW = insert_if_absent(memories, memories.c.number, memories.c.namespace, memories.c.key)
_INSERT = insert(memories).returning(memories.c.number)
_AGE = update(memories).where(memories.c.number == bindparam("old_number")).values(is_newest=False, words=None)
_ANNOTATE = update(memories).where(memories.c.number == bindparam("old_number"))
_MOST_KEYS = 500
# A value may have 1 MiB, so only a few are in memory at once.
_VALUES_AT_ONCE = 50
# Every namespace is searched for every key.
_MOST_PAIRS = 50


def put_memory(connection: Connection, draft: MemoryDraft, timestamp: int) -> Memory:
    """Store a memory: a new key as version 1, another value as the next version.

    An equal value makes no version; its tags and provenance, if given, replace those of the newest version.
    """
    return put_memories(connection, (draft,), timestamp)[0]


def put_memories(connection: Connection, drafts: Iterable[MemoryDraft], timestamp: int) -> tuple[Memory, ...]:
    """Store many as `put_memory` does, and index those with new keys together."""
    kept: list[Memory] = []
    unindexed: list[tuple[int, str]] = []
    for draft in drafts:
        row = _INSERT_IF_NEW.first(connection, _row_of(draft, timestamp))
        if row is not None:
            unindexed.append((row.number, draft.words))
            kept.append(_memory_of_draft(draft, 1, timestamp, timestamp))
            continue
        # It may be the next version of one that is not indexed yet.
        index_memories(connection, unindexed)
        unindexed.clear()
        kept.append(_put_again(connection, draft, timestamp))
    index_memories(connection, unindexed)
    return tuple(kept)


def _put_again(connection: Connection, draft: MemoryDraft, timestamp: int) -> Memory:
    row = _get_newest(connection, draft)
    # Compared as text, since 1, 1.0 and True are equal in Python.
    if json.dumps(row.value, sort_keys=True) == json.dumps(draft.value, sort_keys=True):
        return _annotate(connection, row, draft, timestamp)
    connection.execute(_AGE, {"old_number": row.number})
    unindex_memory(connection, row.number, row.words or "")
    version = row.version + 1
    values = {**_row_of(draft, timestamp), "version": version, "created_at": row.created_at}
    number = connection.scalar(_INSERT, values)
    index_memory(connection, int(number or 0), draft.words)
    return _memory_of_draft(draft, version, row.created_at, timestamp)


def _get_newest(connection: Connection, draft: MemoryDraft) -> Row[Any]:
    return connection.execute(_NEWEST, {"in_namespace": write_namespace(draft.namespace), "of_key": draft.key}).one()


def insert_all_new(connection: Connection, drafts: Sequence[MemoryDraft], timestamp: int) -> frozenset[str]:
    """Store each memory whose key is new, as version 1, and return those keys."""
    if not drafts:
        return frozenset()
    rows = [_row_of(draft, timestamp) for draft in drafts]
    words = {(row["namespace"], row["key"]): row["words"] for row in rows}
    stored = connection.execute(_INSERT_ALL_NEW, rows).all()
    index_memories(connection, [(row.number, words[row.namespace, row.key]) for row in stored])
    return frozenset(row.key for row in stored)


def rewrite_memory(connection: Connection, draft: MemoryDraft, timestamp: int) -> None:
    """Store a memory in place of the present version, without a further one: for tallies, which need no history."""
    if insert_all_new(connection, [draft], timestamp):
        return
    row = _get_newest(connection, draft)
    values = {"value": draft.value, "words": draft.words, "updated_at": timestamp}
    connection.execute(_ANNOTATE.values(values), {"old_number": row.number})
    if row.words != draft.words:
        unindex_memory(connection, row.number, row.words or "")
        index_memory(connection, row.number, draft.words)


def find_memory(
    connection: Connection, namespace: Iterable[str], key: str, version: int | None = None
) -> Memory | None:
    """Return the newest version, or the given one; None when it does not exist."""
    query = _one_key(namespace, key)
    wanted = memories.c.is_newest.is_(True) if version is None else memories.c.version == version
    row = connection.execute(query.where(wanted)).one_or_none()
    return None if row is None else _memory(row)


def list_versions(connection: Connection, namespace: Iterable[str], key: str) -> tuple[Memory, ...]:
    """Return all versions, oldest first."""
    return tuple(map(_memory, connection.execute(_one_key(namespace, key).order_by(memories.c.version))))


def delete_memory(connection: Connection, namespace: Iterable[str], key: str) -> bool:
    """Remove all versions of a key, and return whether there was one."""
    stored = write_namespace(namespace)
    newest = connection.execute(_NEWEST, {"in_namespace": stored, "of_key": key}).one_or_none()
    if newest is None:
        return False
    unindex_memory(connection, newest.number, newest.words or "")
    connection.execute(delete(memories).where(memories.c.namespace == stored, memories.c.key == key))
    return True


def list_namespaces(connection: Connection, prefix: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the namespaces that hold something and begin with these elements, sorted."""
    # The index is in order: each step skips to the next namespace, however many memories one has.
    limits = namespace_range(prefix)
    first = select(func.min(memories.c.namespace).label("namespace"))
    namespaces = (first if limits is None else first.where(memories.c.namespace >= limits[0])).cte(
        "namespaces", recursive=True
    )
    later = (
        select(func.min(memories.c.namespace)).where(memories.c.namespace > namespaces.c.namespace).scalar_subquery()
    )
    namespaces = namespaces.union_all(select(later).where(_is_before(namespaces.c.namespace, limits)))
    found = connection.scalars(select(namespaces.c.namespace).where(_is_before(namespaces.c.namespace, limits)))
    return tuple(sorted(map(read_namespace, found)))


def _is_before(namespace: Any, limits: tuple[str, str] | None) -> Any:
    return namespace.is_not(None) if limits is None else namespace < limits[1]


def list_newest_keys(
    connection: Connection, namespace: Iterable[str], *, before: str | None = None, limit: int
) -> tuple[Memory, ...]:
    """Return the newest versions in a namespace, of all keys or of those below `before`, the greatest key first."""
    query = _select_newest(namespace)
    if before is not None:
        query = query.where(memories.c.key < before)
    rows = connection.execute(query.order_by(memories.c.key.desc(), memories.c.version.desc()).limit(limit))
    return tuple(map(_memory, rows))


def find_everywhere(connection: Connection, prefix: Iterable[str], key: str) -> tuple[Memory, ...]:
    """Return the newest versions of a key in all namespaces that begin with these elements, by namespace."""
    found = find_by_pairs(connection, [(namespace, key) for namespace in list_namespaces(connection, prefix)])
    return tuple(sorted(found, key=lambda memory: memory.namespace))


def list_keys(connection: Connection, namespace: Iterable[str]) -> tuple[str, ...]:
    """Return the keys in a namespace, sorted."""
    return tuple(sorted(connection.scalars(_select_newest(namespace, memories.c.key))))


def find_by_keys(connection: Connection, namespace: Iterable[str], keys: Sequence[str]) -> tuple[Memory, ...]:
    """Return the newest versions of these keys, as far as they exist."""
    query = _select_newest(namespace)
    found: list[Memory] = []
    for start in range(0, len(keys), _MOST_KEYS):
        found += map(_memory, connection.execute(query.where(memories.c.key.in_(keys[start : start + _MOST_KEYS]))))
    return tuple(found)


def find_by_pairs(connection: Connection, pairs: Iterable[tuple[Iterable[str], str]]) -> tuple[Memory, ...]:
    """Return the newest versions for these pairs of namespace and key, as far as they exist."""
    wanted = [(write_namespace(namespace), key) for namespace, key in pairs]
    found: list[Memory] = []
    for start in range(0, len(wanted), _MOST_PAIRS):
        # SQLite reads all rows to find pairs, but uses the index for two lists.
        some = frozenset(wanted[start : start + _MOST_PAIRS])
        here = (
            memories.c.namespace.in_({namespace for namespace, _ in some}),
            memories.c.key.in_({key for _, key in some}),
        )
        rows = connection.execute(select(*_COLUMNS).where(*here, memories.c.is_newest.is_(True)))
        found += (_memory(row) for row in rows if (row.namespace, row.key) in some)
    return tuple(found)


def list_below_key(connection: Connection, namespace: Iterable[str], start: str, limit: int) -> tuple[Memory, ...]:
    """Return the newest versions of the keys that begin with `start` and a slash, in the order of their keys."""
    low, high = f"{start}/", f"{start}0"
    query = _select_newest(namespace).where(memories.c.key >= low, memories.c.key < high)
    return tuple(map(_memory, connection.execute(query.order_by(memories.c.key).limit(limit))))


def list_latest(
    connection: Connection, kind: str, agent: str | None, limit: int, *, without: str | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the agents and the values of the latest memories of a kind, of one agent or of all (`without` one), latest first."""
    numbers = _select_kind(kind, agent, without).order_by(memories.c.number.desc()).limit(limit)
    query = select(memories.c.namespace, memories.c.value).where(memories.c.number.in_(numbers.scalar_subquery()))
    rows = connection.execute(query.order_by(memories.c.number.desc()))
    return [(read_namespace(row.namespace)[1], row.value) for row in rows]


def _select_kind(kind: str, agent: str | None, without: str | None = None) -> Select[Any]:
    query = select(memories.c.number).where(IS_NEWEST)
    if agent is not None:
        return query.where(memories.c.namespace == write_namespace((kind, agent)))
    low, high = namespace_range((kind,)) or ("", "")
    query = query.where(memories.c.namespace >= low, memories.c.namespace < high)
    return query if without is None else query.where(memories.c.namespace != write_namespace((kind, without)))


def iterate_kind(
    connection: Connection, kind: str, agent: str | None, *, latest_first: bool = False
) -> Iterator[Memory]:
    """Yield the newest versions of all memories of a kind, of one agent or of all, in the order of storing."""
    order = memories.c.number.desc() if latest_first else memories.c.number
    query = _select_kind(kind, agent).order_by(order)
    for numbers in connection.scalars(query, execution_options={"yield_per": _VALUES_AT_ONCE}).partitions():
        found = find_by_numbers(connection, numbers)
        yield from (found[number] for number in numbers if number in found)


def search(
    connection: Connection, prefix: Iterable[str], query: str, limit: int, *, or_beginnings: bool = False
) -> tuple[MemoryHit, ...]:
    """Return the newest versions that contain any word of the query, best first; `or_beginnings` as in `find_memories`."""
    return tuple(iterate_search(connection, prefix, query, limit, at_once=limit, or_beginnings=or_beginnings))


def iterate_search(
    connection: Connection,
    prefix: Iterable[str],
    query: str,
    limit: int,
    *,
    at_once: int,
    or_beginnings: bool = False,
) -> Iterator[MemoryHit]:
    """Yield the same memories, reading `at_once` of them at a time, and only as many as are consumed."""
    found = find_memories(connection, query, tuple(prefix), limit, or_beginnings=or_beginnings)
    for start in range(0, len(found), at_once):
        scores = dict(found[start : start + at_once])
        read = find_by_numbers(connection, scores)
        yield from (MemoryHit(read[number], score) for number, score in scores.items() if number in read)


def find_by_numbers(connection: Connection, numbers: Iterable[int]) -> dict[int, Memory]:
    """Return the memories with these row numbers, as far as they are newest versions."""
    rows = connection.execute(select(*_COLUMNS).where(memories.c.number.in_(numbers), memories.c.is_newest))
    return {row.number: _memory(row) for row in rows}


def _select_newest(namespace: Iterable[str], *columns: Any) -> Select[Any]:
    in_namespace = memories.c.namespace == write_namespace(namespace)
    return select(*(columns or _COLUMNS)).where(in_namespace, memories.c.is_newest.is_(True))


def _one_key(namespace: Iterable[str], key: str) -> Any:
    return select(*_COLUMNS).where(memories.c.namespace == write_namespace(namespace), memories.c.key == key)


def _annotate(connection: Connection, row: Row[Any], draft: MemoryDraft, timestamp: int) -> Memory:
    changed: dict[str, Any] = {}
    if draft.tags and list(draft.tags) != row.tags:
        changed["tags"] = list(draft.tags)
    if draft.provenance is not None and draft.provenance != row.provenance:
        changed["provenance"] = draft.provenance
    if not changed:
        return _memory(row)
    if "tags" in changed:
        unindex_memory(connection, row.number, row.words or "")
        index_memory(connection, row.number, draft.words)
        changed["words"] = draft.words
    connection.execute(_ANNOTATE.values({**changed, "updated_at": timestamp}), {"old_number": row.number})
    return _memory(connection.execute(select(*_COLUMNS).where(memories.c.number == row.number)).one())


def _row_of(draft: MemoryDraft, timestamp: int) -> dict[str, Any]:
    stored = {"namespace": write_namespace(draft.namespace), "version": 1, "is_newest": True}
    return {**draft._asdict(), **stored, "created_at": timestamp, "updated_at": timestamp}


def _memory_of_draft(draft: MemoryDraft, version: int, created_at: int, updated_at: int) -> Memory:
    times = from_ms(created_at), from_ms(updated_at)
    return Memory(draft.namespace, draft.key, draft.value, version, draft.tags, draft.provenance, *times)


def _memory(row: Row[Any]) -> Memory:
    return Memory(
        read_namespace(row.namespace),
        row.key,
        freeze_mapping("value", row.value),
        row.version,
        tuple(row.tags),
        None if row.provenance is None else freeze_mapping("provenance", row.provenance),
        from_ms(row.created_at),
        from_ms(row.updated_at),
    )
