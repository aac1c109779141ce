"""Comparison of bytes: whether two files hold the same, and where they first do not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import Mismatch, VastError
from pytest_golden.regression.baselines.opening import (
    CHUNK_BYTES,
    is_archive,
    read_chunks,
    read_raw_chunks,
    read_size,
)
from pytest_golden.regression.baselines.showing import NOT_SHOWN, compose, count_of, find_first_difference
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.regression.baselines.model import Content
    from pytest_golden.regression.baselines.showing import Redact

_ROW_BYTES = 16
_ROWS_BEFORE, _ROWS_AFTER = 1, 4
_AROUND_BYTES = 4 << 10
# What is read to tell a size: an archive can hold any amount.
_MOST_MEASURED_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class _Part:
    """What a file holds around the first difference, `start` bytes from its beginning, and the size of the whole.

    `around` is more of it, as text: the bytes that are shown can be the middle of a secret.
    """

    start: int
    data: bytes
    around: str
    size_bytes: int
    is_whole: bool


def has_equal_bytes(actual: Content, baseline: Content) -> bool:
    """Tell whether two files hold the same bytes as they lie on the disk.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    if read_size(actual) != read_size(baseline):
        return False
    pairs = zip(read_raw_chunks(actual), read_raw_chunks(baseline), strict=False)
    return all(one == other for one, other in pairs) and read_size(actual) == read_size(baseline)


def compare_bytes(actual: Content, baseline: Content, *, shown_as: str, redact: Redact) -> Mismatch | None:
    """Compare what two files hold, of archives the plain content.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    found = _find_parts(actual, baseline)
    if found is None:
        return None
    place, ours, theirs = found
    message = compose(_headline(place, ours, theirs, shown_as), _dump(place, ours, theirs, redact))
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, message)


def has_equal_content(actual: Content, baseline: Content) -> bool:
    """Tell whether two files hold the same, of archives the plain content.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    ours, theirs = read_chunks(actual), read_chunks(baseline)
    while True:
        one, other = next(ours, b""), next(theirs, b"")
        if one != other:
            return False
        if not one:
            return True


def _find_parts(actual: Content, baseline: Content) -> tuple[int, _Part, _Part] | None:
    ours, theirs = read_chunks(actual), read_chunks(baseline)
    passed, before = 0, b""
    while True:
        one, other = next(ours, b""), next(theirs, b"")
        if one != other:
            place = passed + find_first_difference(one, other)
            return place, _part(actual, before, one, ours, place), _part(baseline, before, other, theirs, place)
        if not one:
            return None
        passed += len(one)
        # A part begins on a row, and all chunks but the last are made of whole rows.
        before = one[-_AROUND_BYTES:]


def _part(content: Content, before: bytes, chunk: bytes, rest: Iterator[bytes], place: int) -> _Part:
    following = next(rest, b"") if len(chunk) == CHUNK_BYTES else b""
    first_row = place - place % _ROW_BYTES
    base = place // CHUNK_BYTES * CHUNK_BYTES - len(before)
    start = max(0, first_row - _ROWS_BEFORE * _ROW_BYTES)
    known = before + chunk + following
    data = known[start - base :][: (_ROWS_BEFORE + _ROWS_AFTER) * _ROW_BYTES]
    around = known[max(0, place - base - _AROUND_BYTES) : place - base + _AROUND_BYTES].decode("latin-1")
    if not is_archive(content):
        return _Part(start, data, around, read_size(content), is_whole=True)
    size, is_whole = _measure(rest, base + len(before) + len(chunk) + len(following))
    return _Part(start, data, around, size, is_whole=is_whole)


def _measure(rest: Iterator[bytes], size_bytes: int) -> tuple[int, bool]:
    """Give the size with all that follows, and whether that is all."""
    try:
        for chunk in islice(rest, _MOST_MEASURED_BYTES // CHUNK_BYTES):
            size_bytes += len(chunk)
        return size_bytes, next(rest, b"") == b""
    except VastError:
        return size_bytes, False


def _headline(place: int, ours: _Part, theirs: _Part, shown_as: str) -> str:
    ours_ends, theirs_ends = place >= ours.size_bytes, place >= theirs.size_bytes
    if ours_ends or theirs_ends:
        whose, other = ("it", "its baseline goes") if ours_ends else ("its baseline", "it goes")
        return f"{shown_as} differs from its baseline: {whose} ends after {count_of(place, 'byte')}, and {other} on"
    return f"{shown_as} differs from its baseline, first at byte {place:,} (offset {place:#x}, counted from 0)"


def _dump(place: int, ours: _Part, theirs: _Part, redact: Redact) -> Iterator[str]:
    yield f"the output has {_size(ours)}, its baseline {_size(theirs)}"
    if any(_holds_secret(part.around, redact) for part in (ours, theirs)):
        yield NOT_SHOWN
        return
    for at in range(0, max(len(ours.data), len(theirs.data)), _ROW_BYTES):
        row, other = ours.data[at : at + _ROW_BYTES], theirs.data[at : at + _ROW_BYTES]
        offset = ours.start + at
        if row == other:
            yield _row(" ", offset, row)
        else:
            yield _row("-", offset, other)
            yield _row("+", offset, row)
            if offset <= place < offset + _ROW_BYTES:
                yield _marks(row, other)


def _holds_secret(text: str, redact: Redact) -> bool:
    """Tell whether a secret is among bytes; in UTF-16 and UTF-32 zeros stand between its signs."""
    return any(redact(one) != one for one in {text, text.replace("\0", "")})


def _row(sign: str, offset: int, data: bytes) -> str:
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    return f"{sign} {offset:08x}  {data.hex(' '):<{3 * _ROW_BYTES}} |{text}|"


def _marks(row: bytes, other: bytes) -> str:
    longest = max(len(row), len(other))
    return (
        "?" + " " * 11 + " ".join("^^" if row[at : at + 1] != other[at : at + 1] else "  " for at in range(longest))
    ).rstrip()


def _size(part: _Part) -> str:
    return f"{'' if part.is_whole else 'more than '}{count_of(part.size_bytes, 'byte')}"
