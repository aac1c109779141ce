"""Compares an output with its baseline: chooses the comparison, and turns every problem with a file into a mismatch. Only reads files.

The comparisons that need no parser are here: bytes of two files, size of a file, and width and height of images.
"""

from __future__ import annotations

import re
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.compare.baselines import EXISTS, describe_kind
from pytest_golden.compare.documents.compare_documents import compare_json
from pytest_golden.compare.opening import (
    CHUNK_BYTES,
    Content,
    Mismatch,
    PatternTimedOutError,
    Side,
    UnreadableError,
    VastError,
    choose_comparison,
    has_equal_bytes,
    is_archive,
    read_chunks,
    read_size,
)
from pytest_golden.compare.showing import NOT_SHOWN, compose, describe_broken, find_first_difference
from pytest_golden.compare.tables.compare_tables import compare_tables
from pytest_golden.compare.text.compare_texts import compare_text
from pytest_golden.errors import GoldenError
from pytest_golden.gateway.content import find_texts, lstat_below, lstat_or_none
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import count_of, describe_texts, show_path

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile, ProjectBaselines
    from pytest_golden.compare.showing import Redact
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import DeclaredOutput

_MOST_NAMED = 3
_ROW_BYTES = 16
_ROWS_BEFORE, _ROWS_AFTER = 1, 4
_AROUND_BYTES = 4 << 10
# How much is read to find a size: an archive can expand to any size.
_MOST_MEASURED_BYTES = 1 << 30

# In a JPEG, a colour profile and a small picture can come before the size.
_HEAD_CHUNKS = 16
# Markers of a JPEG that begin a frame, which has the size: all SOFn except DHT, JPG and DAC.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
_SVG = re.compile(rb"<svg\b([^>]{0,10000})>", re.IGNORECASE)
_SVG_PART = re.compile(rb"""(?<![\w-])(width|height|viewBox)\s*=\s*["']\s*([^"']{1,200}?)\s*["']""")
_LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:px)?")


def compare_files(
    declared: DeclaredOutput,
    actual: Path,
    baseline: Path | None,
    *,
    shown_as: str,
    redact: Redact = str,
    warn: Callable[[str], None] = lambda _: None,
    known_key: Sequence[str] = (),
) -> Mismatch | None:
    """Compare an output with its baseline as declared; return None if it is as expected.

    Reads both files and changes nothing. A missing or broken file is a mismatch, not an exception.

    Args:
        declared: the entry of `outputs:`.
        actual: the output; a symbolic link is not followed.
        baseline: its accepted form. If it may be a link, the caller checks it. None if no baseline is needed
            (`exists`), or if only the rows of a table are counted.
        shown_as: the name of the output in messages.
        redact: removes secrets from text, bytes, JSON and table cells before they are shortened.
        warn: receives what a person should know about an output that is as expected, for example that its numbers are written differently.
        known_key: the key of a table, used if none is declared and the key is in the baseline and unique there.

    Raises:
        GoldenError: the gate could not do its job.
    """
    shown_as = show_path(shown_as)
    output = Content(actual, Side.OUTPUT)
    accepted = None if baseline is None else Content(baseline, Side.BASELINE)
    try:
        return _compare(declared, output, accepted, shown_as, redact, warn, known_key=known_key)
    except UnreadableError as error:
        is_output = error.side is Side.OUTPUT
        kind = ReasonKind.OUTPUT_UNREADABLE if is_output else ReasonKind.BASELINE_UNREADABLE
        # An error can quote what is in the file.
        return Mismatch(kind, compose(redact(f"{'' if is_output else 'the baseline of '}{shown_as} {error}")))
    except PatternTimedOutError as error:
        return Mismatch(ReasonKind.PATTERN_TIMED_OUT, f"{shown_as} could not be compared: {error}")
    except MemoryError:
        rule = f"`compare: {choose_comparison(actual, declared)}`"
        raise GoldenError(f"{shown_as} could not be compared: too little memory is free here for {rule}") from None


def _compare(
    declared: DeclaredOutput,
    actual: Content,
    baseline: Content | None,
    shown_as: str,
    redact: Redact,
    warn: Callable[[str], None],
    *,
    known_key: Sequence[str],
) -> Mismatch | None:
    comparison = choose_comparison(actual.path, declared)
    broken = _check_texts(declared, actual)
    if broken:
        return Mismatch(ReasonKind.RULE_BROKEN, describe_broken(shown_as, broken))
    if comparison == "exists":
        mismatch = check_existence(declared, actual, shown_as=shown_as)
        if mismatch is not None or not declared.has_value_rules:
            return mismatch
        return compare_tables(declared, actual, None, shown_as=shown_as, redact=redact, warn=warn)
    if comparison == "table":
        is_same = baseline is not None and _is_same_table(declared, actual, baseline)
        if is_same and not _needs_look(declared):
            return None
        there = None if is_same else baseline
        return compare_tables(declared, actual, there, shown_as=shown_as, redact=redact, warn=warn, known_key=known_key)
    if baseline is None:
        raise UnreadableError(Side.BASELINE, "is missing")
    if has_equal_bytes(actual, baseline) or (is_archive(actual) and has_equal_content(actual, baseline)):
        return None
    return _compare_content(comparison, declared, actual, baseline, shown_as, redact)


def _is_same_table(declared: DeclaredOutput, actual: Content, baseline: Content) -> bool:
    """Tell whether a table that was read from a database is unchanged: equal tables give equal bytes."""
    return declared.is_of_tables and has_equal_bytes(actual, baseline)


def _needs_look(declared: DeclaredOutput) -> bool:
    """Tell whether an entry has rules that need no baseline: rules on values, row counts, a unique key, a tolerance of numbers."""
    bounds = (declared.min_rows, declared.max_rows)
    needs_numbers = declared.table is not None and declared.is_tolerant
    return bool(declared.key) or declared.has_value_rules or needs_numbers or any(bound is not None for bound in bounds)


def _compare_content(
    comparison: str, declared: DeclaredOutput, actual: Content, baseline: Content, shown_as: str, redact: Redact
) -> Mismatch | None:
    if comparison == "text":
        return compare_text(declared, actual, baseline, shown_as=shown_as, redact=redact)
    if comparison == "json":
        return compare_json(declared, actual, baseline, shown_as=shown_as, redact=redact)
    if comparison == "image_size":
        return compare_image_sizes(actual, baseline, shown_as=shown_as)
    return compare_bytes(actual, baseline, shown_as=shown_as, redact=redact)


#: Tells whether a file is still the same file with the same content; None if there is no readable file.
Mark = tuple[int, ...] | None


def look_at(file: ExpectedFile, written: WrittenFiles) -> tuple[Mark, Path | None]:
    """Return the mark of an output, and its location. Undoing a change, or restoring the old times, changes the mark too."""
    try:
        actual, found = _find_regular(written, file.path)
    except OSError:
        return None, None
    return _mark(found), actual


def _mark(found: os.stat_result) -> Mark:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def explain_change(file: ExpectedFile, written: WrittenFiles, mark: Mark) -> Mismatch | None:
    """Return a mismatch if an output changed after the first look at it, because then it is unknown which content was compared."""
    # Most files are unchanged, and the first look made them readable. The same mark means the same file, whatever path leads to it now.
    there = None if mark is None or file.path in written.exported else lstat_or_none(f"{written.root}/{file.path}")
    if there is not None and _mark(there) == mark:
        return None
    now, _ = look_at(file, written)
    if now == mark:
        return None
    if now is None and lstat_below(str(written.root), file.path) is None:
        return explain_unreadable(file.path, FileNotFoundError())
    told = "changed while it was compared: something that this run started, or someone else, still writes it"
    return Mismatch(ReasonKind.OUTPUT_UNREADABLE, f"{show_path(file.path)} {told}")


def examine_file(
    file: ExpectedFile,
    written: WrittenFiles,
    baselines: ProjectBaselines,
    accept_command: str,
    warn: Callable[[str], None] = lambda _: None,
    actual: Path | None = None,
) -> Mismatch | None:
    """Compare one file with its baseline by every entry that names it, and return the first mismatch.

    `actual` is the location that the first look found.
    """
    shown = show_path(file.path)
    try:
        baseline = baselines.find(file.path) if file.needs_baseline else None
    except OSError as error:
        place = f"{baselines.folder.name}/{baselines.name}/{shown}"
        told = f"{place} is not a usable baseline: {error.strerror or error}"
        return Mismatch(ReasonKind.BASELINE_UNREADABLE, told)
    if not file.is_written:
        link = _find_link(file.path, written)
        why = f": {show_path(link)} is a symlink, and none is followed; declare the file behind it" if link else ""
        return Mismatch(ReasonKind.OUTPUT_MISSING, f"{shown} has a baseline, and this run did not write it{why}")
    try:
        actual = actual or find_actual(written, file.path)
    except OSError as error:
        return explain_unreadable(file.path, error)
    if file.needs_baseline and baseline is None:
        told = f"{shown} has no baseline\nlook at it, then accept it with `{accept_command}`"
        return Mismatch(ReasonKind.BASELINE_MISSING, told)
    return compare_with(file, actual, baseline, written.redact, warn)


def compare_with(
    file: ExpectedFile,
    actual: Path,
    baseline: Path | None,
    redact: Callable[[str], str] = str,
    warn: Callable[[str], None] = lambda _: None,
) -> Mismatch | None:
    """Compare by every entry, those without a baseline first; `baseline` is None if none of them needs one."""
    entries = sorted(file.entries, key=lambda entry: entry.compare != EXISTS)
    mismatches = (
        compare_files(
            entry,
            actual,
            None if entry.compare == EXISTS else baseline,
            shown_as=file.path,
            redact=redact,
            warn=warn,
            known_key=file.known_key,
        )
        for entry in entries
    )
    return next((mismatch for mismatch in mismatches if mismatch is not None), None)


def find_actual(written: WrittenFiles, path: str) -> Path:
    """Return the real file of an output. Never follows a link out of the view.

    Raises:
        OSError: the file is gone, or is not a regular file.
    """
    return _find_regular(written, path)[0]


def _find_regular(written: WrittenFiles, path: str) -> tuple[Path, os.stat_result]:
    actual, found = written.find(path)
    if not stat.S_ISREG(found.st_mode):
        kind, is_link = describe_kind(found.st_mode), stat.S_ISLNK(found.st_mode)
        raise OSError(f"it is {kind}" + ("; declare the file that it leads to" if is_link else ", not a file"))
    return actual, found


def _find_link(path: str, written: WrittenFiles) -> str | None:
    """Return the symlink that this run put in place of a folder on the way to a path."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        folder = "/".join(parts[:count])
        with suppress(OSError):
            if stat.S_ISLNK(written.locate(folder).lstat().st_mode):
                return folder
    return None


def explain_unreadable(path: str, error: OSError) -> Mismatch:
    """Say why a written path cannot be compared."""
    if isinstance(error, FileNotFoundError):
        return Mismatch(ReasonKind.OUTPUT_MISSING, f"{show_path(path)} was written, and is gone now")
    return Mismatch(ReasonKind.OUTPUT_UNREADABLE, f"{show_path(path)} cannot be compared: {error.strerror or error}")


def find_moved(
    missing: Sequence[str], new: Sequence[str], written: WrittenFiles, baselines: ProjectBaselines
) -> dict[str, str]:
    """Return the new paths of outputs whose baselines have the same bytes as a file without a baseline."""
    moved: dict[str, str] = {}
    left = list(new)
    for path in missing:
        with suppress(OSError, UnreadableError):
            baseline = baselines.find(path)
            if baseline is None:
                continue
            accepted = Content(baseline, Side.BASELINE)
            to = next(
                (one for one in left if has_equal_bytes(Content(find_actual(written, one), Side.OUTPUT), accepted)),
                None,
            )
            if to is not None:
                moved[path] = to
                left.remove(to)
    return moved


def explain_unmatched(entry: DeclaredOutput, written: Sequence[str]) -> Mismatch:
    """Say that an entry of `outputs:` matches nothing that the run wrote, and what the run wrote instead."""
    if entry.database or entry.dbt:
        return Mismatch(ReasonKind.OUTPUT_MISSING, f"{entry.shown}: nothing was read")
    shown = show_path(entry.path)
    is_pattern = any(sign in entry.path for sign in "*?[{")
    told = f"nothing that this run wrote matches `{shown}`" if is_pattern else f"this run did not write {shown}"
    named = ", ".join(map(show_path, written[:_MOST_NAMED])) + (", ..." if len(written) > _MOST_NAMED else "")
    return Mismatch(ReasonKind.OUTPUT_MISSING, f"{told}; it wrote {named or 'nothing at all'}")


def compare_bytes(actual: Content, baseline: Content, *, shown_as: str, redact: Redact) -> Mismatch | None:
    """Compare the content of two files, decompressed if they are archives.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    found = _find_parts(actual, baseline)
    if found is None:
        return None
    place, ours, theirs = found
    message = compose(_write_headline(place, ours, theirs, shown_as), _write_dump(place, ours, theirs, redact))
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, message)


def has_equal_content(actual: Content, baseline: Content) -> bool:
    """Tell whether two files have the same content, decompressed if they are archives.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    return all(one == other for one, other in zip_longest(read_chunks(actual), read_chunks(baseline)))


@dataclass(frozen=True, slots=True)
class _Part:
    """The content of a file around the first difference, from byte `start` on, and the size of the whole file.

    `around` is more of it, as text, because the shown bytes can begin in the middle of a secret.
    """

    start: int
    data: bytes
    around: str
    size_bytes: int
    is_whole: bool


def _find_parts(actual: Content, baseline: Content) -> tuple[int, _Part, _Part] | None:
    ours, theirs = read_chunks(actual), read_chunks(baseline)
    passed, before = 0, b""
    for one, other in zip_longest(ours, theirs, fillvalue=b""):
        if one != other:
            place = passed + find_first_difference(one, other)
            return (
                place,
                _make_part(actual, before, one, ours, place),
                _make_part(baseline, before, other, theirs, place),
            )
        passed += len(one)
        # A part begins on a row, and all chunks but the last are made of whole rows.
        before = one[-_AROUND_BYTES:]
    return None


def _make_part(content: Content, before: bytes, chunk: bytes, rest: Iterator[bytes], place: int) -> _Part:
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
    """Return the size including what follows, and whether that is all."""
    try:
        for chunk in islice(rest, _MOST_MEASURED_BYTES // CHUNK_BYTES):
            size_bytes += len(chunk)
        return size_bytes, next(rest, b"") == b""
    except VastError:
        return size_bytes, False


def _write_headline(place: int, ours: _Part, theirs: _Part, shown_as: str) -> str:
    ours_ends, theirs_ends = place >= ours.size_bytes, place >= theirs.size_bytes
    if ours_ends or theirs_ends:
        whose, other = ("it", "its baseline goes") if ours_ends else ("its baseline", "it goes")
        return f"{shown_as} differs from its baseline: {whose} ends after {count_of(place, 'byte')}, and {other} on"
    return f"{shown_as} differs from its baseline, first at byte {place:,} (offset {place:#x}, counted from 0)"


def _write_dump(place: int, ours: _Part, theirs: _Part, redact: Redact) -> Iterator[str]:
    yield f"the output has {_write_size(ours)}, its baseline {_write_size(theirs)}"
    if any(_holds_secret(part.around, redact) for part in (ours, theirs)):
        yield NOT_SHOWN
        return
    for at in range(0, max(len(ours.data), len(theirs.data)), _ROW_BYTES):
        row, other = ours.data[at : at + _ROW_BYTES], theirs.data[at : at + _ROW_BYTES]
        offset = ours.start + at
        if row == other:
            yield _write_row(" ", offset, row)
        else:
            yield _write_row("-", offset, other)
            yield _write_row("+", offset, row)
            if offset <= place < offset + _ROW_BYTES:
                yield _write_marks(row, other)


def _holds_secret(text: str, redact: Redact) -> bool:
    """Tell whether bytes contain a secret. UTF-16 and UTF-32 have zeros between the characters."""
    return any(redact(one) != one for one in {text, text.replace("\0", "")})


def _write_row(sign: str, offset: int, data: bytes) -> str:
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    return f"{sign} {offset:08x}  {data.hex(' '):<{3 * _ROW_BYTES}} |{text}|"


def _write_marks(row: bytes, other: bytes) -> str:
    longest = max(len(row), len(other))
    return (
        "?" + " " * 11 + " ".join("^^" if row[at : at + 1] != other[at : at + 1] else "  " for at in range(longest))
    ).rstrip()


def _write_size(part: _Part) -> str:
    return f"{'' if part.is_whole else 'more than '}{count_of(part.size_bytes, 'byte')}"


def _check_texts(declared: DeclaredOutput, actual: Content) -> list[str]:
    """Return how a file breaks the rules on its text.

    Raises:
        UnreadableError: it cannot be read.
    """
    if not (declared.contains or declared.not_contains):
        return []
    found = find_texts(read_chunks(actual), (*declared.contains, *declared.not_contains))
    return describe_texts(declared.contains, declared.not_contains, found)


def check_existence(declared: DeclaredOutput, actual: Content, *, shown_as: str) -> Mismatch | None:
    """Check a file's size on the disk against `min_bytes` and `max_bytes`.

    Raises:
        UnreadableError: the file is gone, or is not a regular file.
    """
    size = read_size(actual)
    if declared.min_bytes is not None and size < declared.min_bytes:
        bound = f"less than min_bytes: {declared.min_bytes}"
    elif declared.max_bytes is not None and size > declared.max_bytes:
        bound = f"more than max_bytes: {declared.max_bytes}"
    else:
        return None
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, f"{shown_as} has {count_of(size, 'byte')}, {bound}")


class Size(NamedTuple):
    """Width and height as the file states them: pixels, or in an SVG a length with its unit."""

    width: str
    height: str

    def __str__(self) -> str:
        """Return `640 x 480`."""
        return f"{self.width} x {self.height}"


def compare_image_sizes(actual: Content, baseline: Content, *, shown_as: str) -> Mismatch | None:
    """Compare width and height of two images (PNG, JPEG, GIF, WebP, BMP, SVG), read from the beginning of the files.

    Raises:
        UnreadableError: one of them cannot be read, or is not an image of these kinds.
    """
    ours, theirs = _read_image_size(actual), _read_image_size(baseline)
    if ours == theirs:
        return None
    return Mismatch(ReasonKind.OUTPUT_DIFFERS, f"{shown_as} is {ours}, its baseline {theirs} (width x height)")


def find_size(head: bytes) -> Size | None:
    """Find the size in the beginning of an image; None if it is not an image, or ends before its size."""
    for sign, find in _IMAGE_KINDS:
        if head.startswith(sign):
            try:
                width, height = find(head)
            except (struct.error, ValueError):
                return None
            return Size(str(width), str(height))
    return _find_svg_size(head)


def _read_image_size(content: Content) -> Size:
    size = find_size(b"".join(islice(read_chunks(content), _HEAD_CHUNKS)))
    if size is None:
        raise UnreadableError(content.side, "is not a PNG, JPEG, GIF, WebP, BMP or SVG whose size can be read")
    return size


def _png(head: bytes) -> tuple[int, int]:
    if head[12:16] != b"IHDR":
        raise ValueError
    return _unpack(">II", head, 16)


def _gif(head: bytes) -> tuple[int, int]:
    return _unpack("<HH", head, 6)


def _bmp(head: bytes) -> tuple[int, int]:
    if _unpack("<HH", head, 14) == (12, 0):
        return _unpack("<HH", head, 18)
    # A negative height only means that the rows are stored from top to bottom.
    width, height = _unpack("<ii", head, 18)
    return abs(width), abs(height)


def _jpeg(head: bytes) -> tuple[int, int]:
    place = 2
    while head[place : place + 1] == b"\xff":
        marker, length = struct.unpack_from(">BH", head, place + 1)
        if marker == 0xFF:
            place += 1
        elif marker in _JPEG_WITHOUT_LENGTH:
            place += 2
        elif marker in _JPEG_FRAMES:
            height, width = _unpack(">HH", head, place + 5)
            return width, height
        else:
            place += 2 + length
    raise ValueError


def _webp(head: bytes) -> tuple[int, int]:
    kind = head[8:16]
    if kind == b"WEBPVP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = _unpack("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"WEBPVP8L" and head[20:21] == b"\x2f":
        (bits,) = struct.unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"WEBPVP8X":
        low, width, height, high = struct.unpack_from("<HBHB", head, 24)
        return (width << 16 | low) + 1, (high << 16 | height) + 1
    raise ValueError


def _unpack(form: str, head: bytes, at: int) -> tuple[int, int]:
    first, second = struct.unpack_from(form, head, at)
    return first, second


def _find_svg_size(head: bytes) -> Size | None:
    found = _SVG.search(head[: 1 << 20])
    if found is None:
        return None
    parts = {name.decode(): value.decode("utf-8", "replace") for name, value in _SVG_PART.findall(found[1])}
    if "width" in parts and "height" in parts:
        return Size(_plain_length(parts["width"]), _plain_length(parts["height"]))
    corners = parts.get("viewBox", "").replace(",", " ").split()
    return Size(corners[2], corners[3]) if len(corners) == 4 else None


def _plain_length(text: str) -> str:
    plain = _LENGTH.fullmatch(text)
    return plain[1] if plain else text


_IMAGE_KINDS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int]]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8\xff", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _webp),
    (b"BM", _bmp),
)
