"""What tests of comparisons share: an output beside its baseline, and a workspace whose shell pipelines declare outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig
from tests.compare.files import Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.regression.model import GoldenProjectResult


@dataclass
class Workspace:
    """A workspace with one shell pipeline and its baselines."""

    gateway: ExecutionGateway
    path: Path

    @property
    def baselines(self) -> Path:
        return self.path / "golden_baselines" / "sales"

    def declare(self, script: str, *outputs: str | DeclaredOutput, **keys: Any) -> GoldenProjectConfig:
        """Write the pipeline; an output that is a mere path is compared by its suffix."""
        (self.path / "run.sh").write_text(script + "\n")
        declared = tuple(DeclaredOutput(one) if isinstance(one, str) else one for one in outputs)
        return GoldenProjectConfig("sales", "run.sh", outputs=declared, **keys)

    def check(
        self, project: GoldenProjectConfig, *, accepts: bool = False, changed: tuple[str, ...] = ()
    ) -> GoldenProjectResult:
        keeper = BaselineKeeper(self.path / "golden_baselines", accepts=accepts)
        narrowed = {project.name: changed} if changed else {}
        return RegressionGuard(self.gateway, baselines=keeper, narrowed=narrowed).check_one(project, {})

    def accept(self, project: GoldenProjectConfig) -> GoldenProjectResult:
        return self.check(project, accepts=True)

    def keep(self, path: str, content: str) -> Path:
        """Put a baseline in place by hand."""
        file = self.baselines / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def kept(self) -> dict[str, str]:
        """Return all that lies among the baselines, of every project and none."""
        folder = self.path / "golden_baselines"
        files = (file for file in folder.rglob("*") if not file.is_dir())
        return {str(file.relative_to(folder)): file.read_text() for file in sorted(files)}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return a place for an output and its baseline."""
    return Files(tmp_path)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "workspace"
    folder.mkdir()
    with ExecutionGateway(folder, view="copy", unwatched=[folder / "golden_baselines"]) as gateway:
        yield Workspace(gateway, folder)


def kinds(result: GoldenProjectResult) -> list[tuple[str, str | None]]:
    return [(str(reason.kind), reason.path) for reason in result.reasons]
