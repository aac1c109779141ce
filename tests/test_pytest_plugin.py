from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

COUNT = """
import sys
import pytest, _pytest.config, _pytest.hookspec
before = set(sys.modules)
import pytest_golden.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""


def test_door_brings_in_no_more_than_itself() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    modules = done.stdout.split()
    foreign = [name for name in modules if not name.startswith("pytest_golden")]
    assert foreign == []
    assert len(modules) <= 4


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_plain_pytest_loads_and_writes_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "golden_projects.yaml").write_text("this is: [no manifest")
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    ours = {name for name in sys.modules if name.startswith('pytest_golden.')}\n"
        "    assert ours <= {'pytest_golden.pytest_plugin', 'pytest_golden.settings', 'pytest_golden.hookspecs'}\n"
    )
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "golden" not in done.stdout.replace("golden-projects-", "")
    assert not (tmp_path / ".golden").exists()


def test_naming_the_manifest_without_golden_collects_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "golden_projects.yaml").write_text("this is: [no manifest")
    done = run(tmp_path, "golden_projects.yaml")
    assert done.returncode == 4
    assert "collected 0 items" in done.stdout


@pytest.mark.parametrize("hook", ["pytest_golden_gateway(config)", "pytest_golden_judge(project, outcome)"])
def test_conftest_may_implement_our_hooks_without_golden(tmp_path: Path, hook: str) -> None:
    (tmp_path / "conftest.py").write_text(f"def {hook}:\n    raise AssertionError\n")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout


def test_our_flag_typed_without_golden_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "--golden-junit=out.xml")
    assert done.returncode == 4
    assert "--golden-junit has no effect without --golden" in done.stderr


def test_our_flag_in_addopts_waits_for_golden(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --golden-junit=out.xml\n")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    assert run(tmp_path).returncode == 0


def test_help_lists_every_option_even_with_golden_and_no_manifest(tmp_path: Path) -> None:
    done = run(tmp_path, "--golden", "--help")
    assert done.returncode == 0
    assert "--golden-manifest=PATH" in done.stdout
    assert "golden_manifest" in done.stdout
