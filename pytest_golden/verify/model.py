"""The values of a verification: what is requested and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_golden.regression.comparison import Comparison, Verdict
from pytest_golden.values.shape import Shape, VersionedShape, form, in_form
from pytest_golden.verify.gates import HeadCommit

PASSED, REGRESSED, BASE_UNAVAILABLE = 0, 1, 3


@dataclass(frozen=True, slots=True)
class BaseFacts(Shape):
    """The base: the requested ref and the commit whose results were compared. `reason` tells why there are none."""

    ref: str
    commit: str | None = None
    ref_commit: str | None = None
    available: bool = False
    reused: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Verification(VersionedShape):
    """Base against head. `comparisons` are in the head's order of declaration, then projects that only the base declares.

    `environment`: what judged the head, as its gate report tells. `fails_unexplained`: the head's own gate fails without a failed project. `is_first`: the base has no manifest, so the
    head is judged on its own. `unprotected_fixes`: the commits of the change that mend something, each as `{commit, subject}`, the newest
    first, where no project was red on the base and is green on the head.
    """

    base: BaseFacts
    head: HeadCommit = field(metadata=form(write=lambda head: head._asdict(), as_type=Mapping[str, Any]))
    comparisons: tuple[Comparison, ...] = field(default=(), metadata=form(key="projects"))
    weakened_floor: tuple[Mapping[str, Any], ...] = ()
    is_floor_accepted: bool = field(default=False, metadata=form(key="floor_accepted"))
    unprotected_fixes: tuple[Mapping[str, str], ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict, metadata=form(hidden=True))
    fails_unexplained: bool = field(default=False, metadata=form(hidden=True))
    is_first: bool = field(default=False, metadata=form(hidden=True))

    @property
    @in_form()
    def new_regressions(self) -> tuple[str, ...]:
        """Return the names of the projects that this change broke."""
        return tuple(one.runs.name for one in self.comparisons if one.verdict is Verdict.NEW_REGRESSION)

    @property
    def failing(self) -> tuple[str, ...]:
        """Return the names of the projects that fail the command: every regression, if the base has no manifest."""
        if not self.is_first:
            return self.new_regressions
        heads = {one.runs.name: one.runs.head.result for one in self.comparisons}
        return tuple(name for name, result in heads.items() if result is not None and result.is_regression)

    @property
    @in_form()
    def exit_code(self) -> int:
        """Return 0; 1 if a project fails or nobody accepted a weakened floor; 3 if the base could not be run."""
        if not self.base.available and not self.is_first:
            return BASE_UNAVAILABLE
        is_weaker = bool(self.weakened_floor) and not self.is_floor_accepted
        return REGRESSED if self.failing or is_weaker or self.fails_unexplained else PASSED


@dataclass(frozen=True, slots=True)
class BaseKey(Shape):
    """What must be equal for recorded results of a base to replace new runs. `manifest` is its path in the checkout."""

    commit: str
    manifest: str
    environment: str
    setup: tuple[str, ...] | None
