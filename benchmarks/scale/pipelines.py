"""What a pipeline's output and its project's folder cost: bytes printed, and files in an overlay and in a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.sandbox_program import list_programs
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig
from scale.model import Floor, Point, Study, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_KIB = 1024
_FILES_A_FOLDER = 100
_VIEWS = ("overlay", "copy")


def _run(gateway: ExecutionGateway, project: GoldenProjectConfig) -> None:
    outcome = gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
    if outcome.exit_code:
        raise RuntimeError(f"{project.name} ended with {outcome.exit_code}")


@contextmanager
def _printing(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    with ExecutionGateway(folder, log_folder=folder / "logs") as gateway:

        def measure_size(size: int) -> Mapping[str, Point]:
            words = "row 000123 of the daily load was written to the warehouse"
            (folder / "run.sh").write_text(f"yes '{words}' | head -c {size}\n")

            def bare() -> None:
                with (folder / "raw").open("wb") as out:
                    subprocess.run(["sh", "run.sh"], cwd=folder, stdout=out, check=True)

            rounds = 5 if size < _KIB**3 else 1
            return {"run": measure(size, rounds, bare, lambda: _run(gateway, GoldenProjectConfig("loud", "run.sh")))}

        yield measure_size


class Folders:
    """A project folder that grows, and gateways that run a trivial pipeline in views of it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._project = folder / "project"
        self._project.mkdir()
        (self._project / "run.sh").write_text("true\n")
        self._gateways: dict[str, ExecutionGateway] = {}
        for view in _VIEWS:
            self._gateways[view] = stack.enter_context(ExecutionGateway(self._project, view=view))
        self._count = 1

    def measure(self, size: int) -> Mapping[str, Point]:
        """Grow the folder to so many files, and run in each view."""
        for number in range(self._count, size):
            place = self._project / f"data{number // _FILES_A_FOLDER}"
            place.mkdir(exist_ok=True)
            (place / f"{number}.txt").write_text(f"row {number}\n")
        self._count = size
        project = GoldenProjectConfig("large", "run.sh", project_dir=".")
        bare = {"overlay": self._bare_overlay, "copy": self._bare_copy}
        rounds = 7 if size <= _KIB else 3
        for view in _VIEWS:
            _run(self._gateways[view], project)
        return {
            view: measure(size, rounds, bare[view], partial(_run, self._gateways[view], project)) for view in _VIEWS
        }

    def _bare_overlay(self) -> None:
        """Stat every file, and launch the sandbox program with an overlay of the folder."""
        self._stat_all(self._project)
        program = next(iter(list_programs()), None)
        if program is None:
            raise RuntimeError("bubblewrap is not here")
        upper, work = self._folder / "upper", self._folder / "work"
        for place in (upper, work):
            place.mkdir(exist_ok=True)
        mount = ["--overlay-src", str(self._project), "--overlay", str(upper), str(work), str(self._project)]
        command = [program, "--dev-bind", "/", "/", *mount, "sh", str(self._project / "run.sh")]
        subprocess.run(command, capture_output=True, check=True)

    def _bare_copy(self) -> None:
        """Stat every file, copy the folder, run there, and remove the copy."""
        self._stat_all(self._project)
        target = self._folder / "copied"
        subprocess.run(["cp", "-a", str(self._project), str(target)], check=True)
        subprocess.run(["sh", str(target / "run.sh")], capture_output=True, check=True)
        shutil.rmtree(target)

    def _stat_all(self, place: Path) -> None:
        for found, _, names in os.walk(place):
            for name in names:
                os.lstat(f"{found}/{name}")


@contextmanager
def _in_folders(folder: Path) -> Iterator[Callable[[int], Mapping[str, Point]]]:
    with ExitStack() as stack:
        yield Folders(folder, stack).measure


def list_studies() -> list[Study]:
    """Return the studies of this module."""
    floors = {
        "overlay": Floor("stat of every file and bare bubblewrap"),
        "copy": Floor("stat, cp -a, a plain subprocess and rm"),
    }
    return [
        Study(
            "output",
            "bytes",
            (_KIB, 32 * _KIB, _KIB**2, 32 * _KIB**2, _KIB**3),
            {"run": Floor("a plain subprocess into a file")},
            _printing,
        ),
        Study("files of a project folder", "files", (10, 100, 1_000, 10_000, 60_000), floors, _in_folders),
    ]
