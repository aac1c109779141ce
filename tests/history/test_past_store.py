from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.run_record import find_slowdown_judge
from pytest_golden.gate.store import record_event
from pytest_golden.gateway.model import GatewayAbilities
from pytest_golden.history.past_store import (
    find_last_environment,
    read_slowdown_judge,
    read_trends,
)
from pytest_golden.history.run_environment import ACCEPTS, ENVIRONMENT, describe_environment, describe_run_environment
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.manifest.reader import parse_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import MOST_PASSES
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, judge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = {"python": "3.11", "cpu_model": "fast", "view": "overlay", "venvs": {"old": "3.9", "new": "3.12"}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / ".golden" / "golden.db") as opened:
        yield opened


def keep(
    store: Store,
    *seconds: float,
    project: str = "sales",
    status: ResultStatus = ResultStatus.PASSED,
    is_accepted: bool = False,
    facts: dict[str, Any] | None = None,
) -> None:
    """Put runs into the store, oldest first, each with one result."""
    for one in seconds:
        begun = begin(project, facts={ENVIRONMENT: HERE, **(facts or {})})
        judged = judge(begun, project, status)
        result = replace(judged.result, execution_time_seconds=one, accepted=() if is_accepted else None)
        with store.write() as connection:
            record_event(connection, begun)
            record_event(connection, replace(judged, result=result))


def find(store: Store, *names: str, facts: dict[str, Any] | None = None, venv: str | None = None) -> dict[str, Any]:
    with store.read() as connection:
        found = read_trends(connection, dict.fromkeys(names or ("sales",), venv), facts or HERE)
    return {name: (trend.pass_count, trend.median_seconds, trend.mad_seconds) for name, trend in found.items()}


def test_only_passes_count(store: Store) -> None:
    keep(store, 1.0, 2.0, 4.0)
    keep(store, 90.0, status=ResultStatus.FAILED)
    keep(store, 0.0, status=ResultStatus.SKIPPED)
    keep(store, 50.0, project="other")
    assert find(store) == {"sales": (3, 2.0, 1.0)}
    assert find(store, "sales", "other", "new") == {"sales": (3, 2.0, 1.0), "other": (1, 50.0, 0.0)}


def test_newest_passes_count_alone(store: Store) -> None:
    keep(store, *[100.0] * 5, *[1.0] * MOST_PASSES)
    assert find(store) == {"sales": (MOST_PASSES, 1.0, 0.0)}


def test_passes_on_another_machine_are_left_out(store: Store) -> None:
    keep(store, 1.0)
    keep(store, 9.0, facts={ENVIRONMENT: {**HERE, "cpu_model": "slow"}})
    keep(store, 9.0, facts={ENVIRONMENT: {}})
    assert find(store) == {"sales": (1, 1.0, 0.0)}


def test_python_of_another_projects_environment_is_nothing_to_it(store: Store) -> None:
    keep(store, 1.0)
    others = {**HERE, "venvs": {"old": "3.9", "new": "3.13"}}
    assert find(store, facts=others) == {"sales": (1, 1.0, 0.0)}
    assert find(store, facts=others, venv="old") == {"sales": (1, 1.0, 0.0)}
    assert find(store, facts=others, venv="new") == {}
    gate = {**HERE, "python": "3.14"}
    assert (find(store, facts=gate), find(store, facts=gate, venv="old")) == ({}, {"sales": (1, 1.0, 0.0)})


def test_what_a_person_accepted_begins_the_past_anew(store: Store) -> None:
    keep(store, 1.0, 1.0, 1.0)
    keep(store, 5.0, is_accepted=True, facts={ACCEPTS: True})
    keep(store, 6.0)
    assert find(store) == {"sales": (2, 5.5, 0.5)}


def test_run_that_accepted_other_projects_alone_changes_nothing(store: Store) -> None:
    keep(store, 1.0)
    keep(store, 3.0, facts={ACCEPTS: True})
    assert find(store) == {"sales": (2, 2.0, 1.0)}


def test_last_pass_tells_its_environment(store: Store) -> None:
    with store.read() as connection:
        assert find_last_environment(connection, "sales") is None
    keep(store, 1.0)
    with store.read() as connection:
        assert find_last_environment(connection, "sales") == HERE


def test_many_projects_are_asked_for_at_once(store: Store) -> None:
    keep(store, 1.0, project="p0")
    assert find(store, *(f"p{number}" for number in range(1200))) == {"p0": (1, 1.0, 0.0)}


def test_installed_packages_are_no_part_of_the_environment(tmp_path: Path) -> None:
    site = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    (site / "pandas-2.0.dist-info").mkdir(parents=True)
    project = GoldenProjectConfig("sales", "sales.py", venv="env")
    abilities = GatewayAbilities("overlay", "namespaces", ())
    before = describe_run_environment([project], tmp_path, abilities)
    (site / "pandas-3.0.dist-info").mkdir()
    after = describe_run_environment([project], tmp_path, abilities)
    assert describe_environment(before, "env") == describe_environment(after, "env")
    assert describe_environment(before, "env")["python"] == "3.12"
    assert before["view"] == "overlay"
    assert describe_run_environment([], tmp_path, None)["seal"] is None
    assert describe_environment({"python": "3.11"}, "env")["python"] is None


def test_several_workers_are_another_environment_and_one_is_not(tmp_path: Path) -> None:
    alone, one, two = (
        describe_environment(describe_run_environment([], tmp_path, None, **given), None)
        for given in ({}, {"workers": 1}, {"workers": 2})
    )
    assert alone == one != two


def test_store_that_is_not_there_leaves_durations_unjudged(tmp_path: Path, store: Store) -> None:
    manifest = parse_manifest("golden_projects: [{path: sales.py, max_slowdown: 2}]", "m.yaml", tmp_path)
    assert find_slowdown_judge("none", manifest, None).trouble
    assert find_slowdown_judge(str(tmp_path / "other.db"), manifest, None).trouble
    assert not find_slowdown_judge(None, manifest, None).trouble
    (tmp_path / "text.db").write_text("no store\n" * 99)
    assert find_slowdown_judge(str(tmp_path / "text.db"), manifest, None).trouble
    assert not read_slowdown_judge(store, [GoldenProjectConfig("one", "one.py")], tmp_path, None).trends
    store.close()
    assert "cannot be read" in read_slowdown_judge(store, manifest.projects, tmp_path, None).trouble
