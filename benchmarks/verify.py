"""What `golden verify` costs over the head's gate alone when earlier runs tell how the base's projects end.

Both are measured in turns, as processes of their own, on one repository whose projects only wait; the first verification, which
has to run the base, is measured by itself.

Run: python benchmarks/verify.py [ROUNDS] [--projects N] [--seconds S]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import in_turns, seconds


def make_repository(folder: Path, projects: int, each: float) -> None:
    """Make a repository with projects that wait so long, and a branch with a commit of its own checked out."""
    entries = "".join(f"  - {{name: p{number}, path: p{number}/run.sh}}\n" for number in range(projects))
    (folder / "golden_projects.yaml").write_text(f"golden_projects:\n{entries}")
    for number in range(projects):
        (folder / f"p{number}").mkdir()
        (folder / f"p{number}" / "run.sh").write_text(f"sleep {each}\n")
    git = ("git", "-C", str(folder), "-c", "user.name=b", "-c", "user.email=b@example.com")
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["commit", "-q", "-m", "1"],
        ["checkout", "-qb", "topic"],
    ):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "2"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", metavar="ROUNDS", type=int, nargs="?", default=5)
    parser.add_argument("--projects", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each project waits")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_repository(folder, options.projects, options.seconds)

        def run(*words: str) -> None:
            subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, check=True)

        def verify() -> None:
            run("pytest_golden", "verify", "--base", "main")

        print(f"the first verification, base and head: {seconds(verify):.2f} s")
        alone, warm, ratio = in_turns(lambda: run("pytest", "--golden"), verify, options.rounds)
        print(f"the head's gate alone {alone:.2f} s, golden verify {warm:.2f} s, by rounds {ratio:.3f}")


if __name__ == "__main__":
    main()
