"""`golden diff REF [NAME...]`: show what this change does to the data, without baselines and without a verdict.

It runs the golden projects at the commit where this branch left REF (the base) and in your working tree (the head), and shows how each
output and table differs. Both run in this environment, unless --python names another one for the head. A base with a
`setup:` gets its own environment, as in `golden verify`. Rules about unstable parts apply; every other difference is shown.
On GitHub, the result is added to the summary of the job.

With `--env-a LOCK --env-b LOCK` instead of REF, it shows the effect of an upgrade: both lock files are installed into temporary
environments, and the projects of the working tree run in each.

exit code: 0 whatever differs; 2 bad input or interrupted; 3 REF does not exist, or its manifest cannot be used.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.screen import open_console, print_json, show_status, styled
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.state_folder import find_store_place, hold_gate_lock, list_store_files, prepare_state_folder
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.history.base_files import find_checkout
from pytest_golden.manifest.reader import load_manifest, parse_manifest
from pytest_golden.regression.wording import count_of
from pytest_golden.report.github import collapse, is_on_github
from pytest_golden.report.html_page import Html, describe_table, make_page, one_line, tag
from pytest_golden.report.report_files import append_report, write_report
from pytest_golden.report.result_text import make_visible
from pytest_golden.verify.base_worktree import (
    BaseEnvironment,
    BaseWorktree,
    PrivateFolder,
    find_base,
    find_setup_seconds,
    read_head,
)
from pytest_golden.verify.output_diff import DataDiff, DiffKind, DiffSide, ProjectDiff, diff_project

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.console import Console

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.settings import GoldenSettings
    from pytest_golden.verify.gates import BaseCommit, HeadCommit

_NO_BASE = 3
_SHORT = 12
_TITLE = "What this change does to the data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden diff`."""
    parser.add_argument("base", metavar="REF", nargs="?", help="The branch, tag or commit to compare with.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="Golden projects (default: all with outputs).")
    parser.add_argument("--env-a", metavar="LOCK", type=Path, help="The requirements of the first environment.")
    parser.add_argument("--env-b", metavar="LOCK", type=Path, help="The requirements of the second environment.")
    parser.add_argument(
        "--python", metavar="PATH", type=Path, help="The Python of the head's pipelines without a venv."
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="Write it as one HTML page, with tables to unfold.")
    options.add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Run both sides, and show what differs."""
    locks = [lock for lock in (arguments.env_a, arguments.env_b) if lock is not None]
    if not locks:
        if arguments.base is None:
            raise SettingsError("give the REF to compare with, such as `golden diff main`, or --env-a and --env-b")
        return options.run_against_base(arguments, lambda settings, manifest: _diff(arguments, settings, manifest))
    if len(locks) == 1:
        raise SettingsError("--env-a and --env-b go together: one commit is run in both environments")
    for lock in locks:
        if not lock.is_file():
            raise SettingsError(
                f"{lock} is not a file: give the requirements of an environment, such as a lock file of pip"
            )
    # Without a REF, all words are names.
    arguments.names = [name for name in (arguments.base, *arguments.names) if name is not None]
    arguments.base = None
    return options.run_against_base(
        arguments, lambda settings, manifest: _diff_environments(arguments, settings, manifest)
    )


def _diff_environments(arguments: argparse.Namespace, settings: GoldenSettings, manifest: Path) -> int:
    declared = load_manifest(manifest)
    head = read_head(manifest.parent)
    names = _choose(arguments, declared, declared)
    with (
        TemporaryDirectory(prefix="golden-environments-") as folder,
        hold_gate_lock(declared.workspace_root, options.say),
    ):
        there, here = (
            _use_environment(declared, _make_environment(lock, Path(folder, name)))
            for lock, name in ((arguments.env_a, "a"), (arguments.env_b, "b"))
        )
        projects = tuple(_run_all(names, there, here, settings))
    found = DataDiff(head.commit, head.commit, bool(head.dirty), projects, str(arguments.env_a), str(arguments.env_b))
    _tell(arguments, found, f"base {arguments.env_a}, head {arguments.env_b}, both at {_describe_commit(head)}")
    return 0


def _make_environment(lock: Path, folder: Path) -> Path:
    """Make a virtual environment with what a lock file names.

    Raises:
        SettingsError: it cannot be installed.
    """
    install = (
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
        "-r",
        str(lock.absolute()),
    )
    with show_status(f"install {lock}", lambda: None):
        for program, words in ((sys.executable, ("-m", "venv", str(folder))), (f"{folder}/bin/python", install)):
            done = subprocess.run([program, *words], capture_output=True, text=True, errors="replace", check=False)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().split("\n")
                why = next((line for line in said if line.startswith("ERROR")), said[-1])
                raise SettingsError(f"{lock} cannot be installed: {make_visible(why)}")
    return folder


def _use_environment(manifest: Manifest, folder: Path) -> Manifest:
    return replace(manifest, projects=tuple(replace(one, venv=str(folder)) for one in manifest.projects))


def _diff(arguments: argparse.Namespace, settings: GoldenSettings, manifest: Path) -> int:
    declared = load_manifest(manifest)
    head = read_head(manifest.parent)
    try:
        base = find_base(manifest, arguments.base, head)
        checkout = find_checkout(manifest.parent)
        with PrivateFolder(outside=checkout) as private, ExitStack() as held:
            tree = BaseWorktree(checkout, private.path, base.commit)
            held.callback(tree.close)
            for gap in tree.find_gaps():
                options.say(gap)
            place, there = _read_base(manifest, base, tree, checkout)
            names = _choose(arguments, declared, there)
            environment = BaseEnvironment(checkout, tree.root, private.path, os.environ, declared.list_passed())
            # It runs outside the seal, so that of a change which brings the first manifest never does.
            setup = there.setup if base.manifest is not None else None
            if setup is not None:
                options.say("base: running its `setup:`")
            python_of_base = environment.prepare(place, setup, find_setup_seconds(there.projects)).python
            held.enter_context(hold_gate_lock(declared.workspace_root, options.say))
            python = str(arguments.python.absolute()) if arguments.python else sys.executable
            projects = tuple(_run_all(names, there, declared, settings, (python_of_base, python)))
    except SettingsError:
        raise
    except GoldenError as error:
        if arguments.json:
            print_json({"error": str(error)})
        options.say(str(error))
        return _NO_BASE
    found = DataDiff(base.commit, head.commit, bool(head.dirty), projects)
    _tell(arguments, found, f"base {base.commit[:_SHORT]} ({base.ref}), head {_describe_commit(head)}")
    return 0


def _tell(arguments: argparse.Namespace, found: DataDiff, sides: str) -> None:
    if arguments.html:
        write_report(arguments.html, _make_page(found, sides), option="--html")
    _add_to_summary(found, sides)
    if arguments.json:
        print_json(found.to_dict())
    else:
        _show(open_console(), found, sides)


def _read_base(manifest: Path, base: BaseCommit, tree: BaseWorktree, checkout: Path) -> tuple[Path, Manifest]:
    """Read the base's manifest in its worktree, and say where it is; without one, the head's declares what is run there."""
    of_side = base.manifest or manifest
    place = tree.root / Path(os.path.realpath(of_side.parent), of_side.name).relative_to(os.path.realpath(checkout))
    if base.manifest is not None:
        return place, load_manifest(place)
    options.say(f"the base has no {manifest.name}: its files are run as the head declares it")
    return place, parse_manifest(manifest.read_text(encoding="utf-8"), manifest.name, place.parent)


def _choose(arguments: argparse.Namespace, declared: Manifest, there: Manifest) -> list[str]:
    known = [project.name for manifest in (declared, there) for project in manifest.projects if project.outputs]
    if arguments.names:
        return [name if name in known else declared.get_project(name).name for name in dict.fromkeys(arguments.names)]
    return list(dict.fromkeys(known))


def _run_all(
    names: list[str],
    there: Manifest,
    declared: Manifest,
    settings: GoldenSettings,
    pythons: tuple[str, str] = (sys.executable, sys.executable),
) -> Iterator[ProjectDiff]:
    """Run the projects on both sides, where they declare no environment by the Python of the base and that of the head."""
    hidden = list_store_files(find_store_place(settings.store, prepare_state_folder(declared.workspace_root)))
    with (
        ExecutionGateway(declared.workspace_root, view=settings.sandbox, hidden=hidden, python=pythons[1]) as of_head,
        ExecutionGateway(there.workspace_root, view=settings.sandbox, hidden=hidden, python=pythons[0]) as of_base,
        TemporaryDirectory(prefix="golden-diff-") as scratch,
    ):
        for number, name in enumerate(names):
            base = DiffSide(there.find_project(name), of_base)
            head = DiffSide(declared.find_project(name), of_head)

            def step() -> str | None:
                return of_head.present_step() or of_base.present_step()

            with show_status(name, step):
                yield diff_project(name, base, head, Path(scratch, str(number)))


def _describe_commit(head: HeadCommit) -> str:
    edits = " with uncommitted edits" if head.dirty else ""
    return f"{head.commit[:_SHORT] if head.commit else 'no commit'}{edits}"


def _add_to_summary(found: DataDiff, sides: str) -> None:
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not is_on_github() or not summary:
        return
    try:
        append_report(Path(summary), lambda _: _summarize(found, sides), named="GITHUB_STEP_SUMMARY")
    except GoldenError as error:
        # Nobody asked for it.
        options.say(str(error))


def _summarize(found: DataDiff, sides: str) -> str:
    """Return what the job's summary, and so the comment on the pull request, has: folded, if there is anything to see."""
    count = sum(len(project.changed) for project in found.projects)
    failed = sum(not project.is_comparable for project in found.projects)
    told = [f"{count_of(count, 'output')} changed" if count else "no output changed"]
    told += [f"{count_of(failed, 'project')} failed on a side"] if failed else []
    text = "\n\n".join("\n".join(_describe(project)) for project in found.projects)
    folded = collapse(f"{_TITLE}: {', '.join(told)}", f"{sides}\n\n{text}")
    return f"\n{folded}\n"


def _make_page(found: DataDiff, sides: str) -> str:
    sections = [
        tag("section", tag("h2", tag("code", one_line(project.name))), *_describe_project(project))
        for project in found.projects
    ]
    header = tag("header", tag("h1", _TITLE), tag("p", sides))
    return make_page(_TITLE, [header, tag("main", *sections, id="main")])


def _describe_project(project: ProjectDiff) -> Iterator[Html]:
    yield tag("p", tag("strong", next(_describe(project)).removeprefix(f"{project.name}: ")))
    for output in project.changed:
        headline, _, details = make_visible(output.message).partition("\n")
        told = (
            headline
            if output.kind is DiffKind.CHANGED
            else f"{make_visible(output.path)} is {output.kind} ({headline})"
        )
        yield tag("h3", told)
        if details:
            yield tag("pre", details, tabindex=0)
        if output.table is not None and output.table.columns:
            yield describe_table(output.table, "Base")


def _show(console: Console, found: DataDiff, sides: str) -> None:
    console.print(styled(sides))
    for project in found.projects:
        console.print()
        for line in _describe(project):
            console.print(styled(line), soft_wrap=True)


def _describe(project: ProjectDiff) -> Iterator[str]:
    for side, error in (("base", project.base_error), ("head", project.head_error)):
        if error is not None:
            yield f"{project.name}: nothing to compare, since it failed on the {side}: {make_visible(error)}"
    if not project.is_comparable:
        return
    same = len(project.outputs) - len(project.changed)
    changed = count_of(len(project.changed), "output")
    yield f"{project.name}: {f'{changed} changed' if project.changed else 'no output changed'}, {same} as before"
    for output in project.changed:
        first, *rest = make_visible(output.message).split("\n")
        if output.kind is DiffKind.CHANGED:
            yield f"  {first}"
            yield from (f"    {line}" for line in rest)
        else:
            yield f"  {make_visible(output.path)} is {output.kind} ({first})"
