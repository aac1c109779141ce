from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cycle.model import CycleConfig
from pytest_golden.errors import ManifestError
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from pathlib import Path


def test_a_cycle_has_its_defaults(tmp_path: Path) -> None:
    config = CycleConfig(str(tmp_path))  # type: ignore[arg-type]
    assert config.project_root == tmp_path
    assert config.task_description == "Scheduled maintenance cycle"
    assert (config.max_improvements, config.max_runtime_hours, config.max_runtime_seconds) == (3, 8.0, 28800.0)
    assert (config.gated_improvements, config.stop_on_convergence, config.require_golden_projects) == (
        True,
        True,
        False,
    )
    assert config.is_improvement_mode
    assert not config.is_learning_mode


@pytest.mark.parametrize(
    "given", ["a/etl.py, b:b.yaml", [{"name": "etl", "path": "a/etl.py"}, GoldenProjectConfig("b", "b.yaml")]]
)
def test_golden_projects_are_given_in_three_forms(tmp_path: Path, given: Any) -> None:
    config = CycleConfig(tmp_path, golden_projects=given)
    assert [(project.name, project.path) for project in config.golden_projects] == [
        ("etl", "a/etl.py"),
        ("b", "b.yaml"),
    ]
    assert config.validate_golden_projects_for_mode() == ()


@pytest.mark.parametrize("given", [None, "", "  ", (), []])
def test_without_golden_projects_improvement_mode_warns_and_learning_mode_does_not(tmp_path: Path, given: Any) -> None:
    (warning,) = CycleConfig(tmp_path, golden_projects=given).validate_golden_projects_for_mode()
    assert "No golden projects" in warning
    (warning,) = CycleConfig(tmp_path, require_golden_projects=True).validate_golden_projects_for_mode()
    assert "required" in warning
    assert CycleConfig(tmp_path, max_improvements=0).validate_golden_projects_for_mode() == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("project_root", ""),
        ("project_root", None),
        ("project_root", "/nowhere/at/all"),
        ("project_root", "a\0b"),
        ("project_root", __file__),
        ("task_description", " "),
        ("task_description", 3),
        ("max_improvements", -1),
        ("max_improvements", True),
        ("max_improvements", 1.5),
        ("max_improvements", "3"),
        ("max_runtime_hours", -0.1),
        ("max_runtime_hours", 0),
        ("max_runtime_hours", math.nan),
        ("max_runtime_hours", math.inf),
        ("max_runtime_hours", "8"),
        ("max_runtime_hours", False),
        ("gated_improvements", 1),
        ("stop_on_convergence", None),
        ("require_golden_projects", "yes"),
        ("golden_projects", 3),
        ("golden_projects", {"name": "etl", "path": "etl.py"}),
        ("golden_projects", [3]),
        ("golden_projects", [{"name": "etl"}]),
        ("golden_projects", [{"name": "etl", "path": "a", "timeout": -1}]),
        ("golden_projects", [{"name": "etl", "path": "a", "pth": 1}]),
        ("golden_projects", [{"name": "etl", "path": "a"}, {"name": "etl", "path": "b"}]),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_name(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=key):
        CycleConfig(**{"project_root": tmp_path, key: value})


def test_an_inline_form_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError):
        CycleConfig(tmp_path, golden_projects="a:b, a:c")  # type: ignore[arg-type]
