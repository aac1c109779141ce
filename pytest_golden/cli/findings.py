"""What `golden doctor` looks at: the installation, the workspace, the sandbox. It looks; it repairs nothing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from pytest_golden.errors import GoldenError, ManifestError
from pytest_golden.gateway import ExecutionGateway
from pytest_golden.manifest import load_manifest
from pytest_golden.storage.folder import STATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OURS, _FOREIGN = "pytest-golden-projects", "pytest-golden"


class State(StrEnum):
    """How it stands with one thing: good, limited (the gate runs with less), absent (not needed), bad (it cannot run)."""

    GOOD = "good"
    LIMITED = "limited"
    ABSENT = "absent"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing, and how to get better."""

    subject: str
    state: State
    told: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        """Give JSON-safe values."""
        return {"subject": self.subject, "state": str(self.state), "told": self.told, "advice": self.advice}


def examine_installation() -> Iterator[Finding]:
    """Look at Python, pytest and this distribution."""
    yield Finding("python", State.GOOD, f"{platform.python_version()} at {sys.executable}")
    yield Finding("pytest", State.GOOD, version("pytest"))
    ours = find_version(_OURS)
    if ours is None or not any(door.name == "golden_projects" for door in entry_points(group="pytest11")):
        advice = f"run `{sys.executable} -m pip install {_OURS}`"
        yield Finding(_OURS, State.BAD, "not installed here, so pytest knows no --golden", advice)
    else:
        yield Finding(_OURS, State.GOOD, ours)
    foreign = find_version(_FOREIGN)
    if foreign is not None:
        told = f"{foreign}, another distribution, shares the package pytest_golden; both work"
        advice = f"uninstalling either breaks both: after that, reinstall {_OURS}"
        yield Finding(_FOREIGN, State.LIMITED, told, advice)
    if shutil.which("git") is None:
        yield Finding("git", State.ABSENT, "not on PATH, so --golden-base cannot compare", "install git")


def examine_workspace(manifest: Path) -> Iterator[Finding]:
    """Look at the manifest, and at the folder and the lock that a gate uses beside it."""
    root = manifest.parent
    try:
        declared = load_manifest(manifest)
    except ManifestError as error:
        if manifest.exists():
            told = f"{manifest} has {len(error.problems)} mistake{'s' if len(error.problems) > 1 else ''}"
            yield Finding("manifest", State.BAD, told, "run `golden check`")
        else:
            yield Finding("manifest", State.LIMITED, f"there is no {manifest}", "run `golden init`")
    else:
        root, count = declared.workspace_root, len(declared.projects)
        told = f"{manifest}, {count} golden project{'' if count == 1 else 's'}"
        state = State.GOOD if count else State.LIMITED
        yield Finding("manifest", state, told, "" if count else "declare a pipeline that must always work")
    yield Finding("workspace", *_describe_root(root))
    yield Finding("lock", *_describe_lock(root / STATE_FOLDER))


def examine_sandbox(root: Path, view: str) -> Iterator[Finding]:
    """Try view and seal by really making them."""
    try:
        with ExecutionGateway(root, view=view) as gateway:
            abilities = gateway.describe()
    except GoldenError as error:
        yield Finding(
            "sandbox", State.BAD, str(error), "free some space, or let TMPDIR name a folder that can be written"
        )
        return
    is_best, is_sealed = abilities.view == "overlay", abilities.seal != "none"
    view_told = "copy-on-write by the kernel" if is_best else "a private copy of each project's folder"
    yield Finding(
        "view",
        State.GOOD if is_best or view == "copy" else State.LIMITED,
        "; ".join(filter(None, [f"{abilities.view}: {view_told}", abilities.view_reason])),
        "" if is_best or not is_sealed else abilities.advice,
    )
    seal_told = "processes, network and all files outside the view" if is_sealed else "`network: false` is ERROR"
    yield Finding(
        "seal",
        State.GOOD if is_sealed else State.LIMITED,
        "; ".join(filter(None, [f"{abilities.seal}: {seal_told}", abilities.seal_reason])),
        "" if is_sealed else abilities.advice,
    )
    yield Finding("limits", State.GOOD, ", ".join(abilities.limits))
    yield Finding("scratch", State.GOOD, f"in {abilities.scratch}")


def find_version(distribution: str) -> str | None:
    """Give the installed version of a distribution, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _describe_root(root: Path) -> tuple[State, str, str]:
    if not root.is_dir():
        return State.BAD, f"{root} is not a folder", "correct `workspace_root:`"
    if not os.access(root, os.W_OK):
        return State.LIMITED, f"{root} cannot be written: lock and logs go below the temporary folder", ""
    return State.GOOD, str(root), ""


def _describe_lock(state_folder: Path) -> tuple[State, str]:
    lock_file = state_folder / "gate.lock"
    if not lock_file.exists():
        return State.GOOD, "free"
    lock = FileLock(lock_file, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return State.GOOD, "another gate is running in this workspace: the next one waits"
    except OSError as error:
        return State.LIMITED, f"{lock_file}: {error.strerror}"
    lock.release()
    return State.GOOD, "free"
