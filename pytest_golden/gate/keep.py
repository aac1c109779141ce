"""Which runs keep what they wrote, by the word that a person gave (`--golden-keep`, `GOLDEN_KEEP`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression import judge
from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.manifest.model import GoldenProjectConfig

    KeepIf = Callable[[GoldenProjectConfig, PipelineOutcome], bool]


def choose_keeping(word: str) -> KeepIf | None:
    """Give the rule behind `none`, `failed` or `all`; None keeps nothing."""
    return _RULES[word]


def _failed(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
    return judge(project, outcome).status in {ResultStatus.FAILED, ResultStatus.ERROR}


def _always(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:  # noqa: ARG001 - the gateway gives both
    return True


_RULES: Mapping[str, KeepIf | None] = {"none": None, "failed": _failed, "all": _always}
