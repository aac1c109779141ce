"""The keys of the file as a whole, and the JSON Schema of it all. The keys of its parts are the fields in `model.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.manifest import kinds
from pytest_golden.manifest.kinds import TEXT, Key, Kind, Table, list_of, record_of, record_schema
from pytest_golden.manifest.model import PROJECT_KEYS, RETIRED_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_KEYS = PROJECT_KEYS.without(
    {name: f"{name} cannot have a default; write it in each project" for name in ("name", "path")}
)


def _unread(schema: Mapping[str, Any]) -> Kind:
    """Make the kind of a block that `reader.py` checks part by part, so that one mistake hides no other."""
    return Kind(lambda value: value, {"anyOf": [dict(schema), {"type": "null"}]})


FILE_KEYS = Table.of(
    (
        Key("version", kinds.VERSION, "The version of this file's form: 1."),
        Key("workspace_root", TEXT, "The folder that relative paths resolve against. Default: the manifest's folder."),
        Key("require_golden_projects", kinds.FLAG, "true: a manifest without golden projects is an error."),
        Key(
            "defaults", _unread(record_of(DEFAULT_KEYS).schema), "Values for every project that does not say otherwise."
        ),
        Key(
            "golden_projects",
            _unread(list_of(record_of(PROJECT_KEYS)).schema),
            "The pipelines that must always work, in the order in which they run.",
        ),
        Key(
            "retired",
            _unread(list_of(record_of(RETIRED_KEYS)).schema),
            "Golden projects that were taken out on purpose, with the reason.",
        ),
        Key("setup", kinds.COMMAND, "A command that prepares an environment for golden verify.", nullable=True),
    ),
    refusals={
        name: f"the key {name} belongs to a project, or below defaults; move it there"
        for name in PROJECT_KEYS.keys
        if name not in {"name", "path"}
    }
    | {name: f"the key {name} belongs to a project below golden_projects; move it there" for name in ("name", "path")},
)

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
