"""A git repository with golden projects for the tests of verifications."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "golden_projects.yaml"


class Repository:
    """A repository in a folder: what is written is committed when that is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=You", "-c", "user.email=you@example.com", "-c", "protocol.file.allow=always")
        done = subprocess.run(
            ["git", "-C", str(self.folder), *who, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, **files: str) -> None:
        """Write files, `a__sh` for `a.sh`; those in folders are `folder___file__sh`."""
        for name, text in files.items():
            path = self.folder / name.replace("___", "/").replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def declare(self, *projects: str, more: str = "") -> None:
        """Declare a project for each script of this name in a folder of its own."""
        entries = "".join(f"  - {{name: {name}, path: {name}/run.sh}}\n" for name in projects)
        (self.folder / MANIFEST).write_text(f"version: 1\n{more}golden_projects:\n{entries}")

    def script(self, project: str, text: str) -> None:
        self.write(**{f"{project}___run__sh": text})

    def commit(self, subject: str = "change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def worktrees(self) -> list[str]:
        told = self.git("worktree", "list", "--porcelain")
        return [line.removeprefix("worktree ") for line in told.splitlines() if line.startswith("worktree ")]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()
