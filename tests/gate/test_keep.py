from __future__ import annotations

import pytest

from pytest_golden.gate.keep import choose_keeping
from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.manifest.model import GoldenProjectConfig

MUST_PASS = GoldenProjectConfig("a", "a.py")
MUST_FAIL = GoldenProjectConfig("b", "b.py", expected_outcome="exit_code:3")


@pytest.mark.parametrize(
    ("project", "exit_code", "is_kept"),
    [(MUST_PASS, 0, False), (MUST_PASS, 3, True), (MUST_FAIL, 3, False), (MUST_FAIL, 0, True)],
)
def test_failed_is_what_is_judged_so_and_not_an_exit_code(
    project: GoldenProjectConfig, exit_code: int, is_kept: bool
) -> None:
    keep_if = choose_keeping("failed")
    assert keep_if is not None
    assert keep_if(project, PipelineOutcome(Ending.EXITED, exit_code)) is is_kept


def test_all_and_none_ask_for_no_judgement() -> None:
    keep_if = choose_keeping("all")
    assert keep_if is not None
    assert keep_if(MUST_PASS, PipelineOutcome(Ending.EXITED, 0))
    assert choose_keeping("none") is None
