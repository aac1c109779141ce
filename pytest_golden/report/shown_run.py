"""What a page or a summary shows: one gate run, read back from its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import GoldenProjectResult, RegressionCheckResult, ResultStatus
from pytest_golden.report.one_line import closing_count, gate_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUCCESS = "SUCCESS"


def fails_the_gate(result: GoldenProjectResult, *, skips_fail: bool) -> bool:
    """Tell whether a result fails the gate; with `--golden-require` a skipped one does too, unless it is unchanged."""
    return result.is_regression or (
        skips_fail and result.status is ResultStatus.SKIPPED and not result.is_left_out_as_unchanged
    )


@dataclass(frozen=True, slots=True)
class ShownRun:
    """One gate run. `failing` are the names of the results that fail the gate."""

    check: RegressionCheckResult
    gate: Mapping[str, Any]
    weakened_floor: tuple[Mapping[str, Any], ...]
    failing: frozenset[str]

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> ShownRun:
        """Read a gate report; what it need not have may be missing.

        Raises:
            KeyError: it is no gate report.
            ValueError: a word in it is not known.
        """
        check = RegressionCheckResult(tuple(map(GoldenProjectResult.from_dict, report["results"])))
        gate = report.get("gate") or {}
        skips_fail = gate.get("require") is True
        failing = (result.name for result in check.results if fails_the_gate(result, skips_fail=skips_fail))
        return cls(check, gate, tuple(report.get("weakened_floor") or ()), frozenset(failing))

    @property
    def is_floor_bad(self) -> bool:
        """Tell whether the floor is weaker and nobody has accepted that."""
        return bool(self.weakened_floor) and self.gate.get("floor_accepted") is not True

    @property
    def verdict(self) -> str:
        """The verdict in one line; a run that was not finished is no success."""
        not_run = len(self.list_names("not_run"))
        told = gate_verdict(self.check, len(self.failing), not_run, is_weaker=self.is_floor_bad)
        if self.gate.get("interrupted") is True:
            return "INTERRUPTED" if told == _SUCCESS else f"INTERRUPTED, {told}"
        has_ended = self.gate.get("finished_at", "") is not None
        return told if has_ended else f"not finished, so far {told}"

    @property
    def is_good(self) -> bool:
        """Tell whether nothing stands against the run."""
        return self.verdict == _SUCCESS

    @property
    def count(self) -> str:
        """What happened to every declared project, counted."""
        deselected, not_run = len(self.list_names("deselected")), len(self.list_names("not_run"))
        told = closing_count(self.check.results, len(self.failing), deselected, not_run)
        return f"{told}, floor weakened" if self.is_floor_bad else told

    def list_names(self, key: str) -> tuple[str, ...]:
        """Give the names below a key of the gate's facts."""
        return tuple(map(str, self.gate.get(key) or ()))
