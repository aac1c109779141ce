from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.gate_processes import WITHOUT_PLUGINS
from tests.patience import wait_until
from tests.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

PLAIN = " ".join(WITHOUT_PLUGINS)
SILENT = "def pytest_cmdline_main(config):\n    return 0\n"


@pytest.fixture
def repository(folder: Path) -> Repository:
    """A base with one project on the branch main; the branch topic is checked out."""
    repository = Repository(folder)
    repository.declare("works")
    repository.script("works", "echo fine > out.txt\n")
    repository.write(pytest__ini="[pytest]\n", golden_baselines___works___out__txt="fine\n")
    repository.commit("base")
    repository.git("checkout", "-q", "-b", "topic")
    return repository


def test_gate_is_judged_by_the_base_and_leaves_nothing(repository: Repository, golden_process: GoldenProcess) -> None:
    repository.write(pytest__ini=f"[pytest]\naddopts = {PLAIN} --golden-store=none\n", conftest__py=SILENT)
    repository.script("works", "exit 3\n")
    repository.commit()
    red = golden_process("gate", "--base", "main", "--store", "none", "--", "--golden-junit", "found/junit.xml")
    assert red.code == 1, red.out
    assert "FAILED golden_projects.yaml::works - exit code 3" in red.out
    assert "pytest_cmdline_main" in red.out, red.out
    assert "pytest.ini: addopts gained" in red.out
    assert 'failures="2"' in (repository.folder / "found" / "junit.xml").read_text()
    assert repository.worktrees() == [str(repository.folder)]
    accepted = golden_process("gate", "--base", "main", "--store", "none", "--floor", "accept", "--", "-q")
    assert accepted.code == 1
    assert "weakened floor accepted by a person" in accepted.out
    repository.script("works", "echo fine > out.txt\n")
    green = golden_process("gate", "--base", "main", "--floor", "accept", "--", "-q", "--golden-json=report.json")
    assert green.code == 0, green.out
    report = json.loads((repository.folder / "report.json").read_text())
    assert report["gate"]["commit"] == repository.git("rev-parse", "HEAD")
    assert (repository.folder / ".golden" / "golden.db").is_file()


def test_what_the_bases_ini_file_asks_of_the_tests_is_not_asked_of_the_gate(
    repository: Repository, golden_process: GoldenProcess
) -> None:
    repository.git("checkout", "-q", "main")
    repository.write(pytest__ini="[pytest]\naddopts = --cov=no_such_plugin\n")
    repository.commit("measure coverage")
    repository.git("checkout", "-q", "-B", "topic")
    ran = golden_process("gate", "--base", "main", "--store", "none", "--", "-q")
    assert (ran.code, "PASSED" in ran.out) == (0, True), ran.out + ran.err


def test_base_without_a_manifest_lets_the_checkout_judge_itself(folder: Path, golden_process: GoldenProcess) -> None:
    repository = Repository(folder)
    repository.commit("nothing yet")
    repository.git("checkout", "-q", "-b", "topic")
    repository.declare("works")
    repository.script("works", "exit 3\n")
    ran = golden_process("gate", "--base", "main", "--store", "none", "--", "-q", *WITHOUT_PLUGINS)
    assert ran.code == 1
    assert "has no manifest: the checkout judges itself" in ran.err
    assert "FAILED golden_projects.yaml::works" in ran.out


def test_judge_that_cannot_be_set_up_is_told_in_one_sentence(
    repository: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = golden("gate", "--base", "origin/main")
    assert ran.code == 3
    assert "there is no such commit here" in ran.err
    assert "typed in" not in ran.err
    assert golden("gate", "--base", "-x").code == 2
    monkeypatch.chdir(repository.folder / "works")
    assert f"are to be typed in {repository.folder}\n" in golden("gate", "--base", "origin/main").err


def test_interrupted_gate_ends_its_pipeline_and_its_worktree(repository: Repository) -> None:
    repository.script("works", "touch ../started; sleep 60\n")
    words = [sys.executable, "-m", "pytest_golden", "gate", "--base", "main", "--store", "none", "--", *WITHOUT_PLUGINS]
    with subprocess.Popen(words, cwd=repository.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        wait_until(lambda: b"works" in process.stdout.readline())  # type: ignore[union-attr]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"interrupted; nothing was decided" in err
    assert b"INTERRUPTED" in out
    assert repository.worktrees() == [str(repository.folder)]


def test_killed_gate_decides_nothing(repository: Repository, golden_process: GoldenProcess) -> None:
    repository.git("checkout", "-q", "main")
    repository.write(conftest__py="import os\nos.kill(os.getpid(), 9)\n")
    repository.commit("a judge that dies")
    repository.git("checkout", "-q", "-B", "topic")
    ran = golden_process("gate", "--base", "main", "--store", "none")
    assert ran.code == 3
    assert "the gate was killed, so nothing that it found counts" in ran.err


@pytest.fixture
def hostile_folder(folder: Path) -> Path:
    """A workspace whose tests have a configuration that no gate survives."""
    Repository(folder).declare("works")
    Repository(folder).script("works", "echo fine > out.txt\n")
    (folder / "golden_baselines" / "works").mkdir(parents=True)
    (folder / "golden_baselines" / "works" / "out.txt").write_text("fine\n")
    (folder / "pytest.ini").write_text('[pytest]\naddopts = --no-such-option -m "not slow"\n')
    (folder / "conftest.py").write_text("raise RuntimeError('this conftest is for tests')\n")
    return folder


def test_gate_without_a_base_reads_nothing_of_the_tests_configuration(
    hostile_folder: Path, golden_process: GoldenProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option-either")
    done = golden_process("gate", "--", "--golden-json", "report.json")
    assert done.code == 0, done.out + done.err
    report = json.loads((hostile_folder / "report.json").read_text())
    assert report["final_status"] == "passed"
    assert (hostile_folder / ".golden" / "golden.db").is_file()


def test_gate_without_a_base_takes_arguments_of_pytest(hostile_folder: Path, golden_process: GoldenProcess) -> None:
    done = golden_process("gate", "--store", "none", "--", "-n", "1", "-k", "nothing_like_this")
    assert done.code == 5, done.out + done.err
    assert not (hostile_folder / ".golden" / "golden.db").exists()


def test_floor_without_a_base_is_refused(hostile_folder: Path, golden_process: GoldenProcess) -> None:
    done = golden_process("gate", "--floor", "accept")
    assert done.code == 2, hostile_folder
    assert "name the base too" in done.err
