from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fleet.clusters import Cluster
from tests.requirement import require

if TYPE_CHECKING:
    from tests.fleet.clusters import Gate

ROGUE = str(Path(__file__).with_name("rogue_preload.py"))
TLS = "DASK_DISTRIBUTED__COMM__TLS__"
# Loads what would run code if it were loaded, where the cluster's messages are loaded.
LOADING = """
import asyncio, os, pickle, sys
from pytest_golden.fleet.cluster import Cluster
from distributed.utils import offload
from tests.fleet.rogue_preload import Trap

async def load(elsewhere):
    await offload(pickle.loads, trap) if elsewhere else pickle.loads(trap)

trap = pickle.dumps(Trap())
cluster = Cluster.connect("dask://here", sys.argv[1], print)
for elsewhere in (False, True):
    try:
        cluster._client.sync(load, elsewhere)
    except TypeError as error:
        print(error)
assert not os.path.exists(os.environ["TRAP"])
cluster.close()
pickle.loads(trap)
assert os.path.exists(os.environ["TRAP"])
"""


def test_objects_are_not_loaded_where_a_cluster_is_read_and_elsewhere_they_are(fleet: Cluster, tmp_path: Path) -> None:
    environment = {**os.environ, "TRAP": str(tmp_path / "trap")}
    command = [sys.executable, "-c", LOADING, fleet.address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.stdout == "posix.mkdir of a cluster is not loaded here\n" * 2, done.stderr


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("answer", "a worker could not take it: TypeError Data serialized with pickle"),
        ("call", "answered with objects, which are not loaded here"),
        ("error", "a worker could not take it: posix mkdir"),
        ("event", ""),
        ("nonsense", "the answer of a worker cannot be read (worker is missing)"),
    ],
)
def test_code_that_a_worker_gives_is_not_run_by_the_gate(
    lonely: Cluster, gate: Gate, tmp_path: Path, where: str, told: str
) -> None:
    trap = tmp_path / "trap"
    lonely.add_worker("--preload", ROGUE, ROGUE=where, TRAP=str(trap))
    gate.declare({"name": "one", "script": "sleep 2"})
    assert gate.run(lonely.url) == bool(told), gate.said
    assert not trap.exists()
    assert "Traceback" not in gate.said
    (result,) = gate.results()
    assert told in (result["error_message"] or "")


def test_with_tls_and_without_a_network_no_trust_is_needed(gate: Gate, tmp_path: Path, programs: Path) -> None:
    openssl = shutil.which("openssl")
    require(openssl, "openssl")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=fleet", "-days", "1"]
    subprocess.run([str(openssl), *make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tls = {f"{TLS}CA_FILE": certificate}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        tls |= {f"{TLS}{role}__KEY": key, f"{TLS}{role}__CERT": certificate}
    gate.declare({"name": "one", "script": "true", "network": False})
    with closing(Cluster(tmp_path / "cluster", programs, "tls", **tls)) as cluster:
        cluster.add_worker()
        assert gate.run(cluster.url, **tls) == 0, gate.said
    assert gate.statuses() == [("one", "PASSED")]
