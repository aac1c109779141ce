"""An entry with all that belongs to it as one line of JSON, and back. Pure.

The first line of a file is `{"format": "golden-journal", "version": 1}`; it may say how many entries and orphans follow.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_golden.journal.model import Assessment, ExpectationStatus, Polarity, RoutedBy
from pytest_golden.journal.transfer.fields import (
    ENTRY_FIELDS,
    EXPECTATION_FIELDS,
    HISTORY_FIELDS,
    SIGNAL_FIELDS,
    read_row,
    write_row,
)
from pytest_golden.journal.transfer.merging import MERGER
from pytest_golden.journal.transfer.model import Copy, write_json
from pytest_golden.manifest.unquoted import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.journal.transfer.model import ExportReport, Row

FORMAT, VERSION = "golden-journal", 1
_ENTRY, _ORPHAN = "entry", "signal"
_PARTS = {"expectations": EXPECTATION_FIELDS, "signals": SIGNAL_FIELDS, "history": HISTORY_FIELDS}
_LONGEST_NUMBER = 1000


def write_header(report: ExportReport) -> str:
    """Write the first line of a file with so many lines of each kind."""
    return json.dumps({"format": FORMAT, "version": VERSION, **report.to_dict()})


def write_entry(copy: Copy) -> str:
    """Write an entry with all that belongs to it as a line, without the line's end."""
    line: dict[str, Any] = {"kind": _ENTRY, **write_row(ENTRY_FIELDS, copy.entry)}
    for name, fields in _PARTS.items():
        rows = getattr(copy, name)
        if rows:
            line[name] = [write_row(fields, row) for row in rows]
    return write_json(line)


def write_orphan(signal: Row) -> str:
    """Write a signal without an entry as a line, without the line's end."""
    return write_json({"kind": _ORPHAN, **write_row(SIGNAL_FIELDS, signal)})


def parse(text: str | bytes) -> Any:
    """Read a line as JSON.

    Raises:
        ValueError: it is none, or holds what cannot be kept.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float, parse_int=_read_int)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error.msg} at character {error.pos + 1})") from None


def read_header(given: Any) -> Mapping[str, int]:
    """Read the first line, and give the counts that it has.

    Raises:
        ValueError: it is not that of a journal, or a newer program wrote it.
    """
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(
            f'the first line must be {{"format": "{FORMAT}", "version": {VERSION}}}: this is no export of a journal'
        )
    version = given.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"version must be {VERSION}, not {show(version)}")
    if version > VERSION:
        raise ValueError(
            f"a newer pytest-golden-projects wrote it (version {version} of the format, this one knows {VERSION}); "
            "upgrade this one with `pip install --upgrade pytest-golden-projects`"
        )
    return {name: given[name] for name in ("entries", "orphans") if type(given.get(name)) is int}


def read_line(given: Any) -> Copy | Row:
    """Read a line that is no header: an entry with all that belongs to it, or the columns of an orphan.

    Raises:
        ValueError: what is wrong with it, and what is allowed.
    """
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in {_ENTRY, _ORPHAN}:
        raise ValueError(f"a line must be an object whose kind is {_ENTRY} or {_ORPHAN}, not {show(given)}")
    rest = {key: value for key, value in given.items() if key != "kind"}
    return _read_entry(rest) if kind == _ENTRY else _read_orphan(rest)


def read_again(copy: Copy) -> Copy:
    """Give a copy as it would come out of a line: what an older program left is then without secrets too."""
    read = read_line(json.loads(write_entry(copy)))
    assert isinstance(read, Copy)
    return read


def _read_entry(given: dict[str, Any]) -> Copy:
    parts = {name: _read_list(name, given.pop(name, [])) for name in _PARTS}
    copy = Copy(
        read_row("entry", ENTRY_FIELDS, given),
        **{
            name: tuple(read_row(f"{name}[{number}]", fields, row) for number, row in enumerate(parts[name]))
            for name, fields in _PARTS.items()
        },
    )
    _check_entry(copy)
    return copy


def _read_orphan(given: dict[str, Any]) -> Row:
    signal = read_row("signal", SIGNAL_FIELDS, given)
    if signal["routed_by"] != RoutedBy.ORPHAN or signal["expectation_id"] is not None:
        raise ValueError("signal: a signal without an entry has routed_by orphan and no expectation_id")
    return signal


def _read_list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    return value


def _check_entry(copy: Copy) -> None:
    """Refuse what no sequence of calls can have left."""
    entry = copy.entry
    is_open = entry["assessment"] == Assessment.OPEN
    if is_open != (entry["closed_at"] is None):
        raise ValueError("entry: closed_at is set when the assessment is no longer open, and only then")
    if entry["human_word"] is not None and (is_open or entry["human_word"] != entry["assessment"]):
        raise ValueError("entry: a person's word (human_word) is the assessment, and never open")
    _refuse_twice("expectations", copy.expectations)
    _refuse_twice("signals", copy.signals)
    for number, expectation in enumerate(copy.expectations):
        _check_expectation(f"expectations[{number}]", expectation)
    known = {expectation["id"] for expectation in copy.expectations}
    for number, signal in enumerate(copy.signals):
        _check_signal(f"signals[{number}]", signal, known)
    for number, record in enumerate(copy.history):
        _check_history(f"history[{number}]", record)


def _check_expectation(what: str, row: Row) -> None:
    is_open = row["status"] == ExpectationStatus.OPEN
    if not is_open == (row["resolved_at"] is None) == (row["resolved_by"] is None):
        raise ValueError(
            f"{what}: resolved_at and resolved_by are set when the status is no longer open, and only then"
        )
    if row["polarity"] == Polarity.NEGATIVE and row["expires_at"] is None:
        raise ValueError(f"{what}: polarity negative wants expires_at")


def _check_signal(what: str, row: Row, known: set[str]) -> None:
    if row["routed_by"] == RoutedBy.ORPHAN:
        raise ValueError(f"{what}: routed_by orphan has a line of its own, of the kind {_ORPHAN}")
    if row["expectation_id"] is not None and row["expectation_id"] not in known:
        raise ValueError(f"{what}: the entry has no expectation {row['expectation_id']!r}")


def _check_history(what: str, row: Row) -> None:
    details = row["details"] or {}
    if row["who"] == MERGER and row["what"] == "assessment":
        words = (details.get("from"), details.get("to"))
        if any(word not in list(Assessment) for word in words):
            raise ValueError(f"{what}: details must tell from and to, each one of {', '.join(Assessment)}")


def _refuse_twice(name: str, rows: Iterable[Row]) -> None:
    known = set()
    for row in rows:
        if row["id"] in known:
            raise ValueError(f"{name}: {row['id']!r} is there twice")
        known.add(row["id"])


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it holds the number {show(text)}, which is too large")
    return number


def _read_int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"it holds a number of {len(text):,} digits, and {_LONGEST_NUMBER:,} are the most")
    return int(text)
