"""The file of an export: lines of JSON, one for each entry and orphan. Lines are checked like any input.

The first line is `{"format": "golden-journal", "version": 1}`; it may say how many entries and orphans follow.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from pytest_golden.clock import iso_utc
from pytest_golden.errors import JournalError
from pytest_golden.journal.caller_input import clean_external_id, clean_json, clean_name, clean_text
from pytest_golden.journal.hints import find_problem
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, Polarity, RoutedBy, SignalType
from pytest_golden.journal.transfer.entry_merging import MERGER, Copy, Row
from pytest_golden.manifest.units import show
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.storage.folder import replace_file
from pytest_golden.storage.schema import entries, entry_history, expectations, signals
from pytest_golden.values.checking import check_mapping, check_word, list_items, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from enum import StrEnum


#: Writes a line: pure ASCII, in which half a character is an escape.
_write_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
FORMAT, VERSION = "golden-journal", 1
_ENTRY, _ORPHAN = "entry", "signal"
_LONGEST_NUMBER = 1000
_ABSENT = object()
# Of one entry with all that belongs to it: more would not fit into memory.
LONGEST_LINE = 256 << 20
_IN_MEMORY, _AT_ONCE = 8 << 20, 1 << 20
_KIND_SHOWN = 200


class Field(NamedTuple):
    """How the value of one column is read from a line; its `default` where a line leaves it out, `_ABSENT` for none."""

    read: Callable[[str, Any], Any]
    default: Any = None
    is_time: bool = False


def _read_note(field: str, value: Any) -> str:
    # Blank ones are kept as they are.
    return value if (isinstance(value, str) and value.isspace()) or value == "" else clean_text(field, value)


def _read_timestamp(field: str, value: Any) -> int:
    return to_ms(parse_time(field, value))


def _read_flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{field} must be true or false, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    return value


def _read_list(field: str, value: Any) -> Any:
    return list(clean_json(field, list_items(field, value)))


def _read_mapping(field: str, value: Any) -> Any:
    return clean_json(field, check_mapping(field, value))


def _read_hint(field: str, value: Any) -> Any:
    hint = _read_mapping(field, value)
    problem = find_problem(hint)
    if problem:
        raise ValueError(f"{field}: {problem}")
    return hint


def _read_routing(field: str, value: Any) -> Any:
    """Read the stored explanation of a routing, and check its form."""
    routing = _read_mapping(field, value)
    candidates = routing.get("candidates")
    if (
        type(routing.get("others")) is not int
        or not isinstance(candidates, list)
        or not all(map(_is_verdict, candidates))
    ):
        raise ValueError(f"{field} must be {{candidates: [{{expectation_id, rule, taken, reason}}], others}}")
    return routing


def _is_verdict(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("expectation_id"), str)
        and value.get("rule") in list(RoutedBy)
        and isinstance(value.get("taken"), bool)
        and isinstance(value.get("reason"), str)
    )


def _read_word(words: type[StrEnum], field: str, value: Any) -> str:
    return check_word(field, value, words).value


_WORDS = {
    "immediate_result": ImmediateResult,
    "assessment": Assessment,
    "human_word": Assessment,
    "polarity": Polarity,
    "status": ExpectationStatus,
    "signal_type": SignalType,
    "routed_by": RoutedBy,
}
# By the name of a column, else by the type of its values: any object for JSON.
_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    **{name: partial(_read_word, words) for name, words in _WORDS.items()},
    **dict.fromkeys(("intent", "description", "summary"), clean_text),
    **dict.fromkeys(("immediate_notes", "assessment_notes", "why"), _read_note),
    "external_id": clean_external_id,
    "actions": _read_list,
    "match_hint": _read_hint,
    "routing": _read_routing,
}
_TYPE_READERS: Mapping[type, Callable[[str, Any], Any]] = {
    str: clean_name,
    int: _read_timestamp,
    bool: _read_flag,
    # JSON, as SQLAlchemy 2.1 and 2.0 call it.
    object: _read_mapping,
    dict: _read_mapping,
}
_DEFAULTS = {"actions": [], "polarity": Polarity.POSITIVE.value, "critical": False, "is_late": False}


def _list_fields(table: Any, *left_out: str) -> dict[str, Field]:
    """List the columns of a table that travel, in their order; a column that may not be NULL must be in a line."""
    found = {}
    for column in table.c:
        kind = column.type.python_type
        is_count = kind is int and not column.name.endswith("_at")
        if column.name not in {"entry_id", *left_out} and not is_count:
            default = _DEFAULTS.get(column.name, None if column.nullable else _ABSENT)
            read = _READERS.get(column.name, _TYPE_READERS[kind])
            found[column.name] = Field(read, default, is_time=kind is int)
    return found


ENTRY_FIELDS = _list_fields(entries)
#: `by_hint_only`: no signal concerns it because of its session or time.
EXPECTATION_FIELDS = {
    **_list_fields(expectations, "agent_id", "session_key", "hint_shape", "check_due_at"),
    "by_hint_only": Field(_read_flag, default=False),
}
SIGNAL_FIELDS = _list_fields(signals)
HISTORY_FIELDS = _list_fields(entry_history)


def write_row(fields: dict[str, Field], row: Row) -> Row:
    """Write columns as the keys of a line, leaving out defaults."""
    kept = {name: row[name] for name, field in fields.items() if row[name] != field.default}
    return {name: iso_utc(from_ms(value)) if fields[name].is_time else value for name, value in kept.items()}


def read_row(what: str, fields: dict[str, Field], given: Any) -> Row:
    """Read the columns of a row.

    Raises:
        ValueError: it is not a row; the message says which key is wrong, and what is allowed.
    """
    unknown = check_mapping(what, given).keys() - fields.keys()
    if unknown:
        raise ValueError(f"{what}: the key {min(unknown)!r} is unknown; the keys are {', '.join(fields)}")
    return {name: _read_value(what, name, field, given.get(name)) for name, field in fields.items()}


def _read_value(what: str, name: str, field: Field, value: Any) -> Any:
    if value is not None:
        return field.read(f"{what}: {name}", value)
    if field.default is _ABSENT:
        raise ValueError(f"{what}: {name} is missing")
    return field.default


_PARTS = {"expectations": EXPECTATION_FIELDS, "signals": SIGNAL_FIELDS, "history": HISTORY_FIELDS}


def write_header(counts: Mapping[str, int]) -> str:
    """Write the first line of a file, with the counts of its lines."""
    return json.dumps({"format": FORMAT, "version": VERSION, **counts})


def write_entry(copy: Copy) -> str:
    """Write an entry with all that belongs to it as a line, without the line's end."""
    line: dict[str, Any] = {"kind": _ENTRY, **write_row(ENTRY_FIELDS, copy.entry)}
    for name, fields in _PARTS.items():
        rows = getattr(copy, name)
        if rows:
            line[name] = [write_row(fields, row) for row in rows]
    return _write_json(line)


def write_orphan(signal: Row) -> str:
    """Write a signal without an entry as a line, without the line's end."""
    return _write_json({"kind": _ORPHAN, **write_row(SIGNAL_FIELDS, signal)})


def parse(text: str | bytes, *, is_whole: bool = True) -> Any:
    """Read a line as JSON; `is_whole` tells whether it has an end.

    Raises:
        ValueError: it is not JSON, or holds what cannot be kept.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float, parse_int=_read_int)
    except RecursionError:
        problem = "it is nested too deeply"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except json.JSONDecodeError as error:
        problem = f"it is not JSON ({error.msg} at character {error.pos + 1})"
    raise ValueError(problem if is_whole else "it is cut off: the file ends in the middle of it")


def read_header(given: Any) -> Mapping[str, int]:
    """Read the first line, and return the counts that it announces.

    Raises:
        ValueError: it is not that of a journal, or a newer program wrote it.
    """
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(
            f'the first line must be {{"format": "{FORMAT}", "version": {VERSION}}}: this is not an export of a journal'
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
    """Read a line that is not a header: an entry with all that belongs to it, or the columns of an orphan.

    Raises:
        ValueError: what is wrong with it, and what is allowed.
    """
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in {_ENTRY, _ORPHAN}:
        raise ValueError(f"a line must be an object whose kind is {_ENTRY} or {_ORPHAN}, not {show(given)}")
    rest = {key: value for key, value in given.items() if key != "kind"}
    return _read_entry(rest) if kind == _ENTRY else _read_orphan(rest)


def read_again(copy: Copy) -> Copy:
    """Return a copy as a line would return it, so that what an older program stored is redacted too."""
    read = read_line(json.loads(write_entry(copy)))
    assert isinstance(read, Copy)
    return read


def _read_entry(given: dict[str, Any]) -> Copy:
    parts = {name: list_items(name, given.pop(name, [])) for name in _PARTS}
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


def _check_entry(copy: Copy) -> None:
    """Raise ValueError for a state that no sequence of calls can produce."""
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
        raise ValueError(f"{what}: polarity negative needs expires_at")


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
    raise ValueError(f"it holds {name}, which is not JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it holds the number {show(text)}, which is too large")
    return number


def _read_int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"it holds a number of {len(text):,} digits, and {_LONGEST_NUMBER:,} are the most")
    return int(text)


def name_file(file: str | Path | IO[Any]) -> str:
    """Return the name of a file for a message."""
    if isinstance(file, str | os.PathLike):
        return str(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "the file"


@contextmanager
def open_lines_to_write(file: str | Path | IO[Any]) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes one line. A file given by its path appears whole or not at all.

    Raises:
        JournalError: something else than an earlier export has the path.
    """
    if not isinstance(file, str | os.PathLike):
        _check_open(file, "write")
        is_text = hasattr(file, "encoding")
        yield lambda line: file.write(f"{line}\n" if is_text else f"{line}\n".encode("ascii"))
        return
    path = Path(file)
    _refuse_other(path)
    with replace_file(path, follows_links=True) as stream:
        yield lambda line: stream.write(f"{line}\n")


@contextmanager
def open_to_read(file: str | Path | IO[Any]) -> Iterator[IO[bytes]]:
    """Yield a file that can be read without waiting: what comes through a pipe is read whole first.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(file, str | os.PathLike):
        with Path(file).open("rb") as stream:
            if Path(file).is_file():
                yield stream
                return
            with _spool(stream) as spooled:
                yield spooled
        return
    _check_open(file, "read")
    with _spool(file) as spooled:
        yield spooled


def read_lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Yield each line that is not blank with its number, from 1 on, and whether it is whole: has a line end.

    Raises:
        ValueError: a line is too long.
    """
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(f"line {number}: it is longer than {LONGEST_LINE >> 20} MiB, and no entry is")
        if line.strip():
            yield number, line, line.endswith(b"\n")


@contextmanager
def _spool(stream: IO[Any]) -> Iterator[IO[bytes]]:
    with SpooledTemporaryFile(_IN_MEMORY) as spooled:
        line_size = 0
        # Input that will be refused is not collected: it may have no end.
        while line_size <= LONGEST_LINE and (part := stream.read(_AT_ONCE)):
            # A text with half a character is refused later, in its line.
            written = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            is_other = not spooled.tell() and len(written) >= _KIND_SHOWN and FORMAT.encode("ascii") not in written
            spooled.write(written)
            if is_other:
                break
            _, end, rest = written.rpartition(b"\n")
            line_size = len(rest) if end else line_size + len(written)
        spooled.seek(0)
        yield spooled


def _check_open(file: IO[Any], ability: str) -> None:
    if not hasattr(file, ability):
        raise ValueError(f"file must be a path or an open file, not {show(file)}")


def _refuse_other(path: Path) -> None:
    if path.is_dir():
        raise JournalError(f"{path} is a folder; give a file")
    if not path.parent.is_dir():
        raise JournalError(f"{path.parent} is not a folder; create it, or give a file in another folder")
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as stream:
        if FORMAT.encode("ascii") not in stream.read(_KIND_SHOWN):
            raise JournalError(f"{path} exists and is not an export of a journal; give another file")
