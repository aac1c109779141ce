"""What earlier gate runs left: a past result and a past run, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_golden.gate.input_changes import RunInputs
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any


@dataclass(frozen=True, slots=True)
class PastResult:
    """One project's result in one gate run, as far as its history needs it.

    `message` is the first reason, None for a pass. `pass_streak` counts the passes in a row up to this one.
    What was skipped or interrupted is neither a pass nor a failure, and breaks no streak. `is_accepted` tells that a person
    accepted what it gave: another past begins with it.
    """

    entry_id: str
    run_id: str
    project: str
    status: ResultStatus
    exit_code: int | None
    execution_time_seconds: float
    attempts: int
    is_flaky: bool
    is_regression: bool
    pass_streak: int
    commit: str | None
    branch: str | None
    dirty: bool | None
    created_at: datetime
    trajectory_id: str | None
    message: str | None
    is_interrupted: bool = False
    is_accepted: bool = False

    @property
    def counts(self) -> bool:
        """Tell whether it ran to its end, so that it says something of the project."""
        return self.status is not ResultStatus.SKIPPED and not self.is_interrupted


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """What the first failure after a pass ran on, as a checkout has it."""

    commit: str | None
    branch: str | None
    dirty: bool | None
    dirty_files: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True)
class PastPass:
    """The last pass of a project, with what it ran in: to be compared with the present failure.

    `dirty_files` gives the content hash of each file that differed from the commit. `declaration` holds the project's
    manifest keys, `surroundings` the versions of what was installed, `inputs` what git does not hold. `first_failure` is
    the first one after it.
    """

    result: PastResult
    dirty_files: Mapping[str, str | None] | None
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    first_failure: FirstFailure | None = None
    inputs: RunInputs = field(default_factory=RunInputs)


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A gate run that ended without its end, and how many of its projects have a result."""

    run_id: str
    started_at: datetime
    recorded_count: int
    expected_count: int
