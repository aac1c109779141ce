"""The baselines of all projects: where they lie, whether they are accepted, and whether they are as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pytest_golden.compare.baselines import ProjectBaselines
from pytest_golden.compare.replacing import remove_abandoned
from pytest_golden.errors import BaselineError
from pytest_golden.gateway.write_set import Fingerprint, find_differences, take_fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gateway.model import OutputFinding, PipelineOutcome
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

ACCEPT_COMMAND = "golden accept {name}"


class Examination(Protocol):
    """One attempt of a project: a gateway calls it while the view stands; `settle` ends it, whatever came of it."""

    was_asked: bool

    def __call__(self, outcome: PipelineOutcome, written: WrittenFiles, /) -> tuple[OutputFinding, ...]:
        """Find what speaks against the outputs of a run."""
        ...

    def settle(self, result: GoldenProjectResult, *, is_last: bool = True) -> GoldenProjectResult:
        """Return the result with what came of the outputs, now that the run is judged; `is_last`: there is no further attempt."""
        ...


class NothingExamined:
    """An attempt of a project without outputs."""

    was_asked = False

    def __call__(self, outcome: PipelineOutcome, written: WrittenFiles, /) -> tuple[OutputFinding, ...]:  # noqa: ARG002
        """Find nothing."""
        return ()

    def settle(self, result: GoldenProjectResult, *, is_last: bool = True) -> GoldenProjectResult:  # noqa: ARG002
        """Leave the result as it is."""
        return result


class BaselineKeeper:
    """Makes the examination of each attempt of a project.

    `folder` holds the baselines of all projects. With `accepts` the present outputs become the baselines.
    `accept_command` is what a person types for that, with `{name}` for the project.
    """

    def __init__(self, folder: Path, *, accepts: bool = False, accept_command: str = ACCEPT_COMMAND) -> None:
        self.folder = folder
        self.accepts = accepts
        self.accept_command = accept_command
        self._pinned: Fingerprint | None = None

    def pin(self) -> None:
        """Look at all baselines now, so that a change by anything that runs from now on is found; what a killed session left goes.

        Where outputs are accepted each project's are looked at just before it runs: the gate itself changes them.
        """
        if not self.accepts:
            remove_abandoned(self.folder)
            self._pinned = take_fingerprint(str(self.folder))

    def begin(self, project: GoldenProjectConfig) -> Examination:
        """Begin an attempt of a project."""
        if not project.outputs and not self.accepts:
            return NothingExamined()
        # What compares files takes as long to load as a small project to run.
        from pytest_golden.compare.examination import OutputExamination

        command = self.accept_command.format(name=project.name)
        return OutputExamination(project, self, self.look(project.name), command)

    def look(self, name: str) -> Fingerprint:
        """Return the marks of a project's baselines: as they were when they were pinned, else as they are.

        Raises:
            BaselineError: the folder of all baselines may not be looked into.
        """
        baselines = ProjectBaselines(self.folder, name)
        if self._pinned is None:
            return _look(baselines)
        marks = self._pinned.marks
        prefix = f"{name}/"
        return Fingerprint({path.removeprefix(prefix): marks[path] for path in marks if path.startswith(prefix)})

    def find_changed(self, name: str, before: Fingerprint) -> tuple[str, ...]:
        """Return the paths of a project's baselines that something has changed since a look at them.

        Raises:
            BaselineError: the folder of all baselines may not be looked into.
        """
        now = _look(ProjectBaselines(self.folder, name))
        known, found = ({path: mark for path, mark in look.marks.items() if len(mark) != 1} for look in (before, now))
        return tuple(find_differences(Fingerprint(known), Fingerprint(found)))


def _look(baselines: ProjectBaselines) -> Fingerprint:
    # A link is not followed, as where all baselines are looked at together: what lies behind it is nobody's baseline.
    try:
        is_link = baselines.root.is_symlink()
    except OSError as error:
        place = f"{baselines.folder.name}/{baselines.name}"
        raise BaselineError(f"the baselines in {place} cannot be looked at: {error.strerror}") from error
    return Fingerprint() if is_link else take_fingerprint(str(baselines.root))
