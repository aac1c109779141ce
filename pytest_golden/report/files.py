"""Writing reports: whole or not at all, with one sentence when it cannot be done."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Callable


def write_report(path: Path, text: str, *, option: str) -> None:
    """Replace the file by the text in one step; missing parent folders are made.

    A device or a pipe (`/dev/stdout`) is written to as it is.

    Args:
        path: where to.
        text: what to write, as UTF-8.
        option: the option that asked for it, for the message.

    Raises:
        GoldenError: the file cannot be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except (OSError, ValueError) as error:
        message = (
            f"{option} {path}: the report cannot be written ({_say_why(error)}); "
            "name a file in a folder that you may write to."
        )
        raise GoldenError(message) from error


def append_report(path: Path, make_text: Callable[[int], str], *, named: str) -> None:
    """Append to a file that others write to as well.

    Args:
        path: where to.
        make_text: gives the text for the number of bytes that the file has.
        named: what named the file, for the message.

    Raises:
        GoldenError: the file cannot be written.
    """
    try:
        _refuse_pipe(path)
        with path.open("ab") as stream:
            stream.write(make_text(stream.tell()).encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        message = f"{named} {path}: nothing can be appended ({_say_why(error)}), so the summary is missing there."
        raise GoldenError(message) from error


def _refuse_pipe(path: Path) -> None:
    """Refuse what would be waited for until somebody reads it."""
    if path.is_fifo():
        message = "it is a pipe"
        raise ValueError(message)


def _say_why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _replace(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Read the umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
