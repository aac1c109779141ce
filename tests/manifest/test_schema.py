from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_golden.errors import ManifestError
from pytest_golden.manifest.keys import DEFAULT_KEYS, FILE_KEYS, MOUNT_KEYS, OUTPUT_KEYS, QUARANTINE_KEYS, RETIRED_KEYS
from pytest_golden.manifest.manifest_schema import manifest_schema
from pytest_golden.manifest.model import (
    DeclaredOutput,
    GoldenProjectConfig,
    Manifest,
    Mount,
    Quarantine,
    RetiredProject,
)
from pytest_golden.manifest.reader import parse_manifest

_VALIDATOR = jsonschema.Draft202012Validator(manifest_schema())


class _CoreLoader(yaml.SafeLoader):
    """Reads as editors do by YAML 1.2: dates and words such as no are text."""


_CoreLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if not tag.endswith(":timestamp")]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _fits_schema(text: str) -> bool:
    return bool(_VALIDATOR.is_valid(yaml.load(text, Loader=_CoreLoader)))


def _fits_reader(text: str) -> bool:
    try:
        parse_manifest(text, "m.yaml", "/w")
    except ManifestError:
        return False
    return True


def _project_schema() -> dict[str, Any]:
    schema: dict[str, Any] = manifest_schema()["properties"]["golden_projects"]["anyOf"][0]["items"]
    return schema


def test_the_schema_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json.dumps(manifest_schema())))


def test_every_key_of_the_model_is_in_the_schema_and_the_other_way_round() -> None:
    fields = {field.name for field in dataclasses.fields(GoldenProjectConfig)}
    assert set(_project_schema()["properties"]) == fields
    assert set(DEFAULT_KEYS.keys) == fields - {"name", "path"}
    for model, table in (
        (Mount, MOUNT_KEYS),
        (Quarantine, QUARANTINE_KEYS),
        (RetiredProject, RETIRED_KEYS),
        (DeclaredOutput, OUTPUT_KEYS),
    ):
        assert [field.name for field in dataclasses.fields(model)] == list(table.keys)
    assert {"require_golden_projects", "retired", "setup", "workspace_root"} == set(FILE_KEYS.keys) & {
        field.name for field in dataclasses.fields(Manifest)
    }


def test_every_key_has_a_description() -> None:
    schemas = [manifest_schema(), _project_schema()]
    assert all(
        key["description"].endswith((".", "none.")) for schema in schemas for key in schema["properties"].values()
    )


def test_a_caller_may_change_the_schema() -> None:
    manifest_schema()["properties"].clear()
    assert manifest_schema()["properties"]


_PROJECT = "golden_projects:\n- path: a.sh\n  "


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\n",
        "golden_projects:\ndefaults:\nretired:\n",
        "setup: [uv, sync]\nworkspace_root: ..\nrequire_golden_projects: true\n",
        "defaults: {timeout: 5m, tags: nightly}\n",
        "retired: [{name: a, reason: b}]\n",
        _PROJECT + "timeout: 1.5h",
        _PROJECT + "timeout: 90",
        _PROJECT + "memory_limit: 2GiB",
        _PROJECT + "memory_limit: null",
        _PROJECT + "expected_outcome: 'specific_error:x'",
        _PROJECT + "expected_outcome: exit_code:3",
        _PROJECT + "quarantine: {until: 2026-12-31, reason: x}",
        _PROJECT + "mounts: [{path: /x}, {path: /y, mode: write}]",
        _PROJECT + "command: odibi run",
        _PROJECT + "before: [[a, b], c d]",
        _PROJECT + "tags: [a, b]",
        _PROJECT + "steps: [odibi]",
        _PROJECT + "steps: otel",
        _PROJECT + "set_env: {A: 1, B: x}",
        _PROJECT + "outputs: []",
        _PROJECT + "outputs: [{path: out/*.csv, key: id, relative_tolerance: 1e-6, min_rows: 1, max_rows: null}]",
        _PROJECT + "outputs: [{path: x.json, ignore_paths: [$.a, '$..b', '$[0]'], masks: a+, unordered: true}]",
        _PROJECT + "outputs: [{path: model.bin, compare: exists, min_bytes: 0, max_bytes: 10MiB}, {path: a..b/.x}]",
        _PROJECT + "outputs: [{path: x.log, ignore_lines: ['^#'], compare: null}]",
        _PROJECT + "max_slowdown: 2",
        _PROJECT + "max_slowdown: null",
    ],
)
def test_what_the_reader_takes_the_schema_takes(text: str) -> None:
    assert _fits_reader(text)
    assert _fits_schema(text)


@pytest.mark.parametrize(
    "text",
    [
        "golden_project: []\n",
        "version: 2\n",
        "golden_projects: {}\n",
        "golden_projects: [{name: a}]\n",
        "defaults: {path: x}\n",
        "retired: [{name: a}]\n",
        "[]\n",
        _PROJECT + "timout: 3",
        _PROJECT + "outputs: [x.csv]",
        _PROJECT + "outputs: [{compare: text}]",
        _PROJECT + "outputs: [{path: x, compare: csv}]",
        _PROJECT + "outputs: [{path: /x}]",
        _PROJECT + "outputs: [{path: ../x}]",
        _PROJECT + "outputs: [{path: a/..}]",
        _PROJECT + "outputs: [{path: 'a\\b'}]",
        _PROJECT + "outputs: [{path: x.csv, absolute_tolerance: -1}]",
        _PROJECT + "outputs: [{path: x.csv, min_rows: -1}]",
        _PROJECT + "outputs: [{path: x.csv, min_rows: 1.5}]",
        _PROJECT + "outputs: [{path: x.json, ignore_paths: [a.b]}]",
        _PROJECT + "outputs: [{path: x.txt, masks: [{a: b}]}]",
        _PROJECT + "max_slowdown: 1",
        _PROJECT + "max_slowdown: fast",
        _PROJECT + "name: a b",
        _PROJECT + "timeout: 0",
        _PROJECT + "timeout: 10min",
        _PROJECT + "memory_limit: 2Gi",
        _PROJECT + "expected_outcome: failure",
        _PROJECT + "expected_outcome: 'specific_error:'",
        _PROJECT + "tags: {}",
        _PROJECT + "network: 1",
        _PROJECT + "set_env: {A: true}",
        _PROJECT + "set_env: {A: null}",
        _PROJECT + "mounts: [{path: /x, mode: rw}]",
        _PROJECT + "unexpected_files: never",
        _PROJECT + "retries: -1",
        _PROJECT + "pass_env: [A=B]",
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(text: str) -> None:
    assert not _fits_reader(text)
    assert not _fits_schema(text)
