"""The JSON Schema of the manifest, for editors, made from the tables of keys. The checks themselves are in `kinds.py`."""

from __future__ import annotations

from typing import Any

from pytest_golden.manifest.keys import FILE_KEYS
from pytest_golden.manifest.kinds import record_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `golden_projects.yaml`.

    It says what one key may hold. Only `load_manifest` finds conflicts between keys or projects and broken regular
    expressions. Each call returns a new value.
    """
    return {
        "$schema": DIALECT,
        "title": "golden_projects.yaml",
        "description": "The golden projects of a workspace: pipelines that must always work.",
        **record_schema(FILE_KEYS),
    }
