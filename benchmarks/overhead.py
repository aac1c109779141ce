"""What the gate adds to each project: `true` through the gate over an equal bare loop (own folder, logs to files).

Everything is measured in one run, one round after another in an order that changes, and compared round by round, so that
a busy machine is busy for all of it. The floors: `true` alone, the smallest launch of the sandbox program, and the launch
of the very sandbox that the gateway would use, made beforehand. With `--whole` the whole gate (`pytest --golden`) is
measured at two sizes; with `--peer` also against pytest-workflow, which is installed into an environment of its own.
With `--base CHECKOUT` only the gateways of this checkout and of another one are compared, project by project, each in a
process of its own: what a change costs.

Run: python benchmarks/overhead.py [--rounds N] [--whole] [--peer] [--base CHECKOUT]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.seal import PrivateFolders
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.seal import Seal

PEER = "pytest-workflow==2.1.0"
PEER_SIZES = (20, 100, 300)
BARE, SMALLEST = "true", "smallest bwrap launch"


def make_projects(folder: Path, count: int) -> list[GoldenProjectConfig]:
    """Make projects that each have a folder of their own."""
    projects = []
    for number in range(count):
        (folder / f"p{number}").mkdir(parents=True)
        (folder / f"p{number}" / "run.sh").write_text("true\n")
        projects.append(GoldenProjectConfig(f"p{number}", f"p{number}/run.sh", command=("true",)))
    return projects


def run_bare(folder: Path, prefix: list[str]) -> None:
    """Run `true` with its output in files."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        subprocess.run([*prefix, "true"], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=True)


def launch_sealed(seal: Seal, folder: Path, view: str) -> Callable[[], None]:
    """Return the launch of the very sandbox that the gateway would use for a folder: what its own launch costs."""
    scratch = folder.parent / f"{folder.name}-{view}"
    for made in (folder, scratch / "upper", scratch / "work"):
        made.mkdir(parents=True, exist_ok=True)
    mount = ["--bind", str(folder), str(folder)]
    if view == "overlay":
        mount = ["--overlay-src", str(folder), "--overlay", str(scratch / "upper"), str(scratch / "work"), str(folder)]
    private = PrivateFolders.make(scratch)
    command = list(seal.arguments(private, mount, (), network=True, working_folder=str(folder)))
    return lambda: run_bare(folder, command)


class Contest:
    """The ways to run `true` that are compared, and what each took in each round."""

    def __init__(self, root: Path, rounds: int, stack: ExitStack) -> None:
        self.times: dict[str, list[float]] = {}
        self._root, self._rounds = root, rounds
        self._projects = make_projects(root / "golden", rounds)
        self._gateways = {
            name: stack.enter_context(ExecutionGateway(root / "golden", view=view))
            for name, view in (
                ("gate, overlay", "overlay"),
                ("gate, copy", "copy"),
                ("gate, copy without seal", "copy"),
            )
        }
        place = self._gateways["gate, overlay"]._machine.choose_place(root)  # noqa: SLF001 - floors mount what it mounts
        self.seal = place.probe.seal
        bare = self._gateways["gate, copy without seal"]._machine.choose_place(root)  # noqa: SLF001 - as if there were none
        object.__setattr__(bare.probe, "seal", None)
        object.__setattr__(bare.probe, "overlay", False)
        for gateway in self._gateways.values():
            gateway.freeze(self._projects)

    def run(self) -> None:
        """Run all rounds; what comes first in one is another each time."""
        for number, project in enumerate(self._projects):
            ways = list(self._ways(number, project).items())
            random.Random(number).shuffle(ways)
            for name, way in ways:
                started = time.perf_counter()
                way()
                self.times.setdefault(name, []).append(time.perf_counter() - started)

    def _ways(self, number: int, project: GoldenProjectConfig) -> dict[str, Callable[[], None]]:
        folder = self._root / "bare" / str(number)
        ways: dict[str, Callable[[], None]] = {BARE: lambda: run_bare(folder / "bare", [])}
        if self.seal is not None:
            smallest = [self.seal.bwrap, "--ro-bind", "/", "/", "--unshare-pid"]
            ways[SMALLEST] = lambda: run_bare(folder / "small", smallest)
            ways["its sandbox, overlay"] = launch_sealed(self.seal, folder / "over", "overlay")
            ways["its sandbox, copy"] = launch_sealed(self.seal, folder / "copy", "copy")
        for name, gateway in self._gateways.items():
            ways[name] = lambda gateway=gateway: run_gateway(gateway, project)  # type: ignore[misc]
        return ways

    def report(self) -> None:
        """Print medians, and medians of the differences within a round; the first rounds warm up."""
        floor = SMALLEST if SMALLEST in self.times else BARE
        print(f"{'milliseconds, medians':28}{'each':>8}{'best':>8}{'over `true`':>13}{'over smallest bwrap':>21}")
        for name in sorted(self.times, key=lambda name: statistics.median(self.times[name])):
            took = self.times[name][5:]
            over_bare, over_floor = (
                statistics.median(own - other for own, other in zip(took, self.times[base][5:], strict=True))
                for base in (BARE, floor)
            )
            figures = f"{statistics.median(took) * 1000:8.2f}{min(took) * 1000:8.2f}{over_bare * 1000:13.2f}"
            print(f"{name:28}{figures}{over_floor * 1000:21.2f}")


def run_gateway(gateway: ExecutionGateway, project: GoldenProjectConfig) -> None:
    outcome = gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
    if outcome.exit_code != 0:
        raise SystemExit(outcome.message or outcome.stderr)


def time_command(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def gate_command(folder: Path, count: int, view: str) -> list[str]:
    """Write a manifest of projects that run `true` and give the command that runs the gate on it."""
    projects = make_projects(folder, count)
    entries = "".join(f"  - {{name: {p.name}, path: {p.path}, command: 'true'}}\n" for p in projects)
    (folder / "golden_projects.yaml").write_text(f"golden_projects:\n{entries}")
    quiet = ["-q", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *quiet, "--golden", "--golden-sandbox", view]


def measure_gate(count: int, view: str) -> None:
    """Time `pytest --golden` for a number of projects, less the same for one, and print the cost of each."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        command = gate_command(root, count, view)
        base = time_command([*command, "golden_projects.yaml::p0"], root)
        each = (time_command(command, root) - base) / (count - 1) * 1000
        print(f"pytest --golden, {view}, {count:,} projects: {each:.1f} ms each")


def peer_command(folder: Path, python: Path, count: int) -> list[str]:
    """Write as many workflows that run `true` and give the command that runs them."""
    folder.mkdir()
    entries = "".join(f"- name: p{number}\n  command: 'true'\n" for number in range(count))
    (folder / "test_peer.yml").write_text(entries)
    return [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_peer.yml"]


def measure_peer(sizes: tuple[int, ...]) -> None:
    """Time whole sessions of the peer and of ours, one after the other at each size, and print the cost of a project."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        venv.create(root / "venv", with_pip=True)
        python = root / "venv" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True, stderr=subprocess.DEVNULL)
        print(f"{'whole session, ms a project':28}" + "".join(f"{size:>10}" for size in sizes))
        rows: dict[str, list[float]] = {}
        for size in sizes:
            commands = {PEER: (peer_command(root / f"peer-{size}", python, size), root / f"peer-{size}")}
            for view in ("overlay", "copy"):
                folder = root / f"{view}-{size}"
                commands[f"pytest --golden, {view}"] = (gate_command(folder, size, view), folder)
            for kind, (command, folder) in commands.items():
                rows.setdefault(kind, []).append(time_command(command, folder) / size * 1000)
        for kind, row in rows.items():
            print(f"{kind:28}" + "".join(f"{each:10.1f}" for each in row))


RUNS = """
import sys, time
from pathlib import Path
from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig
root, view, network, count = sys.argv[1:]
projects = [
    GoldenProjectConfig(f"p{n}", f"p{n}/run.sh", command=("true",), network=network == "True") for n in range(int(count))
]
with ExecutionGateway(Path(root), view=view) as gateway:
    gateway.freeze(projects)
    for line in sys.stdin:
        started = time.perf_counter()
        done = gateway.run_pipeline(projects[int(line)], role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
        assert done.exit_code == 0 and done.sealed, done
        print(time.perf_counter() - started, flush=True)
"""


class Runner:
    """A gateway of a checkout in a process of its own, which runs projects one by one."""

    def __init__(self, checkout: Path, root: Path, *way: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNS, str(root), *way],
            env={**os.environ, "PYTHONPATH": str(checkout)},
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, number: int) -> float:
        """Run a project, and return its seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def measure_change(base: Path, rounds: int) -> None:
    """Print what a project costs here and in the base, and the median of the differences; the first rounds warm up."""
    print(f"{'milliseconds a project, medians':34}{'base':>8}{'here':>8}{'more':>8}")
    for view, network in ((view, network) for view in ("overlay", "copy") for network in ("True", "False")):
        with tempfile.TemporaryDirectory() as name:
            make_projects(Path(name), rounds)
            way = (Path(name), view, network, str(rounds))
            runners = [Runner(checkout, *way) for checkout in (base, Path(__file__).parents[1])]
            pairs = []
            for number in range(rounds):
                turns = runners if number % 2 else runners[::-1]
                took = {runner: runner.run(number) for runner in turns}
                pairs.append([took[runner] for runner in runners])
            for runner in runners:
                runner.close()
        there, here = zip(*pairs[5:], strict=True)
        more = statistics.median(own - other for other, own in pairs[5:])
        figures = "".join(f"{each * 1000:8.2f}" for each in (statistics.median(there), statistics.median(here), more))
        print(f"{f'{view}, network: {network.lower()}':34}{figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--whole", action="store_true", help="also time whole gates of 100 and 3,000 projects")
    parser.add_argument("--peer", action="store_true", help=f"also time whole sessions of {PEER} and of ours")
    parser.add_argument(
        "--base", type=Path, metavar="CHECKOUT", help="only compare with the gateway of another checkout"
    )
    options = parser.parse_args()
    if options.base is not None:
        measure_change(options.base.resolve(), options.rounds)
        return
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        contest = Contest(Path(name), options.rounds, stack)
        contest.run()
        contest.report()
    if options.peer:
        measure_peer(PEER_SIZES)
    for view in ("overlay", "copy") if options.whole else ():
        for count in (100, 3_000):
            measure_gate(count, view)


if __name__ == "__main__":
    main()
