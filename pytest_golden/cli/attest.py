"""`golden attest check FILE`: check a signed statement about a commit, as `--golden-attest` writes it.

The statement holds if it is unchanged since the key signed it, if it is about this commit with its manifest and baselines, if all golden
projects ran, and if the verdict is PASSED.

exit code: 0 it holds, 1 it does not, 2 bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.options import Action, add_actions, find_manifest, run_action
from pytest_golden.cli.screen import answer, styled
from pytest_golden.gateway.git import find_commit
from pytest_golden.report.attestation import check_statement, read_public_key

if TYPE_CHECKING:
    import argparse

    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden attest`."""
    add_actions(parser, ACTIONS, "--manifest", "--json")


run = run_action


def _declare_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="The signed statement.")
    parser.add_argument(
        "--key",
        metavar="PUB",
        required=True,
        help="The public key, Ed25519 as PEM; none if another program has checked who signed the file.",
    )
    parser.add_argument(
        "--commit", metavar="SHA", default="HEAD", help="The commit that must have passed (default: HEAD)."
    )
    parser.add_argument("--base", metavar="REF", help="The commit that it must have been compared with.")


def _check(arguments: argparse.Namespace) -> int:
    """Check whether a signed statement says that a commit passed."""
    manifest, key = find_manifest(arguments), read_public_key(arguments.key)
    commit = find_commit(manifest.parent, arguments.commit)
    base = None if arguments.base is None else find_commit(manifest.parent, arguments.base)
    text = arguments.file.read_text(encoding="utf-8", errors="replace")
    verdict, faults = check_statement(text, key, manifest, commit, base)

    def show(console: Console) -> None:
        if not faults:
            console.print(styled(f"{arguments.file} holds for {commit}: {verdict}", "bold green"))
        for fault in faults:
            console.print(styled(f"{arguments.file} does not hold for {commit}: {fault}", "bold red"))

    answer(arguments, {"holds": not faults, "commit": commit, "faults": faults, "verdict": verdict}, show)
    return 1 if faults else 0


ACTIONS = (Action("check", _check, _declare_check),)
