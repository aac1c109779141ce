"""DuckDB, opened for one comparison: within a fixed memory, with a folder of its own to spill to, and nothing fetched.

DuckDB is an optional package: it is imported when the first table is compared.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError
from pytest_golden.regression.baselines.model import Content, UnreadableError
from pytest_golden.regression.baselines.opening import is_archive, read_chunks, read_size
from pytest_golden.regression.baselines.showing import LONGEST_LINE, cut, show

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY_BYTES = 640_000_000
_MOST_THREADS = 4
_ROWS_AT_ONCE = 2000
# Some are not known to older versions, which then have nothing to be switched off.
_SETTINGS = (
    f"memory_limit = '{_MEMORY_BYTES}B'",
    f"threads = {min(os.cpu_count() or 1, _MOST_THREADS)}",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "allow_persistent_secrets = false",
    "enable_progress_bar = false",
    "python_enable_replacements = false",
    "max_expression_depth = 100000",
)


class DuckDBMissingError(GoldenError):
    """DuckDB is not installed."""


class DuckDBRefusedError(GoldenError):
    """DuckDB is installed and cannot be opened."""


class QueryError(GoldenError):
    """DuckDB could not answer; the message is its own first paragraph."""


class Engine:
    """One connection, and what this version does in another way than others.

    `arrow_lambdas`: it wants `x -> ...` where others want `lambda x: ...`. `rounds_json_numbers`: whole numbers beyond 64 bits
    become floating. `loses_long_rows`: of CSV, unless one thread reads it. `misreads_json_names`: a key without a name stands for the whole document.
    """

    def __init__(self, connection: Any, error: type[Exception], folder: Path, version: str) -> None:
        # Where it reads CSV with several threads, a row that is too long is left out without a word.
        self.loses_long_rows = version.startswith(("1.0.", "1.1."))
        self._connection = connection
        self._error = error
        self._folder = folder
        self.arrow_lambdas = not self._takes("SELECT list_transform([1], lambda i: i)")

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
        """Give all rows of an answer.

        Raises:
            QueryError: there is none.
        """
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        except self._error as error:
            raise QueryError(str(error)) from None
        return rows

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Give the rows of an answer as they come; no other query may be asked meanwhile.

        Raises:
            QueryError: there is none, or no whole one.
        """
        try:
            answer = self._connection.execute(sql)
            while rows := answer.fetchmany(_ROWS_AT_ONCE):
                yield from rows
        except self._error as error:
            raise QueryError(str(error)) from None

    def describe(self, sql: str) -> list[tuple[str, Any]]:
        """Give names and types of the columns that an answer would have.

        Raises:
            QueryError: there is none.
        """
        try:
            relation = self._connection.sql(sql)
            return list(zip(relation.columns, relation.types, strict=True))
        except self._error as error:
            raise QueryError(str(error)) from None

    def keep_order(self, wanted: bool) -> None:
        """Set whether rows come in their file's order; joins take less memory when they need not."""
        self.query(f"SET preserve_insertion_order = {str(wanted).lower()}")

    def lay_out(self, content: Content, *, skipped_bytes: int = 0) -> Path:
        """Give a file's plain content under a name that means nothing to DuckDB; an archive is unpacked.

        Without its first bytes, of which there are no more than in one chunk, it is copied.

        Raises:
            UnreadableError: it is gone, no regular file, or a broken archive.
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

    def _takes(self, sql: str) -> bool:
        try:
            self._connection.execute(sql)
        except self._error:
            return False
        return True


@contextmanager
def open_engine() -> Iterator[Engine]:
    """Open DuckDB; what it spills is gone afterwards.

    Raises:
        DuckDBMissingError: it is not installed.
        DuckDBRefusedError: it cannot be opened: of memory, threads or room in the folder for temporary files there is too little.
    """
    try:
        duckdb = import_module("duckdb")
    except ImportError:
        message = "needs DuckDB, which is not installed here: pip install 'pytest-golden-projects[tables]'"
        raise DuckDBMissingError(message) from None
    with _own_folder() as folder:
        connection = _connect(duckdb, Path(folder) / "spilled")
        try:
            yield Engine(connection, duckdb.Error, Path(folder), duckdb.__version__)
        finally:
            connection.close()


def _own_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="golden-tables-")
    except OSError as error:
        raise DuckDBRefusedError(
            f"DuckDB has no folder for what it spills: {error.strerror}; free some room, or set TMPDIR"
        ) from None


def _connect(duckdb: Any, spill: Path) -> Any:
    """Open it; what its binding raises where threads or memory are short is not always an error of its own."""
    try:
        connection = duckdb.connect(":memory:")
        _set_up(connection, duckdb.Error, spill)
    except (duckdb.Error, RuntimeError, OSError) as error:
        said = cut(show(" ".join(str(error).split())), LONGEST_LINE) or type(error).__name__
        raise DuckDBRefusedError(
            f"DuckDB cannot be opened here: {said}; it needs some hundred MB of memory and a few threads"
        ) from None
    return connection


def _set_up(connection: Any, error: type[Exception], spill: Path) -> None:
    connection.execute(f"SET temp_directory = {quote_text(str(spill))}")
    for setting in _SETTINGS:
        with suppress(error):
            connection.execute(f"SET {setting}")


def quote_text(text: str) -> str:
    """Write a text as SQL does."""
    return "'" + text.replace("'", "''") + "'"
