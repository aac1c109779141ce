"""The options that several commands share (`--manifest`, `--store`, `--limit`, `--by`, times), and what their values mean."""

from __future__ import annotations

import getpass
import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.settings import MANIFEST_NAME, Sources, find_manifest_above, read_settings

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.settings import GoldenSettings
    from pytest_golden.storage.store import Store


_MOST_NAMED = 10
# The names that commands give to the gate's options.
_FLAGS = {"golden_manifest": "manifest", "golden_store": "store"}
_BEGINNING = "run `pytest --golden`, or log an intent with `golden journal log-intent`"
_MOST_DIGITS = 9


def add_manifest_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--manifest`."""
    parser.add_argument(
        "--manifest",
        metavar="PATH",
        help=f"The manifest (default: env GOLDEN_MANIFEST, else the nearest {MANIFEST_NAME}, in this folder or above).",
    )


def locate_manifest(settings: GoldenSettings) -> Path:
    """Return the path of the manifest that the command uses; it need not exist."""
    return settings.manifest or find_manifest_above(Path.cwd()) or Path.cwd() / MANIFEST_NAME


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


def get_project(manifest: Manifest, name: str) -> GoldenProjectConfig:
    """Get a project by its name.

    Raises:
        SettingsError: no project has this name; the message suggests the nearest one.
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


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`; the command declares `--manifest` too."""
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="The store: a file or URL (default: env GOLDEN_STORE_URL, else .golden/golden.db in the workspace root).",
    )


def add_gate_store_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--store` for a command that runs gates: `none` is allowed, and the gates create a missing store."""
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="The store: a file, a URL or none (default: env GOLDEN_STORE_URL, else .golden/golden.db).",
    )


def open_store(arguments: argparse.Namespace, *, makes: bool = False, busy_seconds: float | None = None) -> Store:
    """Open the store that the command uses; with `makes`, create one that does not exist yet.

    Wait up to `busy_seconds` for another writer, as long as a gate does if it is None.

    Raises:
        SettingsError: the store does not exist yet, or cannot exist at that location.
        ManifestError: the manifest, which tells the workspace root, cannot be used.
        StorageError: it cannot be opened.
    """
    # Many commands have these options and open no store.
    from pytest_golden.storage.engine import BUSY_SECONDS
    from pytest_golden.storage.store import Store

    seconds = BUSY_SECONDS if busy_seconds is None else busy_seconds
    return Store.open(locate_store(arguments, makes=makes), busy_seconds=seconds)


def locate_store(arguments: argparse.Namespace, *, makes: bool = False) -> str | Path:
    """Return the location of the store that the command uses, without opening it; with `makes`, it need not exist yet.

    Raises:
        SettingsError: the store does not exist yet, or cannot exist at that location.
        ManifestError: the manifest, which tells the workspace root, cannot be used.
    """
    from pytest_golden.gate.state_folder import find_state_folder, find_store_place

    if arguments.store is not None and not arguments.store.strip():
        raise SettingsError("--store is empty: give a file or none")
    settings = read_command_settings(arguments)
    # If the store's location is given, no manifest is needed.
    state_folder = Path() if settings.store else find_state_folder(_find_root(locate_manifest(settings)))
    place = find_store_place(settings.store, state_folder)
    if place is None:
        raise SettingsError("recording is off (`none` in --store or GOLDEN_STORE_URL): name a store")
    file = place.parse()
    if not makes and not file.is_there:
        raise SettingsError(f"nothing is recorded yet in {file.shown}: {_BEGINNING}")
    return place.location


def _find_root(manifest: Path) -> Path:
    from pytest_golden.manifest.reader import load_manifest

    return load_manifest(manifest).workspace_root if manifest.exists() else manifest.parent


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    parser.add_argument("--json", action="store_true", help="Print JSON instead of text for people.")


def add_limit_option(parser: argparse.ArgumentParser, default: int, told: str = "How many at most") -> None:
    """Declare `--limit`."""
    parser.add_argument("--limit", metavar="N", default=str(default), help=f"{told} (default {default}).")


def read_limit(text: str, most: int, option: str = "--limit") -> int:
    """Read the value of `--limit`, or of another option that is a limit.

    Raises:
        SettingsError: it is not a number from 1 to `most`.
    """
    # Cut, because Python refuses to read a number with thousands of digits.
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:_MOST_DIGITS]) <= most:
        raise SettingsError(f"{option} {text} cannot be used; give a number from 1 to {most}")
    return int(text)


def read_moment(option: str, text: str) -> datetime:
    """Read a time, or an age such as `90d`, `12h` or `30m`; a time without a zone is local.

    Raises:
        SettingsError: it is neither a time nor an age.
    """
    from pytest_golden.journal.review import parse_timestamp

    try:
        return parse_timestamp(text, utc_now())
    except ValueError as error:
        raise SettingsError(f"{option} {error}") from None


def add_person_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--by`."""
    parser.add_argument("--by", metavar="NAME", help="Who says so (default: the user).")


def find_person(arguments: argparse.Namespace) -> str:
    """Return the name of the person whose word it is: `--by`, else the user."""
    if arguments.by is not None:
        return str(arguments.by)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
