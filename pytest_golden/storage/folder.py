"""The folders that outlive a session and those of private runs: names, .gitignore; files written whole. Opens no database."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

STATE_FOLDER = ".golden"
STORE_NAME = "golden.db"
#: Begins the names of folders made for one gate run: the base of a verification, the proposals of a cycle.
#: Runs in such a folder are not people's own: histories and trends leave them out.
PRIVATE_PREFIX = "pytest-golden-private-"

# A symbolic link could lead out of the view, a FIFO would block for ever. Neither flag exists on Windows.
_SECRET_BYTES = 32
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


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
def replace_file(path: Path, *, follows_links: bool = False) -> Iterator[TextIO]:
    """Yield a text file that takes the place of `path`, whole and flushed, when the with-block succeeds.

    A link is replaced. With `follows_links` its target is, and a device or a pipe (`/dev/stdout`) is written directly.

    Raises:
        OSError: it cannot be written.
    """
    form: Any = {"encoding": "utf-8", "errors": "surrogatepass", "newline": "\n"}
    if follows_links and path.exists() and not path.is_file() and not path.is_dir():
        with path.open("w", **form) as file:
            yield file
        return
    target = path.resolve() if follows_links else path
    draft = target.with_name(f".{target.name[:64]}.{secrets.token_hex(4)}")
    try:
        # What people asked for gets their usual permissions; all else is for this user alone.
        draft.touch(0o666 if follows_links else 0o600, exist_ok=False)
        with draft.open("w", **form) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def find_settings_folder() -> Path:
    """Return this user's folder for what is secret of the gate; it need not exist. A pipeline cannot see it."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "pytest-golden")


def keep_secret(name: str) -> tuple[str, Path | None]:
    """Return this user's secret of this name, and the file if it was made just now. Nobody else can read that.

    Raises:
        OSError: it cannot be kept.
    """
    folder = find_settings_folder()
    file = folder / name
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Written beside it and linked, so that two that begin at once read the same whole one.
        draft = folder / f".{name}.{secrets.token_hex(4)}"
        draft.touch(0o600, exist_ok=False)
        try:
            draft.write_text(secrets.token_urlsafe(_SECRET_BYTES), encoding="ascii")
            os.link(draft, file)
            return file.read_text(encoding="ascii"), file
        finally:
            draft.unlink()
    kept = file.read_text(encoding="ascii").strip()
    if not kept:
        # An empty token would let everybody in.
        raise OSError(f"{file} is empty: remove it, so that a new one is made")
    return kept, None


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


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading bytes.

    Raises:
        OSError: it cannot be opened, or is a symbolic link, a folder, a FIFO or a device.
    """
    descriptor = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{os.path.basename(path)} is not a regular file")  # noqa: PTH119 - it may be text
    return os.fdopen(descriptor, "rb")
