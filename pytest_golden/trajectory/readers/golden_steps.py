"""Read the file that `GOLDEN_STEPS` names: JSON Lines that a pipeline appends while it runs, in any language.

One line is one step. A later line with the same `id` adds to it. Lines that cannot be read are counted, never an error.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.storage.folder import open_regular
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration
from pytest_golden.values.checking import check_time, check_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_FILE_BYTES = 1024 * 1024 * 1024
# Of too many lines the first and the last ones are kept: they say how the run began and how it ended.
_FIRST_LINES, _FIRST_BYTES = 90_000, 12 * 1024 * 1024
_LAST_LINES, _LAST_BYTES = 10_000, 8 * 1024 * 1024
_MAX_WARNINGS = 20


def read_golden_steps(path: Path, *, limit_bytes: int = MAX_FILE_BYTES) -> StepReading:
    """Read a steps file in one pass; it may be torn, huge or absent.

    At most 100,000 lines are kept, the first 90,000 and the last 10,000, and nothing after `limit_bytes`. `lost_count` is the number of lines that gave
    nothing: those that are not steps, and those left out.
    """
    try:
        with open_regular(path) as file:
            kept = _keep_lines(file, limit_bytes)
    except FileNotFoundError:
        return StepReading()
    except OSError as error:
        return StepReading(warnings=(f"the steps file cannot be read: {error.strerror or error}",))
    merge = _Merge()
    for line in (*kept.first, *kept.last):
        merge.add(line)
    return StepReading(
        steps=merge.drafts(),
        lost_count=merge.bad_lines + kept.left_out + kept.huge_lines,
        warnings=(*kept.warnings(), *merge.warnings()),
    )


@dataclass(slots=True)
class _KeptLines:
    limit_bytes: int
    first: list[bytes] = field(default_factory=list)
    last: deque[bytes] = field(default_factory=deque)
    first_bytes: int = 0
    last_bytes: int = 0
    left_out: int = 0
    huge_lines: int = 0
    is_cut_off: bool = False

    def add(self, line: bytes) -> None:
        if not self.last and len(self.first) < _FIRST_LINES and self.first_bytes + len(line) <= _FIRST_BYTES:
            self.first.append(line)
            self.first_bytes += len(line)
            return
        self.last.append(line)
        self.last_bytes += len(line)
        while len(self.last) > _LAST_LINES or self.last_bytes > _LAST_BYTES:
            self.last_bytes -= len(self.last.popleft())
            self.left_out += 1

    def warnings(self) -> Iterator[str]:
        if self.left_out:
            yield f"{self.left_out} lines in the middle of the steps file were left out: it has too many"
        if self.huge_lines:
            yield f"{self.huge_lines} lines of the steps file are longer than {MAX_LINE_BYTES} bytes"
        if self.is_cut_off:
            yield f"the steps file is longer than {self.limit_bytes} bytes; the rest was not read"


def _keep_lines(file: BinaryIO, limit_bytes: int) -> _KeptLines:
    kept = _KeptLines(limit_bytes)
    read_bytes = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        read_bytes += len(line)
        if len(line) > MAX_LINE_BYTES:
            kept.huge_lines += 1
            read_bytes += _skip_line(file, line, limit_bytes - read_bytes)
        elif line := line.strip():
            kept.add(line)
        if read_bytes >= limit_bytes:
            kept.is_cut_off = True
            break
    return kept


def _skip_line(file: BinaryIO, start: bytes, limit_bytes: int) -> int:
    skipped, piece = 0, start
    while piece and not piece.endswith(b"\n") and skipped < limit_bytes:
        piece = file.readline(MAX_LINE_BYTES)
        skipped += len(piece)
    return skipped


class _Merge:
    """The lines' fields by step, in the order of each step's first line."""

    def __init__(self) -> None:
        self.bad_lines = 0
        self._lines: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._odd: Counter[str] = Counter()

    def add(self, raw: bytes) -> None:
        line = _parse_line(raw)
        if line is None:
            self.bad_lines += 1
            return
        known = self._by_id.get(line["id"]) if line.get("id") else None
        if known is not None:
            known.update({**line, "name": known["name"], "timestamp": known.get("timestamp", line.get("timestamp"))})
            return
        self._lines.append(line)
        if line.get("id"):
            self._by_id[line["id"]] = line

    def drafts(self) -> tuple[StepDraft, ...]:
        return tuple(self._draft(dict(line)) for line in self._lines)

    def warnings(self) -> Iterator[str]:
        if self.bad_lines:
            lines = "1 line" if self.bad_lines == 1 else f"{self.bad_lines} lines"
            yield f"{lines} of the steps file skipped: a step must be a JSON object with a name"
        for sentence, count in list(self._odd.items())[:_MAX_WARNINGS]:
            yield f"{sentence} ({count} times)" if count > 1 else sentence
        if len(self._odd) > _MAX_WARNINGS:
            yield f"{len(self._odd) - _MAX_WARNINGS} more fields in the steps file could not be used"

    def _draft(self, line: dict[str, Any]) -> StepDraft:
        error = line.get("error")
        if not error:
            line.pop("error", None)
        importance = self._field(line, "importance", lambda word: check_word("importance", word, Importance))
        return StepDraft(
            content=line.pop("name"),
            type=self._field(line, "type", lambda word: check_word("type", word, StepType)) or StepType.ACTION,
            importance=Importance.CRITICAL if error else importance or Importance.MEDIUM,
            duration_ms=self._field(line, "duration_ms", lambda given: check_duration("duration_ms", given)),
            timestamp=self._field(line, "timestamp", _moment),
            id=line.pop("id", None),
            parent_step_id=line.pop("parent", None),
            metadata=line,
        )

    def _field(self, line: dict[str, Any], key: str, check: Callable[[Any], Any]) -> Any:
        """Take a field out of the line; a value that cannot be used stays as metadata, with a warning."""
        if line.get(key) is None:
            return line.pop(key, None)
        try:
            value = check(line[key])
        except ValueError as error:
            self._odd[f"{error} (kept as metadata)"[:300]] += 1
            return None
        del line[key]
        return value


def _parse_line(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw.decode("utf-8", "replace").lstrip("\ufeff"), parse_constant=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("name"), str) or not line["name"].strip():
        return None
    for key in ("id", "parent"):
        if key in line:
            given = line[key]
            # A shell may write numbers.
            is_id = isinstance(given, (str, int)) and not isinstance(given, bool) and str(given).strip()
            line[key] = str(given) if is_id else None
    return line


def _moment(given: Any) -> datetime:
    """Read ISO-8601 text, in UTC unless it names a zone, or seconds since the epoch as `date +%s` prints them."""
    try:
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            return datetime.fromtimestamp(given, UTC)
        moment = datetime.fromisoformat(given)
    except (ValueError, TypeError, OverflowError, OSError):
        raise ValueError(f"timestamp {given!r} is neither ISO-8601 text nor seconds since the epoch") from None
    return check_time("timestamp", moment if moment.tzinfo else moment.replace(tzinfo=UTC))
