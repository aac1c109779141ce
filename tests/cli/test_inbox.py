"""`golden inbox` and `golden journal attach`, as a person and as an agent use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.clock import utc_now
from pytest_golden.journal.service import Journal
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden


@pytest.fixture
def waiting(folder: Path) -> tuple[str, str, str]:
    """A failure, an orphan and a lesson that wait: their ids."""
    with Store.open(folder / ".golden" / "golden.db") as store:
        journal = Journal(store, clock=utc_now)
        failed = journal.log_intent("fix the orders", agent_id="fixer")
        journal.log_outcome(failed.id, "failure", "it broke again")
        orphan = journal.add_signal("mars", "positive", "all is well")
        skill = SkillMemory(
            lesson="Wash the fruit before it is cut",
            what_failed="KiwiError: dirty",
            source="agent",
            proposed_by="fixer",
        )
        return failed.id, orphan.id, Lessons(store).add(skill, "fixer").skill.id


def test_what_waits_is_shown_with_its_command(golden: Golden, waiting: tuple[str, str, str]) -> None:
    failed, orphan, lesson = waiting
    ran = golden("inbox", "--as-person")
    assert (ran.code, ran.err) == (0, "")
    told = [line.strip() for line in ran.out.splitlines()]
    assert told[0] == "failures that nobody has judged (1)"
    assert told[1].endswith("fixer: fix the orders")
    assert told[2:4] == [
        "the agent reported failure: it broke again",
        f'golden journal assess {failed} failure --notes "..."',
    ]
    assert told[-1] == f"golden lessons approve {lesson}"
    assert "Wash the fruit" in ran.out
    by_agent = golden("inbox")
    assert ("Wash the fruit" in by_agent.out, "a lesson for a person to read" in by_agent.out) == (False, True)
    plain = golden("inbox", "--json").json
    assert plain["counts"] == {"failure": 1, "signal": 1, "lesson": 1}
    assert [item["id"] for item in plain["items"]] == [failed, orphan, lesson]


def test_an_orphan_is_attached_by_a_person_alone(golden: Golden, waiting: tuple[str, str, str]) -> None:
    failed, orphan, _ = waiting
    refused = golden("journal", "attach", orphan, failed)
    assert (refused.code, refused.out) == (2, "")
    assert "attaching a signal is for people" in refused.err
    ran = golden("journal", "attach", orphan, failed, "--as-person")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{orphan}: by entry to {failed}, now failure\n"
    again = golden("journal", "attach", orphan, failed, "--as-person")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "waits as an orphan" in again.err


def test_nothing_waits(golden: Golden, folder: Path) -> None:
    Store.open(folder / ".golden" / "golden.db").close()
    assert golden("inbox").out == "nothing waits for you\n"
    (folder / ".golden" / "golden.db").unlink()
    ran = golden("inbox")
    assert (ran.code, ran.out) == (2, "")
    assert "nothing is recorded yet" in ran.err
