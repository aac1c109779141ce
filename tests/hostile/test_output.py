"""Pipelines that print what nobody should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.gateway.conftest import MakeProject

Run = Any
MIB = 1 << 20

FLOOD = """
import json, sys
from pathlib import Path
from pytest_golden.gateway.model import *
from pytest_golden.gateway.service import *
from pytest_golden.manifest.model import GoldenProjectConfig
def high_water():
    line, = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
workspace = Path(sys.argv[1])
with ExecutionGateway(workspace, log_folder=workspace / "logs") as gateway:
    def run(name):
        project = GoldenProjectConfig("flood", f"project/{name}")
        return gateway.run_pipeline(project, role="regression_guard", permissions=Permissions())
    run("small.sh")
    before = high_water()
    outcome = run("pipeline.sh")
    print(json.dumps({"more": high_water() - before, "bytes": outcome.stdout_bytes, "kept": len(outcome.stdout),
        "seconds": outcome.duration_seconds, "log": outcome.log_path, "cut": "bytes left out ...]" in outcome.stdout,
        "exit_code": outcome.exit_code}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured by /proc")
def test_flood_of_output_leaves_memory_flat(make_project: MakeProject, workspace: Path, project_dir: Path) -> None:
    (project_dir / "small.sh").write_text("echo small")
    make_project(f"yes 'a line of output, like any other' | head -c {300 * MIB}; echo the end")
    done = subprocess.run([sys.executable, "-c", FLOOD, workspace], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["exit_code"] == 0
    assert facts["bytes"] == 300 * MIB + 8
    assert facts["more"] < 64 * MIB
    assert facts["kept"] < MIB
    assert facts["cut"]
    log = workspace / "logs" / "flood.2.log"
    assert facts["log"] == str(log)
    assert log.stat().st_size <= 10 * MIB
    assert log.stat().st_mode & 0o777 == 0o600
    assert "the end\n\n--- stderr: 0 bytes ---" in log.read_text()


def test_head_and_tail_are_kept(run: Run) -> None:
    outcome = run(f"echo the beginning; yes x | head -c {2 * MIB}; echo the end; exit 3")
    assert outcome.stdout.startswith("the beginning\nx\n")
    assert outcome.stdout.endswith("x\nthe end\n")
    assert outcome.stdout_bytes == 2 * MIB + 22


def test_bytes_that_are_no_text_and_control_characters_are_text_in_the_end(run: Run) -> None:
    outcome = run(r"printf 'a\377\000\033[31mred\033[0m\r\b\007'; printf '\300\200' >&2")
    assert outcome.stdout == "a\\xff\x00red\r\b\x07"
    assert outcome.stderr == "\\xc0\\x80"
    json.dumps([outcome.stdout, outcome.stderr]).encode()


def test_secret_across_the_cut_is_not_shown_in_part(run: Run) -> None:
    secret = "Zq7Rk2Wv9Lm4"
    script = """
        import os, sys
        share = 256 << 10
        secret = os.environ["API_TOKEN"]
        sys.stdout.write("x" * (share - 5) + secret + "y" * (2 * share) + secret + "z" * (share - 5))
    """
    outcome = run(script, set_env={"API_TOKEN": secret})
    assert not any(secret[start : start + 4] in outcome.stdout for start in range(len(secret) - 3))


@pytest.mark.parametrize("view", ["auto", "copy"])
def test_closed_output_is_no_problem(view: str, run: Run) -> None:
    outcome = run("echo first; exec >&- 2>&-; echo lost; exit 3", view=view)
    assert (outcome.exit_code, outcome.stdout, outcome.problem) == (3, "first\n", None)


def test_output_after_the_end_of_the_pipeline_is_not_waited_for(run: Run) -> None:
    outcome = run("(sleep 600; echo late) & echo now", timeout=300)
    assert (outcome.exit_code, outcome.stdout) == (0, "now\n")
    assert outcome.duration_seconds < 60
