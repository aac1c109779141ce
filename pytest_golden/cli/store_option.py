"""The option `--store` and what stands behind it: which store a command means. Reading commands make none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli.manifest_option import locate_manifest, read_command_settings
from pytest_golden.errors import SettingsError
from pytest_golden.gate.lock import find_state_folder
from pytest_golden.gate.store_place import find_store_place
from pytest_golden.manifest import load_manifest
from pytest_golden.storage.engine import BUSY_SECONDS
from pytest_golden.storage.files import refuse_foreign
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    import argparse

_BEGINNING = "run `pytest --golden`, or log an intent with `golden journal log-intent`"


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`; the command declares `--manifest` too."""
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="The store: a file or URL (default: env GOLDEN_STORE_URL, else .golden/golden.db in the workspace root).",
    )


def open_store(arguments: argparse.Namespace, *, makes: bool = False, busy_seconds: float = BUSY_SECONDS) -> Store:
    """Open the store that is meant; with `makes`, one that is not there yet is made.

    `busy_seconds` is how long another writer is waited for.

    Raises:
        SettingsError: there is none yet, or none can be at that place.
        ManifestError: the manifest, which tells the workspace root, cannot be used.
        StorageError: it cannot be opened.
    """
    return Store.open(locate_store(arguments, makes=makes), busy_seconds=busy_seconds)


def locate_store(arguments: argparse.Namespace, *, makes: bool = False) -> str | Path:
    """Find the store that is meant, without opening it; with `makes`, one that need not be there yet.

    Raises:
        SettingsError: there is none yet, or none can be at that place.
        ManifestError: the manifest, which tells the workspace root, cannot be used.
    """
    if arguments.store is not None and not arguments.store.strip():
        raise SettingsError("--store is empty: give a file or none")
    settings = read_command_settings(arguments)
    # Whoever says where the store is needs no manifest.
    state_folder = Path() if settings.store else find_state_folder(_find_root(locate_manifest(settings)))
    place = find_store_place(settings.store, state_folder)
    if place is None:
        raise SettingsError("there is no store here: --store or GOLDEN_STORE_URL says none")
    file = parse_location(place.location)
    if file.path is not None and not place.is_own:
        refuse_foreign(file.path)
    if not makes and not file.is_on_server and (file.path is None or not file.path.is_file()):
        raise SettingsError(f"nothing is recorded yet in {file.shown}: {_BEGINNING}")
    return place.location


def _find_root(manifest: Path) -> Path:
    return load_manifest(manifest).workspace_root if manifest.exists() else manifest.parent
