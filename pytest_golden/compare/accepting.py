"""Makes the outputs of one attempt the new baselines, once it is clear that it ran as expected.

They are copied beside the baselines first, and put in place together. A process that is killed leaves all baselines of a
project either old or new; where the file system cannot exchange two folders, that holds for each baseline.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import WAITING_PREFIX
from pytest_golden.compare.examining import compare_with, explain_change, explain_unreadable, find_actual
from pytest_golden.compare.model import Mismatch
from pytest_golden.compare.replacing import hold, remove_abandoned, replace_at_once, replace_one_by_one
from pytest_golden.compare.secrets import find_secret
from pytest_golden.errors import BaselineError
from pytest_golden.gateway.model import OutputFinding
from pytest_golden.gateway.view import copy_content
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.model import AcceptedOutput, OutputChange, ReasonKind
from pytest_golden.regression.wording import format_size, show_path
from pytest_golden.storage.folder import flush

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pytest_golden.compare.baselines import ExpectedFile, ProjectBaselines
    from pytest_golden.compare.examining import Mark
    from pytest_golden.gateway.write_set import WrittenFiles


#: Troubles that end with a new baseline.
ACCEPTABLE = frozenset({ReasonKind.BASELINE_MISSING, ReasonKind.OUTPUT_DIFFERS, ReasonKind.BASELINE_UNREADABLE})

_SECRET_ADVICE = "remove it from the output, or say why it may be there in `allow_secret` of this output"
_FLUSHED_AT_ONCE = 8
# As many as `.parquet.zst` has, and longer than any that means something.
_MOST_SUFFIXES, _LONGEST_SUFFIXES = 2, 24
# What says nothing about the output that is being copied.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


class Acceptance:
    """What of one attempt may become baselines. Nothing is changed before `commit`."""

    def __init__(self, baselines: ProjectBaselines) -> None:
        self._baselines = baselines
        self._room = WaitingRoom(baselines)
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
            self._drop(file.path, path, "it was not written any more")
            return None
        if mismatch.kind not in ACCEPTABLE or not file.is_written or not file.needs_baseline:
            return mismatch
        try:
            # From here on only the copy counts, which nothing that the run left behind writes to.
            copy = self._room.copy(find_actual(written, file.path))
            changed = explain_change(file, written, mark)
            if changed is not None:
                copy.unlink()
                return changed
            trouble = self._find_trouble(file, copy, written)
            secret = None if trouble else find_secret(copy, file, written.redact, written.redact_known)
            reason = next((entry.allow_secret for entry in file.entries if entry.allow_secret), None)
            if secret is not None and reason is None:
                trouble = f"{secret}; {_SECRET_ADVICE}"
            if not trouble:
                allowed = None if secret is None else written.redact(f"{secret}, allowed: {reason}")
                self._take(file, copy, mismatch, written, allowed)
                return None
            copy.unlink()
        except OSError as error:
            return explain_unreadable(file.path, error)
        self._told.append(AcceptedOutput(path, OutputChange.REFUSED, written.redact(trouble)))
        return Mismatch(mismatch.kind, f"{show_path(path)} is not accepted: {trouble}")

    def drop_unused(self, paths: tuple[str, ...]) -> None:
        """Prepare to remove baselines that no output is compared with."""
        for path in paths:
            self._drop(path, path, "no output is compared with it")

    def commit(self) -> tuple[tuple[AcceptedOutput, ...], tuple[OutputFinding, ...]]:
        """Put everything in place; return what became of each output, and what could not be done.

        Raises:
            BaselineError: the disk does not take the copies; nothing has changed then.
        """
        findings = []
        self._room.make_durable()
        copies = {step.path: step.copy for step in self._waiting if step.copy is not None}
        removed = {step.path for step in self._waiting if step.copy is None}
        troubles = self._room.apply(copies, removed) if self._waiting else {}
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
        self._room.empty()

    def _find_trouble(self, file: ExpectedFile, copy: Path, written: WrittenFiles) -> str:
        """Say why an output must not become a baseline; empty when it may."""
        # An output that does not even agree with itself, such as one whose key is not unique, passes with no baseline.
        own = compare_with(file, copy, copy)
        if own is not None:
            return f"it would not pass with itself as its baseline: {own.message}"
        if strip_escapes(file.path) != file.path:
            return "its name holds an escape sequence, which a terminal would obey; rename it"
        return "its name holds a secret" if written.redact(file.path) != file.path else ""

    def _take(
        self, file: ExpectedFile, copy: Path, mismatch: Mismatch, written: WrittenFiles, allowed: str | None
    ) -> None:
        is_new = mismatch.kind == ReasonKind.BASELINE_MISSING
        message = format_size(copy.stat().st_size) if is_new else written.redact(mismatch.message)
        change = OutputChange.NEW if is_new else OutputChange.CHANGED
        told = AcceptedOutput(file.path, change, message, allowed)
        self._waiting.append(_Waiting(file.path, copy, ReasonKind(mismatch.kind), told))

    def _drop(self, path: str, shown: str, why: str) -> None:
        told = AcceptedOutput(shown, OutputChange.REMOVED, why)
        self._waiting.append(_Waiting(path, None, ReasonKind.OUTPUT_MISSING, told))


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
        self._folder: Path | None = None
        self._count = 0
        self._mark: int | None = None

    def copy(self, actual: Path) -> Path:
        """Copy an output here, and return the copy. Its name ends as the output's does, which tells its format.

        Raises:
            BaselineError: nothing can be written beside the baselines, or the disk is full.
            OSError: this output cannot be copied.
        """
        if self._folder is None:
            self._folder = self._make_folder()
        self._count += 1
        suffixes = "".join(actual.suffixes[-_MOST_SUFFIXES:])
        copy = self._folder / f"{self._count}{suffixes if len(suffixes) <= _LONGEST_SUFFIXES else ''}"
        try:
            copy_content(str(actual), str(copy))
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise BaselineError(
                    f"nothing can be accepted into {self._baselines.folder}: {error.strerror}"
                ) from error
            raise
        return copy

    def make_durable(self) -> None:
        """Flush all copies to the disk, before the first is put in place.

        Raises:
            BaselineError: the disk does not take them.
        """
        if self._folder is None:
            return
        try:
            # Together, one commit of the file system's journal does for many.
            with ThreadPoolExecutor(_FLUSHED_AT_ONCE) as pool:
                list(pool.map(flush, self._folder.iterdir()))
        except OSError as error:
            raise BaselineError(f"nothing can be accepted into {self._folder.parent}: {error.strerror}") from error

    def apply(self, copies: Mapping[str, Path], removed: Collection[str]) -> dict[str, OSError]:
        """Make copies the baselines of outputs and remove others; return by path what could not be done.

        All is done in one step where the file system can, and else one by one.
        """
        with suppress(BaselineError):
            self._folder = self._folder or self._make_folder()
            troubles = replace_at_once(self._baselines, self._folder / "staged", copies, removed)
            if troubles is not None:
                return troubles
        return replace_one_by_one(self._baselines, copies, removed)

    def empty(self) -> None:
        """Remove what still waits."""
        folder, self._folder = self._folder, None
        mark, self._mark = self._mark, None
        if mark is not None:
            os.close(mark)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _make_folder(self) -> Path:
        folder = self._baselines.folder
        try:
            self._baselines.refuse_symlinks("")
            folder.mkdir(parents=True, exist_ok=True)
            remove_abandoned(folder)
            made = Path(tempfile.mkdtemp(prefix=WAITING_PREFIX, dir=folder))
            # What a killed process leaves here is not to be committed.
            (made / ".gitignore").write_text("*\n")
            self._mark = hold(made)
        except OSError as error:
            raise BaselineError(f"nothing can be accepted into {folder}: {error.strerror or error}") from error
        return made
