"""Which store is meant when none is named: the one that the gate uses in this folder. Opens nothing."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_golden.errors import SettingsError
from pytest_golden.manifest import load_manifest
from pytest_golden.settings import NO_STORE, find_manifest_above
from pytest_golden.storage.folder import STATE_FOLDER, STORE_NAME

_VARIABLE = "GOLDEN_STORE_URL"


def find_default_store() -> str | Path:
    """Give GOLDEN_STORE_URL, else `.golden/golden.db` in the workspace root of the nearest manifest, else in this folder.

    Raises:
        SettingsError: GOLDEN_STORE_URL says that there is to be no store.
        ManifestError: the manifest cannot be read.
    """
    said = os.environ.get(_VARIABLE)
    if said == NO_STORE:
        raise SettingsError(f"{_VARIABLE} is {NO_STORE}, so there is no store here; name one")
    if said:
        return said
    manifest = os.environ.get("GOLDEN_MANIFEST") or find_manifest_above(Path.cwd())
    root = Path.cwd() if manifest is None else load_manifest(Path(manifest)).workspace_root
    return root / STATE_FOLDER / STORE_NAME
