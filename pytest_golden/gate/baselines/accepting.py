"""Makes the present outputs of one attempt the new baselines, once it is clear that it ran as expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.gate.baselines.examining import (
    compare_with,
    explain_change,
    explain_unreadable,
    find_actual,
)
from pytest_golden.gate.baselines.secrets import find_secret
from pytest_golden.gate.baselines.waiting import WaitingRoom
from pytest_golden.gateway.model import OutputFinding
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.baselines.model import Mismatch
from pytest_golden.regression.model import AcceptedOutput, OutputChange, ReasonKind
from pytest_golden.regression.wording import format_size, show_path

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gate.baselines.examining import Mark
    from pytest_golden.gate.baselines.matching import ExpectedFile
    from pytest_golden.gate.baselines.place import ProjectBaselines
    from pytest_golden.gateway.written_files import WrittenFiles

#: Troubles that end with a new baseline.
ACCEPTABLE = frozenset({ReasonKind.BASELINE_MISSING, ReasonKind.OUTPUT_DIFFERS, ReasonKind.BASELINE_UNREADABLE})


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One step that is to be taken: a copy to be put in place, or (None) a baseline to be removed."""

    path: str
    copy: Path | None
    kind: ReasonKind
    told: AcceptedOutput


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
        """Take an output in, given how it compares; give what still speaks against it when it cannot be accepted.

        `mark` is the output's from before it was compared. `is_dropped` tells of a file that was not written, that the
        patterns which name it hold without it.
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
            if not trouble:
                self._take(file, copy, mismatch, written)
                return None
            copy.unlink()
        except OSError as error:
            return explain_unreadable(file.path, error)
        self._told.append(AcceptedOutput(path, OutputChange.REFUSED, written.redact(trouble)))
        return Mismatch(mismatch.kind, f"{show_path(path)} is not accepted: {trouble}")

    def drop_unused(self, paths: tuple[str, ...]) -> None:
        """Let go of baselines that no output is compared with."""
        for path in paths:
            self._drop(path, path, "no output is compared with it")

    def commit(self) -> tuple[tuple[AcceptedOutput, ...], tuple[OutputFinding, ...]]:
        """Put everything in place; gives what became of each output, and what could not be done.

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
        """Let go of what waits."""
        self._waiting = []
        self._room.empty()

    def _find_trouble(self, file: ExpectedFile, copy: Path, written: WrittenFiles) -> str:
        """Say why an output must not become a baseline; empty when it may."""
        # What does not even agree with itself, such as a key that is not unique, no baseline would make right.
        own = compare_with(file, copy, copy)
        if own is not None:
            return f"it would not pass with itself as its baseline: {own.message}"
        if strip_escapes(file.path) != file.path:
            return "its name holds an escape sequence, which a terminal would obey; rename it"
        if written.redact(file.path) != file.path:
            return "its name holds a secret"
        secret = find_secret(copy, file, written.redact)
        return "" if secret is None else f"{secret}; leave it out of the output, then accept it"

    def _take(self, file: ExpectedFile, copy: Path, mismatch: Mismatch, written: WrittenFiles) -> None:
        is_new = mismatch.kind == ReasonKind.BASELINE_MISSING
        message = format_size(copy.stat().st_size) if is_new else written.redact(mismatch.message)
        change = OutputChange.NEW if is_new else OutputChange.CHANGED
        told = AcceptedOutput(file.path, change, message)
        self._waiting.append(_Waiting(file.path, copy, ReasonKind(mismatch.kind), told))

    def _drop(self, path: str, shown: str, why: str) -> None:
        told = AcceptedOutput(shown, OutputChange.REMOVED, why)
        self._waiting.append(_Waiting(path, None, ReasonKind.OUTPUT_MISSING, told))
