"""`golden doctor`: tells what works on this machine, and how to get the rest. It changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.text import Text

from pytest_golden.cli.findings import State, examine_installation, examine_sandbox, examine_workspace
from pytest_golden.cli.found_model import examine_model
from pytest_golden.cli.found_runners import examine_runners
from pytest_golden.cli.found_store import examine_store
from pytest_golden.cli.manifest_option import (
    add_json_option,
    add_manifest_option,
    locate_manifest,
    read_command_settings,
)
from pytest_golden.cli.screen import open_console, print_beside, print_json, styled
from pytest_golden.errors import ManifestError
from pytest_golden.manifest import load_manifest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from pytest_golden.cli.findings import Finding

_MARKS = {
    State.GOOD: ("ok", "green"),
    State.LIMITED: ("!!", "yellow"),
    State.ABSENT: ("--", "dim"),
    State.BAD: ("no", "bold red"),
}
_EPILOG = "exit code: 0 the gate can run here, 1 it cannot."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden doctor`."""
    parser.epilog = _EPILOG
    add_manifest_option(parser)
    add_json_option(parser)


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
    if arguments.json:
        print_json({"can_run": can_run, "findings": [finding.to_dict() for finding in findings]})
    else:
        _show(open_console(), findings, can_run=can_run)
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
