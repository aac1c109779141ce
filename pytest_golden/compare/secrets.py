"""Find secrets in an output before it becomes a baseline and is committed. Reads a stream, in constant memory.

Text is searched as redaction searches a log, and a table cell by cell. Binary content is searched only for known values
and for secrets with a recognizable form: among random bytes, a name followed by "=" means nothing.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.baselines import EXISTS
from pytest_golden.compare.opening import (
    Content,
    Side,
    UnreadableError,
    VastError,
    choose_comparison,
    is_archive,
    read_chunks,
    read_raw_chunks,
)
from pytest_golden.compare.showing import find_first_difference
from pytest_golden.manifest.comparisons import comparison_by_suffix
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.redaction.redactor import redact_known
from pytest_golden.redaction.rule import is_secret_name
from pytest_golden.redaction.tokens import describe_token
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile
    from pytest_golden.compare.showing import Redact


# The rules take time that grows faster than the text; what a secret spans lies within the overlap.
_CHUNK_BYTES = 64 << 10
_OVERLAP_SIGNS = 8 << 10
_TABLE, _JSON = "table", "json"
_PROBE = "tr0ub4dor-and-3"
# Line ends, tabs, form feeds and escapes are normal in text; one other control character in a thousand is tolerated.
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\v\f\r\b\x1a\x1b"))
_TEXT_SIGNS_A_CONTROL = 1000
_SNIFFED_BYTES = 4 << 10
_PLAIN = "utf-8"
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_LARGEST_TREE_BYTES = 8 << 20
_MOST_LEAVES = 100_000
_NAME = re.compile(
    r"""([\w.\-]{1,64})\\{0,7}["'`\]]{0,2}(?:[ \t]{0,16}[:=]>?[ \t]{0,16}|(?<=[a-z])[ ]|>)\\{0,7}["'`]?$"""
)
_URL_USER = re.compile(r"://[^\s/@]{0,128}:$")


@dataclass(frozen=True, slots=True)
class _Hit:
    """The first secret found: its line, counted from 1, and its position in the piece that was searched."""

    line: int
    piece: str
    position: int

    @property
    def kind(self) -> str:
        """Describe the kind of secret, without the secret itself."""
        token = describe_token(self.piece, self.position)
        if token is not None:
            return token
        before = self.piece[max(0, self.position - 160) : self.position].rpartition("\n")[2]
        if _URL_USER.search(before):
            return "the password of a URL"
        named = _NAME.search(before)
        if named and (named[1].startswith("-") or not named[0].endswith(" ") or is_secret_name(named[1])):
            return f"the value of {named[1]}"
        return "a value that is secret for this project"


def find_secret(actual: Path, file: ExpectedFile, redact: Redact, redact_known: Redact = redact_known) -> str | None:
    """Say where an output holds a secret and of what kind, without the secret itself; None if it holds none.

    Raises:
        OSError: it cannot be read.
    """
    content = Content(actual, Side.OUTPUT)
    ignored = _find_ignored_columns(file)
    try:
        told = _find_in_rows(content, file, redact, ignored)
        # Outside the parsed rows, ignored columns cannot be told from the others.
        return told if told is not None or ignored else _find_in_content(content, file, redact, redact_known)
    except UnreadableError as error:
        raise OSError(f"it {error}") from error


def _find_ignored_columns(file: ExpectedFile) -> frozenset[str]:
    """Return the columns that no entry compares."""
    compared = [entry for entry in file.entries if choose_comparison(file.path, entry) != EXISTS]
    if not compared or any(choose_comparison(file.path, entry) != _TABLE for entry in compared):
        return frozenset()
    return frozenset.intersection(*(frozenset(entry.ignore_columns) - set(entry.key) for entry in compared))


def _find_in_rows(content: Content, file: ExpectedFile, redact: Redact, ignored: frozenset[str]) -> str | None:
    is_compared = any(choose_comparison(file.path, entry) == _TABLE for entry in file.entries)
    if not is_compared and (comparison_by_suffix(file.path) != _TABLE or find_spec("duckdb") is None):
        return None
    try:
        hit = _find_hit(_read_rows(content, redact, ignored), redact)
    except UnreadableError:
        if is_compared:
            raise
        return None  # Nobody compares it as a table, so it need not be one.
    if hit is None:
        return None
    column = _find_column(hit, redact)
    where = f"row {hit.line}" if column is None else f"row {hit.line}, column {show_path(column)}"
    return f"redaction finds a secret in {where} ({hit.kind})"


def _find_column(hit: _Hit, redact: Redact) -> str | None:
    """Return the column that holds the secret; None if only several columns together do."""
    start = hit.piece.rfind("\n", 0, hit.position) + 1
    try:
        row = json.loads(hit.piece[start:].partition("\n")[0])
    except ValueError:
        return None
    return next((name for name, value in row.items() if _is_secret_pair(name, value, redact)), None)


def _is_secret_pair(name: str, value: Any, redact: Redact) -> bool:
    pair = strip_escapes(json.dumps({name: value}, ensure_ascii=False))
    return redact(pair) != pair


def _find_in_content(content: Content, file: ExpectedFile, redact: Redact, redact_known: Redact) -> str | None:
    encoding = _find_encoding(content)
    hit = None if encoding is None else _find_hit(_decode(_read(content), encoding), redact)
    if hit is not None:
        path = _find_json_path(content, file, redact)
        where = f"line {hit.line}" if path is None else f"line {hit.line}, {show_path(path)}"
        return f"redaction finds a secret in {where} ({hit.kind})"
    if encoding == _PLAIN:
        return None
    # Without zero bytes, UTF-16 and UTF-32 texts among other bytes can be searched.
    without_zeros = (chunk.replace(b"\0", b"") for chunk in _read(content))
    hit = _find_hit(_decode(_read(content), _PLAIN), redact_known, is_text=False)
    hit = hit or _find_hit(_decode(without_zeros, _PLAIN), redact_known, is_text=False)
    return None if hit is None else f"redaction finds a secret in its binary content ({hit.kind})"


def _find_encoding(content: Content) -> str | None:
    """Return the encoding of a text, None for binary content. Every single-byte encoding counts as UTF-8."""
    size = controls = 0
    for chunk in _read(content):
        size += len(chunk)
        controls += len(chunk) - len(chunk.translate(None, _CONTROLS))
    if controls * _TEXT_SIGNS_A_CONTROL <= size:
        return _PLAIN
    head = next(_read(content), b"")[:_SNIFFED_BYTES]
    head = head[: len(head) // 4 * 4 or len(head)]
    return next((encoding for encoding in _WIDE if _is_text_in(head, encoding)), None)


def _is_text_in(head: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)("strict").decode(head)
    except UnicodeDecodeError:
        return False
    return bool(text) and all(sign.isprintable() or sign in "\t\n\v\f\r\b\x1b\ufeff" for sign in text)


def _find_json_path(content: Content, file: ExpectedFile, redact: Redact) -> str | None:
    """Return the JSON path of the secret; None if this is not a JSON document, or too large a one."""
    if comparison_by_suffix(file.path) != _JSON:
        return None
    text = b""
    for chunk in _read(content):
        text += chunk
        if len(text) > _LARGEST_TREE_BYTES:
            return None
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    leaves = zip(range(_MOST_LEAVES), _walk(tree), strict=False)
    return next((path for _, (path, name, value) in leaves if _is_secret_pair(name, value, redact)), None)


def _walk(tree: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield each leaf in document order: its path, the nearest key above it, and its value."""
    waiting: list[tuple[str, str, Any]] = [("$", "", tree)]
    while waiting:
        path, name, node = waiting.pop()
        if isinstance(node, dict):
            waiting += reversed([(f"{path}.{key}", key, value) for key, value in node.items()])
        elif isinstance(node, list):
            waiting += reversed([(f"{path}[{place}]", name, value) for place, value in enumerate(node)])
        else:
            yield path, name, node


def _read(content: Content) -> Iterator[bytes]:
    """Read a file, an archive decompressed; what only has the suffix of one is read as it is."""
    try:
        yield from read_chunks(content, _CHUNK_BYTES)
    except VastError:
        raise
    except UnreadableError:
        if not is_archive(content):
            raise
        yield from read_raw_chunks(content, _CHUNK_BYTES)


def _decode(chunks: Iterable[bytes], encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def _find_hit(texts: Iterable[str], redact: Redact, *, is_text: bool = True) -> _Hit | None:
    """Find the first secret."""
    line, kept = 1, ""
    searched, piece = None, ""
    for text in texts:
        # What repeats itself, as a gigabyte of zeros does, is searched once.
        if kept + text != searched:
            searched = kept + text
            piece = strip_escapes(searched) if is_text else searched
            redacted = redact(piece)
            if redacted != piece:
                position = find_first_difference(piece, redacted)
                return _Hit(line + piece.count("\n", 0, position), piece, position)
        cut = max(len(piece) - _OVERLAP_SIGNS, 0)
        # A line that is cut in its middle can look like a secret.
        cut = piece.rfind("\n", 0, cut) + 1 or cut
        line += piece.count("\n", 0, cut)
        kept = piece[cut:]
    return None


def _read_rows(content: Content, redact: Redact, ignored: frozenset[str]) -> Iterator[str]:
    """Read a table's rows, in pieces: each row with the names of its columns, which can make a value a secret."""

    def is_telling(name: str) -> bool:
        return _is_secret_pair(name, _PROBE, redact)

    # What reads tables is in an extra, and heavy.
    from pytest_golden.compare.tables.formats import read_row_texts

    piece: list[str] = []
    size = 0
    for line in read_row_texts(content, is_telling, ignored):
        piece.append(line)
        size += len(line)
        if size >= _CHUNK_BYTES:
            yield "".join(piece)
            piece, size = [], 0
    yield "".join(piece)
