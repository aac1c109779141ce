"""`golden init`: writes a first manifest, from what is found or from a command that is run once. Overwrites nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.discovery import MOST_FOUND, find_pipelines
from pytest_golden.cli.draft import draft_found, write_draft
from pytest_golden.cli.manifest_option import add_json_option, read_command_settings
from pytest_golden.cli.screen import open_console, print_json, print_list, styled
from pytest_golden.cli.trial import try_command
from pytest_golden.errors import SettingsError
from pytest_golden.manifest import MANIFEST_NAME, parse_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.failure_text import explain_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_golden.cli.draft import DraftedProject
    from pytest_golden.regression.model import GoldenProjectResult

_EPILOG = """\
Without --from it declares what it is sure of: Odibi projects, dbt projects and notebooks below the manifest's folder.
With --from it runs the command there once, in a copy-on-write view, and declares it with what it wrote:

    golden init --from "python etl.py --day 2026-01-01"

exit code: 0 written, 1 the command failed and nothing was written, 2 bad input (such as a manifest that exists)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden init`."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--from", dest="command", metavar="COMMAND", help="Run this command once and declare it with what it wrote."
    )
    parser.add_argument(
        "--manifest",
        metavar="PATH",
        help=f"The file to write (default: env GOLDEN_MANIFEST, else {MANIFEST_NAME} in this folder).",
    )
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the manifest."""
    settings = read_command_settings(arguments)
    path = settings.manifest or Path.cwd() / MANIFEST_NAME
    _require_free(path)
    if arguments.command is None:
        drafted = draft_found(find_pipelines(path.parent))
    else:
        result, project = try_command(arguments.command, path.parent, settings.sandbox)
        if result.status is not ResultStatus.PASSED:
            return _refuse(result, as_json=arguments.json)
        drafted = (project,)
    _write(path, write_draft(drafted))
    if arguments.json:
        projects = [{"name": each.name, "path": each.path, "runner": each.runner} for each in drafted]
        print_json({"manifest": str(path), "projects": projects})
    else:
        _show(path, drafted)
    return 0


def _require_free(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise SettingsError(f"{path} exists and is not overwritten; edit it, or name another file by --manifest")
    if not path.parent.is_dir():
        raise SettingsError(f"the folder {path.parent} does not exist; make it, or name another file by --manifest")


def _write(path: Path, text: str) -> None:
    parse_manifest(text, path.name, path.parent)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        _require_free(path)


def _refuse(result: GoldenProjectResult, *, as_json: bool) -> int:
    if as_json:
        print_json({"error": result.error_message, "exit_code": result.exit_code, "output": result.output_summary})
    else:
        console = open_console()
        console.print(styled("the command did not pass, so nothing was written", "bold red"))
        console.print(styled(explain_failure(result, shell_command=None)))
    return 1


def _show(path: Path, drafted: Sequence[DraftedProject]) -> None:
    console = open_console()
    count = len(drafted)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    console.print(styled(f"wrote {shown} with {count} golden project{'' if count == 1 else 's'}", "bold"))
    print_list(console, [(project.name, f"{project.runner}  {project.path}") for project in drafted])
    if count == MOST_FOUND:
        console.print(styled(f"there may be more: it stops at {MOST_FOUND}"))
    if not drafted:
        console.print(styled("no pipeline was recognised for certain: declare one as the comments in the file show"))
    first = drafted[0].name if drafted else "NAME"
    is_default = shown == Path(MANIFEST_NAME)
    ours, pytests = ("", "") if is_default else (f" --manifest {shown}", f" --golden-manifest {shown}")
    console.print(styled("next:"))
    print_list(
        console,
        [
            (f"golden check{ours}", "see what would be run, and what is missing here"),
            (f"golden run {first}{ours}", "run one"),
            (f"pytest --golden{pytests}", "run the gate"),
        ],
    )
