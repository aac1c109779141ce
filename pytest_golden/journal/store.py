"""Write and read journal entries, expectations and signals; the store that use cases work on; the default store.

Each function that takes a connection works inside the caller's transaction. `rules.py` decides what news means. An entry's
counts are kept beside it, so that a signal costs the same however many expectations the entry has.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import BigInteger, Connection, Integer, bindparam, func, insert, literal_column, select, update

from pytest_golden.errors import SettingsError
from pytest_golden.journal import assessment_store
from pytest_golden.journal.hints import list_anchors, rank, write_shape
from pytest_golden.journal.model import ExpectationStatus, ImmediateResult, Polarity, RoutedBy
from pytest_golden.journal.rules import CORRECTION, CORRECTS, DEFAULT_RULES, Counts, Rules, settle
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.settings import NO_STORE, find_manifest_above
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.storage.folder import STATE_FOLDER, STORE_NAME
from pytest_golden.storage.schema import entries, entry_history, expectations, signals
from pytest_golden.storage.statements import Prepared, Question, ask
from pytest_golden.trajectory.vocabulary import freeze_mapping
from pytest_golden.values.checking import check_time

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from pytest_golden.journal.model import Assessment, Expectation, JournalEntry, Signal
    from pytest_golden.storage.store import Store

_T = TypeVar("_T")
_STORE_VARIABLE = "GOLDEN_STORE_URL"
_ROUTED = ("agent_id", "is_late")
_FOUND_BY = ("agent_id", "session_key", "hint_anchor", "hint_shape", "hint_rank")
_RECEIVED = ("session_key", "content_digest", "routing", "expectation_mark")
_INSERT_ENTRY = Prepared(insert(entries), *assessment_store.ENTRY_COLUMNS)
_INSERT_EXPECTATION = Prepared(insert(expectations), *assessment_store.EXPECTATION_COLUMNS, "check_due_at", *_FOUND_BY)
_SAY_RESULT = Prepared(assessment_store.UPDATE_ENTRY, "immediate_result", "immediate_notes")
_SAY_ALL = Prepared(assessment_store.UPDATE_ENTRY, "immediate_result", "immediate_notes", "actions")
_INSERT_SIGNAL = Prepared(insert(signals), *assessment_store.SIGNAL_COLUMNS, *_ROUTED, *_RECEIVED)
_ROUTE_SIGNAL = Prepared(
    update(signals).where(signals.c.id == bindparam("the_signal")),
    *("entry_id", "expectation_id", "routed_by", "routing", *_ROUTED),
)
_LEAVE_EXPECTATION = Prepared(update(signals).where(signals.c.id == bindparam("the_signal")), "expectation_id")
_FIND_ENTRY = Prepared(select(entries.c.number).where(entries.c.id == bindparam("the_entry")))
_SETTLE_EXPECTATION = Prepared(
    update(expectations).where(expectations.c.number == bindparam("the_expectation")),
    *("status", "resolved_by", "resolved_at"),
)
_COUNT_OPEN = Prepared(
    update(entries)
    .where(entries.c.id == bindparam("the_entry"))
    .values(open_count=entries.c.open_count + bindparam("n", type_=Integer()))
)
_ENTRY = Prepared(select(entries).where(entries.c.id == bindparam("the_entry")))
_PARTS = {
    name: Prepared(chosen.where(table.c.entry_id == bindparam("the_entry")).order_by(table.c.number))
    for name, table, chosen in (
        ("expectations", expectations, select(expectations)),
        ("signals", signals, select(*(signals.c[column] for column in assessment_store.SIGNAL_COLUMNS))),
        ("history", entry_history, select(entry_history)),
    )
}
# Beyond this many open expectations, anchors count as equally crowded.
_CROWDED = 32
_COUNT_AT_ANCHOR = Prepared(
    select(func.count().label("number")).select_from(
        select(literal_column("1"))
        .where(
            expectations.c.hint_anchor == bindparam("the_anchor", type_=BigInteger()),
            expectations.c.status == literal_column("'open'"),
        )
        .limit(_CROWDED)
        .subquery()
    )
)


class Received(NamedTuple):
    """How a received signal was routed, and what identifies it when it comes again."""

    routed_by: RoutedBy
    routing: Mapping[str, Any] | None = None
    agent_id: str | None = None
    session_key: str | None = None
    content_digest: str | None = None
    expectation_mark: int | None = None


class Outcome(NamedTuple):
    """An agent's report of how its work ended; without actions, the earlier actions stay."""

    result: ImmediateResult
    notes: str | None = None
    actions: tuple[Any, ...] = ()
    expectations: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True)
class SweptStore:
    """A store, a clock that returns an aware UTC datetime, and the rules by agent: what the journal's use cases need."""

    store: Store
    clock: Callable[[], datetime]
    rules: Mapping[str, Rules]

    def now(self) -> datetime:
        """Return the current time at the precision of the store, so that a new entry equals the same one read back.

        Raises:
            ValueError: the clock returns something else than an aware datetime.
        """
        return from_ms(to_ms(check_time("the clock's time", self.clock())))

    def sweep(self) -> int:
        """Resolve every expectation whose time is over, in batches, and return how many there were; close intents that were left.

        Raises:
            StorageError: it cannot be written.
        """
        timestamp = self.now()
        after: int | None = 0 if any(one.unfinished_after is not None for one in self.rules.values()) else None
        while after is not None:
            with self.store.write() as connection:
                after = assessment_store.close_unfinished(connection, timestamp, self.rules, after)
        count, is_more = 0, True
        while is_more:
            with self.store.write() as connection:
                resolved, is_more = assessment_store.resolve_due(connection, timestamp, self.rules)
            count += resolved
        return count

    def after_sweep(self, timestamp: datetime, work: Callable[[Connection], _T]) -> _T:
        """Run `work` in the transaction that resolves the last due expectations.

        Raises:
            StorageError: it cannot be written.
        """
        return self.answered_after_sweep(timestamp, (), lambda connection, _: work(connection))

    def answered_after_sweep(
        self, timestamp: datetime, questions: Sequence[Question], work: Callable[[Connection, list[Iterator[Any]]], _T]
    ) -> _T:
        """Do the same with the answers to queries, which are sent together with the search for due expectations.

        Raises:
            StorageError: it cannot be written.
        """
        while True:
            with self.store.write_asking(assessment_store.ask_for_soonest(), *questions) as (
                connection,
                (soonest, *answers),
            ):
                if not any(expires_at <= to_ms(timestamp) for (expires_at,) in soonest):
                    return work(connection, answers)
                _, is_more = assessment_store.resolve_due(connection, timestamp, self.rules)
                if not is_more:
                    return work(connection, ask(connection, *questions))


def insert_entry(connection: Connection, entry: JournalEntry) -> None:
    """Insert a new entry, open or closed, without its expectations, signals and history."""
    _INSERT_ENTRY.leave(connection, assessment_store.write_columns(entry, assessment_store.ENTRY_COLUMNS))


def has_entry(connection: Connection, entry_id: str) -> bool:
    """Tell whether an entry with this id exists."""
    return _FIND_ENTRY.first(connection, {"the_entry": entry_id}) is not None


def insert_expectations(connection: Connection, new: Sequence[Expectation]) -> None:
    """Insert new, open expectations and count them; their entries must exist.

    Signals find them by their hints alone, not by session or time.
    """
    for entry_id, of_entry in groupby(new, key=lambda expectation: expectation.entry_id):
        standing = assessment_store.get_standing(connection, entry_id)
        _insert_expectation_rows(connection, tuple(of_entry), standing, by_hint_only=True)
    for entry_id, number in Counter(expectation.entry_id for expectation in new).items():
        _COUNT_OPEN.leave(connection, {"the_entry": entry_id, "n": number})


def take_signal(
    connection: Connection,
    signal: Signal,
    expectation_id: str | None,
    received: Received,
    *,
    is_kept: bool = False,
    rules: Rules = DEFAULT_RULES,
) -> Signal:
    """Record a routed signal, let it settle the expectation that it answers, and return it as it is stored.

    Without an expectation it is news about the entry alone. So is a signal that settles nothing, because it is late or the
    expectation was resolved before. A signal without an entry is stored as an orphan; `is_kept` tells that it is one already.

    Raises:
        JournalError: there is no such entry, or no such expectation of it.
    """
    timestamp = to_ms(signal.created_at)
    standing = None
    row: dict[str, Any] = {"expectation_id": None, "agent_id": received.agent_id, "is_late": False}
    if signal.entry_id is not None:
        standing = assessment_store.get_standing(connection, signal.entry_id, expectation_id)
        row = _read_answer(standing, expectation_id, timestamp)
    row |= {"routed_by": received.routed_by.value}
    if is_kept:
        place = {"entry_id": signal.entry_id, "routing": received.routing, "the_signal": signal.id}
        _ROUTE_SIGNAL.leave(connection, {**row, **place})
    else:
        columns = assessment_store.write_columns(signal, assessment_store.SIGNAL_COLUMNS)
        known = {name: getattr(received, name) for name in _RECEIVED}
        _INSERT_SIGNAL.leave(connection, {**columns, "data": signal.data or None, **row, **known})
    if standing is not None:
        counts, status = _settle(connection, standing, signal, timestamp, is_late=row["is_late"])
        change = assessment_store.Change(
            signal.source, timestamp, signal.summary, {"signal": signal.id}, _tell_cause(signal, standing, status)
        )
        assessment_store.write_standing(connection, standing, counts, change, rules)
    return replace(signal, expectation_id=row["expectation_id"], routed_by=received.routed_by)


def correct(
    connection: Connection,
    signal: Signal,
    earlier: Signal,
    answered: Sequence[tuple[str, str]],
    received: Received,
    *,
    rules: Rules = DEFAULT_RULES,
) -> Signal:
    """Record a signal that takes back what an earlier one said: the expectations that it has answered are met.

    `answered` are the entries with these expectations; the first one is the earlier signal's own and keeps the new one.
    """
    timestamp = to_ms(signal.created_at)
    (entry_id, expectation_id), *_ = answered
    signal = replace(signal, entry_id=entry_id, data=freeze_mapping("data", {**signal.data, CORRECTS: earlier.id}))
    columns = assessment_store.write_columns(signal, assessment_store.SIGNAL_COLUMNS)
    known = {name: getattr(received, name) for name in _RECEIVED}
    place = {"expectation_id": expectation_id, "routed_by": RoutedBy.MATCH_HINT.value, "is_late": False}
    for number, (of_entry, of_expectation) in enumerate(answered):
        standing = assessment_store.get_standing(connection, of_entry, of_expectation)
        if number == 0:
            row = {**columns, "data": signal.data, **known, **place, "agent_id": standing.agent_id}
            _INSERT_SIGNAL.leave(connection, row)
            _LEAVE_EXPECTATION.leave(connection, {"the_signal": earlier.id, "expectation_id": None})
        met = {"status": ExpectationStatus.MET.value, "resolved_by": signal.id}
        at = max(timestamp, standing.expectation_created_at)
        _SETTLE_EXPECTATION.leave(
            connection, {"the_expectation": standing.expectation_number, **met, "resolved_at": at}
        )
        counts = assessment_store.read_counts(standing)
        counts = counts.moved(ExpectationStatus.UNMET, ExpectationStatus.MET, critical=standing.critical)
        if number == 0:
            counts = counts.corrected(earlier.signal_type).received(signal.signal_type)
        cause = _tell_cause(signal, standing, ExpectationStatus.MET)
        details = {"signal": signal.id, CORRECTS: earlier.id}
        change = assessment_store.Change(signal.source, timestamp, signal.summary, details, cause)
        # In each entry's own history, since a copy of it must know without the others.
        now = max(timestamp, standing.updated_at)
        assessment_store.add_history(connection, of_entry, CORRECTION, change._replace(timestamp=now))
        assessment_store.write_standing(connection, standing, counts, change, rules)
    return replace(signal, expectation_id=expectation_id, routed_by=RoutedBy.MATCH_HINT)


def answer_also(
    connection: Connection, signal: Signal, entry_id: str, expectation_id: str, *, rules: Rules = DEFAULT_RULES
) -> None:
    """Let a signal that is recorded with another entry settle an open expectation of this one, an earlier attempt."""
    timestamp = to_ms(signal.created_at)
    standing = assessment_store.get_standing(connection, entry_id, expectation_id)
    before = assessment_store.read_counts(standing)
    _, status = _settle(connection, standing, signal, timestamp, is_late=False)
    if status is None:
        return
    # The signal itself is counted with its own entry.
    counts = before.moved(ExpectationStatus.OPEN, status, critical=standing.critical)
    cause = _tell_cause(signal, standing, status)
    change = assessment_store.Change(signal.source, timestamp, signal.summary, {"signal": signal.id}, cause)
    assessment_store.write_standing(connection, standing, counts, change, rules)


def record_outcome(
    connection: Connection,
    entry_id: str,
    outcome: Outcome,
    timestamp: datetime,
    *,
    who: str,
    rules: Rules = DEFAULT_RULES,
    standing: Any = None,
) -> Assessment:
    """Record how an entry's action ended, with what is expected now, and return the entry's assessment.

    When called again, the later result stands and its expectations are added; the history has both. `standing` is that of the
    entry, if it was read in this transaction.

    Raises:
        JournalError: there is no such entry.
    """
    standing = standing or assessment_store.get_standing(connection, entry_id)
    _insert_expectation_rows(connection, outcome.expectations, standing)
    said = {"result": outcome.result.value, "expectations": len(outcome.expectations)}
    now = max(to_ms(timestamp), standing.updated_at)
    assessment_store.add_history(
        connection, entry_id, "outcome", assessment_store.Change(who, now, outcome.notes, said)
    )
    changed: dict[str, Any] = {
        "immediate_result": outcome.result.value,
        "immediate_notes": assessment_store.to_column(outcome.notes),
    }
    if outcome.actions:
        _SAY_ALL.leave(connection, {"the_entry": standing.number, **changed, "actions": outcome.actions})
    else:
        _SAY_RESULT.leave(connection, {"the_entry": standing.number, **changed})
    counts = replace(assessment_store.read_counts(standing), immediate_result=outcome.result)
    counts = counts.moved(None, ExpectationStatus.OPEN, len(outcome.expectations), critical=False)
    return assessment_store.write_standing(
        connection,
        standing,
        counts,
        assessment_store.Change(who, now, outcome.notes, cause=_tell_result(outcome)),
        rules,
    )


def _tell_result(outcome: Outcome) -> str:
    return f"the agent reported {outcome.result.value}{f': {outcome.notes}' if outcome.notes else ''}"


def get_entry(connection: Connection, entry_id: str) -> JournalEntry:
    """Return an entry with its expectations, signals and history.

    Raises:
        JournalError: there is no such entry.
    """
    asked = {"the_entry": entry_id}
    found, *parts = ask(connection, *(Question(chosen, asked) for chosen in (_ENTRY, *_PARTS.values())))
    rows = _ENTRY.decode(found)
    if not rows:
        raise assessment_store.describe_unknown(entry_id)
    read = {name: chosen.decode(part) for (name, chosen), part in zip(_PARTS.items(), parts, strict=True)}
    return assessment_store.read_entry(rows[0], **read)


def _read_answer(standing: Any, expectation_id: str | None, now: int) -> dict[str, Any]:
    """Return the columns that relate a signal to its entry."""
    is_late = expectation_id is not None and standing.expires_at is not None and now >= standing.expires_at
    is_answer = expectation_id is not None and standing.status == ExpectationStatus.OPEN and not is_late
    return {"expectation_id": expectation_id if is_answer else None, "agent_id": standing.agent_id, "is_late": is_late}


def _tell_cause(signal: Signal, standing: Any, status: ExpectationStatus | None) -> str:
    """Say which expectation a signal has settled, and what it says, with the address of its source if it has one."""
    url = signal.data.get("url")
    told = f"{signal.summary}, {url}" if isinstance(url, str) and url.startswith("https://") else signal.summary
    return f"{signal.source}: {told}" if status is None else f"{status.value}: {standing.description}: {told}"


def _settle(
    connection: Connection, standing: Any, signal: Signal, now: int, *, is_late: bool
) -> tuple[Counts, ExpectationStatus | None]:
    """Settle the expectation that a signal fits; return the entry's new counts, and the status if it has changed."""
    counts = assessment_store.read_counts(standing)
    if standing.expectation_number is None:
        return counts.received(signal.signal_type), None
    before = ExpectationStatus(standing.status)
    settlement = settle(signal.signal_type, before, Polarity(standing.polarity), is_late=is_late)
    if settlement.status is not before:
        _SETTLE_EXPECTATION.leave(
            connection,
            {
                "the_expectation": standing.expectation_number,
                "status": settlement.status.value,
                "resolved_by": signal.id,
                "resolved_at": max(now, standing.expectation_created_at),
            },
        )
    counts = counts.received(settlement.counts_as).moved(before, settlement.status, critical=standing.critical)
    return counts, None if settlement.status is before else settlement.status


def _insert_expectation_rows(
    connection: Connection, new: Sequence[Expectation], standing: Any, *, by_hint_only: bool = False
) -> None:
    crowds: dict[int, int] = {}
    if not by_hint_only:
        anchors_of_each = [list_anchors(expectation.match_hint or {}) for expectation in new]
        _count_crowds(connection, {anchors[0] for anchors in anchors_of_each if len(anchors) > 1}, crowds)
    for expectation in new:
        row = assessment_store.write_columns(expectation, assessment_store.EXPECTATION_COLUMNS)
        owner = (standing.agent_id, standing.session_key)
        found_by = write_found_by(connection, row, owner, crowds, by_hint_only=by_hint_only)
        due_at = assessment_store.find_due(expectation.check, row["created_at"])
        _INSERT_EXPECTATION.leave(connection, {**row, **found_by, "check_due_at": due_at})


def write_found_by(
    connection: Connection,
    row: Mapping[str, Any],
    owner: tuple[str, str | None],
    crowds: dict[int, int],
    *,
    by_hint_only: bool,
) -> dict[str, Any]:
    """Return the columns by which signals find an expectation; `owner` is the agent and the session of its entry.

    `crowds` caches how many open expectations each anchor has, and is updated.
    """
    hint = row["match_hint"] or {}
    anchors = list_anchors(hint)
    if by_hint_only or row["status"] != ExpectationStatus.OPEN or len(anchors) < 2:
        anchor = next(iter(anchors), None)
    else:
        anchor = _choose_anchor(connection, anchors, crowds)
    return {
        "agent_id": owner[0],
        "session_key": None if by_hint_only else owner[1],
        "hint_anchor": anchor,
        "hint_shape": None if by_hint_only else write_shape(hint, has_check=row["check"] is not None),
        "hint_rank": rank(len(hint), row["expires_at"]),
    }


def _choose_anchor(connection: Connection, anchors: Sequence[int], crowds: dict[int, int]) -> int:
    """Return the anchor with the fewest open expectations."""
    for anchor in anchors:
        if anchor not in crowds:
            _count_crowds(connection, (anchor,), crowds)
        if not crowds[anchor]:
            break
    chosen = min((anchor for anchor in anchors if anchor in crowds), key=crowds.__getitem__)
    crowds[chosen] += 1
    return chosen


def _count_crowds(connection: Connection, anchors: Collection[int], crowds: dict[int, int]) -> None:
    counted = ask(connection, *(Question(_COUNT_AT_ANCHOR, {"the_anchor": anchor}) for anchor in anchors))
    crowds.update((anchor, int(next(rows)[0])) for anchor, rows in zip(anchors, counted, strict=True))


def find_default_store() -> str | Path:
    """Return GOLDEN_STORE_URL, else `.golden/golden.db` in the nearest manifest's workspace root, else in this folder.

    This is the store that the gate uses in this folder. Nothing is opened.

    Raises:
        SettingsError: GOLDEN_STORE_URL turns recording off.
        ManifestError: the manifest cannot be read.
    """
    said = os.environ.get(_STORE_VARIABLE)
    if said == NO_STORE:
        raise SettingsError(f"{_STORE_VARIABLE} is {NO_STORE}, so recording is off; name a store")
    if said:
        return said
    manifest = os.environ.get("GOLDEN_MANIFEST") or find_manifest_above(Path.cwd())
    root = Path.cwd() if manifest is None else load_manifest(Path(manifest)).workspace_root
    return root / STATE_FOLDER / STORE_NAME
