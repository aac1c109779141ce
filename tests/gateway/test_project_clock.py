"""`clock:`: a pipeline that starts at a given time, by real runs with libfaketime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway import project_clock
from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

_SHOW = "date '+%F %H:%M:%S' && python -c 'import time; print(time.strftime(\"%F\"))'"
needs_library = pytest.mark.skipif(project_clock.find_faketime() is None, reason="needs libfaketime")


@needs_library
@pytest.mark.parametrize("view", ["auto", "copy"])
def test_a_pipeline_and_its_processes_start_at_the_declared_time(
    run: Callable[..., PipelineOutcome], view: str
) -> None:
    outcome = run(_SHOW, clock="2024-02-29 06:00:00", view=view)
    first, second = outcome.stdout.split("\n")[:2]
    assert outcome.ending is Ending.EXITED
    assert first.startswith("2024-02-29 06:00:")
    assert second == "2024-02-29"


@needs_library
def test_the_time_is_read_in_the_zone_of_the_project(run: Callable[..., PipelineOutcome]) -> None:
    script = "from datetime import UTC, datetime; print(f'{datetime.now():%F %H} {datetime.now(UTC):%F %H}')"
    outcome = run(script, clock="2024-02-29", set_env={"TZ": "Asia/Tokyo"})
    assert outcome.stdout == "2024-02-29 00 2024-02-28 15\n"


def test_without_the_library_the_project_says_what_to_install(
    run: Callable[..., PipelineOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_clock, "_FOLDERS", ("/nowhere",))
    outcome = run(_SHOW, clock="2024-02-29")
    assert outcome.problem is Problem.PATH_NOT_FOUND
    assert outcome.message == (
        "`clock: 2024-02-29 00:00:00` needs libfaketime, which is not installed: apt install faketime, or brew install libfaketime"
    )
