"""`golden doctor`: say what works on this machine, and how to get the rest. It repairs nothing.

exit code: 0 the gate can run here, 1 it cannot.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from rich.text import Text

from pytest_golden.cli.options import add_options, locate_manifest, read_command_settings
from pytest_golden.cli.screen import answer, print_beside, styled
from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.gate.events import Spool
from pytest_golden.gate.state_folder import find_spool_folder, find_state_folder, find_store_place
from pytest_golden.gateway.runners.choice import list_runners
from pytest_golden.gateway.runners.runner import PipelineFile, RunnerError, explain_old
from pytest_golden.gateway.sandbox_program import describe_program
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.history.base_files import warn_of_ignored_baselines
from pytest_golden.learning.language_model.client import LanguageModel
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.wording import count_of, format_size
from pytest_golden.settings import find_version
from pytest_golden.storage.folder import STATE_FOLDER
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.sqlite import find_type, keeps_shared_memory, refuse_foreign
from pytest_golden.storage.store import Store
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from pytest_golden.gateway.runners.runner import Runner


_OURS, _FOREIGN = "pytest-golden-projects", "pytest-golden"
_PROBE_SECONDS = 60
_VERSIONS = """
import importlib.metadata as m, sys
hidden = {"dbt-common", "dbt-adapters", "dbt-extractor", "dbt-protos", "dbt-semantic-interfaces"}
found = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in m.distributions() if d.metadata["Name"]}
for wanted in sys.argv[1:]:
    for name in sorted(found):
        if name == wanted or wanted.endswith("-") and name.startswith(wanted) and name not in hidden | {*sys.argv}:
            print(name, found[name])
"""
_ELSEWHERE = "use another file: --golden-store or GOLDEN_STORE_URL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden doctor`."""
    add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Examine this machine."""
    settings = read_command_settings(arguments)
    manifest = locate_manifest(settings)
    findings = [
        *examine_installation(),
        *examine_workspace(manifest),
        *examine_sandbox(manifest.parent, settings.sandbox),
        *examine_store(settings.store, _find_root(manifest)),
        *examine_model(os.environ),
        *examine_runners(),
    ]
    can_run = not any(finding.state is State.BAD for finding in findings)
    facts = {"can_run": can_run, "findings": [finding.to_dict() for finding in findings]}
    answer(arguments, facts, lambda console: _show(console, findings, can_run=can_run))
    return 0 if can_run else 1


def _find_root(manifest: Path) -> Path:
    try:
        return load_manifest(manifest).workspace_root
    except ManifestError:
        return manifest.parent


def _show(console: Console, findings: Sequence[Finding], *, can_run: bool) -> None:
    longest = max(len(finding.subject) for finding in findings)
    for finding in findings:
        mark, style = _MARKS[finding.state]
        first = Text.assemble((mark, style), " ", (finding.subject.ljust(longest), "bold"))
        print_beside(console, first, finding.told)
        if finding.advice:
            print_beside(console, Text(" " * (longest + 3)), f"-> {finding.advice}")
    verdict = "the gate can run here" if can_run else "the gate cannot run here: see the lines marked no"
    console.print(styled(verdict, "bold green" if can_run else "bold red"))


class State(StrEnum):
    """The state of one thing: good, limited (the gate can do less), absent (not needed), bad (the gate cannot run)."""

    GOOD = "good"
    LIMITED = "limited"
    ABSENT = "absent"
    BAD = "bad"


_MARKS = {
    State.GOOD: ("ok", "green"),
    State.LIMITED: ("!!", "yellow"),
    State.ABSENT: ("--", "dim"),
    State.BAD: ("no", "bold red"),
}


@dataclass(frozen=True, slots=True)
class Finding(Shape):
    """What was found about one thing, and how to improve it."""

    subject: str
    state: State
    told: str
    advice: str = ""


def examine_installation() -> Iterator[Finding]:
    """Look at Python, pytest and this distribution."""
    yield Finding("python", State.GOOD, f"{platform.python_version()} at {sys.executable}")
    yield Finding("pytest", State.GOOD, str(find_version("pytest")))
    ours = find_version(_OURS)
    if ours is None or not any(door.name == "golden_projects" for door in entry_points(group="pytest11")):
        advice = f"run `{sys.executable} -m pip install {_OURS}`"
        yield Finding(_OURS, State.BAD, "not installed here, so pytest does not know --golden", advice)
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
    """Look at the manifest, and at the folder and the lock that a gate uses."""
    root = manifest.parent
    try:
        declared = load_manifest(manifest)
    except ManifestError as error:
        if manifest.exists():
            told = f"{manifest} has {count_of(len(error.problems), 'mistake')}"
            yield Finding("manifest", State.BAD, told, "run `golden check`")
        else:
            yield Finding("manifest", State.LIMITED, f"there is no {manifest}", "run `golden init`")
    else:
        root, count = declared.workspace_root, len(declared.projects)
        told = f"{manifest}, {count_of(count, 'golden project')}"
        state = State.GOOD if count else State.LIMITED
        yield Finding("manifest", state, told, "" if count else "declare a pipeline that must always work")
        ignored = warn_of_ignored_baselines(find_baselines_folder(declared.path, root))
        if ignored is not None:
            told, _, advice = ignored.rpartition(": ")
            yield Finding("baselines", State.LIMITED, told, advice)
    yield Finding("workspace", *_describe_root(root))
    yield Finding("lock", *_describe_lock(root / STATE_FOLDER))


def _describe_root(root: Path) -> tuple[State, str, str]:
    if not root.is_dir():
        return State.BAD, f"{root} is not a folder", "correct `workspace_root:`"
    if not os.access(root, os.W_OK):
        return State.LIMITED, f"{root} cannot be written: lock and logs are below the temporary folder", ""
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


def examine_sandbox(root: Path, view: str) -> Iterator[Finding]:
    """Make a view and a seal, and say how they work here."""
    try:
        with ExecutionGateway(root, view=view) as gateway:
            abilities = gateway.describe()
    except GoldenError as error:
        advice = "free some space, or set TMPDIR to a folder that can be written"
        yield Finding("sandbox", State.BAD, str(error), advice)
        return
    is_best, is_sealed = abilities.view == "overlay", abilities.seal != "none"
    view_state = State.GOOD if is_best or view == "copy" else State.LIMITED
    told = "copy-on-write by the kernel" if is_best else "a private copy of each project's folder"
    told = "; ".join(filter(None, [f"{abilities.view}: {told}", abilities.view_reason]))
    yield Finding("view", view_state, told, "" if is_best or not is_sealed else abilities.advice)
    told = "processes, network and all files outside the view" if is_sealed else "`network: false` is an ERROR"
    told = "; ".join(filter(None, [f"{abilities.seal}: {told}", abilities.seal_reason]))
    seal_state = State.LIMITED if abilities.seal_reason else State.GOOD
    advice = "" if is_sealed else abilities.advice
    yield Finding("seal", seal_state, told, advice)
    if is_sealed:
        yield Finding("sandbox program", State.GOOD, describe_program(abilities.program))
        is_own = abilities.network == "own"
        told = "own: `network: true` reaches no server of this machine" if is_own else ""
        told = told or f"host: `network: true` reaches the servers of this machine; {abilities.network_reason}"
        advice = (
            "" if is_own else "install slirp4netns and let this user open /dev/net/tun, or declare `network: false`"
        )
        yield Finding("network", State.GOOD if is_own else State.LIMITED, told, advice)
        if os.getuid() == 0:
            told = "root: pipelines have none of its rights, but can read its files outside HOME, /etc and /run"
            yield Finding("user", State.LIMITED, told, "run the gate as an ordinary user")
    yield Finding("limits", State.GOOD, f"by {abilities.limits_by}: {', '.join(abilities.limits)}")
    yield Finding("scratch", State.GOOD, f"in {abilities.scratch}")


def examine_store(said: str | None, workspace_root: Path) -> Iterator[Finding]:
    """Look at the store that this workspace's gates use, and its spool; `said` is the value of `--golden-store`."""
    state_folder = find_state_folder(workspace_root)
    place = find_store_place(said, state_folder)
    if place is None:
        yield Finding("store", State.ABSENT, "off (none): runs are not recorded")
        return
    try:
        shown = parse_location(place.location)
        spool = Spool(find_spool_folder(place, state_folder))
    except GoldenError as error:
        yield Finding("store", State.BAD, str(error), _ELSEWHERE)
        return
    try:
        if shown.path is not None and not place.is_own:
            refuse_foreign(shown.path)
        if shown.is_on_server:
            Store.look_at(place.location)
        yield Finding("store", State.GOOD, shown.shown) if shown.path is None else _examine_store_file(shown.path)
    except GoldenError as error:
        yield Finding("store", State.LIMITED, f"{error}; results are kept in the spool until it works", _ELSEWHERE)
    waiting = len(spool.files())
    if waiting:
        told = f"the results of {count_of(waiting, 'gate run')} wait in the spool"
        yield Finding("spool", State.LIMITED, told, "the next gate imports them")


def _examine_store_file(path: Path) -> Finding:
    if not path.exists():
        return Finding("store", State.GOOD, f"{path}: the first gate creates it")
    Store.look_at(path)
    told = f"{path}, {format_size(path.stat().st_size)}"
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        told += "; it cannot be written, results are kept in the spool until it works"
        return Finding("store", State.LIMITED, told, _ELSEWHERE)
    if not keeps_shared_memory(path.parent):
        told += f"; on {find_type(path.parent)}, a network file system, it is slower"
        return Finding("store", State.LIMITED, told, _ELSEWHERE)
    return Finding("store", State.GOOD, told)


def examine_model(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the settings of the language model that words lessons. The model is not called: that may cost money.

    The key is mentioned, but never shown.
    """
    try:
        model = LanguageModel.from_env(environ)
    except SettingsError as error:
        yield Finding("model", State.LIMITED, f"not used: {error}", "the gate runs without it")
        return
    if model is None:
        return
    endpoint = model.endpoint
    told = f"{endpoint}, {'no key' if endpoint.api_key is None else 'with a key'}; not called now"
    if endpoint.bares_its_key:
        yield Finding("model", State.LIMITED, f"{told}; the key is sent unencrypted", "use an https URL")
    else:
        yield Finding("model", State.GOOD, told)


def examine_runners() -> Iterator[Finding]:
    """Look for each runner's program, as a project without a `venv:` would. Nothing is run but the interpreters."""
    return map(_examine_runner, list_runners())


def _examine_runner(runner: Runner) -> Finding:
    subject = f"runner {runner.name}"
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    pipeline = PipelineFile(
        config=GoldenProjectConfig(name=runner.name, path=runner.name),
        file=Path(os.devnull),
        project_dir=Path.cwd(),
        path_variable=os.pathsep.join(folders),
        python=sys.executable,
    )
    try:
        start = runner.find_start(pipeline)
    except RunnerError as error:
        told, _, advice = str(error).removeprefix(f"{runner.name}: ").rpartition(": ")
        return Finding(subject, State.ABSENT, told, advice)
    if old := explain_old(runner, start[0]):
        told, _, advice = old.rpartition(": ")
        return Finding(subject, State.LIMITED, told, advice)
    versions = _read_versions(start[0], runner.distributions)
    return Finding(subject, State.GOOD, f"{', '.join(versions)} at {start[0]}" if versions else start[0])


def _read_versions(python: str, distributions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the versions that an interpreter reports; none if it is broken, which shows when it is used."""
    if not distributions:
        return ()
    try:
        answer = subprocess.run(
            [python, "-c", _VERSIONS, *distributions],
            cwd=Path(python).parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(answer.stdout.splitlines())
