"""Copies of entries as rows, and back. Each function works on an open connection; `entry_merging.py` decides how to merge."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Text, bindparam, delete, func, insert, literal_column, or_, select, text, update

from pytest_golden.journal.assessment_store import COUNT_COLUMNS, count_columns, find_due
from pytest_golden.journal.model import RoutedBy
from pytest_golden.journal.store import write_found_by
from pytest_golden.journal.transfer.entry_merging import Copy, Row, count, differ, write_content
from pytest_golden.journal.transfer.lines import ENTRY_FIELDS, EXPECTATION_FIELDS, HISTORY_FIELDS, SIGNAL_FIELDS
from pytest_golden.storage.schema import entries, entry_history, expectations, signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Column, ColumnElement, Connection, Select, Table


# How many rows of expectations and signals are in memory at once, if one entry has not more.
_MOST_ROWS = 2000
_MOST_ENTRIES = 200
_ROWS_IN_PAGE = 500
_FROM_SEQUENCE = text("SELECT nextval(pg_get_serial_sequence(:name, 'number')) FROM generate_series(1, :amount)")
_IS_ORPHAN = signals.c.routed_by == literal_column(f"'{RoutedBy.ORPHAN.value}'")
_STORED = tuple(name for name in EXPECTATION_FIELDS if name != "by_hint_only")
_THE_ENTRY = bindparam("the_entry", type_=Text())
_THE_ID = bindparam("the_id", type_=Text())
_BY_HINT_ONLY = expectations.c.hint_shape.is_(None).label("by_hint_only")
_UPDATE_ENTRY = update(entries).where(entries.c.id == _THE_ENTRY)
_THE_COPY = select(*(entries.c[name] for name in ENTRY_FIELDS)).where(entries.c.id == _THE_ENTRY)
# Without a mark, the time of a signal tells what was expected then.
_UNMARK = (
    update(signals)
    .where(signals.c.expectation_mark.is_not(None), signals.c.created_at >= bindparam("since", type_=BigInteger()))
    .values(expectation_mark=None)
)
_ENTRY_OF_EXPECTATION = select(expectations.c.entry_id).where(expectations.c.id == _THE_ID)
_PLACE = (signals.c.id, signals.c.entry_id, signals.c.created_at)
_BY_ID = select(*_PLACE).where(signals.c.id == _THE_ID)
_BY_EXTERNAL_ID = select(*_PLACE).where(
    signals.c.source == bindparam("the_source", type_=Text()),
    signals.c.external_id == bindparam("the_external_id", type_=Text()),
)
_DELETE_SIGNAL = delete(signals).where(signals.c.id == _THE_ID)


class Place(NamedTuple):
    """Where a signal is kept: its id, its entry (None: an orphan), and when it was received."""

    id: str
    entry_id: str | None
    created_at: int

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the sort key of the places of one signal, of which the first is kept: one with an entry, then the earliest."""
        return self.entry_id is None, self.created_at, self.id, self.entry_id or ""


class _Part(NamedTuple):
    """A table of what belongs to an entry: its columns that travel, how a row is recognised, and its statements."""

    table: Table
    columns: tuple[Any, ...]
    key: Callable[[Row], str]
    of_entries: Select[Any]


def _make_part(table: Table, columns: Sequence[Any], key: Callable[[Row], str]) -> _Part:
    owner = table.c.entry_id
    # Made once: to put such a statement together takes longer than to run it.
    query = select(*columns, owner).order_by(owner, table.c.number)
    return _Part(
        table,
        tuple(columns),
        key,
        query.where(owner.in_(bindparam("the_entries", expanding=True))),
    )


_EXPECTATIONS = _make_part(expectations, (*(expectations.c[name] for name in _STORED), _BY_HINT_ONLY), itemgetter("id"))
_SIGNALS = _make_part(signals, [signals.c[name] for name in SIGNAL_FIELDS], itemgetter("id"))
_HISTORY = _make_part(entry_history, [entry_history.c[name] for name in HISTORY_FIELDS], write_content)
_PARTS = (_EXPECTATIONS, _SIGNALS, _HISTORY)


def read_copies(connection: Connection) -> Iterator[Copy]:
    """Return all entries with all that belongs to them, by the time at which they began and then by id."""
    columns = (*(entries.c[name] for name in ENTRY_FIELDS), *(entries.c[name] for name in COUNT_COLUMNS))
    for page in page_by_time(connection, entries.c.created_at, entries.c.id, columns):
        for rows in _divide(page):
            yield from _complete(connection, rows)


def read_orphans(connection: Connection) -> Iterator[Row]:
    """Return all signals without an entry, by the time at which they were received and then by id."""
    for page in page_by_time(connection, signals.c.created_at, signals.c.id, _SIGNALS.columns, _IS_ORPHAN):
        yield from (_pick(row, SIGNAL_FIELDS) for row in page)


def count_lines(connection: Connection) -> tuple[int, int]:
    """Count entries, and signals without one."""
    orphans = select(func.count()).select_from(signals).where(_IS_ORPHAN)
    return connection.scalar(select(func.count()).select_from(entries)) or 0, connection.scalar(orphans) or 0


def find_copy(connection: Connection, entry_id: str) -> Copy | None:
    """Return an entry with all that belongs to it; None when it is not there."""
    row = connection.execute(_THE_COPY, {"the_entry": entry_id}).one_or_none()
    return None if row is None else next(_complete(connection, [row]))


def find_places(connection: Connection, signal: Row) -> tuple[Place, ...]:
    """Return where a signal is kept, and where signals of its source with the same external id are."""
    found = [connection.execute(_BY_ID, {"the_id": signal["id"]}).one_or_none()]
    if signal["external_id"] is not None:
        names = {"the_source": signal["source"], "the_external_id": signal["external_id"]}
        found.append(connection.execute(_BY_EXTERNAL_ID, names).one_or_none())
    return tuple({Place(*row) for row in found if row is not None})


def find_entry_of_expectation(connection: Connection, expectation_id: str) -> str | None:
    """Return the entry that an expectation belongs to; None for an unknown expectation."""
    found: str | None = connection.scalar(_ENTRY_OF_EXPECTATION, {"the_id": expectation_id})
    return found


def find_latest(connection: Connection) -> tuple[int | None, int | None]:
    """Return when the last entry and the last expectation began, in milliseconds since the epoch; None without any."""
    entry, expectation = (connection.scalar(select(func.max(table.c.created_at))) for table in (entries, expectations))
    return entry, expectation


def number_entries(connection: Connection, since: int) -> None:
    """Renumber the entries that began at a timestamp or later in the order of time."""
    number_by_time(connection, entries.c.created_at, entries.c.id, since)


def number_expectations(connection: Connection, since: int) -> None:
    """Renumber the expectations created at a timestamp or later in the order of time: the older one is tried first."""
    number_parts_by_time(connection, expectations.c.created_at, expectations.c.entry_id, since)
    connection.execute(_UNMARK, {"since": since})


def take_numbers(connection: Connection, table: Table, amount: int) -> list[int]:
    """Return rising numbers that no row of a table has or had; the table must have a column `number`."""
    if connection.dialect.name == "sqlite":
        last = connection.scalar(select(func.max(table.c.number))) or 0
        return list(range(last + 1, last + 1 + amount))
    names = {"name": f'"{table.name}"', "amount": amount}
    return sorted(connection.scalars(_FROM_SEQUENCE, names))


def number_by_time(connection: Connection, timestamp: Column[int], key: Column[Any], since: int) -> None:
    """Renumber the rows of a table that were made at `since` or later, by time and then by a key.

    Nothing may refer to the numbers.
    """
    table = timestamp.table
    _renumber(connection, table, select(table.c.number).where(timestamp >= since).order_by(timestamp, key))


def number_parts_by_time(connection: Connection, timestamp: Column[int], owner: Column[Any], since: int) -> None:
    """Do the same where the rows of one owner keep their order."""
    number = timestamp.table.c.number
    # After a clock went back, a row stays behind the earlier rows of its owner.
    reached = func.max(timestamp).over(partition_by=owner, order_by=number).label("reached")
    of_owners = owner.in_(select(owner).where(timestamp >= since))
    rows = select(number, owner.label("owner"), reached).where(of_owners).subquery()
    chosen = select(rows.c.number).where(rows.c.reached >= since).order_by(rows.c.reached, rows.c.owner, rows.c.number)
    _renumber(connection, timestamp.table, chosen)


def _renumber(connection: Connection, table: Any, chosen: Select[Any]) -> None:
    present = connection.scalars(chosen).all()
    numbers = take_numbers(connection, table, len(present))
    changed = [{"present": old, "next": new} for old, new in zip(present, numbers, strict=True)]
    if changed:
        number = update(table).where(table.c.number == bindparam("present")).values(number=bindparam("next"))
        connection.execute(number, changed)


def page_by_time(
    connection: Connection,
    timestamp: Column[int],
    key: Column[Any],
    columns: Sequence[ColumnElement[Any]],
    *only: ColumnElement[bool],
) -> Iterator[Sequence[Any]]:
    """Yield some columns of a table's rows, by time and a unique key, some hundred rows at a time.

    The last two columns of each row are the time and the key. Other columns may change meanwhile.
    """
    query = select(*columns, timestamp.label("page_time"), key.label("page_key")).where(*only)
    query = query.order_by(timestamp, key).limit(_ROWS_IN_PAGE)
    low = bindparam("low_time", type_=BigInteger())
    after = query.where(timestamp >= low, or_(timestamp > low, key > bindparam("low_key", type_=key.type)))
    rows = connection.execute(query).all()
    while rows:
        yield rows
        rows = connection.execute(after, {"low_time": rows[-1].page_time, "low_key": rows[-1].page_key}).all()


def insert_copy(connection: Connection, copy: Copy, *, with_checks: bool = False) -> None:
    """Store a new entry with everything that belongs to it.

    Its checks are run here only with `with_checks`: nobody here has ordered a command that came in a file.
    """
    connection.execute(insert(entries), {**copy.entry, **count_columns(count(copy))})
    _insert_rows(connection, _EXPECTATIONS, copy.expectations, copy.entry, with_checks=with_checks)
    _insert_rows(connection, _SIGNALS, copy.signals, copy.entry)
    _insert_rows(connection, _HISTORY, copy.history, copy.entry)


def insert_orphan(connection: Connection, signal: Row) -> None:
    """Store a signal without an entry."""
    connection.execute(insert(signals), {**signal, "entry_id": None})


def delete_signal(connection: Connection, signal_id: str) -> None:
    """Remove a signal; the caller undoes its effect on the entry."""
    connection.execute(_DELETE_SIGNAL, {"the_id": signal_id})


def rewrite_copy(connection: Connection, present: Copy, copy: Copy, *, with_checks: bool = False) -> None:
    """Replace an entry by another copy of it; `with_checks` is about the expectations that are new."""
    columns = {**copy.entry, **count_columns(count(copy))}
    connection.execute(_UPDATE_ENTRY.values(columns), {"the_entry": copy.entry["id"]})
    for part, before, after in zip(_PARTS, present[1:], copy[1:], strict=True):
        _rewrite_part(connection, part, before, after, copy.entry, with_checks=with_checks)


def _divide(rows: Sequence[Any]) -> Iterator[list[Any]]:
    """Divide entries so that what belongs to those of one part fits into memory."""
    part: list[Any] = []
    weight = 0
    for row in rows:
        part.append(row)
        weight += sum(getattr(row, name) for name in COUNT_COLUMNS)
        if weight >= _MOST_ROWS or len(part) == _MOST_ENTRIES:
            yield part
            part, weight = [], 0
    if part:
        yield part


def _complete(connection: Connection, rows: Sequence[Any]) -> Iterator[Copy]:
    ids = [row.id for row in rows]
    belonging = [_group(part, connection.execute(part.of_entries, {"the_entries": ids})) for part in _PARTS]
    for row in rows:
        yield Copy(_pick(row, ENTRY_FIELDS), *(tuple(part.get(row.id, ())) for part in belonging))


def _group(part: _Part, rows: Iterable[Any]) -> dict[str, list[Row]]:
    names = [column.name for column in part.columns]
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[-1]].append(dict(zip(names, row, strict=False)))
    return found


def _pick(row: Any, names: Any) -> Row:
    # The columns that travel come first.
    return dict(zip(names, row, strict=False))


def _insert_rows(
    connection: Connection, part: _Part, rows: Sequence[Row], entry: Row, *, with_checks: bool = False
) -> None:
    if part is not _EXPECTATIONS:
        if rows:
            connection.execute(insert(part.table), [{**row, "entry_id": entry["id"]} for row in rows])
        return
    crowds: dict[int, int] = {}
    for row in rows:
        # One at a time: which anchor is less crowded depends on the rows before.
        due_at = find_due(row["check"], row["created_at"]) if with_checks else None
        owner = (entry["agent_id"], entry["session_key"])
        found_by = write_found_by(connection, row, owner, crowds, by_hint_only=row["by_hint_only"])
        kept = {name: row[name] for name in _STORED}
        connection.execute(insert(part.table), {**kept, **found_by, "entry_id": entry["id"], "check_due_at": due_at})


def _rewrite_part(
    connection: Connection, part: _Part, before: Sequence[Row], after: Sequence[Row], entry: Row, *, with_checks: bool
) -> None:
    """Change the rows of an entry that differ, and keep them in the given order."""
    of_entry = part.table.c.entry_id == entry["id"]
    numbers = connection.scalars(select(part.table.c.number).where(of_entry).order_by(part.table.c.number)).all()
    known: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for number, row in zip(numbers, before, strict=True):
        known[part.key(row)].append((number, row))
    present = [known[key].pop(0) if known[key] else None for key in map(part.key, after)]
    gone = [number for rows in known.values() for number, _ in rows]
    for number in gone:
        connection.execute(delete(part.table).where(part.table.c.number == number))
    last = 0
    for row, found in zip(after, present, strict=True):
        if found is None:
            _insert_rows(connection, part, [row], entry, with_checks=with_checks)
            last = connection.scalar(select(func.max(part.table.c.number)).where(of_entry)) or 0
            continue
        number, was = found
        changed = {} if not differ(was, row) else {name: row[name] for name in row if name != "by_hint_only"}
        if number < last:
            changed["number"] = take_numbers(connection, part.table, 1)[0]
        if changed:
            connection.execute(update(part.table).where(part.table.c.number == number).values(changed))
        last = max(last, changed.get("number", number))
