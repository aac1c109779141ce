"""One attempt of a project: its outputs examined while the view stands, and accepted once it is judged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_golden.compare.accepting import ACCEPTABLE, Acceptance
from pytest_golden.compare.baselines import ProjectBaselines, describe_unused, match_outputs
from pytest_golden.compare.examining import examine_file, explain_change, explain_unmatched, look_at
from pytest_golden.errors import BaselineError
from pytest_golden.gateway.model import OutputFinding, PipelineOutcome
from pytest_golden.regression.model import (
    LACKING_KINDS,
    OUTPUT_KINDS,
    GoldenProjectResult,
    Reason,
    ReasonKind,
    ResultStatus,
)
from pytest_golden.regression.rules import ran_as_expected
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.compare.baselines import Matched
    from pytest_golden.gateway.write_set import Fingerprint, WrittenFiles
    from pytest_golden.manifest.model import GoldenProjectConfig

# Differences beyond these would bury what is to be read first; each file is still named.
_MOST_DIFFERENCES = 20
_MOST_FINDINGS = 1000


class KeptBaselines(Protocol):
    """What an examination asks of the baselines of all projects."""

    folder: Path
    accepts: bool

    def find_changed(self, name: str, before: Fingerprint) -> tuple[str, ...]:
        """Return the paths of a project's baselines that something changed since a look at them."""


class OutputExamination:
    """One attempt of one project: a gateway calls it while the view stands; `settle` ends it, whatever came of it."""

    def __init__(
        self, project: GoldenProjectConfig, keeper: KeptBaselines, before: Fingerprint, accept_command: str
    ) -> None:
        self.was_asked = False
        self._project = project
        self._keeper = keeper
        self._baselines = ProjectBaselines(keeper.folder, project.name)
        self._before = before
        self._accept_command = accept_command
        self._acceptance = Acceptance(self._baselines) if keeper.accepts else None
        self._unused: tuple[str, ...] = ()
        self._is_incomplete = False

    def __call__(self, outcome: PipelineOutcome, written: WrittenFiles) -> tuple[OutputFinding, ...]:
        """Find and compare the outputs of a run that ended as expected; what another has left says nothing."""
        self.was_asked = True
        if not ran_as_expected(self._project, outcome):
            return ()
        try:
            changed = self._keeper.find_changed(self._project.name, self._before)
            if changed:
                return (self._explain_change(changed),)
            kept = self._baselines.list_paths()
        except BaselineError as error:
            return (OutputFinding(ReasonKind.BASELINE_UNREADABLE, str(error)),)
        outputs = _without_baselines(written, Path(os.path.realpath(self._keeper.folder)))
        matched = match_outputs(self._project.outputs, outputs, kept)
        self._unused = matched.unused
        found = tuple(self._advise(tuple(self._examine(matched, written))))
        self._is_incomplete = any(finding.kind in LACKING_KINDS for finding in found)
        return (*_shorten(found[:_MOST_FINDINGS]), *_count_rest(found))

    def settle(self, result: GoldenProjectResult, *, is_last: bool = True) -> GoldenProjectResult:
        """Accept what may be accepted, now that it is judged, and say what of the baselines is not used.

        If an output is missing or cannot be read, nothing of the attempt is accepted: such a run is incomplete. The
        same applies if an output is refused and another attempt is left.
        """
        if self._acceptance is None:
            return self._with_warning(result)
        try:
            is_to_come = result.status is ResultStatus.FAILED and not is_last
            return result if is_to_come else self._accept(result, self._acceptance)
        finally:
            self._acceptance.discard()

    def _accept(self, result: GoldenProjectResult, acceptance: Acceptance) -> GoldenProjectResult:
        against = [reason for reason in result.reasons if reason.kind not in OUTPUT_KINDS]
        if against or self._is_incomplete or result.status not in {ResultStatus.PASSED, ResultStatus.FAILED}:
            return result
        if not self._project.outputs:
            self._unused = self._baselines.list_paths()
        acceptance.drop_unused(self._unused)
        accepted, findings = acceptance.commit()
        reasons = tuple(Reason(finding.kind, finding.message, finding.path) for finding in findings)
        if not accepted and result.status is ResultStatus.FAILED:
            return result
        result = replace(result, accepted=accepted, reasons=(*result.reasons, *reasons))
        if not reasons or result.status is ResultStatus.FAILED:
            return result
        return replace(result, status=ResultStatus.FAILED, error_message=reasons[0].headline)

    def _examine(self, matched: Matched, written: WrittenFiles) -> Iterator[OutputFinding]:
        for entry in matched.unmatched:
            missing = explain_unmatched(entry, written.paths)
            yield OutputFinding(missing.kind, missing.message, entry.path)
        met = {entry.path for file in matched.files if file.is_written for entry in file.entries}
        for file in matched.files:
            mark = look_at(file, written)
            mismatch = examine_file(file, written, self._baselines, self._accept_command)
            mismatch = explain_change(file, written, mark) or mismatch
            if self._acceptance is not None:
                is_dropped = all(entry.path in met for entry in file.entries)
                mismatch = self._acceptance.consider(file, mismatch, written, mark, is_dropped=is_dropped)
            if mismatch is not None:
                yield OutputFinding(mismatch.kind, mismatch.message, file.path)

    def _advise(self, found: tuple[OutputFinding, ...]) -> Iterator[OutputFinding]:
        """Have the first of what can be accepted say how, where everybody reads it."""
        advice = f"if this is right, accept it with `{self._accept_command}`"
        first = next((one for one in found if one.kind in ACCEPTABLE), None)
        for finding in found:
            if finding is not first or self._acceptance is not None:
                yield finding
            elif finding.kind == ReasonKind.BASELINE_MISSING:
                yield replace(finding, message=finding.message.replace("\n", ": "))
            else:
                yield replace(finding, message=f"{finding.message}\n{advice}")

    def _explain_change(self, changed: tuple[str, ...]) -> OutputFinding:
        named = ", ".join(map(show_path, changed[:5])) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        place = f"{self._baselines.folder.name}/{self._baselines.name}"
        message = f"baselines in {place} changed while the gate ran, by a pipeline or by someone else: {named}"
        return OutputFinding(ReasonKind.PROJECT_CHANGED, message, changed[0])

    def _with_warning(self, result: GoldenProjectResult) -> GoldenProjectResult:
        if not self._unused:
            return result
        told = describe_unused(self._baselines.folder.name, self._baselines.name, self._unused)
        return replace(result, warnings=(*result.warnings, told))


def _without_baselines(written: WrittenFiles, folder: Path) -> Sequence[str]:
    """Leave out what a pipeline that sees the baselines has written among them, in its view: that is nobody's output."""
    if written.project_dir is None or not folder.is_relative_to(written.project_dir):
        return written.paths
    prefix = f"{folder.relative_to(written.project_dir).as_posix()}/"
    return [path for path in written.paths if not path.startswith(prefix)]


def _shorten(found: tuple[OutputFinding, ...]) -> Iterator[OutputFinding]:
    """Leave the difference to the first ones; of the others the sentence says enough."""
    left = _MOST_DIFFERENCES
    for finding in found:
        if finding.kind == ReasonKind.BASELINE_MISSING:
            yield finding
            continue
        headline, _, difference = finding.message.partition("\n")
        yield finding if left > 0 else replace(finding, message=headline)
        left -= bool(difference)


def _count_rest(found: tuple[OutputFinding, ...]) -> Iterator[OutputFinding]:
    rest = found[_MOST_FINDINGS:]
    if rest:
        yield OutputFinding(rest[0].kind, f"{len(rest)} more outputs do not hold", None)
