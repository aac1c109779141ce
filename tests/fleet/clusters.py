"""Real Dask schedulers and workers as processes on loopback, and gates that use them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULER, WORKER = "distributed.cli.dask_scheduler", "distributed.cli.dask_worker"


class Cluster:
    """A scheduler and the workers that a test adds; all are killed at the end."""

    def __init__(self, folder: Path, programs: Path, protocol: str = "tcp", **environment: str) -> None:
        self.folder = folder
        folder.mkdir()
        self._python = str(programs / "python")
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        arguments = ("--protocol", protocol, "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self._file))
        self.scheduler = self._start(SCHEDULER, *arguments)
        wait_until(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address: str = json.loads(self._file.read_text())["address"]
        self.url = self.address.replace("tcp://", "dask://").replace("tls://", "dask+tls://")

    def add_worker(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker with one thread; gives its process when it has joined."""
        log = self.folder / f"log-{len(self._processes)}"
        worker = self._start(
            WORKER,
            self.address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--local-directory",
            str(self.folder),
            *arguments,
            **environment,
        )
        wait_until(lambda: b"Starting established connection" in log.read_bytes())
        return worker

    def close(self) -> None:
        for process in self._processes:
            kill(process)

    def _start(self, module: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"log-{len(self._processes)}"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [self._python, "-m", module, *arguments, "--no-dashboard"],
                stdout=stream,
                stderr=stream,
                cwd=self.folder,
                env={**os.environ, **self._environment, **environment},
            )
        self._processes.append(process)
        return process


class Gate:
    """A gate in a process of its own over a workspace with small pipelines."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._python = str(programs / "python")
        folder.mkdir(exist_ok=True)
        (folder / "pytest.ini").write_text("[pytest]\n")

    def declare(self, *projects: dict[str, Any], root: str = ".") -> None:
        """Write a manifest; `script` of a project is its pipeline, run beside a `marks` folder that it may write to."""
        (self.folder / root).mkdir(exist_ok=True)
        entries = []
        for given in projects:
            project = dict(given)
            place = self.folder / root / project["name"]
            place.mkdir()
            (place / "run.sh").write_text(project.pop("script") + "\n")
            entries.append({"path": f"{project['name']}/run.sh", **project})
        text = json.dumps({"version": 1, "workspace_root": root, "golden_projects": entries})
        (self.folder / "golden_projects.yaml").write_text(text)

    def start(self, url: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [self._python, "-m", "pytest", "--golden", "-p", "no:cacheprovider"]
        # Without TLS the gate would be refused.
        command += ["--golden-fleet-trusted"] if url.startswith("dask://") else []
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                [*command, f"--golden-gateway={url}", "--golden-json=report.json", "--golden-learning=off", *arguments],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **environment},
            )

    def run(self, url: str, *arguments: str, **environment: str) -> int:
        return self.start(url, *arguments, **environment).wait(PATIENCE_SECONDS)

    @property
    def said(self) -> str:
        return (self.folder / "log").read_text()

    def results(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / "report.json").read_text())["results"]
        return found

    def statuses(self) -> list[tuple[str, str]]:
        return [(result["name"], result["status"]) for result in self.results()]


def kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()


def find_free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
