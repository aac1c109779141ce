"""Runs the steps of a composite action one by one, as GitHub's runner would, in a checkout of one's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from tests.docs.documents import REPOSITORY
from tests.github.expressions import as_text, evaluate, fill

ACTIONS = REPOSITORY / ".github" / "actions"
ACTION = ACTIONS / "golden"


@dataclass
class Run:
    """What became of a run: the log, the exit code, each step's outputs, and the summary of the job."""

    code: int = 0
    log: str = ""
    summary: str = ""
    steps: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


class Runner:
    """A runner with its own temporary folder, cache and artifacts. `commands` is a folder that comes first in PATH, `programs` the next."""

    def __init__(self, place: Path, workspace: Path, api: str, programs: Path) -> None:
        self.temporary = place / "temp"
        self.cache = place / "cache"
        self.artifacts = place / "artifacts"
        self.commands = place / "commands"
        for folder in (self.temporary, self.cache, self.artifacts, self.commands):
            folder.mkdir(parents=True)
        self.workspace = workspace
        self.api = api
        self._path = [str(self.commands), str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.runs = 0
        self._action = ACTION

    def write_command(self, name: str, script: str) -> None:
        command = self.commands / name
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)

    def run(self, github: dict[str, Any], named: str = "golden", **inputs: str) -> Run:
        """Run one of our actions; a step that fails ends it, unless it may."""
        self.runs += 1
        self._action = ACTIONS / named
        action = yaml.safe_load((self._action / "action.yml").read_text(encoding="utf-8"))
        assert set(inputs) <= {name.replace("-", "_") for name in action["inputs"]}
        github = {"repository": "me/shop", "ref_name": "7/merge", "base_ref": "", "run_id": self.runs, **github}
        contexts: dict[str, Any] = {
            "github": {**github, "run_attempt": 1, "token": "t0ken"},
            "runner": {"os": "Linux", "temp": str(self.temporary)},
            "steps": {},
        }
        contexts["inputs"] = {
            name: inputs.get(name.replace("-", "_"), fill(str(told.get("default", "")), contexts))
            for name, told in action["inputs"].items()
        }
        run = Run(steps=contexts["steps"])
        for step in action["runs"]["steps"]:
            if not evaluate(step.get("if", "'true'"), contexts):
                continue
            run.ran.append(step["name"])
            run.code = self.run_step(step, contexts, run)
            if run.code and not step.get("continue-on-error"):
                break
        return run

    def run_step(self, step: dict[str, Any], contexts: dict[str, Any], run: Run) -> int:
        """Run one step, which may be a workflow's, and give its exit code."""
        if "uses" in step:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]), "an action of others is pinned by its commit"
            given = {name: fill(str(value), contexts) for name, value in step["with"].items()}
            return self._use(step["uses"], given)
        output, summary = self.temporary / "output", self.temporary / "summary"
        output.write_text("")
        summary.write_text("")
        github = contexts["github"]
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("COVERAGE_", "GITHUB", "GOLDEN", "PYTEST"))
            },
            "PATH": ":".join(self._path),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self._action),
            "GITHUB_API_URL": self.api,
            "GITHUB_SERVER_URL": "https://git.example",
            "GITHUB_REPOSITORY": github["repository"],
            "GITHUB_RUN_ID": str(github["run_id"]),
            "GITHUB_SHA": "0123456789abcdef",
            **{f"GITHUB_{name}": str(self.temporary / name) for name in ("ENV", "PATH", "STATE")},
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temporary),
            **{name: fill(as_text(value), contexts) for name, value in step.get("env", {}).items()},
        }
        assert step.get("shell", "bash") == "bash"
        assert "${{" not in step["run"]
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace / fill(step.get("working-directory", "."), contexts),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        run.log += done.stdout
        run.summary += summary.read_text(encoding="utf-8")
        if "id" in step:
            told = dict(line.split("=", 1) for line in output.read_text().splitlines())
            contexts["steps"][step["id"]] = {"outputs": told}
        return done.returncode

    def _use(self, uses: str, given: dict[str, str]) -> int:
        paths = [self.workspace / path for path in given["path"].split("\n") if path]
        if uses.startswith("actions/cache/save@"):
            self._copy(paths, self.cache / quote(given["key"], safe=""))
        elif uses.startswith("actions/cache/restore@"):
            wanted = [key for key in given["restore-keys"].split("\n") if key]
            saved = sorted(self.cache.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            found = next((path for key in wanted for path in saved if path.name.startswith(quote(key, safe=""))), None)
            if found is not None:
                shutil.copytree(found, self.workspace, dirs_exist_ok=True)
        elif uses.startswith("actions/download-artifact@"):
            if not (self.artifacts / given["name"]).exists():
                return 1
            # A job begins on a machine that nothing has been taken to.
            shutil.rmtree(paths[0], ignore_errors=True)
            shutil.copytree(self.artifacts / given["name"], paths[0])
        else:
            assert uses.startswith("actions/upload-artifact@")
            shutil.rmtree(self.artifacts / given["name"], ignore_errors=True)
            for path in filter(Path.exists, paths):
                shutil.copytree(path, self.artifacts / given["name"] / path.name, dirs_exist_ok=True)
        return 0

    def _copy(self, paths: list[Path], to: Path) -> None:
        to.mkdir(parents=True)
        for path in paths:
            aim = to / path.relative_to(self.workspace)
            aim.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, aim)
            elif path.exists():
                shutil.copy2(path, aim)
