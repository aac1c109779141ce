from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_golden.gate.live_store import LiveGates
from pytest_golden.gate.waiting_outputs import open_waiting
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.model import OutputChange
from pytest_golden.storage.store import Store
from tests.fleet.clusters import Cluster, Gate, find_free_port, kill
from tests.patience import PATIENCE_SECONDS, wait_until, without_hanging
from tests.repository import git
from tests.requirement import require

# Runs for the first time until it is killed.
LOST_ONCE = "echo run >> ../marks/runs; [ $(wc -l < ../marks/runs) -gt 1 ] || exec sleep 300"
LOST_AGAIN = "echo run >> ../marks/runs; exec sleep 300"


def passing(name: str, seconds: float = 0, **keys: Any) -> dict[str, Any]:
    return {"name": name, "script": f"sleep {seconds}; echo {name} > out.txt", "independent": True, **keys}


def marking(gate: Gate, name: str, script: str) -> dict[str, Any]:
    (gate.folder / "marks").mkdir(exist_ok=True)
    return {"name": name, "script": script, "mounts": [{"path": "marks", "mode": "write"}]}


def wait_for_run(gate: Gate, number: int) -> None:
    runs = gate.folder / "marks" / "runs"
    wait_until(lambda: runs.exists() and len(runs.read_text().splitlines()) >= number)


def read_workers(gate: Gate) -> set[str]:
    with sqlite3.connect(gate.folder / ".golden" / "golden.db") as store:
        found = store.execute("SELECT json_extract(body, '$.metadata.worker.address') FROM trajectories").fetchall()
    store.close()
    return {address for (address,) in found}


def test_results_come_in_the_order_of_the_declaration_from_several_workers(fleet: Cluster, gate: Gate) -> None:
    names = ["slow", "quick", "quicker", "last"]
    projects = [passing("slow", 1.5), passing("quick"), passing("quicker")]
    script = 'echo "said $SAID" >&2; test "$SAID" = here-7-there'
    gate.declare(*projects, {"name": "last", "script": script, "pass_env": ["SAID"]})
    assert gate.run(fleet.url, SAID="here-7-there") == 0, gate.said
    assert gate.statuses() == [(name, "PASSED") for name in names]
    assert f"golden fleet: 2 workers with 2 threads at {fleet.url}" in gate.said
    assert len(read_workers(gate)) == 2
    assert not list((gate.folder / ".golden").glob("fleet-*"))
    kept = b"".join(file.read_bytes() for file in (gate.folder / ".golden").rglob("*") if file.is_file())
    assert b"said [REDACTED]" in kept
    assert b"here-7-there" not in kept + gate.said.encode()


def test_what_each_worker_runs_is_told_to_those_who_watch(fleet: Cluster, gate: Gate) -> None:
    gate.declare(*(passing(name, 600) for name in ("first", "second", "waiting")))
    running = gate.start(fleet.url)
    with without_hanging():
        wait_until(lambda: read_running(gate) == ["first", "second"])
        running.send_signal(signal.SIGINT)
        running.wait()
    assert ("first", "ERROR") in gate.statuses()


def read_running(gate: Gate, root: str = ".") -> list[str]:
    file = gate.folder / root / ".golden" / "golden.db"
    with Store.open(file) if file.exists() else nullcontext() as store:
        return [project.name for live in LiveGates(store).look().gates for project in live.running] if store else []


def test_outputs_are_held_against_baselines_where_they_were_written(fleet: Cluster, gate: Gate) -> None:
    outputs = [{"path": "out.txt"}]
    gate.declare(*(passing(name, outputs=outputs) for name in ("same", "other", "new")))
    for name, content in {"same": "same\n", "other": "expected\n"}.items():
        folder = gate.folder / "golden_baselines" / name
        folder.mkdir(parents=True)
        (folder / "out.txt").write_text(content)
    (gate.folder / "golden_baselines" / "same" / "unused.txt").write_text("nobody writes this\n")
    assert gate.run(fleet.url) == 1
    assert gate.statuses() == [("same", "PASSED"), ("other", "FAILED"), ("new", "FAILED")]
    kinds = [[reason["kind"] for reason in result["reasons"]] for result in gate.results()]
    assert kinds[1:] == [["output_differs"], ["baseline_missing"]]
    assert "unused.txt" in str(gate.results()[0]["warnings"])
    assert "expected" in str(gate.results()[1]["reasons"])


@pytest.mark.parametrize("root", [".", "inner"], ids=["seen by the worker", "sent to the worker"])
def test_outputs_of_a_red_run_wait_here_to_be_accepted(fleet: Cluster, gate: Gate, root: str) -> None:
    projects = [
        passing("other"),
        {"name": "fails", "script": "echo fails > out.txt; exit 3"},
        passing("same"),
        passing("told"),
    ]
    projects[3]["script"] = 'echo "$SAID" > out.txt'
    gate.declare(
        *({**project, "outputs": [{"path": "out.txt"}], "pass_env": ["SAID"]} for project in projects), root=root
    )
    for name, content in {"same": "same\n", "other": "expected\n", "told": "expected\n"}.items():
        folder = gate.folder / "golden_baselines" / name
        folder.mkdir(parents=True)
        (folder / "out.txt").write_text(content)
    assert gate.run(fleet.url, SAID="here-7-there") == 1
    waiting = gate.folder / root / ".golden" / "waiting"
    assert sorted(place.name for place in waiting.iterdir()) == ["other", "told"]
    assert not list((waiting / "told").glob("1*"))
    manifest = load_manifest(gate.folder / "golden_projects.yaml")
    other, _, _, told = manifest.projects
    outputs = open_waiting(manifest)
    assert "`allow_secret`" in str(outputs.find(told))
    (accepted,) = outputs.accept(other, (), "it is right now", "a person")
    assert accepted.change is OutputChange.CHANGED
    assert (gate.folder / "golden_baselines" / "other" / "out.txt").read_text() == "other\n"
    assert gate.run(fleet.url, "-k", "other") == 0


@pytest.mark.parametrize("root", [".", "inner"], ids=["seen by the worker", "sent to the worker"])
def test_a_tracked_view_is_the_same_on_a_worker(fleet: Cluster, gate: Gate, root: str) -> None:
    script = "test -e run.sh && test ! -e left.txt"
    gate.declare({"name": "one", "script": script, "view": "tracked"}, root=root)
    (gate.folder / root / "one" / "left.txt").touch()
    git(gate.folder, "init", "-q")
    git(gate.folder, "add", f"{root}/one/run.sh")
    assert gate.run(fleet.url) == 0, gate.said


def test_a_workspace_that_workers_do_not_see_is_sent_to_them(fleet: Cluster, gate: Gate, tmp_path: Path) -> None:
    # With the baselines outside of the workspace it is never taken for the same.
    long = "for i in $(seq 30000); do echo line $i; done"
    gate.declare(
        passing("same", outputs=[{"path": "out.txt"}]),
        {"name": "where", "script": f"{long}; pwd; exit 3"},
        {"name": "gone", "script": "true", "command": ["no-such-program", "{path}"]},
        {"name": "absolute", "script": "pwd; exit 3", "path": str(gate.folder / "inner" / "absolute" / "run.sh")},
        root="inner",
    )
    (gate.folder / "golden_baselines" / "same").mkdir(parents=True)
    (gate.folder / "golden_baselines" / "same" / "out.txt").write_text("same\n")
    assert gate.run(fleet.url, "--golden-keep=failed", TMPDIR=str(tmp_path)) == 1
    assert gate.statuses() == [("same", "PASSED"), ("where", "FAILED"), ("gone", "ERROR"), ("absolute", "FAILED")]
    _, where, gone, absolute = gate.results()
    for result in (where, absolute):
        assert "golden-fleet-" in result["output_summary"]
        assert str(gate.folder) not in result["output_summary"]
    copy = Path(where["output_summary"].splitlines()[-1])
    assert copy.name == "where"
    assert not copy.exists()
    assert "line 15000\n" in next((gate.folder / "inner" / ".golden" / "logs").rglob("where.log")).read_text()
    assert "is not kept" in str(where["warnings"])
    assert "no-such-program" in gone["error_message"]
    assert "on worker tcp://127.0.0.1:" in gone["error_message"]


def add_cramped_worker(cluster: Cluster) -> None:
    """Start a worker that can unpack nothing: a file stands where its folder would be."""
    temporary = cluster.folder / "cramped"
    temporary.mkdir()
    (temporary / f"golden-fleet-{os.getuid()}").touch()
    cluster.add_worker(TMPDIR=str(temporary))


def test_workers_that_cannot_have_the_workspace_run_nothing_while_others_do(
    lonely: Cluster, gate: Gate, tmp_path: Path
) -> None:
    marks = gate.folder / "marks"
    marks.mkdir()
    once = LOST_ONCE.replace("../marks", str(marks))
    mounts = [{"path": str(marks), "mode": "write"}]
    gate.declare(passing("one"), {"name": "once", "script": once, "mounts": mounts}, passing("two"), root="inner")
    add_cramped_worker(lonely)
    worker = lonely.add_worker(TMPDIR=str(tmp_path))
    running = gate.start(lonely.url)
    wait_for_run(gate, 1)
    kill(worker)
    wait_until(lambda: "no worker that can have the workspace is at dask://" in gate.said)
    lonely.add_worker(TMPDIR=str(tmp_path))
    assert running.wait(60) == 0, gate.said
    assert gate.said.count("gets no project: the workspace cannot be unpacked there: ") == 1


def test_worker_that_joins_later_and_cannot_have_the_workspace_gives_back_what_it_takes(
    lonely: Cluster, gate: Gate, tmp_path: Path
) -> None:
    marks = gate.folder / "marks"
    marks.mkdir()
    waiting = {"script": f"while [ ! -e {marks}/go ]; do sleep 0.1; done", "independent": True}
    names = [f"p{number}" for number in range(4)]
    gate.declare(*({"name": name, **waiting, "mounts": [{"path": str(marks)}]} for name in names), root="inner")
    lonely.add_worker(TMPDIR=str(tmp_path))
    running = gate.start(lonely.url)
    wait_until(lambda: read_running(gate, "inner") == ["p0"])
    add_cramped_worker(lonely)
    wait_until(lambda: "gets no project: the workspace cannot be unpacked there: " in gate.said)
    (marks / "go").touch()
    assert running.wait(PATIENCE_SECONDS) == 0, gate.said
    assert gate.statuses() == [(name, "PASSED") for name in names]


def test_workspace_that_no_worker_can_have_is_an_error_of_each_project(lonely: Cluster, gate: Gate) -> None:
    add_cramped_worker(lonely)
    gate.declare(passing("one"), passing("two"), root="inner")
    assert gate.run(lonely.url) == 1
    assert gate.statuses() == [("one", "ERROR"), ("two", "ERROR")]
    for result in gate.results():
        assert f"no worker at {lonely.url} can take a project, as tcp://" in result["error_message"]
        assert "the workspace cannot be unpacked there: " in result["error_message"]


def test_what_runs_on_workers_ends_with_the_session(fleet: Cluster, gate: Gate) -> None:
    broken = {"name": "broken", "script": "sleep 1; exit 3", "independent": True}
    gate.declare(broken, passing("long", 299.75), passing("longer", 299.75))
    with without_hanging():
        assert gate.run(fleet.url, "-x") == 1
    assert gate.statuses()[0] == ("broken", "FAILED")
    assert not [one for one in psutil.process_iter() if "299.75" in _arguments(one)]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_what_a_lost_worker_had_runs_elsewhere_once_and_a_second_loss_names_both(lonely: Cluster, gate: Gate) -> None:
    worker = lonely.add_worker()
    gate.declare(marking(gate, "once", LOST_ONCE), marking(gate, "twice", LOST_AGAIN))
    running = gate.start(lonely.url)
    # The second run of the first project passes, so that the third and the fourth are the second project's.
    for number in (1, 3, 4):
        wait_for_run(gate, number)
        kill(worker)
        worker = lonely.add_worker()
    assert running.wait(60) == 1, gate.said
    assert gate.statuses() == [("once", "PASSED"), ("twice", "ERROR")]
    message = gate.results()[1]["error_message"]
    assert "its worker was lost twice, tcp://" in message
    assert message.count("tcp://127.0.0.1:") == 2
    assert (gate.folder / "marks" / "runs").read_text().count("run") == 4


def test_a_scheduler_that_goes_makes_errors_and_no_hang(lonely: Cluster, gate: Gate) -> None:
    lonely.add_worker()
    gate.declare(marking(gate, "running", LOST_AGAIN), {"name": "next", "script": "true", "retries": 2})
    running = gate.start(lonely.url)
    wait_for_run(gate, 1)
    kill(lonely.scheduler)
    assert running.wait(60) == 1, gate.said
    assert gate.statuses() == [("running", "ERROR"), ("next", "ERROR")]
    assert {f"the scheduler {lonely.url} is gone" in one["error_message"] for one in gate.results()} == {True}
    assert "Traceback" not in gate.said


def test_a_fleet_without_workers_is_waited_for_so_long_and_no_longer(lonely: Cluster, gate: Gate) -> None:
    gate.declare(passing("one"), passing("two"))
    assert gate.run(lonely.url, DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT="1s") == 1
    assert gate.statuses() == [("one", "ERROR"), ("two", "ERROR")]
    said = gate.said
    assert f"no worker is at {lonely.url}: waiting for one, 1 s at most" in said
    assert "Captured" not in said
    assert "no worker has come to" in gate.results()[0]["error_message"]


def test_a_worker_with_another_version_is_refused_before_anything_runs(lonely: Cluster, gate: Gate) -> None:
    other = lonely.folder / "other" / "pytest_golden_projects-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-golden-projects\nVersion: 0.0.1\n")
    lonely.add_worker(PYTHONPATH=str(other.parent))
    gate.declare(passing("one"))
    assert gate.run(lonely.url) == 4
    assert "the workers differ from this machine (Python 3." in gate.said
    assert "tcp://127.0.0.1:" in gate.said
    assert ": pytest-golden-projects 0.0.1" in gate.said
    assert "the scheduler:" not in gate.said
    assert "Traceback" not in gate.said


def test_a_worker_that_joins_later_is_asked_for_its_versions_by_the_attempt(fleet: Cluster) -> None:
    script = (
        "from distributed import Client; from pytest_golden.fleet.worker import run_attempt;"
        f"print(Client({fleet.address!r}).submit(run_attempt, {{'Python': '3.1', 'distributed': '1'}}, b'', pure=False).result())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert '"unlike": "Python 3.' in done.stdout
    assert ", distributed 20" in done.stdout


def test_a_scheduler_that_is_not_there_is_refused_with_its_address(gate: Gate) -> None:
    require(find_spec("distributed"), "distributed")
    gate.declare(passing("one"))
    url = f"dask://127.0.0.1:{find_free_port()}"
    assert gate.run(url) == 4
    assert f"--golden-gateway: no Dask scheduler answers at {url}" in gate.said
    assert "Traceback" not in gate.said


def test_a_program_that_only_this_machine_has_is_an_error_that_names_the_worker(
    fleet: Cluster, gate: Gate, tmp_path: Path
) -> None:
    program = tmp_path / "programs" / "only-here"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    gate.declare({"name": "one", "script": "", "runner": "command", "command": ["only-here"]})
    assert gate.run(fleet.url, PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}") == 1
    assert gate.statuses() == [("one", "ERROR")]
    assert "`only-here` is not on PATH" in gate.said
    assert "(on worker tcp://127.0.0.1:" in gate.said


@pytest.mark.parametrize(
    ("set_ones", "told"),
    [
        ((), "needs certificates, and not all are set"),
        (("CA_FILE",), "not all are set"),
        (("CA_FILE", "CLIENT__CERT", "CLIENT__KEY"), "cannot be used"),
    ],
)
def test_tls_without_certificates_that_can_be_used_is_one_sentence(
    gate: Gate, set_ones: tuple[str, ...], told: str
) -> None:
    require(find_spec("distributed"), "distributed")
    gate.declare(passing("one", network=False))
    environment = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": "nowhere.pem" for name in set_ones}
    assert gate.run(f"dask+tls://127.0.0.1:{find_free_port()}", **environment) == 4
    assert told in gate.said
    assert "distributed.comm.tls" in gate.said
    assert "Traceback" not in gate.said
