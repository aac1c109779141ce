"""Judge how long runs took by what is known of earlier ones. Nothing is read here; that is `reading.py`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import OUTPUT_KINDS, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.trends import DurationTrend, explain_slowdown, explain_unjudged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

# A run that was against any other expectation did not do all of its work, or another one.
_RAN_TO_ITS_END = OUTPUT_KINDS | {ReasonKind.UNEXPECTED_FILE}


@dataclass(frozen=True, slots=True)
class SlowdownJudge:
    """Judges durations by `trends`, which are known by the projects' names.

    `trouble` says why nothing is known of any, `is_off` that this run is to be accepted however long it takes.
    """

    trends: Mapping[str, DurationTrend] = field(default_factory=dict)
    trouble: str = ""
    is_off: bool = False

    def judge(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> GoldenProjectResult:
        """Add the reason against a run that was too slow, or a warning where that cannot be told."""
        factor = project.max_slowdown
        if factor is None or self.is_off or not _ran_as_expected(result):
            return result
        trend = self.trends.get(project.name)
        unjudged = explain_unjudged(trend, self.trouble)
        if unjudged is not None:
            return replace(result, warnings=(*result.warnings, unjudged))
        told = explain_slowdown(result.execution_time_seconds, factor, trend)
        if told is None:
            return result
        reasons = (*result.reasons, Reason(ReasonKind.SLOWDOWN, told))
        return replace(result, status=ResultStatus.FAILED, reasons=reasons, error_message=result.error_message or told)

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values, for the process that runs the projects."""
        trends = {name: trend.to_dict() for name, trend in self.trends.items()}
        return {"trends": trends, "trouble": self.trouble, "is_off": self.is_off}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> SlowdownJudge:
        """Read back what `to_dict` gave."""
        trends = {name: DurationTrend.from_dict(trend) for name, trend in mapping["trends"].items()}
        return cls(trends, str(mapping["trouble"]), bool(mapping["is_off"]))


def _ran_as_expected(result: GoldenProjectResult) -> bool:
    is_judged = result.status in {ResultStatus.PASSED, ResultStatus.FAILED}
    return is_judged and all(reason.kind in _RAN_TO_ITS_END for reason in result.reasons)
