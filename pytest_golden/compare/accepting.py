"""Makes the outputs of one attempt the new baselines, once it is clear that it ran as expected.

They are copied beside the baselines first, and put in place together. A process that is killed leaves all baselines of a
project either old or new; where the file system cannot exchange two folders, that holds for each baseline.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import ACCEPTABLE, WAITING_PREFIX
from pytest_golden.compare.comparing import compare_with, explain_change, explain_unreadable, find_actual
from pytest_golden.compare.opening import Mismatch
from pytest_golden.compare.secrets import find_secret
from pytest_golden.compare.tables.profiles import is_profiled, put_profile
from pytest_golden.errors import BaselineError
from pytest_golden.gateway.model import OutputFinding
from pytest_golden.gateway.scratch import LivingFolder
from pytest_golden.gateway.view import copy_content
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.model import AcceptedOutput, OutputChange, ReasonKind
from pytest_golden.regression.wording import format_size, show_path
from pytest_golden.storage.folder import flush

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_golden.compare.baselines import ExpectedFile, ProjectBaselines
    from pytest_golden.compare.comparing import Mark
    from pytest_golden.gateway.write_set import WrittenFiles


_SECRET_ADVICE = "remove it from the output, or say why it may be there in `allow_secret` of this output"
#: Why a baseline is removed.
NOT_WRITTEN, NOT_COMPARED = "it was not written any more", "no output is compared with it"
_FLUSHED_AT_ONCE = 8
# As many as `.parquet.zst` has, and longer than any that means something.
_MOST_SUFFIXES, _LONGEST_SUFFIXES = 2, 24
# What says nothing about the output that is being copied.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})

# Source: linux/fcntl.h and linux/fs.h.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class Acceptance:
    """What of one attempt may become baselines. Nothing is changed before `commit`."""

    def __init__(self, baselines: ProjectBaselines) -> None:
        self._baselines = baselines
        self.room = WaitingRoom(baselines)
        self._waiting: list[_Waiting] = []
        self._told: list[AcceptedOutput] = []

    def consider(
        self, file: ExpectedFile, mismatch: Mismatch | None, written: WrittenFiles, mark: Mark, *, is_dropped: bool
    ) -> Mismatch | None:
        """Prepare to accept an output; return the mismatch that remains when it cannot be accepted.

        `mismatch` is how it compares now, `mark` its mark from before that. `is_dropped` says of a file that was not written
        that the patterns which name it hold without it.
        """
        path = written.redact(file.path)
        if mismatch is None:
            self._told += [AcceptedOutput(path, OutputChange.UNCHANGED)] if file.needs_baseline else []
            return None
        if mismatch.kind == ReasonKind.OUTPUT_MISSING and not file.is_written and is_dropped:
            self.drop(file.path, NOT_WRITTEN, shown=path)
            return None
        if mismatch.kind not in ACCEPTABLE or not file.is_written or not file.needs_baseline:
            return mismatch
        try:
            # From here on only the copy counts, which nothing that the run left behind writes to.
            copy = self.room.copy(find_actual(written, file.path))
            changed = explain_change(file, written, mark)
            if changed is not None:
                copy.unlink()
                return changed
            is_whole = not is_profiled(file, copy.stat().st_size)
            trouble, allowed = find_trouble(file, copy, written, is_kept_whole=is_whole)
            if not trouble:
                kind = ReasonKind(mismatch.kind)
                told = describe_change(file, copy, mismatch, written, put_profile(file, copy, written.redact))
                self.take(copy, kind, replace(told, allowed=allowed))
                return None
            copy.unlink()
        except OSError as error:
            return explain_unreadable(file.path, error)
        self._told.append(AcceptedOutput(path, OutputChange.REFUSED, trouble))
        return Mismatch(mismatch.kind, f"{show_path(path)} is not accepted: {trouble}")

    def drop_unused(self, paths: tuple[str, ...]) -> None:
        """Prepare to remove baselines that no output is compared with."""
        for path in paths:
            self.drop(path, NOT_COMPARED)

    def take(self, copy: Path, kind: ReasonKind, told: AcceptedOutput) -> None:
        """Prepare to make a copy in the room the baseline of an output; `kind` is what spoke against the output."""
        self._waiting.append(_Waiting(told.path, copy, kind, told))

    def drop(self, path: str, why: str, *, shown: str | None = None) -> None:
        """Prepare to remove a baseline."""
        told = AcceptedOutput(path if shown is None else shown, OutputChange.REMOVED, why)
        self._waiting.append(_Waiting(path, None, ReasonKind.OUTPUT_MISSING, told))

    def commit(self) -> tuple[tuple[AcceptedOutput, ...], tuple[OutputFinding, ...]]:
        """Put everything in place; return what became of each output, and what could not be done.

        Raises:
            BaselineError: the disk does not take the copies; nothing has changed then.
        """
        findings = []
        self.room.make_durable()
        copies = {step.path: step.copy for step in self._waiting if step.copy is not None}
        removed = {step.path for step in self._waiting if step.copy is None}
        troubles = self.room.apply(copies, removed) if self._waiting else {}
        for step in self._waiting:
            error = troubles.get(step.path)
            if error is None:
                self._told.append(step.told)
                continue
            trouble = f"{error.strerror or error}"
            self._told.append(AcceptedOutput(step.told.path, OutputChange.REFUSED, trouble))
            message = f"the baseline of {show_path(step.told.path)} could not be written: {trouble}"
            findings.append(OutputFinding(step.kind, message, step.told.path))
        self.discard()
        return tuple(sorted(self._told, key=lambda told: told.path)), tuple(findings)

    def discard(self) -> None:
        """Drop all that waits, and change nothing."""
        self._waiting = []
        self.room.empty()


def find_trouble(
    file: ExpectedFile, copy: Path, written: WrittenFiles, *, is_kept_whole: bool = True
) -> tuple[str, str | None]:
    """Say why the copy of an output must not become a baseline (empty when it may), and which secret in it is allowed.

    A copy that is not kept whole becomes a profile, which holds no secret.

    Raises:
        OSError: it cannot be read.
    """
    # An output that does not even agree with itself, such as one whose key is not unique, passes with no baseline.
    own = compare_with(file, copy, copy)
    if own is not None:
        return written.redact(f"it would not pass with itself as its baseline: {own.message}"), None
    if strip_escapes(file.path) != file.path:
        return "its name holds an escape sequence, which a terminal would obey; rename it", None
    if written.redact(file.path) != file.path:
        return "its name holds a secret", None
    if not is_kept_whole:
        return "", None
    secret = find_secret(copy, file, written.redact, written.redact_known)
    reason = next((entry.allow_secret for entry in file.entries if entry.allow_secret), None)
    if secret is None or reason is None:
        return "" if secret is None else written.redact(f"{secret}; {_SECRET_ADVICE}"), None
    return "", written.redact(f"{secret}, allowed: {reason}")


def describe_change(
    file: ExpectedFile, copy: Path, mismatch: Mismatch, written: WrittenFiles, profiled: str | None = None
) -> AcceptedOutput:
    """Say what an output changes: its size if it is new, else how it differs; and that only a profile is kept, if so."""
    if mismatch.kind == ReasonKind.BASELINE_MISSING:
        return AcceptedOutput(file.path, OutputChange.NEW, profiled or format_size(copy.stat().st_size))
    told = "\n".join(filter(None, (mismatch.message, profiled)))
    return AcceptedOutput(file.path, OutputChange.CHANGED, written.redact(told))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One step that is to be taken: a copy to be put in place, or (None) a baseline to be removed."""

    path: str
    copy: Path | None
    kind: ReasonKind
    told: AcceptedOutput


class WaitingRoom:
    """A folder beside the baselines, on their file system, for what one attempt of a project may make baselines of."""

    def __init__(self, baselines: ProjectBaselines) -> None:
        self._baselines = baselines
        self._living: LivingFolder | None = None
        self._count = 0

    def copy(self, actual: Path) -> Path:
        """Copy an output here, and return the copy. Its name ends as the output's does, which tells its format.

        Raises:
            BaselineError: nothing can be written beside the baselines, or the disk is full.
            OSError: this output cannot be copied.
        """
        folder = self._enter()
        self._count += 1
        suffixes = "".join(actual.suffixes[-_MOST_SUFFIXES:])
        copy = folder / f"{self._count}{suffixes if len(suffixes) <= _LONGEST_SUFFIXES else ''}"
        try:
            copy_content(str(actual), str(copy))
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise _refuse_all(self._baselines.folder, error) from error
            raise
        return copy

    def make_durable(self) -> None:
        """Flush all copies to the disk, before the first is put in place.

        Raises:
            BaselineError: the disk does not take them.
        """
        if self._living is None:
            return
        try:
            # Together, one commit of the file system's journal does for many.
            with ThreadPoolExecutor(_FLUSHED_AT_ONCE) as pool:
                list(pool.map(flush, self._living.path.iterdir()))
        except OSError as error:
            raise _refuse_all(self._baselines.folder, error) from error

    def apply(self, copies: Mapping[str, Path], removed: Collection[str]) -> dict[str, OSError]:
        """Make copies the baselines of outputs and remove others; return by path what could not be done.

        All is done in one step where the file system can, and else one by one.
        """
        with suppress(BaselineError):
            troubles = replace_at_once(self._baselines, self._enter() / "staged", copies, removed)
            if troubles is not None:
                return troubles
        return replace_one_by_one(self._baselines, copies, removed)

    def empty(self) -> None:
        """Remove what still waits."""
        living, self._living = self._living, None
        if living is not None:
            living.close()

    def _enter(self) -> Path:
        """Return the folder; the first call makes it."""
        if self._living is None:
            folder = self._baselines.folder
            try:
                self._baselines.refuse_symlinks("")
                folder.mkdir(parents=True, exist_ok=True)
                self._living = LivingFolder(folder, WAITING_PREFIX)
                # What a killed process leaves here is not to be committed.
                (self._living.path / ".gitignore").write_text("*\n")
            except OSError as error:
                raise _refuse_all(folder, error) from error
        return self._living.path


def _refuse_all(folder: Path, error: OSError) -> BaselineError:
    return BaselineError(f"nothing can be accepted into {folder}: {error.strerror or error}")


def replace_at_once(
    baselines: ProjectBaselines, staged: Path, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError] | None:
    """Build the project's folder anew, and exchange it for the old one.

    Return by path what could not be put there; None where this cannot be done and nothing has changed.
    """
    root = baselines.root
    try:
        baselines.refuse_symlinks("any")
        troubles = _build(baselines, staged, copies, removed)
        if not _settle_folders(root, staged):
            return None
        if not os.path.lexists(root):
            staged.rename(root)
        elif not root.is_dir() or not exchange(staged, root):
            return None
    except (OSError, BaselineError):
        return None
    with suppress(OSError):
        # A project without baselines keeps no folder.
        root.rmdir()
    with suppress(OSError):
        flush(baselines.folder)
    return troubles


def replace_one_by_one(
    baselines: ProjectBaselines, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError]:
    """Put each copy in its place in a step of its own, and remove what is to go; return by path what failed."""
    troubles: dict[str, OSError] = {}
    # Removals come first, since a file may have become a folder.
    for path in (*sorted(removed), *copies):
        try:
            baselines.refuse_symlinks(path)
            if path in copies:
                (baselines.root / path).parent.mkdir(parents=True, exist_ok=True)
                copies[path].replace(baselines.root / path)
            else:
                _remove(baselines.root / path, baselines.folder)
        except OSError as error:
            troubles[path] = error
    for folder in {(baselines.root / path).parent for path in (*copies, *removed)} | {baselines.root}:
        with suppress(OSError):
            flush(folder)
    return troubles


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, so that a kill leaves all of the one or all of the other.

    Only Linux can, and not on every file system. Return False where it cannot be done; nothing has changed then.
    """
    if sys.platform != "linux":
        return False
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):  # Older than glibc 2.28.
        return False
    return not renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)


def _build(
    baselines: ProjectBaselines, staged: Path, copies: Mapping[str, Path], removed: Collection[str]
) -> dict[str, OSError]:
    staged.mkdir()
    for path in baselines.list_paths():
        if path not in removed and path not in copies:
            _link(baselines.root / path, staged / path)
    troubles: dict[str, OSError] = {}
    for path, copy in copies.items():
        try:
            _link(copy, staged / path)
        except OSError as error:
            troubles[path] = error
            if os.path.lexists(baselines.root / path):
                _link(baselines.root / path, staged / path)
    return troubles


def _settle_folders(root: Path, staged: Path) -> bool:
    """Flush the new folders to the disk, with the modes of the old ones; False where an old one is not writable."""
    for folder, _, _ in os.walk(staged):
        old = root / Path(folder).relative_to(staged)
        if old.is_dir():
            if not os.access(old, os.W_OK):
                return False
            Path(folder).chmod(old.stat().st_mode & 0o7777)
        flush(Path(folder))
    return True


def _link(origin: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.link(origin, place, follow_symlinks=False)


def _remove(target: Path, top: Path) -> None:
    """Remove a baseline, and the folders that it leaves empty."""
    target.unlink()
    folder = target.parent
    with suppress(OSError):
        while folder != top:
            folder.rmdir()
            folder = folder.parent
