"""A copy of an entry, and merging two copies into one. Pure.

The same copies give the same result in any order and however often: each part is the least or greatest of what the copies
have, and what follows from the parts is folded again. What only a merge has changed is the last record of the history, and
is taken back before the next merge, so that nothing later depends on it, unless the journal itself has gone on from it.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.journal.assessment_store import MOST_OF_CAUSE, NOTES
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, Polarity, SignalType
from pytest_golden.journal.rules import CORRECTION, CORRECTS, DEFAULT_RULES, Counts, Rules, assess, describe_assessment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_write_sorted = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":")).encode
#: Columns by name; timestamps are milliseconds since the epoch.
Row = dict[str, Any]
#: Who changes an assessment by a merge.
MERGER = "merge"
_WHY = "copies of the journal were merged"
_NEVER = -1
_FIXED = ("id", "job_id", "agent_id", "session_key", "parent_id", "intent", "intent_type", "created_at")
_FIXED_OF_EXPECTATION = (
    *("id", "description", "polarity", "critical", "match_hint", "by_hint_only", "expires_at", "check", "created_at"),
)
_RESOLUTION = ("resolved_at", "status", "resolved_by")
_FIXED_OF_SIGNAL = ("id", "source", "signal_type", "summary", "data", "external_id", "created_at")
_PLACEMENT = ("routed_by", "is_late", "agent_id", "session_key", "content_digest", "routing", "expectation_id")
_AGAINST = (SignalType.NEGATIVE, SignalType.CORRECTION)
_LOST = (ExpectationStatus.UNMET, ExpectationStatus.EXPIRED)


class Copy(NamedTuple):
    """One journal's knowledge of an entry: its own columns, and the rows that belong to it in the order of recording.

    It leaves out what follows from the rest: counts, and the columns by which expectations are found.
    """

    entry: Row
    expectations: tuple[Row, ...] = ()
    signals: tuple[Row, ...] = ()
    history: tuple[Row, ...] = ()


def write_content(value: Any) -> str:
    """Write JSON content so that equal content gives equal text, whatever the order of its keys; pure ASCII."""
    return _write_sorted(value)


def differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two rows are different content; 1, 1.0 and true are."""
    return one != other or write_content(one) != write_content(other)


def merge(one: Copy, other: Copy, rules: Rules = DEFAULT_RULES) -> Copy:
    """Make one of two copies of an entry.

    Raises:
        ValueError: they differ in what never changes, so they are not copies of one entry.
    """
    if write_content(one) == write_content(other):
        return one
    return _note(_fold(_join(_take_back(one), _take_back(other)), rules))


def leave_out(copy: Copy, ids: Collection[str], rules: Rules = DEFAULT_RULES) -> Copy:
    """Return an entry without some of its signals, assessed again."""
    kept = [signal for signal in copy.signals if signal["id"] not in ids]
    history = sorted(_take_back(copy).history, key=_order_of_record)
    rest = _take_back(copy)._replace(signals=tuple(sorted(kept, key=_order)), history=tuple(history))
    return _note(_fold(rest, rules))


def settle_alone(copy: Copy, rules: Rules = DEFAULT_RULES) -> Copy:
    """Return a copy with the assessment that follows from its parts, unchanged if it has that already."""
    counts = count(copy)
    present = Assessment(copy.entry["assessment"])
    is_for_the_rules = counts.expired and not (counts.open or counts.unmet or counts.critical_lost)
    if is_for_the_rules and present is not Assessment.OPEN and not (counts.negative or counts.correction):
        # The other journal may have had other rules.
        return copy
    return copy if assess(counts, rules, before=present) is present else _note(_fold(_take_back(copy), rules))


def count(copy: Copy) -> Counts:
    """Count what an entry is assessed from."""
    statuses = Counter(row["status"] for row in copy.expectations)
    turned = {row["id"] for row in copy.expectations if row["polarity"] == Polarity.NEGATIVE}
    taken_back = _list_corrected(copy.history)
    received = Counter(
        row["signal_type"]
        for row in copy.signals
        if row["id"] not in taken_back
        and not row["is_late"]
        and not (row["signal_type"] == SignalType.POSITIVE and row["expectation_id"] in turned)
    )
    word = copy.entry["human_word"]
    return Counts(
        **{status.value: statuses[status.value] for status in ExpectationStatus},
        critical_lost=sum(row["critical"] and row["status"] in _LOST for row in copy.expectations),
        positive=received[SignalType.POSITIVE],
        negative=received[SignalType.NEGATIVE],
        correction=received[SignalType.CORRECTION],
        human_word=None if word is None else Assessment(word),
        immediate_result=ImmediateResult(copy.entry["immediate_result"]),
    )


def _list_corrected(history: Iterable[Row]) -> frozenset[str]:
    """Return the ids of the signals that later ones have corrected."""
    return frozenset(str(row["details"][CORRECTS]) for row in history if _is_correction(row))


def _is_correction(record: Row) -> bool:
    details = record["details"]
    return bool(record["what"] == CORRECTION and isinstance(details, dict) and CORRECTS in details)


def _take_back(copy: Copy) -> Copy:
    """Undo a change that only a merge has made: its record is the last one."""
    if not copy.history or not _is_by_merge(copy.history[-1]):
        return copy
    before = copy.history[-1]["details"]["from"]
    entry = {**copy.entry, "assessment": before}
    if before == Assessment.OPEN:
        entry["closed_at"] = None
    return copy._replace(entry=entry, history=copy.history[:-1])


def _is_by_merge(record: Row) -> bool:
    return bool(record["who"] == MERGER and record["what"] == "assessment")


def _note(copy: Copy) -> Copy:
    """Let the notes of what rules assessed be those of the last such assessment; a person's are with the word."""
    if copy.entry["human_word"] is not None:
        return copy
    wanted = copy.entry["assessment"]
    told = (
        (record["details"] or {}).get(NOTES, record["why"])
        for record in reversed(copy.history)
        if record["what"] == "assessment" and (record["details"] or {}).get("to") == wanted
    )
    notes = next(told, None)
    return copy._replace(entry={**copy.entry, "assessment_notes": notes if isinstance(notes, str) else None})


def _find_cause(copy: Copy) -> str:
    """Name what decides against an entry, the first of it; else say that copies were merged."""
    heard = {signal["id"]: signal["summary"] for signal in copy.signals}
    lost = (
        row
        for row in copy.expectations
        if row["status"] == ExpectationStatus.UNMET or (row["critical"] and row["status"] in _LOST)
    )
    for row in lost:
        answer = heard.get(row["resolved_by"])
        return ": ".join(filter(None, (row["status"], row["description"], answer)))
    taken_back = _list_corrected(copy.history)
    against = (
        one
        for one in copy.signals
        if one["signal_type"] in _AGAINST and not one["is_late"] and one["id"] not in taken_back
    )
    return next((f"{one['source']}: {one['summary']}" for one in against), _WHY)


def _fold(copy: Copy, rules: Rules) -> Copy:
    """Assess an entry by all that it has, and record a change in the history."""
    before = Assessment(copy.entry["assessment"])
    counts = count(copy)
    after = assess(counts, rules, before=before)
    if after is before:
        return copy
    timestamp = copy.entry["updated_at"]
    closed_at = copy.entry["closed_at"]
    entry = {**copy.entry, "assessment": after.value, "closed_at": timestamp if closed_at is None else closed_at}
    cause = _find_cause(copy) if after is Assessment.FAILURE else _WHY
    told = {NOTES: describe_assessment(after, counts, cause[:MOST_OF_CAUSE])}
    record = {
        "what": "assessment",
        "who": MERGER,
        "changed_at": timestamp,
        "why": _WHY,
        "details": {"from": before.value, "to": after.value, **told},
    }
    return copy._replace(entry=entry, history=(*copy.history, record))


def _join(one: Copy, other: Copy) -> Copy:
    signals = _keep_one_effect(_unite(one.signals, other.signals, _join_signals))
    joins = partial(_join_expectations, corrected=_list_corrected((*one.history, *other.history)))
    expectations = _unite(one.expectations, other.expectations, joins)
    resolvers = {row["id"]: row["resolved_by"] for row in expectations}
    return Copy(
        _join_entries(one, other),
        expectations,
        tuple(_leave_answered(signal, resolvers) for signal in signals),
        _unite_histories(one.history, other.history),
    )


def _join_entries(one: Copy, other: Copy) -> Row:
    left, right = one.entry, other.entry
    _refuse_other("entry", left, right, _FIXED)
    said = max(one, other, key=_rank_outcome).entry
    word = max(one, other, key=_rank_word).entry
    closed = [row["closed_at"] for row in (left, right) if row["closed_at"] is not None]
    return {
        **left,
        **{name: said[name] for name in ("immediate_result", "immediate_notes", "actions")},
        **{name: word[name] for name in ("human_word", "assessment_notes")},
        "assessment": max(one, other, key=_rank_assessment).entry["assessment"],
        "closed_at": min(closed, default=None),
        "updated_at": max(left["updated_at"], right["updated_at"]),
    }


def _rank_outcome(copy: Copy) -> tuple[Any, ...]:
    """Rank the reported outcomes: the later wins."""
    entry = copy.entry
    content = [entry[name] for name in ("immediate_result", "immediate_notes", "actions")]
    is_known = entry["immediate_result"] != ImmediateResult.UNKNOWN
    return _find_last(copy, lambda record: record["what"] == "outcome"), is_known, write_content(content)


def _rank_word(copy: Copy) -> tuple[Any, ...]:
    """Rank the words of people: the last word wins."""
    entry = copy.entry
    last = _find_last(copy, lambda record: "word" in (record["details"] or ()))
    content = [entry["human_word"], entry["assessment_notes"]]
    return entry["human_word"] is not None, last, write_content(content)


def _rank_assessment(copy: Copy) -> tuple[Any, ...]:
    """Rank the assessments: a closed entry stays closed, and then the later wins."""
    word = copy.entry["assessment"]
    return word != Assessment.OPEN, _find_last(copy, lambda record: record["what"] == "assessment"), word


def _find_last(copy: Copy, fits: Callable[[Row], bool]) -> int:
    return max((record["changed_at"] for record in copy.history if fits(record)), default=_NEVER)


def _join_expectations(left: Row, right: Row, corrected: Collection[str]) -> Row:
    """Join two states of an expectation: the earliest answer counts that was not corrected."""
    _refuse_other("expectation", left, right, _FIXED_OF_EXPECTATION)
    answers = [row for row in (left, right) if row["status"] != ExpectationStatus.OPEN]
    return min(
        answers, key=lambda row: [row["resolved_by"] in corrected, *(row[name] for name in _RESOLUTION)], default=left
    )


def _join_signals(left: Row, right: Row) -> Row:
    """Join two states of a signal, which may have found its place in each copy by itself."""
    _refuse_other("signal", left, right, _FIXED_OF_SIGNAL)
    return min(
        left,
        right,
        key=lambda row: [write_content(row[name]) for name in _PLACEMENT[:-1]] + [row["expectation_id"] or ""],
    )


def _leave_answered(signal: Row, resolvers: dict[str, str | None]) -> Row:
    """Let news that came after the answer concern the entry alone, as the journal does."""
    answered = signal["expectation_id"]
    resolver = None if answered is None else resolvers[answered]
    decides = signal["signal_type"] in _AGAINST
    if resolver in {None, signal["id"]} or not decides:
        return signal
    return {**signal, "expectation_id": None}


def _keep_one_effect(signals: tuple[Row, ...]) -> tuple[Row, ...]:
    """Keep the earliest signal of each external id of a source."""
    first: dict[tuple[str, str], Row] = {}
    for signal in sorted(signals, key=_order):
        if signal["external_id"] is not None:
            first.setdefault((signal["source"], signal["external_id"]), signal)
    kept = [
        signal
        for signal in signals
        if signal["external_id"] is None or first[signal["source"], signal["external_id"]] is signal
    ]
    return signals if len(kept) == len(signals) else tuple(sorted(kept, key=_order))


def _unite(left: Sequence[Row], right: Sequence[Row], join: Callable[[Row, Row], Row]) -> tuple[Row, ...]:
    """Unite rows by their ids; where both have the same, in the same order, it stays."""
    united = {row["id"]: row for row in left}
    for row in right:
        united[row["id"]] = join(united[row["id"]], row) if row["id"] in united else row
    if [row["id"] for row in left] == [row["id"] for row in right]:
        return tuple(united.values())
    return tuple(sorted(united.values(), key=_order))


def _unite_histories(left: Sequence[Row], right: Sequence[Row]) -> tuple[Row, ...]:
    """Unite records by their content; what one copy has twice stays twice."""
    texts = [[write_content(row) for row in rows] for rows in (left, right)]
    if texts[0] == texts[1]:
        return tuple(left)
    rows = dict(zip((*texts[0], *texts[1]), (*left, *right), strict=True))
    united: Iterable[str] = (Counter(texts[0]) | Counter(texts[1])).elements()
    return tuple(sorted((rows[text] for text in united), key=_order_of_record))


def _order(row: Row) -> tuple[int, str]:
    return row["created_at"], row["id"]


def _order_of_record(row: Row) -> tuple[Any, ...]:
    # What a merge has changed is before what the journal made of it in the same millisecond.
    return row["changed_at"], not _is_by_merge(row), row["what"] == "assessment", write_content(row)


def _refuse_other(what: str, left: Row, right: Row, names: Iterable[str]) -> None:
    for name in names:
        if left[name] != right[name] or write_content(left[name]) != write_content(right[name]):
            raise ValueError(
                f"{what} {left['id']}: its {name} differs from the one here; these are not copies of one journal"
            )
