"""What the gate adds to each project: `true` through the gate over an equal bare loop (own folder, logs to files).

The bare loop starts `true` in a folder of its own with its output in files; the second floor starts it in the same sandbox
that the gateway uses, made beforehand. Both alternate with the gateway, project by project. With `--whole` the whole gate
(`pytest --golden`) is measured at two sizes.

Run: python benchmarks/overhead.py [--whole]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_golden.gateway import AgentRole, ExecutionGateway, Permissions
from pytest_golden.gateway.seal import PrivateFolders
from pytest_golden.manifest.model import GoldenProjectConfig

ROUNDS = 200


def make_projects(folder: Path, count: int) -> list[GoldenProjectConfig]:
    """Make projects that each have a folder of their own."""
    projects = []
    for number in range(count):
        (folder / f"p{number}").mkdir(parents=True)
        (folder / f"p{number}" / "run.sh").write_text("true\n")
        projects.append(GoldenProjectConfig(f"p{number}", f"p{number}/run.sh", command=["true"]))
    return projects


def run_bare(folder: Path, prefix: list[str]) -> None:
    """Run `true` with its output in files."""
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        subprocess.run([*prefix, "true"], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=True)


def seal_command(gateway: ExecutionGateway, folder: Path, view: str) -> list[str]:
    """Give the launch of the very sandbox that the gateway would use for a folder: what its own launch costs."""
    place = gateway._machine.choose_place(folder)  # noqa: SLF001 - the floor must mount what the gateway mounts
    if place.probe.seal is None:
        return []
    scratch = place.scratch.new_folder()
    mount = ["--bind", str(folder), str(folder)]
    if view == "overlay":
        (scratch / "upper").mkdir()
        (scratch / "work").mkdir()
        mount = ["--overlay-src", str(folder), "--overlay", str(scratch / "upper"), str(scratch / "work"), str(folder)]
    private = PrivateFolders.make(scratch)
    return list(place.probe.seal.arguments(private, mount, (), network=True, working_folder=str(folder)))


def measure_gateway(view: str, *, sealed: bool = True) -> None:
    """Alternate bare loop, sandbox alone and gateway, and print medians and differences."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        projects = make_projects(root / "golden", ROUNDS)
        rows: list[tuple[float, float, float]] = []
        with ExecutionGateway(root / "golden", view=view) as gateway:
            if not sealed:
                place = gateway._machine.choose_place(root)  # noqa: SLF001 - what the machine would be without a seal
                object.__setattr__(place.probe, "seal", None)
                object.__setattr__(place.probe, "overlay", False)
            for project in projects:
                folder = root / "bare" / project.name
                folder.mkdir(parents=True)
                sandbox = seal_command(gateway, folder, view)
                marks = [time.perf_counter()]
                run_bare(folder, [])
                marks.append(time.perf_counter())
                run_bare(folder, sandbox)
                marks.append(time.perf_counter())
                outcome = gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
                marks.append(time.perf_counter())
                if outcome.exit_code != 0:
                    raise SystemExit(outcome.message or outcome.stderr)
                rows.append((marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]))
    report(f"{view}{'' if sealed else ', no seal'}", rows, sealed=sealed)


def report(kind: str, rows: list[tuple[float, float, float]], *, sealed: bool) -> None:
    """Print what one kind of view costs."""
    bare, floor, ours = (statistics.median(row[n] for row in rows) * 1000 for n in range(3))
    over_bare = statistics.median(row[2] - row[0] for row in rows) * 1000
    over_floor = statistics.median(row[2] - row[1] for row in rows) * 1000
    told = f"{kind}: bare {bare:.1f} ms, gateway {ours:.1f} ms, over bare {over_bare:.1f} ms"
    print(told + (f"; its sandbox alone {floor:.1f} ms, over that {over_floor:.1f} ms" if sealed else ""))


def measure_gate(count: int, view: str) -> None:
    """Time `pytest --golden` for a number of projects, less the same for one, and print the cost of each."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        projects = make_projects(root, count)
        entries = "".join(f"  - {{name: {p.name}, path: {p.path}, command: 'true'}}\n" for p in projects)
        (root / "golden_projects.yaml").write_text(f"golden_projects:\n{entries}")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--golden"]
        command += ["--golden-sandbox", view]

        def run(*more: str) -> float:
            started = time.perf_counter()
            subprocess.run([*command, *more], cwd=root, stdout=subprocess.DEVNULL, check=True)
            return time.perf_counter() - started

        base = run("golden_projects.yaml::p0")
        each = (run() - base) / (count - 1) * 1000
        print(f"pytest --golden, {view}, {count:,} projects: {each:.1f} ms each")


def main() -> None:
    measure_gateway("overlay")
    measure_gateway("copy")
    measure_gateway("copy", sealed=False)
    if "--whole" in sys.argv:
        for view in ("overlay", "copy"):
            for count in (100, 3_000):
                measure_gate(count, view)


if __name__ == "__main__":
    main()
