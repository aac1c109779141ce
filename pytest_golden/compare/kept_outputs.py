"""Keeps what a red run would have made baselines, so that a person can accept it later without a second run.

What redaction finds secret is decided here, since the values of passed variables are known only during the run. Nothing
that happens here changes a verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.compare.accepting import NOT_COMPARED, NOT_WRITTEN, describe_change, find_trouble
from pytest_golden.compare.baselines import ACCEPTABLE, WAITING_FOLDER
from pytest_golden.compare.comparing import explain_change, find_actual
from pytest_golden.compare.opening import choose_comparison
from pytest_golden.compare.tables.profiles import is_profiled, put_profile
from pytest_golden.compare.waiting import (
    WaitingFolder,
    WaitingOutput,
    WaitingRun,
    digest_baseline,
    digest_entries,
    digest_file,
)
from pytest_golden.errors import GoldenError
from pytest_golden.gateway.view import copy_content
from pytest_golden.regression.model import OUTPUT_KINDS, OutputChange, ReasonKind, ResultStatus
from pytest_golden.regression.wording import format_size, show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile, ProjectBaselines
    from pytest_golden.compare.comparing import Mark
    from pytest_golden.compare.opening import Mismatch
    from pytest_golden.compare.waiting import RunOrigin
    from pytest_golden.gateway.model import OutputFinding
    from pytest_golden.gateway.scratch import LivingFolder
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.regression.model import GoldenProjectResult

#: A larger output is named and not kept.
MOST_BYTES = 1 << 30
#: Of more outputs together, those behind the first are not kept either.
MOST_BYTES_OF_PROJECT = 4 << 30
_MOST_OUTPUTS = 1000
_MOST_SUFFIXES, _LONGEST_SUFFIX = 2, 16
_TABLE = "table"


class OutputKeeping:
    """Keeps the outputs of one attempt of one project in the state folder. Nothing waits before `settle`."""

    def __init__(self, state_folder: Path, baselines: ProjectBaselines, describe_run: Callable[[], RunOrigin]) -> None:
        self._folder = WaitingFolder(state_folder / WAITING_FOLDER)
        self._describe_run = describe_run
        self._baselines = baselines
        self._draft: LivingFolder | None = None
        self._outputs: list[WaitingOutput] = []
        self._omitted = 0
        self._kept_bytes = 0
        self._trouble: str | None = None
        self._refused: str | None = None

    def receive(self, run: WaitingRun, folder: Path) -> None:
        """Take what another machine kept of this attempt; the copies lie in `folder`. Their digests are checked at acceptance."""
        try:
            for output in run.outputs:
                if output.file is not None:
                    copy = self._folder.find_staged(self._enter()) / output.file
                    copy_content(str(folder / output.file), str(copy))
                    copy.chmod(0o600)
            self._outputs, self._omitted, self._refused = list(run.outputs), run.omitted, run.refused
        except OSError as error:
            self._give_up(error)

    def consider(
        self,
        declared: ExpectedFile,
        file: ExpectedFile,
        mismatch: Mismatch | None,
        written: WrittenFiles,
        mark: Mark,
        *,
        is_dropped: bool,
    ) -> None:
        """Keep an output that could become a baseline, with what speaks against it.

        `declared` has the entries of the manifest, `file` those that it was compared by. `mark` and `is_dropped` are as for
        `Acceptance.consider`.
        """
        if mismatch is None or self._trouble is not None:
            return
        digest = digest_entries(declared.entries)
        try:
            if mismatch.kind == ReasonKind.OUTPUT_MISSING and not file.is_written and is_dropped:
                self._drop(written.redact(file.path), NOT_WRITTEN, digest)
            elif mismatch.kind in ACCEPTABLE and file.is_written and file.needs_baseline:
                if len(self._outputs) < _MOST_OUTPUTS:
                    self._outputs.append(self._keep(file, mismatch, written, mark, digest))
                else:
                    self._omitted += 1
        except Exception as error:
            # The verdict stands, whatever keeps this from being kept.
            self._give_up(error)

    def settle(self, result: GoldenProjectResult, found: Iterable[OutputFinding], unused: Sequence[str]) -> str | None:
        """Let the outputs wait, or nothing if the run was not red for them; return a warning if that cannot be done."""
        name = self._baselines.name
        try:
            if self._trouble is None and self._outputs and result.status is ResultStatus.FAILED:
                for path in unused:
                    self._drop(path, NOT_COMPARED, "")
                run = WaitingRun(
                    name,
                    self._describe_run(),
                    tuple(sorted(self._outputs, key=lambda output: output.path)),
                    self._find_refusal(result, found),
                    self._omitted,
                )
                self._folder.put(self._enter(), run)
            else:
                self._folder.clear(name)
        except Exception as error:
            self._give_up(error)
        trouble = self._trouble
        self.discard()
        return trouble

    def discard(self) -> None:
        """Keep nothing of this attempt."""
        self._outputs, self._omitted, self._kept_bytes, self._trouble, self._refused = [], 0, 0, None, None
        draft, self._draft = self._draft, None
        if draft is not None:
            draft.close()

    def _keep(
        self, file: ExpectedFile, mismatch: Mismatch, written: WrittenFiles, mark: Mark, digest: str
    ) -> WaitingOutput:
        actual = find_actual(written, file.path)
        size = actual.stat().st_size
        told = describe_change(file, actual, mismatch, written)
        shown = written.redact(file.path)
        output = WaitingOutput(shown, told.change, told.message, size_bytes=size, declared=digest)
        is_whole = not is_profiled(file, size)
        if is_whole and (size > MOST_BYTES or self._kept_bytes + size > MOST_BYTES_OF_PROJECT):
            is_large = size > MOST_BYTES
            limit = (
                f"it is larger than {format_size(MOST_BYTES)}"
                if is_large
                else f"the project's outputs are larger than {format_size(MOST_BYTES_OF_PROJECT)}"
            )
            return replace(
                output, refused=f"{limit}, so no copy of it is kept: --rerun runs the project and accepts it"
            )
        self._kept_bytes += size if is_whole else 0
        copy = self._folder.find_staged(self._enter()) / f"{len(self._outputs) + 1}{_find_suffixes(actual)}"
        copy_content(str(actual), str(copy))
        copy.chmod(0o600)
        if explain_change(file, written, mark) is not None:
            copy.unlink()
            return replace(output, refused="something still wrote it while it was kept")
        trouble, allowed = find_trouble(file, copy, written, is_kept_whole=is_whole)
        if trouble:
            # What holds a secret must not lie around, nor go into an artifact of CI.
            copy.unlink()
            return replace(output, refused=trouble)
        rows, columns = measure(file, copy)
        told = describe_change(file, copy, mismatch, written, put_profile(file, copy, written.redact))
        return replace(
            output,
            message=told.message,
            file=copy.name,
            sha256=digest_file(copy),
            baseline_sha256=digest_baseline(self._baselines, file.path),
            rows=rows,
            columns=columns,
            allowed=allowed,
        )

    def _drop(self, path: str, why: str, digest: str) -> None:
        baseline = digest_baseline(self._baselines, path)
        self._outputs.append(WaitingOutput(path, OutputChange.REMOVED, why, baseline_sha256=baseline, declared=digest))

    def _find_refusal(self, result: GoldenProjectResult, found: Iterable[OutputFinding]) -> str | None:
        """Say why nothing of the run may be accepted: it failed for something else too, or it is incomplete."""
        # Outputs may be accepted of a run that was slow: its duration is not accepted with them.
        known = {*OUTPUT_KINDS, ReasonKind.SLOWDOWN} - {ReasonKind.RULE_BROKEN}
        other = (one for one in result.reasons if one.kind not in known)
        against = next((one.headline for one in other), None)
        if against is not None:
            return f"the run failed also for something else: {against}"
        dropped = {output.path for output in self._outputs if output.change is OutputChange.REMOVED}
        lacking = (
            one.message.partition("\n")[0]
            for one in found
            if one.kind in {ReasonKind.OUTPUT_MISSING, ReasonKind.OUTPUT_UNREADABLE}
            and (one.kind == ReasonKind.OUTPUT_UNREADABLE or one.path not in dropped)
        )
        missing = next(lacking, None)
        return self._refused if missing is None else f"the run is incomplete: {missing}"

    def _enter(self) -> LivingFolder:
        if self._draft is None:
            self._draft = self._folder.begin()
        return self._draft

    def _give_up(self, error: Exception) -> None:
        shown = show_path(self._folder.shown)
        why = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
        self.discard()
        self._trouble = f"the outputs are not kept in {shown} for `golden accept`: {why}"


def _find_suffixes(actual: Path) -> str:
    """Return the suffixes that tell the format, such as `.csv.gz`; none that could mean anything else."""
    kept = [suffix for suffix in actual.suffixes[-_MOST_SUFFIXES:] if suffix[1:].isalnum() and suffix.isascii()]
    return "".join(suffix for suffix in kept if len(suffix) <= _LONGEST_SUFFIX)


def measure(file: ExpectedFile, place: Path) -> tuple[int | None, int | None]:
    """Return the rows and columns of what lies at a place, if the output is compared as a table and can be read."""
    if all(choose_comparison(file.path, entry) != _TABLE for entry in file.entries):
        return None, None
    # What reads tables is in an extra, and heavy.
    from pytest_golden.compare.tables.formats import measure_table

    try:
        return measure_table(place)
    except GoldenError:
        return None, None
