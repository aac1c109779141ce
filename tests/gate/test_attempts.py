from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.gate.service import join_reads
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus


def result(status: ResultStatus, **metadata: Any) -> GoldenProjectResult:
    return GoldenProjectResult("a", "a.sh", status, trajectory={"id": status.value, "metadata": metadata})


@pytest.mark.parametrize(
    ("earlier", "last", "told"),
    [(["b", "a"], ["c", "a"], ["a", "b", "c"]), (None, ["a"], None), (["a"], None, None), ([], [], [])],
)
def test_reads_of_all_attempts_count_and_unknown_ones_are_unknown(earlier: Any, last: Any, told: Any) -> None:
    joined = join_reads(result(ResultStatus.FAILED, reads=earlier), result(ResultStatus.PASSED, reads=last, other=1))
    assert joined.status is ResultStatus.PASSED
    assert joined.trajectory == {"id": "PASSED", "metadata": {"reads": told, "other": 1}}


def test_without_reads_or_a_trajectory_the_last_result_stays_as_it_is() -> None:
    failed, last = result(ResultStatus.FAILED, reads=["a"]), result(ResultStatus.PASSED)
    assert join_reads(failed, last) is last
    bare = GoldenProjectResult("a", "a.sh", ResultStatus.ERROR)
    assert join_reads(failed, bare) is bare
    unknown = join_reads(bare, result(ResultStatus.PASSED, reads=["a"])).trajectory
    assert unknown is not None
    assert unknown["metadata"] == {"reads": None}
