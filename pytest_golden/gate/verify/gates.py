"""How a gate is started for a verification: its command line, its environment, and where it leaves its report.

Only the standard library: see `private_folder.py`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_golden.gate.verify.process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from pytest_golden.gate.verify.base_commit import HeadCommit

#: Git sets these for its hooks, and they would lead every other git to that one index.
VARIABLES_OF_HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")
# What is said for the person's own gate: a verification says these to each gate itself, or speaks for all of them.
_NOT_HANDED_ON = frozenset(
    {
        "GOLDEN_BASE",
        "GOLDEN_CHANGED",
        "GOLDEN_FLOOR",
        "GOLDEN_HTML",
        "GOLDEN_JSON",
        "GOLDEN_JUNIT",
        "GOLDEN_MANIFEST",
        "GOLDEN_PROJECTS",
        "GOLDEN_UPDATE",
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
        *VARIABLES_OF_HOOKS,
    }
)


_STORE_VARIABLE = "GOLDEN_STORE_URL"


@dataclass(frozen=True, slots=True)
class GatePlace:
    """Where a side's gates run: its manifest, the interpreter that runs pytest, and the environment."""

    manifest: Path
    environment: Mapping[str, str]
    python: str = sys.executable
    options: tuple[str, ...] = ()


class StartedGate:
    """A gate that runs, in a folder. `report` is there when it has ended as a gate does."""

    def __init__(self, place: GatePlace, folder: Path, name: str, arguments: Sequence[str]) -> None:
        self.report = folder / f"{name}.json"
        manifest = place.manifest
        self.folder = manifest.parent
        # In one word each: in a folder without a configuration pytest takes a path that stands alone for one of its tests,
        # and what it has in common with the others for the rootdir.
        # The manifest's folder is where a person would type it: pytest finds its configuration and conftest from there.
        self.process = ChildProcess(
            [
                *(place.python, "-m", "pytest", "--golden", f"--golden-manifest={manifest}"),
                *(f"--golden-json={self.report}", "--maxfail=0", *place.options, *arguments),
            ],
            cwd=self.folder,
            environment=place.environment,
            log=folder / f"{name}.log",
        )


@dataclass(frozen=True, slots=True)
class HeadGate:
    """The head's own gate, which is coming up or runs. It waits for the workspace's lock, which `turn` holds until then.

    `place` is where it is run again; `accepts_floor` tells whether a weakened floor is accepted.
    """

    head: HeadCommit
    gate: StartedGate
    place: GatePlace
    accepts_floor: bool
    turn: ExitStack


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the environment without what is meant for one gate only."""
    return {name: value for name, value in environment.items() if name not in _NOT_HANDED_ON}


def use_store(place: GatePlace, store: str) -> GatePlace:
    """Let a place's gates use a store. A server's URL may hold a password, and a command line is seen by everybody."""
    if "://" in store and not store.startswith("sqlite:"):
        return replace(place, environment={**place.environment, _STORE_VARIABLE: store})
    return replace(place, options=(*place.options, f"--golden-store={store}"))


def start_gate(
    place: GatePlace, folder: Path, name: str, arguments: Sequence[str] = (), *, projects: Sequence[str] = ()
) -> StartedGate:
    """Start a side's gate with these projects, all of them without names."""
    return StartedGate(place, folder, name, [*arguments, *(f"{place.manifest.name}::{one}" for one in projects)])


def keep_aside(folder: Path) -> tuple[str, ...]:
    """Give the options by which the reports that the configuration asks for are not those of a gate with few projects."""
    return (f"--golden-junit={folder / 'aside.xml'}", f"--golden-html={folder / 'aside.html'}")


def move_below(paths: str, old: Path, new: Path) -> str:
    """Give a list of paths, as PYTHONPATH holds it, in which what lies below one folder lies below another."""
    return os.pathsep.join(_move(path, old, new) for path in paths.split(os.pathsep))


def _move(path: str, old: Path, new: Path) -> str:
    real = os.path.realpath(path) if path else path
    inside = path and (real == str(old) or real.startswith(f"{old}{os.sep}"))
    return str(new / os.path.relpath(real, old)) if inside else path
