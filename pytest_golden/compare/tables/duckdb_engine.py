"""DuckDB, opened for one comparison: with limited memory, its own folder for temporary data, and no downloads.

DuckDB is an optional package. It is imported when the first table is compared. Its errors become sentences about the file.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.opening import Content, UnreadableError, is_archive, read_chunks, read_size
from pytest_golden.compare.showing import LONGEST_LINE, cut, show
from pytest_golden.compare.tables.model import Format
from pytest_golden.errors import GoldenError
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator


MEMORY_BYTES = 640_000_000
_THREADS = min(os.cpu_count() or 1, 4)
_ROWS_AT_ONCE = 2000
# Older versions do not know all of these, and then have nothing to switch off.
_SETTINGS = (
    f"memory_limit = '{MEMORY_BYTES}B'",
    f"threads = {_THREADS}",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "allow_persistent_secrets = false",
    "enable_progress_bar = false",
    "python_enable_replacements = false",
    "max_expression_depth = 100000",
)

_LINE = re.compile(r"CSV Error on Line: (\d+)")
_FIELDS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_PREFIX = re.compile(r"^(?:[A-Z]\w*(?: [A-Z]\w*)* Error: |Error: )+")
_FILE = re.compile(r"""(?:file )?["'][^"']*\.data["']:? ?""")
_LOOKED_AT = 5_000_000


@contextmanager
def open_engine() -> Iterator[Engine]:
    """Open DuckDB; its temporary data is removed afterwards.

    Raises:
        DuckDBUnusableError: it is not installed, or cannot be opened: too little memory, too few threads, or no space.
    """
    try:
        duckdb = import_module("duckdb")
    except ImportError:
        message = "DuckDB is not installed here: pip install 'pytest-golden-projects[tables]'"
        raise DuckDBUnusableError(message) from None
    with _own_folder() as folder:
        connection = _connect(duckdb, Path(folder) / "spilled")
        try:
            yield Engine(connection, duckdb.Error, Path(folder), duckdb.__version__)
        finally:
            connection.close()


class DuckDBUnusableError(GoldenError):
    """DuckDB is not installed, or cannot be opened."""


class QueryError(GoldenError):
    """DuckDB could not answer; the message is the first paragraph of DuckDB's own."""


class Engine:
    """One connection, and how this version of DuckDB differs from others.

    `arrow_lambdas`: it needs `x -> ...` instead of `lambda x: ...`. `rounds_json_numbers`: whole numbers beyond 64 bits
    become floats. `loses_long_rows`: long rows of CSV are lost unless a single thread reads them. `misreads_json_names`: a key
    without a name stands for the whole document.
    """

    def __init__(self, connection: Any, error: type[Exception], folder: Path, version: str) -> None:
        # Where it reads CSV with several threads, a row that is too long is left out without a word.
        self.loses_long_rows = version.startswith(("1.0.", "1.1."))
        self._connection = connection
        self._error = error
        self._folder = folder
        self.version = version
        self.arrow_lambdas = False
        try:
            connection.execute("SELECT list_transform([1], lambda i: i)")
        except error:
            self.arrow_lambdas = True

    @property
    def rounds_json_numbers(self) -> bool:
        """Tell whether large whole numbers in JSON are rounded."""
        number = "1234567890123456789012345"
        return bool(self.query(f"SELECT json_extract('[{number}]', '$[0]')::VARCHAR")[0][0] != number)

    @property
    def misreads_json_names(self) -> bool:
        """Tell whether a key without a name is not found."""
        return bool(self.query("""SELECT json_extract('{"":1}', '/')::VARCHAR""")[0][0] != "1")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of an answer.

        Raises:
            QueryError: DuckDB could not answer.
        """
        with self._translated_errors():
            rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
            return rows

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an answer as they arrive; no other query may run meanwhile.

        Raises:
            QueryError: DuckDB could not answer, or not completely.
        """
        with self._translated_errors():
            answer = self._connection.execute(sql)
            while rows := answer.fetchmany(_ROWS_AT_ONCE):
                yield from rows

    def describe(self, sql: str) -> list[tuple[str, Any]]:
        """Return the names and types of an answer's columns.

        Raises:
            QueryError: DuckDB could not answer.
        """
        with self._translated_errors():
            relation = self._connection.sql(sql)
            return list(zip(relation.columns, relation.types, strict=True))

    def keep_order(self, wanted: bool) -> None:
        """Set whether rows keep the order of their file; joins need less memory if they do not."""
        self.query(f"SET preserve_insertion_order = {str(wanted).lower()}")

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Use a single thread: with several threads, the order of the rows of a Parquet file is random."""
        self.query("SET threads = 1")
        try:
            yield
        finally:
            self.query(f"SET threads = {_THREADS}")

    def lay_out(self, content: Content, *, skipped_bytes: int = 0) -> Path:
        """Provide a file's plain content under a name without a meaning for DuckDB, and return its path; archives are decompressed.

        If first bytes are skipped (at most one chunk), the rest is copied.

        Raises:
            UnreadableError: it does not exist, is not a regular file, or is a broken archive.
        """
        place = self._folder / f"{content.side}.data"
        with suppress(FileNotFoundError):
            place.unlink()
        if not is_archive(content) and not skipped_bytes:
            read_size(content)
            place.symlink_to(content.path.absolute())
            return place
        with place.open("wb") as file:
            for chunk in read_chunks(content):
                try:
                    file.write(chunk[skipped_bytes:])
                    skipped_bytes = 0
                except OSError as error:
                    raise UnreadableError(content.side, f"cannot be unpacked: {error.strerror}") from None
        return place

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise QueryError(str(error)) from None


def _own_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="golden-tables-")
    except OSError as error:
        raise DuckDBUnusableError(
            f"DuckDB has no folder for what it spills: {error.strerror}; free some space, or set TMPDIR"
        ) from None


def _connect(duckdb: Any, spill: Path) -> Any:
    """Connect to DuckDB. If threads or memory are short, its binding does not always raise an error of DuckDB."""
    try:
        connection = duckdb.connect(":memory:")
        connection.execute(f"SET temp_directory = {quote_text(str(spill))}")
        for setting in _SETTINGS:
            with suppress(duckdb.Error):
                connection.execute(f"SET {setting}")
    except (duckdb.Error, RuntimeError, OSError) as error:
        said = cut(show(" ".join(str(error).split())), LONGEST_LINE) or type(error).__name__
        raise DuckDBUnusableError(
            f"DuckDB cannot be opened here: {said}; it needs some hundred MB of memory and a few threads"
        ) from None
    return connection


def quote_text(text: str) -> str:
    """Write a text as SQL does."""
    return "'" + text.replace("'", "''") + "'"


def describe_trouble(error: Exception, form: Format, place: Path | None) -> str:
    """Say what is wrong with a file, in words that continue a sentence after the file's name."""
    text = str(error)
    if text.startswith("Out of Memory"):
        return "cannot be compared within the memory that is granted to it: rows or columns are too large"
    if form is Format.DELIMITED:
        return _describe_delimited(text)
    if form is Format.JSON_LINES:
        return _describe_json(text, place)
    return f"is not a valid {form} file: {_first_sentence(text)}"


def _describe_delimited(text: str) -> str:
    line, fields = _LINE.search(text), _FIELDS.search(text)
    where = f"line {int(line[1]):,}" if line else "a line"
    if fields:
        return f"is ragged: {where} has {count_of(int(fields[2]), 'field')}, the header has {fields[1]}"
    if "unterminated quote" in text:
        return f"is broken: {where} has a quoted field that is not closed, or goes on behind its quote"
    if "unicode" in text.lower():
        return f"is not UTF-8 in {where}"
    if "aximum line size" in text:
        return f"is not a CSV that can be read: {where} is longer than 16 MiB"
    if "state machine" in text:
        return (
            "is not a valid CSV file: it ends some lines with CRLF and others with LF, or quotes are not as in RFC 4180"
        )
    return f"is not a valid CSV file: {_first_sentence(text)}"


def _describe_json(text: str, place: Path | None) -> str:
    found = find_bad_line(place) if place is not None else None
    if found is not None:
        return f"is not a JSON Lines file: line {found[0]:,} is {found[1]}"
    return f"is not a valid JSON Lines file: {_first_sentence(text)}"


def find_bad_line(place: Path) -> tuple[int, str] | None:
    """Return the number and the problem of the first line that is not JSON; DuckDB counts lines per thread."""
    with place.open("rb") as file:
        for number, line in zip(range(1, _LOOKED_AT), file, strict=False):
            try:
                if line.strip():
                    json.loads(line)
            except UnicodeDecodeError:
                return number, "not UTF-8"
            except json.JSONDecodeError as error:
                return number, f"not JSON (column {error.colno}: {error.msg})"
            except (ValueError, RecursionError):
                continue
    return None


def _first_sentence(text: str) -> str:
    """Return DuckDB's first sentence, without advice and without its name for the file."""
    said = _PREFIX.sub("", text.split("\n\n", maxsplit=1)[0].split("\nPossible", maxsplit=1)[0])
    return cut(show(_FILE.sub("", said).strip().replace("\n", "; ")), 200)
