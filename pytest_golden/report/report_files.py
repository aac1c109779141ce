"""Writing reports: whole or not at all, with one sentence when it cannot be done."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def write_report(path: Path, text: str, *, option: str) -> None:
    """Replace the file by the text in one step; missing parent folders are made.

    Arguments and errors are those of `StagedReport`.
    """
    StagedReport(path, text, option=option).commit()


class StagedReport:
    """A report that is written to a temporary file beside its path first; `commit` moves it there.

    So it is known whether all reports can be written before the first one says how the run ended. A device or a pipe
    (`/dev/stdout`) has no temporary file: `commit` writes to it.

    Args:
        path: where to.
        text: what to write, as UTF-8.
        option: the option that asked for it, for the message.

    Raises:
        GoldenError: the file cannot be written.
    """

    def __init__(self, path: Path, text: str, *, option: str) -> None:
        self._path = path
        self.option = option
        self._data = text.encode("utf-8", "backslashreplace")
        self._temporary: Path | None = None
        with self._explain():
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not path.exists() or path.is_file():
                self._temporary = _write_beside(path.resolve(), self._data)

    @property
    def is_device(self) -> bool:
        """Tell whether its path is a device or a pipe, so that it has no temporary file."""
        return self._temporary is None

    def commit(self) -> None:
        """Put the report at its path.

        Raises:
            GoldenError: it cannot be written.
        """
        with self._explain():
            if self._temporary is None:
                self._path.write_bytes(self._data)
            else:
                self._temporary.replace(self._path.resolve())

    def discard(self) -> None:
        """Remove the temporary file, if there is one."""
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    @contextmanager
    def _explain(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            self.discard()
            raise GoldenError(
                f"{self.option} {self._path}: the report cannot be written ({_say_why(error)}); "
                "name a file in a folder that you may write to."
            ) from error


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
        if path.is_fifo():
            # It would be waited for until somebody reads it.
            raise ValueError("it is a pipe")  # noqa: TRY301 - explained as all others
        with path.open("ab") as stream:
            stream.write(make_text(stream.tell()).encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        message = f"{named} {path}: nothing can be appended ({_say_why(error)}), so the summary is missing there."
        raise GoldenError(message) from error


def _say_why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _write_beside(path: Path, data: bytes) -> Path:
    draft = path.with_name(f".{path.name[:64]}.{secrets.token_hex(4)}")
    try:
        draft.touch(0o666, exist_ok=False)
        draft.write_bytes(data)
        if path.exists():
            shutil.copymode(path, draft)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft
