from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

# Each process of a session writes which modules it has imported at its end.
CONFTEST = """
import atexit, json, os, pathlib, sys

@atexit.register
def write():
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    has_run = "pytest_golden.gateway.execution" in sys.modules
    role = "main" if worker == "main" else "busy" if has_run else "idle"
    pathlib.Path(__file__).with_name(f"{role}.json").write_text(json.dumps(list(sys.modules)))
"""
DATABASE = ("sqlalchemy", "sqlite3", "pytest_golden.storage.schema", "pytest_golden.gate.store")
OTHERS = ("pydantic", "fastapi", "httpx", "opentelemetry", "rich", "numpy", "gepa", "distributed", "alembic")
# What only a failure, a report or a base asks for.
UNUSED = (
    "junit_xml",
    "pytest_golden.report.html_page",
    "pytest_golden.regression.floor",
    "pytest_golden.trajectory.otel",
    "pytest_golden.fleet",
    "pytest_golden.gate.known",
    "pytest_golden.learning.language_model",
    "pytest_golden.learning.lessons.service",
)
OF_THE_OWNER = ("pytest_golden.session.owner", "pytest_golden.session.terminal", "pytest_golden.learning", "filelock")
OF_A_RUN = (
    "pytest_golden.gate.service",
    "pytest_golden.redaction",
    "pytest_golden.regression",
    "pytest_golden.gateway",
)


def run_and_list_modules(folder: Path, *options: str) -> dict[str, set[str]]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "one.sh").write_text("true\n")
    (folder / "golden_projects.yaml").write_text("version: 1\ngolden_projects: [{name: one, path: one.sh}]\n")
    (folder / "test_few.py").write_text("".join(f"def test_{number}(): pass\n" for number in range(20)))
    plugins = [f"-pno:{name}" for name in ("cacheprovider", "randomly", "hypothesispytest", "pytest_cov")]
    command = [sys.executable, "-m", "pytest", "-q", "--golden", *plugins, *options, "."]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GOLDEN", "COV", "PYTEST"))
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.stem: set(json.loads(path.read_text())) for path in folder.glob("*.json")}


def imported(modules: set[str], *names: str) -> list[str]:
    return [name for name in names if name in modules]


@pytest.mark.xdist
def test_a_worker_imports_what_its_own_items_need(tmp_path: Path) -> None:
    found = run_and_list_modules(tmp_path, "-n2")
    assert imported(found["idle"], *DATABASE, *OTHERS, *UNUSED, *OF_THE_OWNER, *OF_A_RUN) == []
    assert imported(found["busy"], *DATABASE, *OTHERS, *UNUSED, *OF_THE_OWNER[:-1]) == []


GARBAGE = """
import gc, weakref

class Node:
    pass

def test_before_all_others_leaves_a_cycle():
    global left
    assert gc.get_freeze_count() > 0
    node = Node()
    node.itself, left = node, weakref.ref(node)

def test_it_is_collected():
    gc.collect()
    assert left() is None
"""


@pytest.mark.xdist
def test_garbage_of_a_worker_s_first_test_is_still_collected(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "one.sh").write_text("true\n")
    (tmp_path / "golden_projects.yaml").write_text("version: 1\ngolden_projects: [{name: one, path: one.sh}]\n")
    (tmp_path / "test_garbage.py").write_text(GARBAGE)
    command = [sys.executable, "-m", "pytest", "-q", "--golden", "-n1", "-p", "no:randomly", "."]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_green_gate_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    # Only a gate that makes the store needs what makes it.
    Store.open(tmp_path / ".golden" / "golden.db").close()
    found = run_and_list_modules(tmp_path)
    assert imported(found["main"], *OTHERS, *UNUSED) == []
