"""The keys of the manifest: its schema agrees with the checks, and entries of `outputs:` are refused where they contradict."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import ManifestError
from pytest_golden.manifest.model import (
    DEFAULT_KEYS,
    FILE_KEYS,
    MOUNT_KEYS,
    OUTPUT_KEYS,
    QUARANTINE_KEYS,
    RETIRED_KEYS,
    DeclaredOutput,
    GoldenProjectConfig,
    Manifest,
    Mount,
    Quarantine,
    RetiredProject,
    manifest_schema,
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
        _PROJECT + "disk_limit: 10GB\n  process_limit: 64",
        _PROJECT + "network: true",
        _PROJECT + "network: loopback",
        _PROJECT + "network: host",
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
        _PROJECT + "clock: 2026-11-20",
        _PROJECT + "clock: 2026-11-20 06:00:00",
        _PROJECT + "clock: '2026-11-20T06:00'",
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
        _PROJECT + "clock: noon",
        _PROJECT + "clock: 20261120",
        _PROJECT + "clock: 2026-11-20 06:00:00Z",
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
        _PROJECT + "process_limit: 0",
        _PROJECT + "expected_outcome: failure",
        _PROJECT + "expected_outcome: 'specific_error:'",
        _PROJECT + "tags: {}",
        _PROJECT + "network: 1",
        _PROJECT + "network: internet",
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


_HEAD = "golden_projects:\n  - path: a.sh\n    outputs:\n      - "


def _read(entry: str) -> DeclaredOutput:
    (output,) = parse_manifest(f"{_HEAD}{entry}\n", "m.yaml", "/w").projects[0].outputs
    return output


def _problems(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ManifestError) as refusal:
        parse_manifest(text, "golden_projects.yaml", "/w")
    return [problem[1:] for problem in refusal.value.problems]


def test_an_output_is_read_with_all_that_it_can_say() -> None:
    output = _read(
        "{path: out/*.csv, key: [id, day], absolute_tolerance: 0.01, relative_tolerance: 1e-6, unordered: true,"
        " ignore_columns: at, min_rows: 1, max_rows: 100}"
    )
    assert output == DeclaredOutput(
        "out/*.csv",
        key=("id", "day"),
        absolute_tolerance=0.01,
        relative_tolerance=0.000001,
        unordered=True,
        ignore_columns=("at",),
        min_rows=1,
        max_rows=100,
    )


def test_a_path_alone_is_an_output() -> None:
    assert _read("path: a.csv") == DeclaredOutput("a.csv")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("./a.csv", "a.csv"),
        ("out//a.csv", "out/a.csv"),
        ("out/", "out"),
        ("a/./b", "a/b"),
        ("...", "..."),
        ("**", "**"),
    ],
)
def test_a_path_is_kept_in_one_form(written: str, path: str) -> None:
    assert _read(f"{{path: '{written}'}}").path == path


@pytest.mark.parametrize(
    ("written", "size"), [("0", 0), ("10", 10), ("10kB", 10_000), ("1KiB", 1024), ("'5 MB'", 5_000_000)]
)
def test_sizes_are_written_like_limits(written: str, size: int) -> None:
    assert _read(f"{{path: a, compare: exists, min_bytes: {written}}}").min_bytes == size


@pytest.mark.parametrize(
    ("written", "tolerance"), [("0", 0.0), ("1", 1.0), ("'.5'", 0.5), ("1e-6", 1e-6), ("1.e+2", 100)]
)
def test_tolerances_are_numbers_in_any_form(written: str, tolerance: float) -> None:
    assert _read(f"{{path: a.csv, absolute_tolerance: {written}}}").absolute_tolerance == tolerance


@pytest.mark.parametrize(
    "rules",
    [
        "compare: text, ignore_lines: ['^#'], masks: ['\\d+'], unordered: true",
        "compare: json, masks: x, ignore_paths: [$.a], unordered: true, absolute_tolerance: 1, relative_tolerance: 1",
        "compare: table, key: a, ignore_columns: b, schema_only: true, min_rows: 1, max_rows: 2, absolute_tolerance: 1",
        "compare: exists, min_bytes: 1, max_bytes: 1",
        "compare: exists, not_null: a, unique: [a, b], between: {a: [0, null], b: [2024-01-01, 2024-12-31]}, accepted: {c: [1, x, true]}",
        "compare: table, schema_only: true, row_count_change: 10%, newest: {column: at, max_age: 2d}",
        "compare: text, contains: a, not_contains: [b, c]",
        "compare: exists, not_contains: b",
        "compare: bytes",
        "compare: image_size",
    ],
)
def test_a_rule_goes_with_its_comparison_whatever_the_suffix_is(rules: str) -> None:
    for path in ("a.png", "a.csv", "out/*"):
        assert _read(f"{{path: {path}, {rules}}}").path == path


@pytest.mark.parametrize(
    ("entry", "column", "part"),
    [
        ("{path: a.csv, profile_above: 1MB}", 38, "profile_above is for tables in databases; a file is kept whole"),
        ("{path: a.csv, row_count_change: 10%}", 41, "row_count_change is for schema_only: true"),
        (
            "{path: a.csv, schema_only: true, row_count_change: ten}",
            60,
            "'ten' is not a share; write it in percent, such as 10%",
        ),
        ("{path: a.csv, schema_only: true, row_count_change: -1}", 60, "-1 is not a share"),
        ("{path: a.csv, between: 3}", 32, "this must be a mapping, not 3; write it as {amount: [0, 1e6]}"),
        ("{path: a.csv, between: {a: 3}}", 36, "this must be two bounds such as [0, 1e6] or [2024-01-01, null], not 3"),
        ("{path: a.csv, between: {a: [3]}}", 36, "this must be two bounds"),
        ("{path: a.csv, between: {a: [null, null]}}", 36, "has no bound"),
        ("{path: a.csv, between: {a: [3, 2]}}", 36, "the first bound, 3.0, is above the second, 2.0"),
        ("{path: a.csv, between: {a: [3, 2024-01-01]}}", 36, "one bound is a number and the other a time"),
        ("{path: a.csv, between: {a: [x, 2]}}", 37, "'x' is not a number, day or time"),
        ("{path: a.csv, accepted: {a: x}}", 37, "this must be a list of values, not 'x'"),
        ("{path: a.csv, accepted: {a: [null]}}", 38, "nulls are for not_null"),
        ("{path: a.csv, newest: {column: a}}", 31, "the key max_age is missing"),
        ("{path: a.csv, newest: {column: a, max_age: 2y}}", 52, "'2y' is not a duration"),
        ("{path: a.json, not_null: [x]}", 34, "not_null is for compare: table or compare: exists"),
        ("{path: a.csv, contains: [x]}", 33, "contains is for compare: text or compare: exists"),
        ("{path: a.txt, key: id}", 28, "key is for compare: table, and this output is text; write that, or remove key"),
        ("{path: a.csv, compare: text, key: id}", 43, "key is for compare: table, and this output is text"),
        ("{path: a.csv, compare: text, min_rows: 0}", 48, "min_rows is for compare: table"),
        ("{path: a.json, ignore_lines: [x]}", 38, "ignore_lines is for compare: text, and this output is json"),
        ("{path: a.csv, masks: [x]}", 30, "masks is for compare: text or compare: json"),
        ("{path: a.csv, ignore_paths: [$.a]}", 37, "ignore_paths is for compare: json"),
        ("{path: a.bin, unordered: true}", 34, "unordered is for compare: text or compare: json or compare: table"),
        ("{path: a.txt, absolute_tolerance: 1}", 43, "absolute_tolerance is for compare: json"),
        ("{path: a.txt, relative_tolerance: 1}", 43, "relative_tolerance is for compare: json"),
        ("{path: a.json, ignore_columns: [x]}", 40, "ignore_columns is for compare: table"),
        ("{path: a.json, schema_only: true}", 37, "schema_only is for compare: table"),
        ("{path: a.json, max_rows: 3}", 34, "max_rows is for compare: table"),
        ("{path: a.csv, min_bytes: 3}", 34, "min_bytes is for compare: exists, and this output is table"),
        ("{path: a.bin, max_bytes: 3}", 34, "max_bytes is for compare: exists, and this output is bytes"),
        ("{path: out/*, key: id}", 28, "key is for compare: table, and out/* does not say by its suffix what it is"),
        ("{path: a.csv, absolute_tolerance: -0.1}", 43, "-0.1 is below 0; write a tolerance from 0 up"),
        ("{path: a.csv, absolute_tolerance: -1e-6}", 43, "'-1e-6' is below 0"),
        ("{path: a.csv, relative_tolerance: .nan}", 43, "is not a number; write one from 0 up"),
        ("{path: a.csv, relative_tolerance: 1e999}", 43, "is not a number"),
        ("{path: a.csv, relative_tolerance: a}", 43, "'a' is not a number"),
        ("{path: a.csv, min_rows: 5, max_rows: 4}", 33, "5 is more than max_rows, 4"),
        ("{path: a, compare: exists, min_bytes: 2kB, max_bytes: 1kB}", 47, "2000 is more than max_bytes, 1000"),
        ("{path: a.csv, min_rows: -1}", 33, "-1 is not a whole number from 0"),
        ("{path: a.csv, min_rows: 1.5}", 33, "1.5 is not a whole number from 0"),
        ("{path: a.csv, min_rows: 99999999999999999999}", 33, "is not a whole number from 0"),
        ("{path: a, compare: exists, min_bytes: -1}", 47, "-1 is not above 0"),
        ("{path: a, compare: exists, min_bytes: 1.5}", 47, "1.5 is not a size"),
        ("{path: a.txt, masks: ['(']}", 31, "'(' is not a regular expression: missing ), unterminated subpattern"),
        ("{path: a.txt, ignore_lines: [a, '*']}", 41, "'*' is not a regular expression"),
        ("{path: a.txt, masks: ['']}", 31, "is empty"),
        ("{path: a.txt, masks: [3]}", 31, 'quote it: "3"'),
        ("{path: a.json, ignore_paths: [a.b]}", 39, "the JSON path 'a.b' does not begin with $"),
        ("{path: a.json, ignore_paths: ['$.a[']}", 39, "the JSON path '$.a[' cannot be read from character 4 on"),
        ("{path: a.json, ignore_paths: [$]}", 39, "names the whole document"),
        ("{path: /a.csv}", 16, "'/a.csv' is absolute; write it relative to project_dir"),
        ("{path: 'C:/a.csv'}", 16, "is absolute"),
        ("{path: 'C:a.csv'}", 16, "is absolute"),
        (
            "{path: ~/a.csv}",
            16,
            "'~/a.csv' would mean a folder named '~', because nothing is expanded here; write a path below project_dir",
        ),
        ("{path: '~etl/*.csv'}", 16, "a folder named '~etl', because nothing is expanded here"),
        ("{path: './~/a.csv'}", 16, "a folder named '~', because nothing is expanded here"),
        ("{path: '${HOME}/a.csv'}", 16, "or [$] instead of $ if a folder really has that name"),
        ("{path: '%USERPROFILE%/a.csv'}", 16, "a folder named '%USERPROFILE%', because nothing is expanded here"),
        ("{path: a.csv, allow_secret: ''}", 37, "is empty"),
        ("{path: a.csv, allow_secret: true}", 37, "a text is required"),
        ("{path: a, compare: exists, allow_secret: x}", 50, "allow_secret is only for outputs that become baselines"),
        ("{path: ../a.csv}", 16, "'../a.csv' leads out of project_dir"),
        ("{path: out/../../a.csv}", 16, "leads out of project_dir"),
        ("{path: 'out\\a.csv'}", 16, "holds a backslash; write / between folders"),
        ("{path: ''}", 9, "the key path is missing; write it, or database or dbt"),
        ("{table: t}", 9, "the key path is missing; write it, or database or dbt"),
        ("{path: a.db, dbt: x}", 27, "dbt and path both say where the output is; write two entries"),
        ("{path: a.db, table: t, tables: x}", 40, "table and tables both name tables"),
        ("{path: a.db, exclude: t}", 31, "exclude leaves tables out of the patterns of tables or dbt"),
        ("{path: a.db, table: t, compare: bytes}", 41, "a table in a database is compared as a table"),
        ("{path: a.db, table: t, masks: x}", 39, "masks is for compare: text or compare: json"),
        ("{dbt: x, tables: y}", 26, "dbt names models; remove tables"),
        ("{database: postgresql://x, table: t}", 20, "is not a variable; write the one of pass_env that holds the URL"),
        ("{database: '${URL}'}", 20, "database needs table or tables"),
        ("{database: '${URL}', table: t}", 20, "URL is not in pass_env; add it there"),
        ("{path: ' '}", 16, "is empty"),
        ("{path: ./}", 16, "'./' names no file"),
        ("{path: 3}", 16, 'quote it: "3"'),
        (
            "{path: a.csv, compare: csv}",
            32,
            "'csv' is not known here; write bytes, text, json, table, image_size or exists",
        ),
        ("{path: a.csv, unordered: 1}", 34, "1 is neither true nor false"),
        ("{path: a.csv, key: [{a: b}]}", 29, "must be a text"),
        ("{path: a.csv, keys: [a]}", 23, "unknown key 'keys'; did you mean 'key'?"),
    ],
)
def test_mistakes_of_an_output_are_reported_at_their_place(entry: str, column: int, part: str) -> None:
    found = _problems(f"{_HEAD}{entry}\n")
    assert [(line, place) for line, place, _ in found] == [(4, column)], found
    assert part in found[0][2]


def test_all_mistakes_of_all_outputs_are_told_at_once() -> None:
    found = _problems(
        "golden_projects:\n"
        "  - path: a.sh\n"
        "    outputs:\n"
        "      - path: a.txt\n"
        "        key:\n"
        "          - id\n"
        "        masks: ['(']\n"
        "      - path: /b\n"
        "        min_rows: 1\n"
    )
    assert [(line, column) for line, column, _ in found] == [(6, 11), (7, 17), (8, 15)]


def test_outputs_in_defaults_hold_for_every_project_that_declares_none() -> None:
    manifest = parse_manifest(
        "defaults: {outputs: [{path: a.csv, key: id}], max_slowdown: 3}\n"
        "golden_projects:\n"
        "  - {path: a.sh}\n"
        "  - {path: b.sh, outputs: [], max_slowdown: null}\n",
        "m.yaml",
        "/w",
    )
    assert [project.outputs for project in manifest.projects] == [(DeclaredOutput("a.csv", key=("id",)),), ()]
    assert [project.max_slowdown for project in manifest.projects] == [3.0, None]


def test_a_mistake_in_defaults_is_told_once() -> None:
    found = _problems(
        "defaults:\n  outputs: [{path: a.txt, key: id}]\ngolden_projects:\n  - path: a.sh\n  - path: b.sh\n"
    )
    assert [(line, column) for line, column, _ in found] == [(2, 32)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"path": "a.txt", "key": ["id"]}, "key is for compare: table"),
        ({"path": "../a"}, "leads out"),
        ({"path": "a.csv", "absolute_tolerance": -1.0}, "below 0"),
        ({"path": "a.csv", "absolute_tolerance": True}, "not a number"),
        ({"path": "a.csv", "absolute_tolerance": 10**400}, "not a number"),
        ({"path": "a.csv", "min_rows": True}, "is not a whole number from 0"),
        ({"path": "a.csv", "min_rows": 2, "max_rows": 1}, "nothing could meet both"),
        ({"path": "a", "compare": "exists", "min_bytes": False}, "not a size"),
    ],
)
def test_values_of_python_are_checked_alike(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeclaredOutput(**values)


def test_what_asks_for_nothing_is_no_rule_of_another_kind() -> None:
    entry = "{path: a.bin, unordered: false, absolute_tolerance: 0, key: [], min_rows: null, schema_only: no}"
    assert _read(entry) == DeclaredOutput("a.bin")


_NUMBERS = st.floats(min_value=0, max_value=1e300)
# PyYAML does not read a \x85 at the end of a text as it has written it.
_CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0\x85")
_TABLES = st.builds(
    DeclaredOutput,
    st.sampled_from(["a.csv", "out/**/*.parquet", "x.jsonl.zst"]),
    unordered=st.booleans(),
    absolute_tolerance=_NUMBERS,
    relative_tolerance=_NUMBERS,
    key=st.lists(st.text(_CHARACTERS, min_size=1), max_size=3)
    .filter(lambda names: all(name.strip() for name in names))
    .map(tuple),
    schema_only=st.booleans(),
    min_rows=st.none() | st.integers(0, 5),
    max_rows=st.none() | st.integers(5, 9),
    between=st.sampled_from([{}, {"a": (0.5, None)}, {"b": ("2024-01-01", "2024-01-02")}]),
    accepted=st.sampled_from([{}, {"a": ("1", "x", "true")}]),
    newest=st.none() | st.just({"column": "at", "max_age": 60.0}),
)


@given(st.lists(_TABLES, max_size=3))
def test_outputs_survive_json_and_yaml(outputs: list[DeclaredOutput]) -> None:
    project = GoldenProjectConfig("a", "a.sh", outputs=tuple(outputs), max_slowdown=1.5)
    plain = json.loads(json.dumps(project.to_dict()))
    assert GoldenProjectConfig(**plain) == project
    assert hash(GoldenProjectConfig(**plain)) == hash(project)
    declared = {"path": "a.sh", "name": "a", "max_slowdown": 1.5, "outputs": plain["outputs"]}
    text = yaml.safe_dump({"golden_projects": [declared]}, allow_unicode=True)
    assert parse_manifest(text, "m.yaml", "/w").projects == (project,)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "FAKETIME"])
def test_a_clock_and_a_variable_that_undoes_it_contradict_each_other(name: str) -> None:
    text = f"{_PROJECT}clock: 2026-11-20\n  set_env: {{{name}: x}}"
    with pytest.raises(ManifestError, match=f"{name} would put another time in the place of `clock`"):
        parse_manifest(text, "m.yaml", "/w")
    with pytest.raises(ManifestError, match="2026-13-40 is neither a day"):
        parse_manifest(f"{_PROJECT}clock: 2026-13-40", "m.yaml", "/w")
