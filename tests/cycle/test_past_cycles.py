"""What git shows of recorded cycles, whatever a journal that was brought in holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cycle.past_cycles import get_cycle, list_cycles, record_merges_and_reverts, sum_costs
from pytest_golden.errors import JournalError
from pytest_golden.journal.service import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.repository import Repository


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "golden.db") as made:
        yield made


def record(journal: Journal, cycle_id: str, **note: Any) -> str:
    entry = journal.log_intent("work", "cycle", agent_id="golden", session_key=cycle_id)
    told = {"verdict": "verified", "branch": f"golden/{cycle_id}", **note}
    return journal.log_outcome(entry.id, "success", "SUCCESS", actions=[told], agent_id="golden").id


def checked(commit: str, **more: Any) -> list[Any]:
    return [{"step": "regression_checks", "status": "done", "commit": commit, **more}]


def test_reverts_are_found_by_the_work_by_its_merge_and_by_githubs_squash(
    repository: Repository, journal: Journal
) -> None:
    base = repository.git("rev-parse", "HEAD")
    entries = {}
    for name in ("plain", "squashed", "kept"):
        repository.git("checkout", "-q", "-b", f"golden/{name}", "main")
        repository.write(**{f"{name}__txt": name})
        entries[name] = record(journal, name, base=base, steps=checked(repository.commit(name)))
        repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--ff-only", "golden/plain")
    repository.git("merge", "-q", "--squash", "golden/squashed")
    squash = repository.commit("squashed (#7)")
    news = {"event": "pull_request", "merge_sha": squash}
    journal.add_signal("github", "positive", "merged", data=news, entry_id=entries["squashed"])
    repository.git("revert", "--no-edit", squash)
    repository.git("revert", "--no-edit", "golden/plain")
    for name in ("plain", "squashed"):
        repository.git("branch", "-q", "-D", f"golden/{name}")
    found = {one.cycle_id: one.reverted_by for one in list_cycles(journal, repository.folder, limit=9)}
    assert found["kept"] is None
    assert str(found["plain"]).endswith('Revert "plain"')
    assert str(found["squashed"]).endswith('Revert "squashed (#7)"')
    record_merges_and_reverts(journal, repository.folder)
    record_merges_and_reverts(journal, repository.folder)
    assert [len(journal.get(entries[name]).signals) for name in ("plain", "squashed", "kept")] == [1, 2, 0]
    assert journal.get(entries["plain"]).signals[0].data["event"] == "revert"


@pytest.mark.parametrize("commit", ["--output=stolen", "HEAD", "0" * 40, "", None, 7])
def test_a_note_of_no_commit_is_asked_of_no_git(repository: Repository, journal: Journal, commit: Any) -> None:
    record(journal, "odd", base="--all", steps=checked(commit, cost_usd="much", run_id=9), ended_at="soon")
    repository.git("commit", "-q", "--allow-empty", "-m", f"Revert\n\nThis reverts commit {'0' * 40}.")
    found = get_cycle(journal, repository.folder, "odd")
    assert found.changes == ""
    assert (found.cycle.cost_usd, found.cycle.run_id) == (None, "9")
    assert found.cycle.ended_at == journal.get(found.cycle.entry_id).closed_at
    assert not (repository.folder / "stolen").exists()


def test_without_git_and_without_cycles_there_is_nothing_to_tell(journal: Journal, tmp_path: Path) -> None:
    record_merges_and_reverts(journal, tmp_path)
    with pytest.raises(JournalError, match="the journal has no cycle; see"):
        get_cycle(journal, tmp_path, None)
    record(journal, "far", steps=checked("a" * 40))
    record_merges_and_reverts(journal, tmp_path)
    assert [one.branch_state for one in list_cycles(journal, tmp_path, limit=5)] == ["gone"]


def test_costs_are_summed_exactly() -> None:
    assert sum_costs([{"cost_usd": 0.1}] * 10) == 1.0
    assert sum_costs([{"cost_usd": None}, {}]) is None
