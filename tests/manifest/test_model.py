from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest.kinds import NAME_FORM
from pytest_golden.manifest.model import (
    PROJECT_KEYS,
    GoldenProjectConfig,
    Manifest,
    Mount,
    Quarantine,
    RetiredProject,
    is_absolute_path,
    slug,
    stem_name,
)

_RICH: dict[str, Any] = {
    "title": "Sales, daily",
    "runner": "odibi",
    "args": ["--select", ""],
    "command": "odibi run '{path} x'",
    "project_dir": ".",
    "timeout": "1.5h",
    "memory_limit": "2GiB",
    "network": False,
    "venv": "~/.venvs/odibi",
    "set_env": {"TZ": "UTC", "N": 3, "RATE": 0.5},
    "pass_env": ["DATABASE_URL"],
    "pass_files": ["~/.dbt/profiles.yml"],
    "mounts": [{"path": "/data/lake", "mode": "copy"}, Mount("/ref")],
    "before": ["python make_seed.py", ["touch", "a b"]],
    "after": [],
    "needs": ["load_reference"],
    "depends_on": ["lib/**"],
    "quarantine": {"until": "2026-12-31", "reason": "flaky upstream"},
    "tags": "nightly",
    "retries": 2,
    "steps": ["odibi", "dbt"],
    "skip_if_missing": ["dbt"],
    "cpu_limit": "300s",
    "unexpected_files": "warn",
    "writes": ["target/**"],
}


def test_the_first_four_are_given_by_position() -> None:
    project = GoldenProjectConfig("a", "b.yaml", "what", "exit_code:3")
    assert (project.name, project.path, project.description, project.expected_outcome) == (
        "a",
        "b.yaml",
        "what",
        "exit_code:3",
    )
    assert project.expected.exit_code == 3
    with pytest.raises(ValueError, match="positional"):
        GoldenProjectConfig("a", "b.yaml", "what", "success", "title")  # type: ignore[call-arg]


def test_defaults_are_those_of_the_contract() -> None:
    project = GoldenProjectConfig("a", "b.yaml")
    assert (project.runner, project.timeout, project.network, project.steps) == ("auto", 600.0, True, "auto")
    assert (project.memory_limit, project.cpu_limit, project.unexpected_files, project.retries) == (
        None,
        None,
        "allow",
        0,
    )
    assert project.display_title == "a"
    assert project.expected.kind == "success"


def test_texts_become_values() -> None:
    project = GoldenProjectConfig("a", "b.yaml", **_RICH)
    assert project.display_title == "Sales, daily"
    assert project.command == ("odibi", "run", "{path} x")
    assert (project.timeout, project.cpu_limit, project.memory_limit) == (5400.0, 300.0, 2**31)
    assert project.set_env == {"TZ": "UTC", "N": "3", "RATE": "0.5"}
    assert [GoldenProjectConfig("a", "b", network=word).network for word in ("loopback", "host")] == [False, "host"]  # type: ignore[arg-type]
    assert project.mounts == (Mount("/data/lake", "copy"), Mount("/ref", "read"))
    assert project.before == (("python", "make_seed.py"), ("touch", "a b"))
    assert project.quarantine == Quarantine(date(2026, 12, 31), "flaky upstream")
    assert project.tags == ("nightly",)
    assert project.steps == ("odibi", "dbt")
    assert GoldenProjectConfig("a", "b.yaml", steps="otel").steps == ("otel",)
    assert GoldenProjectConfig("a", "b.yaml", steps="odibi").steps == ("odibi",)
    assert GoldenProjectConfig("a", "b.yaml", steps=("auto",)).steps == "auto"


def test_a_project_is_frozen_hashable_and_can_travel() -> None:
    project = GoldenProjectConfig("a", "b.yaml", **_RICH)
    with pytest.raises(dataclasses.FrozenInstanceError):
        project.name = "c"  # type: ignore[misc]
    assert hash(project) == hash(copy.deepcopy(project))
    assert pickle.loads(pickle.dumps(project)) == project
    assert dataclasses.replace(project, name="c").name == "c"


def test_the_environment_of_a_project_cannot_be_written() -> None:
    made = GoldenProjectConfig("a", "b.yaml", **_RICH)
    for project in (
        made,
        GoldenProjectConfig("a", "b.yaml"),
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        dataclasses.replace(made, name="c"),
    ):
        before = dict(project.set_env)
        with pytest.raises(TypeError, match="cannot be written"):
            project.set_env["TZ"] = "CET"  # type: ignore[index]
        assert project.set_env == before
    assert json.loads(json.dumps(made.set_env)) == made.to_dict()["set_env"] == {"TZ": "UTC", "N": "3", "RATE": "0.5"}


def test_a_manifest_is_frozen_and_hashable() -> None:
    lines = {"a": 3}
    manifest = Manifest((GoldenProjectConfig("a", "b.yaml"),), Path("/w"), lines=lines)
    lines["a"] = 4
    assert manifest.lines == {"a": 3}
    with pytest.raises(TypeError, match="cannot be written"):
        manifest.lines["a"] = 4  # type: ignore[index]
    assert hash(manifest) == hash(dataclasses.replace(manifest))
    assert pickle.loads(pickle.dumps(manifest)) == manifest


def test_plain_values_are_json_and_make_the_same_project() -> None:
    project = GoldenProjectConfig("a", "b.yaml", **_RICH)
    assert GoldenProjectConfig(**json.loads(json.dumps(project.to_dict()))) == project


def test_what_was_passed_in_may_change_afterwards() -> None:
    environment = {"TZ": "UTC"}
    project = GoldenProjectConfig("a", "b.yaml", set_env=environment)
    environment["TZ"] = "CET"
    assert project.set_env == {"TZ": "UTC"}


def test_every_field_is_a_key_of_the_manifest() -> None:
    assert {field.name for field in dataclasses.fields(GoldenProjectConfig)} == set(PROJECT_KEYS.keys)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"name": ""}, "is empty"),
        ({"name": "../x"}, "is not a name"),
        ({"name": "a" * 201}, "longer than 200"),
        ({"name": 3}, "this must be a text, not 3"),
        ({"path": " "}, "is empty"),
        ({"path": "a\0b"}, "NUL"),
        ({"expected_outcome": "specific_error:("}, "is not a regular expression"),
        ({"timeout": 0}, "not above 0"),
        ({"memory_limit": "-1MB"}, "not above 0"),
        ({"network": 1}, "1 is not true, false, loopback or host"),
        ({"retries": -1}, "whole number"),
        ({"retries": True}, "whole number"),
        ({"args": "x"}, r"write it in brackets: \['x'\]"),
        ({"args": {"x"}}, "must be a list"),
        ({"command": []}, "is empty"),
        ({"command": [" "]}, "is empty"),
        ({"command": " "}, "is empty"),
        ({"command": "a 'b"}, "No closing quotation"),
        ({"command": 3}, "must be a command"),
        ({"before": ["x", ""]}, r"\[1\]: .*is empty"),
        ({"set_env": {"A": True}}, "text or a number"),
        ({"set_env": {"A=B": "x"}}, "cannot name an environment variable"),
        ({"set_env": ["A"]}, "must be a mapping"),
        ({"pass_env": ["A=B"]}, "cannot name an environment variable"),
        ({"pass_env": ["A"], "not_secret": ["A", "B"]}, r"not_secret\[1\]: 'B' is not in pass_env or pass_files"),
        ({"mounts": [{"path": "/x", "mode": "rw"}]}, r"\[0\]\.mode: 'rw' is not known"),
        ({"mounts": [{"pth": "/x"}]}, "did you mean 'path'"),
        ({"mounts": ["/x"]}, "its keys are path, mode"),
        ({"quarantine": {"until": "soon", "reason": "x"}}, "until: 'soon' is not a day"),
        ({"quarantine": {"until": datetime(2026, 1, 1, tzinfo=UTC), "reason": "x"}}, "is not a day"),
        ({"tags": ["a b"]}, "is not a name"),
        ({"unexpected_files": "deny"}, "write allow, warn or fail"),
        ({"runner": "command"}, "what the key command says"),
        ({"needs": ["p"]}, "cannot need itself"),
        ({"needs": ["q"], "independent": True}, "may run on another worker"),
        (
            {"outputs": [{"path": "x.csv", "masks": ["a"]}]},
            r"\[0\]\.masks: masks is for compare: text or compare: json",
        ),
        ({"outputs": ["x.csv"]}, "must be a mapping"),
        ({"max_slowdown": 1.0}, "is not above 1"),
    ],
)
def test_wrong_values_are_refused_with_a_clear_text(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        GoldenProjectConfig(**{"name": "p", "path": "p.sh", **values})


def test_a_secret_is_not_shown_in_a_refusal() -> None:
    with pytest.raises(ValueError, match="set_env") as refusal:
        GoldenProjectConfig("p", "p.sh", set_env={"PASSWORD": ["hunter2"]})  # type: ignore[dict-item]
    assert "hunter2" not in str(refusal.value)


def test_small_values_are_checked_too() -> None:
    with pytest.raises(ValueError, match="write read, copy or write"):
        Mount("/x", "rw")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is empty"):
        Quarantine(date(2026, 1, 1), "")
    with pytest.raises(ValueError, match="is not a name"):
        RetiredProject("a b", "gone")


def test_a_project_is_found_by_its_name() -> None:
    project = GoldenProjectConfig("a", "a.sh")
    manifest = Manifest((project,), Path.cwd())
    assert manifest.find_project("a") is project
    assert manifest.find_project("b") is None


@pytest.mark.parametrize("text", ["/a", "D:/a/b.yaml", "D:\\a\\b.yaml", "\\\\server\\share\\x"])
def test_absolute_paths_are_absolute_wherever_we_run(text: str) -> None:
    assert is_absolute_path(text)


@pytest.mark.parametrize("text", ["a", "./a", "../a", "~/a", "D:a", "a/D:/b"])
def test_relative_paths_are_relative(text: str) -> None:
    assert not is_absolute_path(text)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("sales/pipeline.yaml", "pipeline"),
        ("D:\\x\\etl.py", "etl"),
        ("dbt/", "dbt"),
        ("my etl.sh", "my_etl"),
        ("__main__.py", "__main__"),
        ("étl.py", "etl"),
        (".", ""),
        ("日本.py", ""),
        ("a" * 250 + ".py", "a" * 200),
    ],
)
def test_a_path_gives_a_name(path: str, name: str) -> None:
    assert stem_name(path) == name


@given(st.text())
def test_a_slug_is_a_name_or_empty(text: str) -> None:
    assert not slug(text) or re.fullmatch(NAME_FORM, slug(text))
    assert slug(slug(text)) == slug(text)
