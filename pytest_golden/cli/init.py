"""`golden init`: write a first manifest, from the pipelines that are found or from a command.

Without --from, it declares the projects of engines and the notebooks below the manifest's folder. With --yes, or if the person at the
terminal agrees, it runs each of them twice, in a copy-on-write view. It declares the files that they wrote. Data files become outputs,
with the rules that make them stable (see `golden calibrate`). With --from, it does the same for a command:

    golden init --from "python etl.py --day 2026-01-01"

With --from-fix, it drafts projects that would have caught a mistake that a commit fixed, and tries them with and without that commit.

With --no-calibrate, it declares no outputs: it runs nothing, or the command of --from once.

exit code: 0 written, 1 the command failed, or no draft catches the mistake, and nothing was written, 2 bad input (such as an existing manifest).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli import great_expectations, nf_test, pytest_workflow
from pytest_golden.cli.drafting import draft_found, name_apart, write_draft, write_project
from pytest_golden.cli.finding_pipelines import MOST_FOUND, find_pipelines
from pytest_golden.cli.options import add_limit_option, add_options, read_command_settings, read_limit, say
from pytest_golden.cli.screen import answer, ask_person, print_list, styled
from pytest_golden.cli.trial import find_covered, try_command, try_pipeline
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.manifest.amending import add_projects, rewrite_manifest
from pytest_golden.manifest.reader import MANIFEST_NAME, load_manifest, parse_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import count_of, name_some
from pytest_golden.report.result_text import explain_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from pytest_golden.cli.drafting import DraftedProject
    from pytest_golden.cli.from_fix import TriedDraft
    from pytest_golden.history.suspects import Fix
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.model import GoldenProjectResult

_MOST_DECLARED, _MOST_NAMED = 10_000, 5
_TRANSLATORS = {one.NAME: one.translate_tests for one in (nf_test, pytest_workflow, great_expectations)}
_REFUSALS, _CONSENTS = frozenset({"n", "no"}), frozenset({"y", "yes"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden init`."""
    parser.add_argument(
        "--from",
        dest="command",
        metavar="COMMAND",
        help="Run this command twice, and declare it with its outputs; or translate the tests of `pytest-workflow`, `nf-test` or `great-expectations`.",
    )
    parser.add_argument(
        "--from-fix",
        metavar="REF",
        help="Draft projects that fail without this commit and pass with it: its tests, and the pipelines whose programs it fixed.",
    )
    parser.add_argument(
        "--yes", action="store_true", help="Run the pipelines that are found, without asking, to declare their outputs."
    )
    parser.add_argument(
        "--no-calibrate", action="store_true", help="Declare no outputs: run nothing, or the command of --from once."
    )
    parser.add_argument("--add", action="store_true", help="Append the missing projects to an existing manifest.")
    parser.add_argument(
        "--manifest",
        metavar="PATH",
        help=f"The file to write (default: env GOLDEN_MANIFEST, else {MANIFEST_NAME} in this folder).",
    )
    parser.add_argument(
        "--fewest",
        action="store_true",
        help="With --yes: leave out pipelines of which others read 90 %% of the code.",
    )
    add_limit_option(parser, MOST_FOUND, "The most projects to declare")
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the manifest."""
    most_found = read_limit(arguments.limit, _MOST_DECLARED)
    _require_trial(arguments)
    settings = read_command_settings(arguments)
    path = settings.manifest or Path.cwd() / MANIFEST_NAME
    declared = load_manifest(path) if arguments.add else None
    if declared is None:
        _require_free(path)
    root = path.parent if declared is None else declared.workspace_root
    view = settings.sandbox
    covered: dict[str, int] = {}
    try:
        if arguments.from_fix is None and arguments.command is None:
            drafted, covered = _draft_found(arguments, root, view, declared, most_found)
        else:
            drafted = _draft_named(arguments, root, view, declared)
    except _NothingWritten as found:
        answer(arguments, found.facts, found.show)
        return 1
    is_full = len(drafted) + len(covered) == most_found
    drafted = name_apart(drafted, _list_names(declared))
    if declared is None:
        _write(path, write_draft(drafted))
    elif drafted:
        _complete(path, drafted)
    projects = [
        {
            "name": each.name,
            "path": each.path,
            "runner": each.runner,
            "outputs": [output.path for output in each.outputs],
        }
        for each in drafted
    ]
    facts = {"manifest": str(path), "projects": projects, "left_out": covered}

    def show(console: Console) -> None:
        _show(console, path, drafted, is_added=arguments.add)
        told = "left out: others read {share} % of its code"
        print_list(console, [(name, told.format(share=share)) for name, share in covered.items()])
        if is_full:
            console.print(styled(f"there may be more: it stops at {most_found}; `golden init --add` continues"))
        _show_next(console, path, drafted, is_added=arguments.add)

    return answer(arguments, facts, show)


def _require_trial(arguments: argparse.Namespace) -> None:
    is_tried = arguments.yes and not (arguments.command or arguments.from_fix or arguments.no_calibrate)
    if arguments.fewest and not is_tried:
        raise SettingsError(
            "--fewest compares the pipelines that were found by running them: give it with --yes, and without --from and --no-calibrate"
        )


class _NothingWritten(Exception):  # noqa: N818 - it is not an error of the program
    """Nothing is written, and why: as JSON, and for a person."""

    def __init__(self, facts: dict[str, Any], show: Callable[[Console], None]) -> None:
        super().__init__()
        self.facts = facts
        self.show = show


def _draft_found(
    arguments: argparse.Namespace, root: Path, view: str, declared: Manifest | None, most_found: int
) -> tuple[tuple[DraftedProject, ...], dict[str, int]]:
    """Draft the pipelines that are found. Return those to declare, and those that `--fewest` leaves out, with their shares."""
    found = find_pipelines(root, most_found=most_found, known=_list_declared(declared))
    drafted = draft_found(found, root, _list_names(declared))
    if not _is_trial_wanted(arguments, drafted):
        return drafted, {}
    drafted = _try_all(drafted, root, view)
    covered = find_covered(drafted)
    unknown = [project.name for project in drafted if project.code is None]
    if arguments.fewest and unknown:
        say(
            f"declared anyway, because their reads are not known: {name_some(unknown, _MOST_NAMED)} (they did not pass, or have no overlay view)"
        )
    if not covered or not _are_fewest_wanted(arguments, len(drafted), len(covered)):
        return drafted, {}
    return tuple(project for project in drafted if project.name not in covered), covered


def _draft_named(
    arguments: argparse.Namespace, root: Path, view: str, declared: Manifest | None
) -> tuple[DraftedProject, ...]:
    if arguments.from_fix is not None:
        return _draft_from_fix(arguments, root, view, _list_declared(declared))
    if arguments.command in _TRANSLATORS:
        return tuple(_TRANSLATORS[arguments.command](root))
    return (_draft_command(arguments, root, view),)


def _draft_command(arguments: argparse.Namespace, root: Path, view: str) -> DraftedProject:
    result, project = try_command(arguments.command, root, view, runs=1 if arguments.no_calibrate else 2)
    if result.status is not ResultStatus.PASSED:
        told = {"error": result.error_message, "exit_code": result.exit_code, "output": result.output_summary}
        raise _NothingWritten(told, lambda console: _show_failure(console, result))
    return project


def _draft_from_fix(
    arguments: argparse.Namespace, root: Path, view: str, known: frozenset[str]
) -> tuple[DraftedProject, ...]:
    if arguments.command is not None:
        raise SettingsError("--from and --from-fix draft from different things: give one of them")
    if not arguments.from_fix.strip() or arguments.from_fix.startswith("-"):
        raise SettingsError(
            f"--from-fix {arguments.from_fix!r} is not a git ref: give the commit that mended something"
        )
    # Few start from a fix.
    from pytest_golden.cli.from_fix import draft_from_fix

    try:
        fix, tried, drafted = draft_from_fix(arguments.from_fix, root, view, known)
    except SettingsError:
        raise
    except GoldenError as error:
        raise SettingsError(f"--from-fix {arguments.from_fix}: {error}") from None
    if not drafted:
        facts = {"fix": fix._asdict(), "tried": [one.to_dict() for one in tried]}
        raise _NothingWritten(facts, lambda console: _show_unprotected(console, fix, tried))
    return drafted


def _show_unprotected(console: Console, fix: Fix, tried: Sequence[TriedDraft]) -> None:
    told = f"no draft fails without the fix {fix.commit[:12]} and passes with it, so nothing was written"
    console.print(styled(told, "bold red"))
    print_list(console, [(one.name, one.told) for one in tried])


def _is_trial_wanted(arguments: argparse.Namespace, drafted: Sequence[DraftedProject]) -> bool:
    if arguments.no_calibrate or not drafted:
        return False
    if arguments.yes or arguments.json:
        return bool(arguments.yes)
    count = count_of(len(drafted), "pipeline")
    said = ask_person(f"found {count}; run each twice, in a copy, to declare its outputs? [Y/n] ")
    return said is not None and said != "" and said.strip().lower() not in _REFUSALS


def _are_fewest_wanted(arguments: argparse.Namespace, tried: int, covered: int) -> bool:
    if arguments.yes:
        return bool(arguments.fewest)
    said = ask_person(f"the others read 90 % of the code of {covered} of these {tried}; leave those out? [y/N] ")
    return said is not None and said.strip().lower() in _CONSENTS


def _try_all(drafted: Sequence[DraftedProject], root: Path, view: str) -> tuple[DraftedProject, ...]:
    """Try one project after the other; those that an interruption leaves are declared as they are."""
    tried: list[DraftedProject] = []
    try:
        tried.extend(try_pipeline(project, root, view) for project in drafted)
    except KeyboardInterrupt:
        say(f"interrupted: {count_of(len(drafted) - len(tried), 'pipeline')} not tried, and declared without outputs")
    return (*tried, *drafted[len(tried) :])


def _list_names(declared: Manifest | None) -> frozenset[str]:
    return frozenset(project.name for project in declared.projects) if declared else frozenset()


def _list_declared(declared: Manifest | None) -> frozenset[str]:
    """Return the files of the pipelines that a manifest declares already."""
    if declared is None:
        return frozenset()
    root = declared.workspace_root
    return frozenset(os.path.realpath(root / Path(one.path).expanduser()) for one in declared.projects)


def _complete(path: Path, drafted: Sequence[DraftedProject]) -> None:
    """Add projects to a manifest that is there."""
    text = add_projects(path.read_text(encoding="utf-8"), [list(write_project(project)) for project in drafted])
    rewrite_manifest(path, text)


def _require_free(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise SettingsError(f"{path} exists and is not overwritten; edit it, or name another file with --manifest")
    if not path.parent.is_dir():
        raise SettingsError(f"the folder {path.parent} does not exist; create it, or name another file with --manifest")


def _write(path: Path, text: str) -> None:
    parse_manifest(text, path.name, path.parent)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        _require_free(path)


def _show_failure(console: Console, result: GoldenProjectResult) -> None:
    console.print(styled("the command did not pass, so nothing was written", "bold red"))
    console.print(styled(explain_failure(result, shell_command=None)))


def _has_addopts(root: Path) -> bool:
    """Tell whether pytest is configured with options, such as of a plug-in, that the gate's environment may not know."""
    for name in ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        with suppress(OSError):
            if b"addopts" in (root / name).read_bytes():
                return True
    return False


def _shorten(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _show(console: Console, path: Path, drafted: Sequence[DraftedProject], *, is_added: bool) -> None:
    count, shown = len(drafted), _shorten(path)
    told = (
        f"added {count_of(count, 'golden project')} to {shown}"
        if is_added
        else f"wrote {shown} with {count_of(count, 'golden project')}"
    )
    console.print(styled(told, "bold"))
    print_list(console, [(project.name, f"{project.runner}  {project.path}") for project in drafted])
    for project in drafted:
        print_list(console, [(f"  {project.name}:", told) for told in project.told])


def _show_next(console: Console, path: Path, drafted: Sequence[DraftedProject], *, is_added: bool) -> None:
    shown = _shorten(path)
    if not drafted and is_added:
        console.print(styled("every recognized pipeline is already declared"))
        return
    if not drafted:
        console.print(
            styled("no pipeline was recognized with certainty: the comments in the file show how to declare one")
        )
    first = drafted[0].name if drafted else "NAME"
    is_default = shown == Path(MANIFEST_NAME)
    ours, pytests = ("", "") if is_default else (f" --manifest {shown}", f" --golden-manifest {shown}")
    console.print(styled("next:"))
    moves = {
        f"golden check{ours}": "see what would be run, and what is missing here",
        f"golden run {first}{ours}": "run one",
        **(
            {f"golden gate{ours}": "run the gate, without the addopts of your tests"}
            if _has_addopts(path.parent)
            else {f"pytest --golden{pytests}": "run the gate"}
        ),
    }
    judged = next((project.name for project in drafted if project.outputs), None)
    if judged is not None:
        moves[f"golden accept {judged}{ours}"] = "accept its first outputs as baselines, after the gate"
    print_list(console, moves.items())
