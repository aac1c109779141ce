from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.accept import _wait
from pytest_golden.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

MANIFEST = """\
version: 1
golden_projects:
  - {name: sales, path: run.sh, outputs: [{path: a.txt}]}
  - {name: sales_eu, path: run.sh, outputs: [{path: a.txt}]}
  - {name: a, path: run.sh, outputs: [{path: a.txt}]}
"""


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    (folder / "run.sh").write_text("echo 1 > a.txt\n")
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    return folder


def accepted(shop: Path) -> list[str]:
    return sorted(file.parent.name for file in shop.glob("golden_baselines/*/a.txt"))


def test_named_projects_alone_are_accepted(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["accept", "sales", "a", "sales", "--manifest", "golden_projects.yaml"])
    told = capfd.readouterr().out
    assert code == 0, told
    assert "sales: 1 new" in told
    assert accepted(shop) == ["a", "sales"]


def test_failing_project_is_exit_code_1_and_nothing_is_accepted(shop: Path) -> None:
    (shop / "run.sh").write_text("exit 3\n")
    assert main(["accept", "sales"]) == 1
    assert accepted(shop) == []


def test_unknown_name_is_exit_code_2_and_the_nearest_is_suggested(shop: Path, golden: Golden) -> None:
    ran = golden("accept", "sales", "sale_eu")
    assert (ran.code, ran.out) == (2, "")
    assert "no golden project is called 'sale_eu'" in ran.err
    assert "did you mean 'sales_eu'?" in ran.err
    assert golden("accept").code == 2
    assert accepted(shop) == []


def test_it_is_refused_in_ci(shop: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert main(["accept", "sales"]) == pytest.ExitCode.USAGE_ERROR
    assert "--golden-update is refused in CI (CI is set)" in capfd.readouterr().err
    assert accepted(shop) == []


def test_gate_that_ctrl_c_reached_too_is_waited_for() -> None:
    class Interrupted(subprocess.Popen[bytes]):
        is_told = False

        def wait(self, timeout: float | None = None) -> int:
            if not self.is_told:
                self.is_told = True
                raise KeyboardInterrupt
            return super().wait(timeout)

    with Interrupted([sys.executable, "-c", "raise SystemExit(7)"]) as gate:
        assert _wait(gate) == 7
