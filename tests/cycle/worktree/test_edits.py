from __future__ import annotations

import pytest

from pytest_golden.cycle.proposal_floor import OwnFiles, ProtectedFloor, differs_for_pytest, list_edits

FLOOR = ProtectedFloor(
    "jobs/golden_projects.yaml",
    "jobs/golden_baselines",
    (OwnFiles("etl", "jobs/etl.py", None), OwnFiles("sales", "jobs/sales/run.py", "jobs/sales")),
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("lib.py", []),
        ("jobs/lib.py", []),
        ("golden_projects.yaml", []),
        ("jobs/golden_projects.yaml", [(None, "manifest")]),
        ("jobs/golden_baselines/etl/out.csv", [("etl", "baseline")]),
        ("jobs/golden_baselines", [(None, "baseline")]),
        ("jobs/golden_baselines_of_others/x", []),
        ("jobs/etl.py", [("etl", "project_files")]),
        ("jobs/sales/helper.py", [("sales", "project_files")]),
        ("jobs/sales2/helper.py", []),
        ("conftest.py", [(None, "gate_configuration")]),
        ("jobs/conftest.py", [(None, "gate_configuration")]),
        ("pytest.ini", [(None, "gate_configuration")]),
        ("tests/conftest.py", []),
    ],
)
def test_what_belongs_to_the_floor_is_told_from_the_rest(path: str, found: list[tuple[str | None, str]]) -> None:
    edits = list_edits([path], FLOOR)
    assert [(one["project"], one["kind"]) for one in edits] == found
    assert all(path in one["message"] for one in edits)


def test_a_pyproject_counts_only_for_what_it_says_to_pytest() -> None:
    before = b"[project]\nversion = '1'\n[tool.pytest.ini_options]\naddopts = '-q'\n"
    assert not differs_for_pytest(before, before.replace(b"'1'", b"'2'"))
    assert differs_for_pytest(before, before.replace(b"-q", b"-k nothing"))
    assert differs_for_pytest(before, b"")
    assert differs_for_pytest(before, b"no toml = = ")
    assert differs_for_pytest(b"tool = 3", before)
