"""The folders that outlive a session and those of private runs: names, .gitignore, flushing. Opens no database."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE_FOLDER = ".golden"
STORE_NAME = "golden.db"
#: Begins the names of folders made for one gate run: the base of a verification, the proposals of a cycle.
#: Runs in such a folder are not people's own: histories and trends leave them out.
PRIVATE_PREFIX = "pytest-golden-private-"


def make_folder(folder: Path) -> None:
    """Make a folder and its parents; if a state folder is among them, let git ignore it.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, *folder.parents):
        if place.name == STATE_FOLDER:
            # A read-only folder stays as it is.
            with suppress(OSError):
                ignore_in_git(place)
            return


def ignore_in_git(folder: Path) -> None:
    """Let git ignore a folder, unless it has a .gitignore already.

    Raises:
        OSError: it cannot be written.
    """
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="ascii") as ignore:
        ignore.write("*\n")


@contextmanager
def replace_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a draft in a with-block, and put it in a file's place at the end; after an error the file stays as it is.

    A link is replaced and not followed. What is flushed by `fsync` is on the disk.
    """
    number, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Flush a file's content, or the names that a folder holds.

    Raises:
        OSError: it cannot be opened or flushed; some systems flush no folders.
    """
    # A folder cannot be opened for writing, and except on POSIX only a file open for writing can be flushed.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
