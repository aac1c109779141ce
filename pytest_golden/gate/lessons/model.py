"""Two points in a project's history and what lies between them. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.input_changes import RunInputs
from pytest_golden.regression.model import ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gate.checkout import Checkout
    from pytest_golden.gate.commits import Commit
    from pytest_golden.gate.input_changes import InputChange

#: What comes of a row that somebody else has written.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# These tell of the gate, of its machine or of the person at the keyboard, and nothing of the project.
_OF_HARNESS = frozenset(
    {
        ReasonKind.INTERRUPTED,
        ReasonKind.SANDBOX_UNAVAILABLE,
        ReasonKind.NETWORK_UNAVAILABLE,
        ReasonKind.PROJECT_CHANGED,
        ReasonKind.PATTERN_TIMED_OUT,
        ReasonKind.SCRATCH_FULL,
        ReasonKind.WORKER_CRASHED,
        ReasonKind.HARNESS,
        ReasonKind.NEED_NOT_PASSED,
    }
)


@dataclass(frozen=True, slots=True)
class Point:
    """One result of a project and where it ran. `message` is the first reason of a failure that tells of the project.

    `is_accepted` tells that what it produced was made its baselines: it passed by that, whatever it produced.
    """

    number: int
    entry_id: str
    run_id: str
    project: str
    status: ResultStatus
    message: str | None
    reason_kind: str | None
    is_flaky: bool
    commit: str | None
    branch: str | None
    dirty: bool | None
    workspace_root: str
    declaration_digest: str
    environment_digest: str
    created_at: int
    inputs_digest: str | None = None
    is_accepted: bool = False

    @property
    def has_passed(self) -> bool:
        """Tell whether it is a pass."""
        return self.status is ResultStatus.PASSED

    @property
    def counts(self) -> bool:
        """Tell whether it says something of the project: it ran to its end, and the gate was not to blame for that."""
        if self.has_passed:
            return True
        is_failure = self.status in {ResultStatus.FAILED, ResultStatus.ERROR}
        return is_failure and self.message is not None and self.reason_kind not in _OF_HARNESS

    def is_as(self, other: Point) -> bool:
        """Tell whether both ran on the same, as far as that is known without a look at edits."""
        return self._place == other._place and self.dirty is False

    @property
    def _place(self) -> tuple[str | bool | None, ...]:
        return self.commit, self.dirty, self.declaration_digest, self.environment_digest, self.inputs_digest


@dataclass(frozen=True, slots=True)
class State:
    """What a result ran on: the checkout with its edits, the project's manifest keys, what was installed, and what else it read."""

    checkout: Checkout
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    inputs: RunInputs = field(default_factory=RunInputs)


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different in a later state.

    `commits` came, newest first, those that touch the project's own folder alone where there are any; `commit_count`
    counts all of them, `lost_count` those that went. `files` are all changed ones, by commits or as `edited` without, whose contents `blobs` names;
    `inside` those below the project's folder. `declaration` and `surroundings` are lines for people.
    `inputs` are what git does not hold.
    """

    commit_range: str | None = None
    commits: tuple[Commit, ...] = ()
    commit_count: int = 0
    lost_count: int = 0
    files: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    blobs: Mapping[str, str | None] = field(default_factory=dict)
    declaration: tuple[str, ...] = ()
    surroundings: tuple[str, ...] = ()
    inputs: tuple[InputChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person said was wrong with an entry's work; `number` gives the order of recording, `at` is in milliseconds."""

    number: int
    signal_id: str
    text: str
    source: str
    at: int
    entry_id: str
    agent: str
    intent: str
