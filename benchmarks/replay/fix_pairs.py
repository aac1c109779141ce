"""What a floor would have told about real mistakes: fixes of public repositories, each with its programs undone.

A pair is a commit whose message says that it mends something, and that changes programs and tests of Python. The floor is golden projects that
run one test file each: those of the fix, and others up to `--projects`. At the fix all run twice (is one red on an identical tree?); then the fix's
programs are set back to those of its parent, and all run again, with the fix's own tests and data, and with those of its parent (those of
the time). Before that `golden plan` says what `--golden-changed` would leave out; a red project among these is an unsafe selection.

With `--culprits N`, for the first N pairs of each repository that are told apart, the programs are undone in one of eight commits on top of the fix,
the others being harmless, and `golden bisect` must name it.

Pairs whose tests do not pass at the fix, here and now, are not counted: old code on a new Python.

Run: python benchmarks/replay/fix_pairs.py REPOSITORY ... --venv FOLDER [--most N] [--projects N] [--culprits N] [--json FILE]

A repository is a clone with its history. `--venv` is an environment with pytest and what the repositories need.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pytest_golden.history.suspects import FIX, Fix, is_source, is_test_file, list_fixes

_BIN = Path(sys.executable).parent
_SECONDS, _COMMITS = 120, 8


class Pair(NamedTuple):
    """One fix: `why` it is not counted, else empty; `skipped` of `projects` were left out, `unsafe` of them red."""

    repository: str
    commit: str
    subject: str
    why: str = ""
    is_told: bool = False
    is_told_then: bool = False
    is_red_again: bool = False
    projects: int = 0
    skipped: int = 0
    red: int = 0
    unsafe: tuple[str, ...] = ()
    is_culprit_found: bool | None = None


def git(folder: Path, *arguments: str) -> str:
    """Run git; raise if it fails."""
    who = ("-c", "user.name=study", "-c", "user.email=study@example.invalid", "-c", "advice.detachedHead=false")
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def is_python_test(path: str) -> bool:
    """Tell whether pytest runs this file."""
    name = Path(path).name
    return (is_test_file(path) and name.endswith(".py") and name.startswith(("test_", "test."))) or name.endswith(
        "_test.py"
    )


def declare(folder: Path, tests: list[str], venv: Path, generated: list[str]) -> dict[str, str]:
    """Write and commit a manifest with a project for each test file; return the files by the names of the projects."""
    for told in generated:
        path, _, text = told.partition("=")
        if (folder / path).parent.is_dir():
            (folder / path).write_text(f"{text}\n")
            git(folder, "add", "-f", path)
    names = {f"p{number}": test for number, test in enumerate(tests)}
    command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "{path}"]
    projects = [
        {
            "name": name,
            "path": test,
            "project_dir": ".",
            "command": command,
            "venv": str(venv),
            "timeout": "2m",
            "independent": True,
        }
        for name, test in names.items()
    ]
    (folder / "golden_projects.yaml").write_text(yaml.safe_dump({"version": 1, "golden_projects": projects}))
    git(folder, "add", "-f", "golden_projects.yaml")
    git(folder, "commit", "-qm", "floor", "--no-verify")
    return names


def run_gate(folder: Path, *options: str) -> dict[str, str]:
    """Run the gate, and return the status of each project that ran."""
    report = folder.parent / "report.json"
    report.unlink(missing_ok=True)
    command = [_BIN / "golden", "gate", "--", "--golden-reads", f"--golden-json={report}", *options]
    environment = {**os.environ, "CI": "true"}
    subprocess.run(command, cwd=folder, capture_output=True, check=False, env=environment, timeout=20 * _SECONDS)
    return {one["name"]: one["status"] for one in json.loads(report.read_text())["results"]}


def plan(folder: Path, ref: str = "HEAD") -> set[str]:
    """Return the projects that `--golden-changed REF` leaves out."""
    # The plan is that of a session that records reads.
    environment = {**os.environ, "GOLDEN_READS": "1"}
    told = subprocess.run(
        [_BIN / "golden", "plan", ref, "--json"], cwd=folder, capture_output=True, check=True, env=environment
    )
    return {one["name"] for one in json.loads(told.stdout)["projects"] if not one["runs"]}


def undo(folder: Path, fix: Fix, paths: list[str]) -> list[str]:
    """Set files back to those of the fix's parent, as far as both have them; return which."""
    before = set(git(folder, "ls-tree", "-r", "--name-only", "-z", fix.parent).split("\0"))
    undone = [path for path in paths if path in before and (folder / path).is_file()]
    if undone:
        git(folder, "checkout", fix.parent, "--", *undone)
    return undone


def study(repository: Path, fix: Fix, folder: Path, venv: Path, most_projects: int, generated: list[str]) -> Pair:
    """Play one pair in a clone."""
    pair = Pair(repository.parent.name, fix.commit, fix.subject)
    git(folder, "checkout", "-qf", "--detach", fix.commit)
    git(folder, "clean", "-fdxq", "-e", ".golden")
    listed = [path for path in git(folder, "ls-files", "-z").split("\0") if is_python_test(path)]
    own = [path for path in listed if path in fix.files]
    if not own:
        return pair._replace(why="no test file that pytest runs")
    tests = [*own, *(path for path in listed if path not in fix.files)][: max(most_projects, len(own))]
    names = declare(folder, tests, venv, generated)
    of_fix = {name for name, test in names.items() if test in own}
    first = run_gate(folder)
    green = {name for name, status in first.items() if status == "PASSED"}
    if not of_fix <= green:
        return pair._replace(why="its tests do not pass at the fix, here and now")
    again = run_gate(folder, "-k", " or ".join(sorted(green)))
    if not undo(folder, fix, [path for path in fix.files if is_source(path)]):
        return pair._replace(why="its programs are new, or were removed")
    left_out = plan(folder) & green
    without = run_gate(folder)
    red = {name for name in green if without.get(name) != "PASSED"}
    undo(folder, fix, [path for path in fix.files if is_test_file(path)])
    then = run_gate(folder, "-k", " or ".join(sorted(of_fix)))
    return pair._replace(
        is_told=bool(of_fix & red),
        is_told_then=any(then.get(name) != "PASSED" for name in of_fix),
        is_red_again=any(again.get(name) != "PASSED" for name in green),
        projects=len(green),
        skipped=len(left_out),
        red=len(red),
        unsafe=tuple(sorted(names[name] for name in red & left_out)),
    )


def find_planted(folder: Path, fix: Fix, floor: str, place: int) -> bool:
    """Plant the mistake in one of eight commits on top of the floor, and tell whether `golden bisect` names it."""
    git(folder, "checkout", "-qf", "--detach", floor)
    planted = ""
    for number in range(_COMMITS):
        if number == place:
            undo(folder, fix, [path for path in fix.files if is_source(path)])
        else:
            (folder / "notes.txt").write_text(f"{number}\n")
        git(folder, "add", "-f", "-A", "--", ".", ":!.golden")
        git(folder, "commit", "-qm", f"change {number}", "--no-verify")
        planted = git(folder, "rev-parse", "HEAD").strip() if number == place else planted
    command = [_BIN / "golden", "bisect", "p0", "--good", floor, "--json", "--fresh"]
    told = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=20 * _SECONDS)
    return [one["commit"] for one in json.loads(told.stdout).get("culprits", [])] == [planted]


def main() -> None:
    """Play the pairs, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--most", type=int, default=25, help="The most pairs of one repository that are counted.")
    parser.add_argument("--projects", type=int, default=6)
    parser.add_argument(
        "--generated", action="append", default=[], metavar="PATH=TEXT", help="A file that a build would write."
    )
    parser.add_argument("--culprits", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    pairs: list[Pair] = []
    for repository in arguments.repositories:
        with tempfile.TemporaryDirectory(prefix="golden-replay-") as scratch:
            folder = Path(scratch, "clone")
            git(Path(scratch), "clone", "-q", "--shared", "--no-checkout", str(repository.resolve()), str(folder))
            counted = 0
            for fix in list_fixes(repository, "HEAD", by_message=False):
                is_pair = any(map(is_source, fix.files)) and any(map(is_python_test, fix.files))
                if not is_pair or not FIX.search(fix.subject):
                    continue
                pair = study(
                    repository.resolve(), fix, folder, arguments.venv.resolve(), arguments.projects, arguments.generated
                )
                asked = sum(one.repository == pair.repository and one.is_culprit_found is not None for one in pairs)
                if pair.is_told and asked < arguments.culprits:
                    floor = git(folder, "rev-parse", "HEAD").strip()
                    found = find_planted(folder, fix, floor, (asked * 3 + 1) % _COMMITS)
                    pair = pair._replace(is_culprit_found=found)
                pairs.append(pair)
                counted += not pair.why
                print(
                    f"{pair.repository} {pair.commit[:12]} {pair.why or _describe(pair)}", file=sys.stderr, flush=True
                )
                if arguments.json:
                    arguments.json.write_text(json.dumps([one._asdict() for one in pairs], indent=1))
                if counted >= arguments.most:
                    break
    tell(pairs)


def _describe(pair: Pair) -> str:
    told = "told apart" if pair.is_told else f"MISSED: {pair.subject}"
    unsafe = f", UNSAFE: {', '.join(pair.unsafe)}" if pair.unsafe else ""
    return f"{told}, {pair.skipped} of {pair.projects} left out, {pair.red} red{unsafe}"


def tell(pairs: list[Pair]) -> None:
    """Print a row for each repository, and one for all."""
    print(
        "| repository | pairs | told apart | with the tests of the time | red on an identical tree | left out | red | red and left out | culprit named |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in (*dict.fromkeys(pair.repository for pair in pairs), None):
        some = [pair for pair in pairs if not pair.why and name in {None, pair.repository}]
        sums: Counter[str] = Counter()
        for pair in some:
            sums.update({name: int(value) for name, value in pair._asdict().items() if isinstance(value, int)})
        cells: list[Any] = [
            name or "all",
            len(some),
            *(sums[key] for key in ("is_told", "is_told_then", "is_red_again")),
        ]
        cells += [f"{sums['skipped']} of {sums['projects']}", sums["red"], sum(len(pair.unsafe) for pair in some)]
        cells.append(f"{sums['is_culprit_found']} of {sum(pair.is_culprit_found is not None for pair in some)}")
        print(f"| {' | '.join(map(str, cells))} |")
    print(f"not counted: {Counter(pair.why for pair in pairs if pair.why)}")


if __name__ == "__main__":
    main()
