from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import find_unused_baselines
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Manifest

if TYPE_CHECKING:
    from pathlib import Path


def test_baselines_of_projects_and_outputs_that_are_gone_are_named(tmp_path: Path) -> None:
    for path in ("sales/a.csv", "sales/old.csv", "renamed/a.csv", ".accepting-x/1", "stock/a.csv"):
        file = tmp_path / "golden_baselines" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    projects = (
        GoldenProjectConfig("sales", "s.py", outputs=(DeclaredOutput("a.csv"), DeclaredOutput("b.csv"))),
        GoldenProjectConfig("stock", "s.py"),
    )
    told = list(find_unused_baselines(Manifest(projects, tmp_path, path=tmp_path / "golden_projects.yaml")))
    assert told == [
        "golden_baselines/renamed belongs to no golden project: remove it, or rename it to the project's present name",
        "sales: golden_baselines/sales has baselines that no output is compared with (old.csv): --golden-update removes them",
        "stock: golden_baselines/stock has baselines that no output is compared with (a.csv): --golden-update removes them",
    ]


def test_without_baselines_nothing_is_unused(tmp_path: Path) -> None:
    assert list(find_unused_baselines(Manifest((), tmp_path))) == []
