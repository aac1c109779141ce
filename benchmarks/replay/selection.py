"""What `--golden-changed` leaves out over real histories, and whether that was ever wrong.

The last commits of each repository, by first parents, are made anew with a floor in each: golden projects that run one test file each, which
pass where the range begins. At every commit `golden plan` says what `--golden-changed` would leave out against the commit before; then all
run. A project that was left out and is red there, while it passed before, is an unsafe selection.

Run: python benchmarks/replay/selection.py REPOSITORY ... --venv FOLDER [--most N] [--projects N] [--json FILE]

A repository is a clone with its history. `--venv` is an environment with pytest and what the repositories need.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from fix_pairs import declare, git, is_python_test, plan, run_gate

_TRIED = 4


class Step(NamedTuple):
    """One commit: of `projects` that passed before, `left_out` were left out, `red` are red now, and `unsafe` both."""

    repository: str
    commit: str
    subject: str
    projects: int
    left_out: int
    red: int
    unsafe: tuple[str, ...]


def lay(folder: Path, commit: str, manifest: str) -> None:
    """Make a commit anew on top of what is there, with the manifest."""
    git(folder, "read-tree", "-u", "--reset", commit)
    (folder / "golden_projects.yaml").write_text(manifest)
    git(folder, "add", "-f", "golden_projects.yaml")
    git(folder, "commit", "-q", "--allow-empty", "--no-verify", "-m", "replayed")


def begin(folder: Path, base: str, most: int, venv: Path, generated: list[str]) -> tuple[dict[str, str], str, set[str]]:
    """Declare test files that pass at the base, spread over all; return them by project, the manifest, and what passes."""
    git(folder, "checkout", "-qf", "--detach", base)
    listed = [path for path in git(folder, "ls-files", "-z").split("\0") if is_python_test(path)]
    tried = listed[:: max(1, len(listed) // (_TRIED * most))][: _TRIED * most]
    names = declare(folder, tried, venv, generated)
    statuses = run_gate(folder)
    fine = [test for name, test in names.items() if statuses.get(name) == "PASSED"]
    kept = fine[:: max(1, len(fine) // most)][:most]
    git(folder, "checkout", "-qf", "--detach", base)
    names = declare(folder, kept, venv, generated)
    statuses = run_gate(folder)
    passing = {name for name in names if statuses.get(name) == "PASSED"}
    return names, (folder / "golden_projects.yaml").read_text(), passing


def main() -> None:
    """Go through the histories, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--most", type=int, default=50, help="So many commits of each repository.")
    parser.add_argument("--projects", type=int, default=6)
    parser.add_argument("--generated", action="append", default=[], metavar="PATH=TEXT")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    steps: list[Step] = []
    for repository in arguments.repositories:
        with tempfile.TemporaryDirectory(prefix="golden-selection-") as scratch:
            folder = Path(scratch, "clone")
            git(Path(scratch), "clone", "-q", "--shared", "--no-checkout", str(repository.resolve()), str(folder))
            range_ = ("--first-parent", "--reverse", f"--max-count={arguments.most + 1}", "--format=%H%x01%s")
            base, *later = (line.split("\x01", 1) for line in git(folder, "log", *range_).splitlines())
            venv = arguments.venv.resolve()
            names, manifest, passing = begin(folder, base[0], arguments.projects, venv, arguments.generated)
            for commit, subject in later:
                lay(folder, commit, manifest)
                left_out = plan(folder, "HEAD~1") & passing
                statuses = run_gate(folder)
                red = {name for name in passing if statuses.get(name) != "PASSED"}
                step = Step(
                    *(repository.resolve().parent.name, commit, subject, len(passing), len(left_out), len(red)),
                    tuple(sorted(names[name] for name in red & left_out)),
                )
                passing = {name for name in names if statuses.get(name) == "PASSED"}
                steps.append(step)
                told = f"{step.left_out} of {step.projects} left out, {step.red} red {' '.join(step.unsafe)}"
                print(f"{step.repository} {commit[:12]} {told}: {subject}", file=sys.stderr, flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps([one._asdict() for one in steps], indent=1))
    tell(steps)


def tell(steps: list[Step]) -> None:
    """Print a row for each repository, and one for all."""
    print("| repository | commits | left out | share | red | red and left out |")
    print("|---|---|---|---|---|---|")
    for name in (*dict.fromkeys(step.repository for step in steps), None):
        some = [step for step in steps if name in {None, step.repository}]
        out, of = sum(step.left_out for step in some), sum(step.projects for step in some)
        red, unsafe = sum(step.red for step in some), sum(len(step.unsafe) for step in some)
        share = f"{100 * out / of:.0f} %" if of else "-"
        print(f"| {name or 'all'} | {len(some)} | {out} of {of} | {share} | {red} | {unsafe} |")


if __name__ == "__main__":
    main()
