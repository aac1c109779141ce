"""What makes the floor weaker, and what does not."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pytest_golden.manifest.model import GoldenProjectConfig, Manifest, RetiredProject
from pytest_golden.regression.floor import Weakening, find_weakenings

ROOT = Path("/work")


def make_manifest(*projects: GoldenProjectConfig, **keys: Any) -> Manifest:
    return Manifest(projects, keys.pop("workspace_root", ROOT), **keys)


def make_project(name: str = "sales", **keys: Any) -> GoldenProjectConfig:
    return GoldenProjectConfig(name, keys.pop("path", "sales/pipeline.py"), **keys)


def compare(old: dict[str, Any], new: dict[str, Any]) -> tuple[Weakening, ...]:
    return find_weakenings(make_manifest(make_project(**old)), make_manifest(make_project(**new)), not_run={})


def quarantine(day: int) -> dict[str, Any]:
    return {"quarantine": {"until": date(2026, 12, day), "reason": "flaky upstream"}}


LOOSENINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("expectation", {}, {"expected_outcome": "specific_error:x"}),
    ("expectation", {"expected_outcome": "specific_error:x"}, {"expected_outcome": "specific_error:."}),
    ("expectation", {"expected_outcome": "specific_error:x"}, {}),
    ("expectation", {"expected_outcome": "exit_code:3"}, {"expected_outcome": "exit_code:4"}),
    ("limit", {"timeout": 600}, {"timeout": 1200}),
    ("limit", {"memory_limit": 1 << 30}, {"memory_limit": 2 << 30}),
    ("limit", {"memory_limit": 1 << 30}, {}),
    ("limit", {"cpu_limit": 60}, {}),
    ("retries", {}, {"retries": 2}),
    ("skip_if_missing", {}, {"skip_if_missing": ["dbt"]}),
    ("network", {"network": False}, {}),
    ("mounts", {}, {"mounts": [{"path": "/data", "mode": "read"}]}),
    ("mounts", {"mounts": [{"path": "/data"}]}, {"mounts": [{"path": "/data", "mode": "write"}]}),
    ("quarantine", {}, quarantine(1)),
    ("quarantine", quarantine(1), quarantine(2)),
    ("unexpected_files", {"unexpected_files": "fail"}, {"unexpected_files": "warn"}),
    ("unexpected_files", {"unexpected_files": "warn"}, {"unexpected_files": "warn", "writes": ["**"]}),
    ("command", {}, {"command": ["true"]}),
    ("command", {"command": ["make", "all"]}, {"command": ["make", "none"]}),
    ("command", {"after": ["python check.py"]}, {}),
    ("command", {}, {"before": ["rm -r data"]}),
    ("args", {"args": ["--strict"]}, {"args": ["--select", "a b"]}),
    ("runner", {}, {"runner": "shell"}),
    ("path", {}, {"path": "sales/empty.py"}),
    ("project_dir", {}, {"project_dir": "other"}),
    ("environment", {}, {"set_env": {"STRICT": "0"}}),
    ("environment", {"set_env": {"STRICT": "1"}}, {"set_env": {"STRICT": "0"}}),
    ("environment", {}, {"pass_env": ["CI"]}),
    ("environment", {}, {"pass_files": ["~/.dbt/profiles.yml"]}),
    ("environment", {}, {"venv": ".venv"}),
]


@pytest.mark.parametrize(("kind", "old", "new"), LOOSENINGS)
def test_a_loosened_project_is_a_weakening(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    (weakening,) = compare(old, new)
    assert (weakening.project, weakening.kind) == ("sales", kind)
    assert weakening.message
    assert set(weakening.to_dict()) == {"project", "kind", "message", "base", "head"}


TIGHTENINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"timeout": 600}, {"timeout": 60}),
    ({}, {"memory_limit": 1 << 30}),
    ({"memory_limit": 2 << 30}, {"memory_limit": 1 << 30}),
    ({"retries": 2}, {}),
    ({"skip_if_missing": ["dbt", "odibi"]}, {"skip_if_missing": ["odibi"]}),
    ({}, {"network": False}),
    ({"mounts": [{"path": "/data", "mode": "write"}]}, {"mounts": [{"path": "/data", "mode": "read"}]}),
    ({"mounts": [{"path": "/data"}]}, {}),
    (quarantine(2), quarantine(1)),
    (quarantine(2), {}),
    ({"unexpected_files": "warn"}, {"unexpected_files": "fail"}),
    ({"unexpected_files": "fail", "writes": ["a", "b"]}, {"unexpected_files": "fail", "writes": ["a"]}),
]
NOTHINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"title": "Sales", "description": "never break", "tags": ["nightly"]}),
    ({}, {"path": "./sales/pipeline.py"}),
    ({}, {"project_dir": "sales"}),
    ({}, {"expected_outcome": "exit_code:0"}),
    ({"pass_env": ["A", "B"]}, {"pass_env": ["B", "A"]}),
    ({"mounts": [{"path": "/data", "mode": "copy"}]}, {"mounts": [{"path": "/data", "mode": "copy"}]}),
    ({}, {"writes": ["**"]}),
    ({}, {"independent": True, "depends_on": ["lib/**"]}),
]


@pytest.mark.parametrize(("old", "new"), TIGHTENINGS + NOTHINGS)
def test_tightening_and_words_for_people_are_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert compare(old, new) == ()


def test_messages_say_from_what_to_what() -> None:
    (timeout,) = compare({"timeout": 600}, {"timeout": 1200})
    assert (timeout.message, timeout.base, timeout.head) == ("timeout was raised from 10m to 20m", "10m", "20m")
    (command,) = compare({}, {"command": ["make", "a b"]})
    assert command.message == "command changed from none to make 'a b'"


def test_no_secret_gets_into_a_message() -> None:
    weakenings = (
        *compare({"set_env": {"DB_PASSWORD": "hunter22"}}, {"set_env": {"DB_PASSWORD": "hunter23"}}),
        *compare({"args": ["--password", "hunter22"]}, {"args": ["--password=hunter23"]}),
    )
    assert len(weakenings) == 2
    assert "hunter2" not in repr(weakenings)


def test_a_project_that_is_gone_is_a_weakening_unless_it_is_retired() -> None:
    base = make_manifest(make_project("a"), make_project("b"))
    (gone,) = find_weakenings(base, make_manifest(make_project("a")), not_run={})
    assert (gone.project, gone.kind) == ("b", "project_gone")
    retired = make_manifest(make_project("a"), retired=(RetiredProject("b", "replaced by a"),))
    assert find_weakenings(base, retired, not_run={}) == ()
    assert find_weakenings(make_manifest(), base, not_run={}) == ()


def test_a_project_that_was_not_run_is_a_weakening() -> None:
    base = make_manifest(make_project("a"), make_project("b"))
    head = make_manifest(make_project("a"), make_project("b"), make_project("new"))
    (skipped,) = find_weakenings(base, head, not_run={"b": "deselected by -k", "new": "deselected by -k"})
    assert (skipped.project, skipped.kind, skipped.message) == ("b", "not_run", "was not run: deselected by -k")


def test_the_manifest_itself_can_be_weaker() -> None:
    base = make_manifest(require_golden_projects=True)
    (requirement,) = find_weakenings(base, make_manifest(), not_run={})
    assert (requirement.project, requirement.kind) == (None, "requirement")
    assert find_weakenings(make_manifest(), base, not_run={}) == ()
    (root,) = find_weakenings(make_manifest(), make_manifest(workspace_root=Path("/other")), not_run={})
    assert (root.project, root.kind) == (None, "path")


def test_lost_pattern_of_depends_on_weakens_and_a_new_one_does_not() -> None:
    new = {"depends_on": ["lib/**", "data/**"]}
    (weakening,) = compare({"depends_on": ["lib/**", "sql/**"]}, new)
    assert weakening.kind == "depends_on"
    assert weakening.message.startswith("depends_on lost sql/**")
    assert compare({}, new) == ()
