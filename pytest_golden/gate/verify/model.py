"""What a verification is asked for and what it found, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.comparison import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_golden.gate.verify.base_commit import BaseCommit, HeadCommit
    from pytest_golden.regression.comparison import Comparison

SCHEMA_VERSION = 1
PASSED, REGRESSED, BASE_UNAVAILABLE = 0, 1, 3


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """What is to be verified. `checkout` is the root of the head's, `private` this verification's own folder.

    `store` is what was said of it, None where nothing was; `environment` is that of the gates. `reuses` tells whether
    recorded results of the base may stand for new ones.
    """

    manifest: Path
    base: BaseCommit
    checkout: Path
    private: Path
    store: str | None
    environment: Mapping[str, str]
    repeat: int
    reuses: bool = True


@dataclass(frozen=True, slots=True)
class BaseFacts:
    """The base: what was asked for, and the commit whose results were compared. `reason` tells why there are none."""

    ref: str
    commit: str | None = None
    ref_commit: str | None = None
    available: bool = False
    reused: bool = False
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give it as in the command's JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Verification:
    """Base against head. `comparisons` are in the head's order of declaration, then what the base alone declares.

    `fails_unexplained` tells that the head's own gate fails without a failing project.
    """

    base: BaseFacts
    head: HeadCommit
    comparisons: tuple[Comparison, ...] = ()
    weakened_floor: tuple[Mapping[str, Any], ...] = ()
    is_floor_accepted: bool = False
    fails_unexplained: bool = False

    @property
    def new_regressions(self) -> tuple[str, ...]:
        """Names of the projects that this change broke."""
        return tuple(one.runs.name for one in self.comparisons if one.verdict is Verdict.NEW_REGRESSION)

    @property
    def exit_code(self) -> int:
        """Give 0, 1 for a regression or a weakened floor that nobody accepted, 3 for a base that could not be run."""
        if not self.base.available:
            return BASE_UNAVAILABLE
        is_weaker = bool(self.weakened_floor) and not self.is_floor_accepted
        return REGRESSED if self.new_regressions or is_weaker or self.fails_unexplained else PASSED

    def to_dict(self) -> dict[str, Any]:
        """Give the command's JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "base": self.base.to_dict(),
            "head": {"commit": self.head.commit, "dirty": self.head.dirty},
            "projects": [one.to_dict() for one in self.comparisons],
            "new_regressions": list(self.new_regressions),
            "weakened_floor": [dict(one) for one in self.weakened_floor],
            "floor_accepted": self.is_floor_accepted,
            "exit_code": self.exit_code,
        }
