"""The outputs of each attempt of a project: examined while its view exists, and accepted after the run is judged."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import (
    ACCEPTABLE,
    EXISTS,
    WAITING_FOLDER,
    WAITING_PREFIX,
    ProjectBaselines,
    describe_unused,
    list_absent,
    match_outputs,
    read_left_out,
    settle_runs,
)
from pytest_golden.errors import BaselineError
from pytest_golden.gateway.model import Ending, OutputFinding, PipelineOutcome
from pytest_golden.gateway.scratch import remove_abandoned
from pytest_golden.gateway.write_set import Fingerprint, find_differences, take_fingerprint
from pytest_golden.regression.model import (
    LACKING_KINDS,
    OUTPUT_KINDS,
    GoldenProjectResult,
    Reason,
    ReasonKind,
    ResultStatus,
)
from pytest_golden.regression.rules import ran_as_expected
from pytest_golden.regression.unexpected import names_output
from pytest_golden.regression.wording import name_some, show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_golden.compare.accepting import Acceptance
    from pytest_golden.compare.baselines import ExpectedFile
    from pytest_golden.compare.kept_outputs import OutputKeeping
    from pytest_golden.compare.opening import Mismatch
    from pytest_golden.compare.tables.database_outputs import Exports
    from pytest_golden.compare.waiting import RunOrigin, WaitingFolder
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig

# More differences would hide the important ones; each file is still named.
_MOST_DIFFERENCES = 20
# How many rows of each table after the first are kept; of the first, all are.
_FEW_ROWS = 10
_MOST_MOVED = 200
# A single one needs no order.
_FEWEST_ORDERED = 2
_MOST_FINDINGS = 1000
_MOST_UNWATCHED = 500
_MOST_HOURS_FROM_UTC = 14


ACCEPT_COMMAND = "golden accept {name}"


class Examination:
    """One attempt of a project. This class is for a project without outputs, and finds nothing.

    A gateway calls it while the view exists. `settle` ends it, whatever the result.
    """

    was_asked = False
    #: The outputs that a run in part left out; they were not compared.
    left_out: tuple[str, ...] = ()
    #: Tables that no output names.
    unwatched: tuple[str, ...] = ()

    def __call__(self, outcome: PipelineOutcome, written: WrittenFiles, /) -> tuple[OutputFinding, ...]:  # noqa: ARG002
        """Return what is wrong with the outputs of a run."""
        return ()

    def receive(self, kept: WaitingFolder) -> None:
        """Take the outputs of this attempt that another machine kept, if it was examined there.

        Raises:
            BaselineError: the record of the outputs cannot be read.
        """

    def settle(self, result: GoldenProjectResult, *, is_last: bool = True) -> GoldenProjectResult:  # noqa: ARG002
        """Return the result of the judged run, with what happened to the outputs; `is_last` means that no further attempt follows."""
        return result


class BaselineKeeper:
    """Makes the examination of each attempt of a project.

    `folder` holds the baselines of all projects. With `accepts`, the current outputs become the baselines.
    `accept_command` is what a person types to accept them, with `{name}` for the project. `state_folder` is where
    `golden calibrate` stores its results. With `calibrates`, a project runs again after its first outputs were accepted.
    `describe_run` identifies the run, for the outputs of a red run that are kept in the state folder; None keeps none.
    """

    def __init__(
        self,
        folder: Path,
        *,
        accepts: bool = False,
        accept_command: str = ACCEPT_COMMAND,
        state_folder: Path | None = None,
        calibrates: bool = False,
        describe_run: Callable[[], RunOrigin] | None = None,
    ) -> None:
        self.folder = folder
        self.calibrates = calibrates
        self.state_folder = state_folder
        self.accepts = accepts
        self.accept_command = accept_command
        self.describe_run = describe_run
        self._pinned: Fingerprint | None = None

    def pin(self) -> None:
        """Record the current state of all baselines, so that any later change is found, and remove what a killed session left.

        When outputs are accepted, each project's baselines are recorded just before it runs, because the gate itself changes them.
        """
        if not self.accepts:
            remove_abandoned(self.folder, WAITING_PREFIX)
            self._pinned = take_fingerprint(str(self.folder))

    def begin(self, project: GoldenProjectConfig, changed: Sequence[str] = ()) -> Examination:
        """Begin an attempt of a project; `changed` are the changed files if only the part that depends on them runs."""
        if not project.outputs and not self.accepts:
            return Examination()
        return OutputExamination(self, project, changed)

    def look(self, baselines: ProjectBaselines) -> Fingerprint:
        """Return the marks of a project's baselines: those that `pin` recorded, else the current ones.

        Raises:
            BaselineError: the folder of all baselines cannot be read.
        """
        if self._pinned is None:
            return _look(baselines)
        marks = self._pinned.marks
        prefix = f"{baselines.name}/"
        return Fingerprint({path.removeprefix(prefix): marks[path] for path in marks if path.startswith(prefix)})


def _look(baselines: ProjectBaselines) -> Fingerprint:
    # A link is not followed, because its target is not a baseline.
    try:
        is_link = baselines.root.is_symlink()
    except OSError as error:
        place = f"{baselines.folder.name}/{baselines.name}"
        raise BaselineError(f"the baselines in {place} cannot be looked at: {error.strerror}") from error
    return Fingerprint() if is_link else take_fingerprint(str(baselines.root))


class OutputExamination(Examination):
    """One attempt of one project. With an acceptance, the outputs become the baselines."""

    def __init__(self, keeper: BaselineKeeper, project: GoldenProjectConfig, changed: Sequence[str] = ()) -> None:
        self._project = project
        self._changed = changed
        self._baselines = ProjectBaselines(keeper.folder, project.name)
        self._before = keeper.look(self._baselines)
        self._accept_command = keeper.accept_command.format(name=project.name)
        self._state_folder = keeper.state_folder
        self._noise: set[str] = set()
        self._warnings: list[str] = []
        self._acceptance: Acceptance | None = None
        self._describe_run = keeper.describe_run
        self._keeping: OutputKeeping | None = None
        self._found: tuple[OutputFinding, ...] = ()
        if keeper.accepts:
            from pytest_golden.compare.accepting import Acceptance

            self._acceptance = Acceptance(self._baselines)
        self._unused: tuple[str, ...] = ()
        self._is_incomplete = False

    def __call__(self, outcome: PipelineOutcome, written: WrittenFiles, /) -> tuple[OutputFinding, ...]:
        """Find and compare the outputs of a run that ended as expected. If it failed, only find the output that differs first."""
        self.was_asked = True
        self._warnings.clear()
        ended_well = ran_as_expected(self._project, outcome)
        if not ended_well and (outcome.ending is not Ending.EXITED or (outcome.exit_code or 0) <= 0):
            return ()
        try:
            changed = self._find_changed()
            if changed:
                return (self._explain_change(changed),)
            kept = self._baselines.list_paths()
        except BaselineError as error:
            return (OutputFinding(ReasonKind.BASELINE_UNREADABLE, str(error)),)
        with TemporaryDirectory(prefix="golden-tables-") as folder:
            names = read_left_out(written) if self._changed else ()
            exports = export_tables(self._project.outputs, written, Path(folder), self._changed, names)
            absent = list_absent(names, self._project.outputs, kept, written)
            self.left_out = absent if exports is None else (*exports.left_out, *absent)
            self.unwatched = () if exports is None else tuple(exports.unwatched[:_MOST_UNWATCHED])
            left_out = frozenset(self.left_out)
            kept = tuple(path for path in kept if path not in left_out)
            if not ended_well:
                return self._find_first_difference(exports, kept, written)
            found = tuple(self._examine(exports, kept, written, outcome))
            found = tuple(self._tell_moved(put_causes_first(found, exports, written), written))
            found = tuple(self._advise(found))
        self._found = found
        self._is_incomplete = any(finding.kind in LACKING_KINDS for finding in found)
        rest = found[_MOST_FINDINGS:]
        counted = [OutputFinding(rest[0].kind, f"{len(rest)} more outputs do not hold", None)] if rest else []
        return (*_shorten(found[:_MOST_FINDINGS]), *counted)

    def settle(self, result: GoldenProjectResult, *, is_last: bool = True) -> GoldenProjectResult:
        """Accept the outputs if that is allowed, and name the unused baselines.

        If an output is missing or cannot be read, nothing of the attempt is accepted, because such a run is incomplete. The
        same applies if an output is refused and another attempt follows.
        """
        result = replace(result, unwatched=self.unwatched)
        if self._acceptance is None:
            return self._keep(self._with_warning(result), is_last=is_last)
        try:
            is_to_come = result.status is ResultStatus.FAILED and not is_last
            return result if is_to_come else self._accept(result, self._acceptance)
        finally:
            self._acceptance.discard()

    def receive(self, kept: WaitingFolder) -> None:
        """Take the outputs of this attempt that another machine kept."""
        run = kept.read(self._project.name)
        keeping = self._find_keeping()
        if run is not None and keeping is not None:
            keeping.receive(run, kept.path / run.project)

    def _accept(self, result: GoldenProjectResult, acceptance: Acceptance) -> GoldenProjectResult:
        against = [reason for reason in result.reasons if reason.kind not in OUTPUT_KINDS - LACKING_KINDS]
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

    def _find_keeping(self) -> OutputKeeping | None:
        """Return the object that keeps outputs for a person; None if there is no folder for them."""
        if self._keeping is None and self._describe_run is not None and self._state_folder is not None:
            # Few runs need it.
            from pytest_golden.compare.kept_outputs import OutputKeeping

            self._keeping = OutputKeeping(self._state_folder, self._baselines, self._describe_run)
        return self._keeping

    def _keep(self, result: GoldenProjectResult, *, is_last: bool) -> GoldenProjectResult:
        """Keep the outputs of a red run for a person, and nothing after any other run."""
        if result.status is ResultStatus.FAILED and not is_last:
            if self._keeping is not None:
                self._keeping.discard()
            return result
        if self._keeping is None and not self._has_waiting():
            return result
        keeping = self._find_keeping()
        trouble = None if keeping is None else keeping.settle(result, self._found, self._unused)
        return result if trouble is None else replace(result, warnings=(*result.warnings, trouble))

    def _has_waiting(self) -> bool:
        folder = self._state_folder
        return folder is not None and os.path.lexists(folder / WAITING_FOLDER / self._project.name)

    def _examine(
        self, exports: Exports | None, kept: Sequence[str], written: WrittenFiles, outcome: PipelineOutcome
    ) -> Iterator[OutputFinding]:
        # To import the comparison takes as long as to run a small project.
        from pytest_golden.compare.comparing import explain_unmatched

        declared = self._project.outputs
        written, wrong = settle_runs(declared, written)
        yield from (OutputFinding(ReasonKind.OUTPUT_MISSING, told, entry.path) for entry, told in wrong)
        paths = _without_baselines(written, Path(os.path.realpath(self._baselines.folder)))
        if exports is not None:
            yield from (OutputFinding(told.kind, told.message, declared[at].shown) for at, told in exports.mismatches)
            written, paths = exports.add_to(written), sorted({*paths, *exports.files})
        matched = match_outputs(declared, paths, kept, written.exported)
        self._unused = matched.unused
        explained = [entry for at, entry in enumerate(declared) if exports is not None and exports.is_explained(at)]
        explained += [entry for entry, _ in wrong]
        explained += [entry for entry in declared if any(names_output(entry, path) for path in self.left_out)]
        for entry in matched.unmatched:
            if any(entry is one for one in explained):
                continue
            missing = explain_unmatched(entry, written.paths)
            yield OutputFinding(missing.kind, missing.message, entry.path)
        met = {entry.path for file in matched.files if file.is_written for entry in file.entries}
        for matching in matched.files:
            file = matching if exports is None else exports.complete(matching)
            is_dropped = all(entry.path in met for entry in file.entries)
            mismatch = self._examine_file(matching, file, written, outcome, is_dropped=is_dropped)
            if mismatch is not None:
                yield OutputFinding(mismatch.kind, mismatch.message, file.path, mismatch.difference)

    def _examine_file(
        self,
        matching: ExpectedFile,
        file: ExpectedFile,
        written: WrittenFiles,
        outcome: PipelineOutcome,
        *,
        is_dropped: bool,
    ) -> Mismatch | None:
        """Compare one file, and accept or keep it; `matching` has its entries as in the manifest."""
        from pytest_golden.compare.comparing import examine_file, explain_change, look_at

        mark, actual = look_at(file, written)
        mismatch = examine_file(file, written, self._baselines, self._accept_command, self._warnings.append, actual)
        mismatch = explain_change(file, written, mark) or mismatch
        if mismatch and mismatch.kind is ReasonKind.OUTPUT_DIFFERS and len(self._noise) < _MOST_DIFFERENCES:
            mismatch = self._look_for_noise(file, mismatch, written, outcome)
        if self._acceptance is not None:
            return self._acceptance.consider(file, mismatch, written, mark, is_dropped=is_dropped)
        keeping = None if mismatch is None else self._find_keeping()
        if keeping is not None:
            keeping.consider(matching, file, mismatch, written, mark, is_dropped=is_dropped)
        return mismatch

    def _find_first_difference(
        self, exports: Exports | None, kept: Sequence[str], written: WrittenFiles
    ) -> tuple[OutputFinding, ...]:
        """Return the written output of a failed run that differs first: it is often the cause of the failure."""
        from pytest_golden.compare.comparing import examine_file

        written = settle_runs(self._project.outputs, written)[0]
        if exports is not None:
            written = exports.add_to(written)
        files = match_outputs(self._project.outputs, written.paths, kept, written.exported).files
        differing = []
        for matching in files:
            file = matching if exports is None else exports.complete(matching)
            if file.is_written and file.path in kept:
                mismatch = examine_file(file, written, self._baselines, self._accept_command)
                if mismatch is not None and mismatch.kind is ReasonKind.OUTPUT_DIFFERS:
                    headline = mismatch.message.partition("\n")[0]
                    differing.append(OutputFinding(mismatch.kind, headline, file.path))
        return put_causes_first(differing, exports, written)[:1]

    def _look_for_noise(
        self, file: ExpectedFile, mismatch: Mismatch, written: WrittenFiles, outcome: PipelineOutcome
    ) -> Mismatch:
        """Add a line below the first one of a difference if it looks like noise."""
        from pytest_golden.compare.noise import KnownMovements, RunTime, explain_noise

        entries = [entry for entry in file.entries if entry.compare != EXISTS]
        known = {}
        if self._state_folder is not None:
            movements = KnownMovements(self._state_folder)
            known = {entry.path: movements.find_rules(self._project.name, entry.path) for entry in entries}
        clock = self._project.clock
        started = outcome.started_at if clock is None else datetime.fromisoformat(clock).replace(tzinfo=UTC)
        ended = started + timedelta(seconds=outcome.duration_seconds)
        run = RunTime(started, ended, _MOST_HOURS_FROM_UTC if "TZ" in self._project.set_env else 0)
        try:
            baseline = self._baselines.find(file.path)
            noise = baseline and explain_noise(entries, written.locate(file.path), baseline, known, run)
        except OSError:
            noise = None
        if not noise:
            return mismatch
        self._noise.add(file.path)
        headline, *rest = mismatch.message.split("\n")
        return replace(mismatch, message="\n".join((headline, noise, *rest)))

    def _tell_moved(self, found: Sequence[OutputFinding], written: WrittenFiles) -> Iterator[OutputFinding]:
        """Yield the findings. If a missing file's content is at a new path, its finding names that path."""
        missing = [one for one in found if one.kind == ReasonKind.OUTPUT_MISSING and one.path]
        new = [one for one in found if one.kind == ReasonKind.BASELINE_MISSING and one.path]
        if not missing or not new or max(len(missing), len(new)) > _MOST_MOVED:
            yield from found
            return
        from pytest_golden.compare.comparing import find_moved

        moved = find_moved([str(one.path) for one in missing], [str(one.path) for one in new], written, self._baselines)
        for one in found:
            to = moved.get(str(one.path)) if one.kind == ReasonKind.OUTPUT_MISSING else None
            told = (
                None
                if to is None
                else f"{show_path(str(one.path))} was moved to {show_path(to)}, with the same content"
            )
            yield one if told is None else replace(one, message=told)

    def _advise(self, found: tuple[OutputFinding, ...]) -> Iterator[OutputFinding]:
        """Yield the findings; the first one that can be accepted says how."""
        advice = f"if this is right, accept it with `{self._accept_command}`"
        first = next((one for one in found if one.kind in ACCEPTABLE and one.path not in self._noise), None)
        for finding in found:
            if finding is not first or self._acceptance is not None:
                yield finding
            elif finding.kind == ReasonKind.BASELINE_MISSING:
                yield replace(finding, message=finding.message.replace("\n", ": "))
            else:
                yield replace(finding, message=f"{finding.message}\n{advice}")

    def _find_changed(self) -> tuple[str, ...]:
        """Return the paths of the project's baselines that changed since the attempt began."""
        looks = (self._before, _look(self._baselines))
        known, found = ({path: mark for path, mark in look.marks.items() if len(mark) != 1} for look in looks)
        return tuple(find_differences(Fingerprint(known), Fingerprint(found)))

    def _explain_change(self, changed: tuple[str, ...]) -> OutputFinding:
        named = name_some([*map(show_path, changed)], 5)
        place = f"{self._baselines.folder.name}/{self._baselines.name}"
        message = f"baselines in {place} changed while the gate ran, by a pipeline or by someone else: {named}"
        return OutputFinding(ReasonKind.PROJECT_CHANGED, message, changed[0])

    def _with_warning(self, result: GoldenProjectResult) -> GoldenProjectResult:
        told = list(dict.fromkeys(self._warnings))[:_MOST_FINDINGS]
        if self._unused:
            told.append(describe_unused(self._baselines.folder.name, self._baselines.name, self._unused))
        return replace(result, warnings=(*result.warnings, *told)) if told else result


def put_causes_first(
    found: Sequence[OutputFinding], exports: Exports | None, written: WrittenFiles
) -> tuple[OutputFinding, ...]:
    """Of several differing outputs, put those first that the others follow from.

    dbt models have the order of their graph, and a model that depends on another differing one says so instead of showing its
    own difference. Files have the order of their last write.
    """
    differing = {str(one.path): one for one in found if one.kind == ReasonKind.OUTPUT_DIFFERS}
    if len(differing) < _FEWEST_ORDERED:
        return tuple(found)
    upstream = exports.upstream if exports is not None else {}
    causes = {path: [one for one in upstream.get(path, ()) if one in differing] for path in differing}
    order = iter(sorted(differing, key=lambda path: (len(causes[path]), _find_time(written, path))))
    ordered = []
    for one in found:
        if one.kind != ReasonKind.OUTPUT_DIFFERS:
            ordered.append(one)
            continue
        path = next(order)
        told = differing[path]
        first = min(causes[path], key=lambda cause: len(causes[cause]), default=None)
        if first is not None:
            headline = told.message.partition("\n")[0]
            told = replace(told, message=f"{headline}\nthis follows from {show_path(first)}, which differs too")
        ordered.append(told)
    return tuple(ordered)


def _find_time(written: WrittenFiles, path: str) -> int:
    """Return when a file was written last; 0 for a table."""
    try:
        return 0 if path in written.exported else written.locate(path).lstat().st_mtime_ns
    except OSError:
        return 0


def export_tables(
    outputs: Sequence[DeclaredOutput],
    written: WrittenFiles,
    folder: Path,
    changed: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Exports | None:
    """Read the tables that entries name in databases; None if there are none. The last two arguments are those of `export_outputs`."""
    if not any(output.is_of_tables for output in outputs):
        return None
    from pytest_golden.compare.tables.database_outputs import export_outputs

    return export_outputs(outputs, written, folder, changed=changed, left_out=left_out)


def _without_baselines(written: WrittenFiles, folder: Path) -> Sequence[str]:
    """Return the written paths outside the baselines' folder, which a pipeline may see and write in its view."""
    if written.project_dir is None or not folder.is_relative_to(written.project_dir):
        return written.paths
    prefix = f"{folder.relative_to(written.project_dir).as_posix()}/"
    return [path for path in written.paths if not path.startswith(prefix)]


def _shorten(found: tuple[OutputFinding, ...]) -> Iterator[OutputFinding]:
    """Yield the first findings with their differences, and the others with only their sentence.

    All rows of the first table are kept, and a few of the others.
    """
    left = _MOST_DIFFERENCES
    rows = None
    for finding in found:
        if finding.kind == ReasonKind.BASELINE_MISSING:
            yield finding
            continue
        headline, _, difference = finding.message.partition("\n")
        if left <= 0:
            yield replace(finding, message=headline, table=None)
            continue
        table = finding.table
        if table is not None:
            yield replace(
                finding, table=table if rows is None else replace(table, changed_rows=table.changed_rows[:rows])
            )
            rows = _FEW_ROWS
        else:
            yield finding
        left -= bool(difference)
