"""Export a journal into a file, and import such a file: the two use cases."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from pytest_golden.errors import JournalError
from pytest_golden.journal.transfer.files import name_file, open_lines_to_write, open_to_read, read_lines
from pytest_golden.journal.transfer.intake import Intake
from pytest_golden.journal.transfer.lines import parse, read_header, read_line, write_entry, write_header, write_orphan
from pytest_golden.journal.transfer.model import Copy, ExportReport
from pytest_golden.journal.transfer.store import count_lines, read_copies, read_orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_golden.journal.rules import Rules
    from pytest_golden.journal.transfer.model import ImportReport
    from pytest_golden.storage.store import Store

_TOLD_EACH = 1000


def tell_nobody(_: int) -> None:
    """Tell nobody how far it is."""


def export_journal(
    store: Store, file: str | Path | IO[Any], *, progress: Callable[[int], None] = tell_nobody
) -> ExportReport:
    """Write all entries and orphans as they are at one moment; equal journals give equal files. An entry at a time is in memory.

    Raises:
        JournalError: something else than an earlier export has the path.
        OSError: it cannot be written.
        StorageError: the store cannot be read.
    """
    with store.read() as connection, open_lines_to_write(file) as write:
        report = ExportReport(**dict(zip(("entries", "orphans"), count_lines(connection), strict=True)))
        write(write_header(report))
        for number, copy in enumerate(read_copies(connection), 1):
            write(write_entry(copy))
            if number % _TOLD_EACH == 0:
                progress(number)
        for signal in read_orphans(connection):
            write(write_orphan(signal))
    return report


def import_journal(
    store: Store,
    file: str | Path | IO[Any],
    rules: Mapping[str, Rules],
    *,
    with_checks: bool = False,
    progress: Callable[[int], None] = tell_nobody,
) -> ImportReport:
    """Take in all that a file holds, or nothing. What is known already is merged by the rules of `merging.py`.

    Raises:
        JournalError: what is wrong with the file, and in which line.
        OSError: it cannot be read.
        StorageError: the store cannot be written.
    """
    try:
        with open_to_read(file) as stream, store.write() as connection:
            reader = _Reader(Intake(connection, rules, with_checks=with_checks), progress)
            for number, line, is_whole in read_lines(stream):
                reader.read(number, line, is_whole=is_whole)
            return reader.finish()
    except ValueError as error:
        raise JournalError(f"{name_file(file)}: {error}; nothing was imported") from None


class _Reader:
    """Reads line after line, and counts what the first line has announced."""

    def __init__(self, intake: Intake, progress: Callable[[int], None]) -> None:
        self._intake = intake
        self._progress = progress
        self._announced: Mapping[str, int] | None = None
        self._seen = {"entries": 0, "orphans": 0}

    def read(self, number: int, line: bytes, *, is_whole: bool) -> None:
        """Take in what a line holds; the error tells its number."""
        try:
            self._take(self._parse(line, is_whole=is_whole))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if number % _TOLD_EACH == 0:
            self._progress(number)

    def _parse(self, line: bytes, *, is_whole: bool) -> Any:
        try:
            return parse(line)
        except ValueError:
            if is_whole:
                raise
            raise ValueError("it is cut off: the file ends in the middle of it") from None

    def _take(self, given: Any) -> None:
        if self._announced is None:
            self._announced = read_header(given)
            return
        read = read_line(given)
        if isinstance(read, Copy):
            self._intake.take(read)
            self._seen["entries"] += 1
        else:
            self._intake.take_orphan(read)
            self._seen["orphans"] += 1

    def finish(self) -> ImportReport:
        """End it, when all is there that the first line has announced."""
        if self._announced is None:
            raise ValueError("it is empty: not even the first line of an export is there")
        for name, amount in self._announced.items():
            if self._seen[name] != amount:
                raise ValueError(
                    f"the first line tells of {amount:,} {name}, and {self._seen[name]:,} are there: the file is cut off, or "
                    f"lines were taken out; for those that are there, take {name} out of the first line"
                )
        return self._intake.finish()
