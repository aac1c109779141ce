from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING

from pytest_golden.cycle.model import CycleEventType, CycleStep
from pytest_golden.cycle.rules import get_final_status
from pytest_golden.cycle.service import CommandCycle
from tests.repository import MANIFEST

if TYPE_CHECKING:
    from pytest_golden.cycle.model import CycleEvent
    from tests.repository import Repository


def test_what_reaches_the_branch_after_the_check_is_never_a_success(repository: Repository) -> None:
    said: list[str] = []

    def move_the_branch(event: CycleEvent) -> None:
        if (event.event_type, event.step) == (CycleEventType.STEP_DONE, CycleStep.SUMMARY):
            (folder,) = repository.worktrees()[1:]
            with pathlib.Path(f"{folder}/lib.py").open("a") as file:
                file.write("# later\n")

    cycle = CommandCycle(
        manifest=repository.folder / MANIFEST,
        improve="echo '# better' >> lib.py",
        review="true",
        limits={"max_improvements": 1},
        store="none",
        environment=dict(os.environ),
        say=said.append,
        show=said.append,
        on_event=move_the_branch,
    )
    found = cycle.run()
    assert (get_final_status(found.state), found.state.verdict) == ("FAILURE", "none")
    assert "is not what was checked" in said[-1]
    assert found.commit is not None
