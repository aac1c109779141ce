from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.gate_processes import WITHOUT_PLUGINS
from tests.running import PROGRAMS

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


def run(folder: Path, *arguments: str, programs: Path = PROGRAMS) -> subprocess.CompletedProcess[str]:
    command = [str(programs / "python"), "-m", "pytest", *WITHOUT_PLUGINS, "-p", "no:cacheprovider", *arguments]
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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project whose ini file matters, and a report of an earlier run in a folder with an ini file of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --golden-keep=all\n")
    (folder / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--theirs')\n")
    (folder / "golden_projects.yaml").write_text("version: 1\ngolden_projects: [{name: etl, path: etl.sh}]\n")
    (folder / "etl.sh").write_text("echo done\n")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "report.json").touch()
    (tmp_path / "reports" / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    return folder


def list_header(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith(("rootdir:", "configfile:"))]


OUR_OPTIONS = ("--golden", "--golden-store=none", "--golden-sandbox=copy")


@pytest.mark.parametrize("plugins", [[], ["-n", "1"]])
def test_value_of_an_option_moves_neither_rootdir_nor_ini_file(
    project: Path, plugins: list[str], warm_starts: Path
) -> None:
    options = (*OUR_OPTIONS, *plugins, "--golden-json", "../reports/report.json", "--theirs", "x")
    done = run(project, *options, programs=warm_starts)
    assert done.returncode == 0, done.stderr
    assert list_header(done) == [f"rootdir: {project}", "configfile: pytest.ini"]
    assert "kept view:" in done.stdout
    assert (project.parent / "reports" / "report.json").stat().st_size


def test_value_in_the_environment_moves_neither(
    project: Path, monkeypatch: pytest.MonkeyPatch, warm_starts: Path
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--golden-json ../reports/report.json")
    done = run(project, *OUR_OPTIONS, programs=warm_starts)
    assert done.returncode == 0, done.stderr
    assert list_header(done) == [f"rootdir: {project}", "configfile: pytest.ini"]


@pytest.mark.parametrize(
    ("arguments", "begins_again"),
    [
        (["--golden-json", "out/report.json"], False),
        (["--golden-json=../reports/report.json"], False),
        (["--golden-json", "../reports/new.json"], False),
        (["-c", "pytest.ini", "--golden-json", "../reports/report.json"], False),
        (["tests", "--golden-json", "tests/report.json"], False),
        (["--golden-json", "../reports/report.json"], True),
        (["tests", "--golden-json", "out/report.json"], True),
        (["--golden-keep", "none"], True),
    ],
)
def test_pytest_begins_again_only_where_a_value_may_have_misled_it(
    project: Path, arguments: list[str], begins_again: bool, warm_starts: Path
) -> None:
    for name in ("out", "tests"):
        (project / name).mkdir()
        (project / name / "report.json").touch()
    (project / "none").mkdir()
    (project / "none" / "pytest.ini").touch()
    (project / "conftest.py").unlink()
    (project / "seen.py").write_text("def pytest_addoption():\n    import os\n    os.write(2, b'[loaded]')\n")
    done = run(project, "-p", "seen", *OUR_OPTIONS, "--collect-only", *arguments, programs=warm_starts)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("[loaded]") == 1 + begins_again
    assert list_header(done) == [f"rootdir: {project}", "configfile: pytest.ini"]


def test_session_that_begins_again_gives_its_exit_code_to_whoever_called_pytest(project: Path) -> None:
    (project / "etl.sh").write_text("exit 3\n")
    called = "import pytest, sys; print('gave', int(pytest.main(sys.argv[1:])))"
    arguments = [*OUR_OPTIONS, "-p", "no:cacheprovider", "--golden-json", "../reports/report.json"]
    command = [sys.executable, "-c", called, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "gave 1"
