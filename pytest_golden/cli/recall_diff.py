"""`golden recall --diff REF`: which golden projects broke when these files changed before. It reads; it runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.manifest_option import locate_manifest, read_command_settings
from pytest_golden.cli.screen import open_console, print_indented, print_json, styled
from pytest_golden.cli.store_option import open_store
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.gate.lessons.before import foresee
from pytest_golden.manifest import load_manifest

if TYPE_CHECKING:
    import argparse

    from pytest_golden.gate.lessons.before import Foresight


def add_diff_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--diff`."""
    parser.add_argument(
        "--diff",
        metavar="REF",
        help="Instead of TEXT: tell which golden projects broke when files changed that differ from this ref, edits included.",
    )


def run_diff(arguments: argparse.Namespace) -> int:
    """Tell what the present changes have broken before."""
    ref = str(arguments.diff)
    if not ref.strip() or ref.startswith("-"):
        raise SettingsError(f"--diff {ref!r} is no git ref: give a branch, a tag or a commit")
    folder, declared = _find_workspace(arguments)
    wanted = declared if arguments.project is None else (arguments.project,)
    if arguments.project is not None and declared is not None and arguments.project not in declared:
        raise SettingsError(f"no golden project called {arguments.project!r} is declared")
    with open_store(arguments) as store:
        try:
            told = foresee(store, folder, ref, projects=wanted)
        except GoldenError as error:
            raise SettingsError(f"--diff {ref}: {error}") from None
    if arguments.json:
        print_json(told.to_dict())
    else:
        _show(told)
    return 0


def _find_workspace(arguments: argparse.Namespace) -> tuple[Path, tuple[str, ...] | None]:
    """Give the workspace root and the declared names; this folder and None where no manifest can be read."""
    try:
        manifest = load_manifest(locate_manifest(read_command_settings(arguments)))
    except ManifestError:
        return Path.cwd(), None
    return manifest.workspace_root, tuple(project.name for project in manifest.projects)


def _show(told: Foresight) -> None:
    console = open_console()
    count = len(told.files)
    changed = f"{count} file{'' if count == 1 else 's'} changed since {told.ref}"
    if not told.projects:
        console.print(styled(f"{changed}: no golden project is known to have broken by that"))
        return
    console.print(styled(changed, "dim"))
    for one in told.projects:
        first, *more = one.lines
        console.print(styled(first, "bold"))
        for line in more:
            text = line.lstrip()
            print_indented(console, text, len(line) - len(text))
