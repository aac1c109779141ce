"""Which runs keep what they wrote, by the word that a person gave (`--golden-keep`, `GOLDEN_KEEP`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression import judge
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.gate.trends import SlowdownJudge
    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig

    KeepIf = Callable[[GoldenProjectConfig, PipelineOutcome], bool]


def choose_keeping(word: str, read_slowdowns: Callable[[], SlowdownJudge] | None = None) -> KeepIf | None:
    """Give the rule behind `none`, `failed` or `all`; None keeps nothing.

    `read_slowdowns` gives what judges durations: a run may have failed for being slow alone. It is asked after a run.
    """
    if word != "failed":
        return _RULES[word]

    def has_failed(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
        result = judge(project, outcome)
        if read_slowdowns is not None:
            result = read_slowdowns().judge(project, result)
        return result.status in {ResultStatus.FAILED, ResultStatus.ERROR}

    return has_failed


def _always(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:  # noqa: ARG001 - the gateway gives both
    return True


_RULES: Mapping[str, KeepIf | None] = {"none": None, "all": _always}
