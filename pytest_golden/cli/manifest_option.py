"""The option `--manifest` and what stands behind it: which manifest a command means, and the settings around it."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import SettingsError
from pytest_golden.settings import MANIFEST_NAME, Sources, find_manifest_above, read_settings

if TYPE_CHECKING:
    import argparse

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.settings import GoldenSettings

_MOST_NAMED = 10
# What a command calls the gate's options, where it has them.
_FLAGS = {"golden_manifest": "manifest", "golden_store": "store"}


def add_manifest_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--manifest`."""
    parser.add_argument(
        "--manifest",
        metavar="PATH",
        help=f"The manifest (default: env GOLDEN_MANIFEST, else the nearest {MANIFEST_NAME}, in this folder or above).",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="Print JSON instead of text for people.")


def read_command_settings(arguments: argparse.Namespace) -> GoldenSettings:
    """Read the options that the command line shares with the gate, from flags and environment variables.

    Raises:
        SettingsError: a variable has a value that cannot be used.
    """

    def find_flag(key: str) -> Any:
        return getattr(arguments, _FLAGS.get(key, ""), None)

    here = Path.cwd()
    try:
        return read_settings(Sources(find_flag, lambda _: None, os.environ, here, here))
    except ValueError as error:
        raise SettingsError(str(error)) from None


def locate_manifest(settings: GoldenSettings) -> Path:
    """Give the manifest that is meant; it need not exist."""
    return settings.manifest or find_manifest_above(Path.cwd()) or Path.cwd() / MANIFEST_NAME


def get_project(manifest: Manifest, name: str) -> GoldenProjectConfig:
    """Get a project by its name.

    Raises:
        SettingsError: there is none of this name; the nearest is suggested.
    """
    project = manifest.find_project(name)
    if project is not None:
        return project
    names = [project.name for project in manifest.projects]
    near = get_close_matches(name, names, n=1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif names:
        more = len(names) - _MOST_NAMED
        hint = f"declared are {', '.join(names[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")
    else:
        hint = "none is declared"
    raise SettingsError(f"no golden project is called {name!r} in {manifest.path}; {hint}")
