"""The files of an export: a path or an open file, lines in and out. What the lines mean is told in `lines.py`."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

from pytest_golden.errors import JournalError
from pytest_golden.journal.transfer.lines import FORMAT
from pytest_golden.manifest.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Of one entry with all that belongs to it: more would not fit into memory.
LONGEST_LINE = 256 << 20
_IN_MEMORY, _AT_ONCE = 8 << 20, 1 << 20
_KIND_SHOWN = 200


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
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("w", encoding="ascii", newline="\n") as stream:
            yield lambda line: stream.write(f"{line}\n")
        return
    _refuse_other(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("x", encoding="ascii", newline="\n") as stream:
            yield lambda line: stream.write(f"{line}\n")
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


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
        # What will be refused is not gathered: it may have no end.
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
        raise JournalError(f"{path.parent} is no folder; make it, or give a file in another one")
    if not path.exists() or not path.stat().st_size:
        return
    with path.open("rb") as stream:
        if FORMAT.encode("ascii") not in stream.read(_KIND_SHOWN):
            raise JournalError(f"{path} is there, and it is no export of a journal; give another file")
