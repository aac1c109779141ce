"""`golden plan [REF]`: show which golden projects a gate would run, and why. It runs nothing.

With REF these are the projects that `pytest --golden --golden-changed REF` runs: those that changed since this branch left REF, those
whose last run did not pass, and those of which it is not known. Without REF every project runs. The time is the usual one of each.

exit code: 0 done, also if nothing would run; 2 bad input.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, make_table, print_table, styled
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.events import SecretHider
from pytest_golden.gate.run_record import open_existing
from pytest_golden.gate.state_folder import find_state_folder, find_store_place
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.history.recorded_store import read_history
from pytest_golden.history.trends import usual_duration
from pytest_golden.history.unchanged import Question, Selection, select_changed
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.wording import count_of, format_elapsed
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.console import Console

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.storage.store import Store

_EVERYTHING = "every project runs without a REF"
# What may judge every project, beside the modules that a conftest imports, which are known only once pytest has begun.
_JUDGING = ("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg")
_ENOUGH = 20


@dataclass(frozen=True, slots=True)
class PlannedProject(Shape):
    """Whether one project runs, and why. `usual_seconds` is the median of its recent passes, None if there are none."""

    name: str
    runs: bool
    why: str
    usual_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GatePlan(Shape):
    """Which projects a gate would run. `commit` is where this branch left the ref."""

    ref: str | None
    commit: str | None
    projects: tuple[PlannedProject, ...]

    @property
    def running(self) -> tuple[PlannedProject, ...]:
        """Return the projects that run."""
        return tuple(project for project in self.projects if project.runs)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden plan`."""
    parser.add_argument("ref", metavar="REF", nargs="?", help="The branch, tag or commit to compare with.")
    options.add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Show the plan."""
    if arguments.ref is not None and (not arguments.ref or arguments.ref.startswith("-")):
        raise SettingsError(f"{arguments.ref!r} is not a git ref: give a branch, a tag or a commit")
    settings = options.read_command_settings(arguments)
    manifest = load_manifest(options.find_manifest(arguments))
    with open_existing(find_store_place(settings.store, find_state_folder(manifest.workspace_root))) as store:
        plan = _make_plan(arguments.ref, manifest, store, is_recording=settings.reads)
    return answer(arguments, plan.to_dict, lambda console: _show(console, plan))


def _make_plan(ref: str | None, manifest: Manifest, store: Store | None, *, is_recording: bool) -> GatePlan:
    usual = dict(_find_usual(manifest, store))
    if ref is None:
        why = dict.fromkeys(usual, _EVERYTHING)
        selection = Selection("", why=why)
    else:
        with ExecutionGateway(manifest.workspace_root) as gateway:
            hider = SecretHider(gateway.redact, manifest.projects)
            judging = tuple(Path(manifest.path.parent, name) for name in _JUDGING) if manifest.path else ()
            question = Question(
                ref,
                manifest,
                hider.hide_for_all,
                judging=tuple(filter(os.path.exists, judging)),
                reads=is_recording,
                narrows=True,
            )
            try:
                selection = select_changed(question, store)
            except SettingsError as error:
                # It is told for the option of pytest.
                raise SettingsError(str(error).removeprefix("--golden-changed ")) from None
    projects = (
        PlannedProject(name, name in selection.why, selection.why.get(name, f"unchanged since {ref}"), seconds)
        for name, seconds in usual.items()
    )
    return GatePlan(ref, selection.commit, tuple(projects))


def _find_usual(manifest: Manifest, store: Store | None) -> Iterator[tuple[str, float | None]]:
    """Yield each project with how long it usually takes."""
    names = [project.name for project in manifest.projects]
    if store is None:
        yield from ((name, None) for name in names)
        return
    try:
        with store.read() as connection:
            for name in names:
                yield name, usual_duration(read_history(connection, name, _ENOUGH).runs).median_seconds
    except GoldenError:
        yield from ((name, None) for name in names)


def _show(console: Console, plan: GatePlan) -> None:
    table = make_table("project", "", "usual", "why", right=("usual",))
    for project in plan.projects:
        usual = "-" if project.usual_seconds is None else format_elapsed(project.usual_seconds)
        style = "" if project.runs else "dim"
        table.add_row(
            *(styled(cell, style) for cell in (project.name, "runs" if project.runs else "-", usual, project.why))
        )
    if plan.projects:
        print_table(console, table)
    known = [project.usual_seconds for project in plan.running if project.usual_seconds is not None]
    took = f", usually {format_elapsed(sum(known))}" if known else ""
    unknown = len(plan.running) - len(known)
    took += f" and {count_of(unknown, 'project')} of unknown duration" if known and unknown else ""
    console.print(styled(f"{len(plan.running)} of {count_of(len(plan.projects), 'project')} would run{took}"))
