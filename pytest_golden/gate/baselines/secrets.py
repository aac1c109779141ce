"""Secrets in an output that is about to become a baseline, which would be committed. Read as a stream, in flat memory."""

from __future__ import annotations

import codecs
import json
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.comparisons import comparison_by_suffix
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.baselines.kinds import choose_comparison
from pytest_golden.regression.baselines.model import Content, Side, UnreadableError, VastError
from pytest_golden.regression.baselines.opening import is_archive, read_chunks, read_raw_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pytest_golden.gate.baselines.matching import ExpectedFile

# The rules take time that grows faster than the text; what a secret spans lies within the overlap.
_CHUNK_BYTES = 64 << 10
_OVERLAP_SIGNS = 8 << 10
_TABLE = "table"
_PROBE = "tr0ub4dor-and-3"
# A zero byte, and what bytes become that are no UTF-8.
_NO_TEXT = frozenset({"\0", "\ufffd"})
# So what is text in UTF-16 begins, and other things too: those are searched as both.
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def find_secret(actual: Path, file: ExpectedFile, redact: Callable[[str], str]) -> str | None:
    """Say where redaction finds a secret in an output, in its plain content and, of a table, in its rows; None: nowhere.

    Raises:
        OSError: it cannot be read.
    """
    content = Content(actual, Side.OUTPUT)
    try:
        row = _find_row(content, file, redact)
        if row is not None:
            return f"redaction finds a secret in row {row}"
        line, is_text = _find_line(_decode(_read(content), "utf-8"), redact)
        if line is None and next(_read(content), b"").startswith(_UTF_16):
            line, is_text = _find_line(_decode(_read(content), "utf-16"), redact)
        if line is None and not is_text:
            line, is_text = _find_line(_decode(_without_zeros(_read(content)), "utf-8"), redact)
    except UnreadableError as error:
        raise OSError(f"it {error}") from error
    if line is None:
        return None
    return f"redaction finds a secret in line {line}" if is_text else "redaction finds a secret in it, which is no text"


def _find_row(content: Content, file: ExpectedFile, redact: Callable[[str], str]) -> int | None:
    if any(choose_comparison(file.path, entry) == _TABLE for entry in file.entries):
        return _find_line(_read_rows(content, redact), redact)[0]
    if comparison_by_suffix(file.path) != _TABLE or find_spec("duckdb") is None:
        return None
    try:
        return _find_line(_read_rows(content, redact), redact)[0]
    except UnreadableError:  # Nobody compares it as a table, so it need not be one.
        return None


def _read(content: Content) -> Iterator[bytes]:
    """Read through an archive; one that is none, since nobody compares it as one, as it lies there."""
    try:
        yield from read_chunks(content, _CHUNK_BYTES)
    except VastError:
        raise
    except UnreadableError:
        if not is_archive(content):
            raise
        yield from read_raw_chunks(content, _CHUNK_BYTES)


def _without_zeros(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Make text of what is UTF-16 or UTF-32 without a mark, or among other bytes."""
    return (chunk.replace(b"\0", b"") for chunk in chunks)


def _decode(chunks: Iterable[bytes], encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def _find_line(texts: Iterable[str], redact: Callable[[str], str]) -> tuple[int | None, bool]:
    """Give the number of the line in which the first secret begins, and whether it is text up to there."""
    line, kept, is_text = 1, "", True
    searched, piece = None, ""
    for text in texts:
        is_text = is_text and not _NO_TEXT.intersection(text)
        # What repeats itself, as a gigabyte of zeros does, is searched once.
        if kept + text != searched:
            searched = kept + text
            piece = strip_escapes(searched)
            redacted = redact(piece)
            if redacted != piece:
                return line + piece.count("\n", 0, _first_difference(piece, redacted)), is_text
        cut = max(len(piece) - _OVERLAP_SIGNS, 0)
        # A line that is cut in its middle can look like a secret.
        cut = piece.rfind("\n", 0, cut) + 1 or cut
        line += piece.count("\n", 0, cut)
        kept = piece[cut:]
    return None, is_text


def _first_difference(left: str, right: str) -> int:
    return next((at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), len(right))


def _read_rows(content: Content, redact: Callable[[str], str]) -> Iterator[str]:
    """Read a table's rows, in pieces: each row with the names of its columns, which can make a value a secret."""

    def is_telling(name: str) -> bool:
        probe = json.dumps({name: _PROBE})
        return redact(probe) != probe

    # What reads tables is in an extra, and heavy.
    texts: Any = import_module("pytest_golden.regression.baselines.tables.texts")
    piece: list[str] = []
    size = 0
    for line in texts.read_row_texts(content, is_telling):
        piece.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            yield "".join(piece)
            piece, size = [], 0
    yield "".join(piece)
