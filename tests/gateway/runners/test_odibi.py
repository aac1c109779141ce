from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.choice import find_runner_command
from pytest_golden.gateway.runners.runner import RunnerError
from tests.gateway.runners.conftest import needs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.runners.conftest import MakePipeline

    Run = Callable[..., subprocess.CompletedProcess[str]]

ORDERS = Path(__file__).parents[3] / "examples" / "orders"
CONFIG = "project: shop\nconnections: {}\nstory: {}\nsystem: {}\npipelines: []\n"
FAKE_MAIN = """
import atexit, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

def main():
    assert sys.argv[0] == "odibi"
    print("arguments:", *sys.argv[1:])
    atexit.register(os.abort)
    {body}
"""


def fake_odibi(tmp_path: Path, body: str) -> str:
    """Make an `odibi` on a PATH of its own whose interpreter aborts at its shutdown, as the real one does."""
    folder = tmp_path / "fake"
    package = folder / "odibi" / "cli"
    package.mkdir(parents=True)
    (folder / "odibi" / "__init__.py").touch()
    (package / "__init__.py").write_text(FAKE_MAIN.format(body=body), encoding="utf-8")
    program = folder / "odibi.sh"
    program.write_text(f"#!{sys.executable}\n", encoding="utf-8")
    program.chmod(0o755)
    (folder / "bin").mkdir()
    program.rename(folder / "bin" / "odibi")
    return str(folder / "bin") + ":/usr/bin:/bin"


def run_fake(make_pipeline: MakePipeline, run: Run, tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    pipeline = make_pipeline("shop.yaml", CONFIG, path_variable=fake_odibi(tmp_path, body))
    return run(pipeline, {"PYTHONPATH": str(tmp_path / "fake")})


@pytest.mark.parametrize(
    "content",
    [
        CONFIG,
        "\ufeff# a comment\n" + CONFIG,
        '"project": shop\n"pipelines": []\n"connections": {}\n',
        "project: shop\nimports:\n  - pipelines/*.yaml\nstory:\n  connection: lake\n",
        "project: shop\nengine: pandas\npipelines:\n  - pipeline: [broken\n",
        CONFIG + "# " + "x" * 3_000_000,
    ],
)
def test_odibi_project_is_recognised_even_when_broken(
    make_pipeline: MakePipeline, content: str, tmp_path: Path
) -> None:
    pipeline = make_pipeline("shop.yaml", content, path_variable=fake_odibi(tmp_path, "return 0"))
    command = find_runner_command(pipeline)
    assert command.argv[0] == sys.executable
    assert Path(command.argv[1]).name == "odibi_child.py"
    assert command.argv[2:] == ("run", "{path}")
    assert command.step_readers == ("odibi",)


@pytest.mark.parametrize(
    "content", ["", "services: {}\n", "pipelines: []\n", "nested:\n  project: x\n  pipelines: []\n  story: {}\n", "{{{"]
)
def test_other_yaml_is_not_recognised(make_pipeline: MakePipeline, content: str) -> None:
    with pytest.raises(RunnerError, match=r"does not look like .* Odibi's YAML"):
        find_runner_command(make_pipeline("shop.yml", content))


def test_config_that_cannot_be_read_is_a_denied_permission(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("shop.yaml", CONFIG)
    pipeline.file.unlink()
    with pytest.raises(RunnerError, match="cannot be read") as caught:
        find_runner_command(pipeline)
    assert caught.value.problem is Problem.PERMISSION_DENIED


def test_missing_odibi_is_refused_with_what_to_install(make_pipeline: MakePipeline, tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="install odibi") as caught:
        find_runner_command(make_pipeline("shop.yaml", CONFIG, path_variable=str(tmp_path), python="/nowhere/python"))
    assert caught.value.problem is Problem.COMMAND_NOT_FOUND


def test_command_that_begins_with_odibi_is_judged_by_odibis_verdict(
    make_pipeline: MakePipeline, tmp_path: Path
) -> None:
    path = fake_odibi(tmp_path, "return 0")
    command = ("odibi", "run", "{path}", "--tag", "daily")
    for runner in ("auto", "odibi"):
        found = find_runner_command(make_pipeline("x.txt", runner=runner, command=command, path_variable=path))
        assert Path(found.argv[1]).name == "odibi_child.py"
        assert found.argv[2:] == command[1:]
        assert found.step_readers == ("odibi",)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return 0", 0),
        ("return 1", 1),
        ("return None", 0),
        ("return 'bad news'", 1),
        ("return 259", 3),
        ("sys.exit(4)", 4),
        ("sys.exit()", 0),
        ("raise ValueError('bad news')", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exit_code_is_what_main_returned(
    make_pipeline: MakePipeline, run: Run, tmp_path: Path, body: str, code: int
) -> None:
    ended = run_fake(make_pipeline, run, tmp_path, body)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout.startswith("arguments: run ")
    assert ("bad news" in ended.stderr) == ("bad news" in body)


def test_missing_odibi_module_is_a_failure_with_its_traceback(
    make_pipeline: MakePipeline, run: Run, tmp_path: Path
) -> None:
    pipeline = make_pipeline("shop.yaml", CONFIG, path_variable=fake_odibi(tmp_path, "return 0"))
    shutil.rmtree(tmp_path / "fake" / "odibi" / "cli")
    ended = run(pipeline, {"PYTHONPATH": str(tmp_path / "fake")})
    assert ended.returncode == 1
    assert "No module named 'odibi.cli'" in ended.stderr


def test_package_that_was_installed_as_symlinks_works(make_pipeline: MakePipeline, tmp_path: Path) -> None:
    pipeline = make_pipeline("shop.yaml", CONFIG, path_variable=fake_odibi(tmp_path, "return 0"))
    link = tmp_path / "odibi_child.py"
    link.symlink_to(find_runner_command(pipeline).argv[1])
    ended = subprocess.run(
        [sys.executable, str(link), "run"], env={"PYTHONPATH": str(tmp_path / "fake")}, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, b"arguments: run\n")


def test_threads_that_never_end_do_not_keep_the_process(make_pipeline: MakePipeline, run: Run, tmp_path: Path) -> None:
    ended = run_fake(make_pipeline, run, tmp_path, "threading.Thread(target=time.sleep, args=(600,)).start(); return 0")
    assert ended.returncode == 0


def test_work_handed_to_a_thread_pool_is_finished(make_pipeline: MakePipeline, run: Run, tmp_path: Path) -> None:
    body = "ThreadPoolExecutor().submit(lambda: (time.sleep(0.3), print('story written'))); return 0"
    assert "story written" in run_fake(make_pipeline, run, tmp_path, body).stdout


def test_spaces_that_fill_lines_are_taken_away(make_pipeline: MakePipeline, run: Run, tmp_path: Path) -> None:
    body = "sys.stdout.write('first' + ' ' * 900 + chr(10) + 'second ' + chr(10)); print('a ', end=''); print('b')"
    assert run_fake(make_pipeline, run, tmp_path, body).stdout.endswith("first\nsecond\na b\n")


def test_crash_inside_main_stays_a_crash(make_pipeline: MakePipeline, run: Run, tmp_path: Path) -> None:
    assert run_fake(make_pipeline, run, tmp_path, "os.abort()").returncode == -6


@pytest.mark.odibi
@needs("odibi")
@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("clean_and_join.yaml", 0, "Pipeline 'clean_and_join' completed successfully"),
        ("reject_negative_amounts.yaml", 1, "Custom check 'amount_is_not_negative' failed. Found 3 invalid rows"),
    ],
)
def test_real_odibi_gives_its_own_verdict(
    make_pipeline: MakePipeline, run: Run, tmp_path: Path, name: str, code: int, said: str
) -> None:
    shutil.copytree(ORDERS, tmp_path / "project")
    ended = run(make_pipeline(name))
    assert ended.returncode == code, ended.stderr
    assert said in ended.stdout
    assert not [line for line in ended.stdout.splitlines() if line != line.rstrip()]


@pytest.mark.odibi
@needs("odibi")
def test_real_odibi_refuses_a_broken_config_itself(make_pipeline: MakePipeline, run: Run) -> None:
    ended = run(make_pipeline("shop.yaml", CONFIG + "  - broken: [\n"))
    assert ended.returncode == 1
    assert "shop.yaml" in ended.stdout
