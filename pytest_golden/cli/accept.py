"""`golden accept NAME...`: accepts the present outputs of these golden projects, and of no others, as baselines.

It runs `pytest --golden --golden-update` for these projects and shows what it accepts. It is refused in CI.
Look at what it shows, then commit golden_baselines.

exit code: pytest's own, 0 when all of them ran as declared; 2 for bad input.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.options import add_options, find_manifest, get_project
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.report.shell_command import accept_arguments

if TYPE_CHECKING:
    import argparse

_KILLED = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden accept`."""
    parser.add_argument("names", metavar="NAME", nargs="+", help="A golden project's name.")
    add_options(parser, "--manifest")


def run(arguments: argparse.Namespace) -> int:
    """Run the gate over the named projects, and return its exit code."""
    path = find_manifest(arguments)
    manifest = load_manifest(path)
    names = dict.fromkeys(get_project(manifest, name).name for name in arguments.names)
    words = accept_arguments(names, path, Path.cwd(), is_default=False)
    with subprocess.Popen([sys.executable, "-m", "pytest", *words]) as gate:
        code = _wait(gate)
    return _KILLED - code if code < 0 else code


def _wait(gate: subprocess.Popen[bytes]) -> int:
    """Wait for the gate to end. Ctrl-C reaches the gate too, and it cleans up before it ends."""
    while True:
        try:
            return gate.wait()
        except KeyboardInterrupt:
            continue
