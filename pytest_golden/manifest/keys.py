"""Every key of the manifest once: its kind, and the text that editors and the documentation show; and the JSON Schema of it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.comparisons import COMPARISONS, COMPARISONS_OF_RULE, comparison_of_pattern
from pytest_golden.manifest.findings import Finding
from pytest_golden.manifest.kinds import (
    ARGUMENT,
    BYTES,
    COMMAND,
    COUNT,
    DAY,
    DURATION,
    ENVIRONMENT,
    FACTOR,
    FLAG,
    GLOB,
    JSON_PATH,
    NAME,
    OUTCOME,
    PATTERN,
    PATTERN_BELOW,
    SIZE,
    STEPS,
    TAG,
    TEXT,
    TOLERANCE,
    VARIABLE,
    VERSION,
    Key,
    Kind,
    Table,
    list_of,
    one_of,
    record_of,
    record_schema,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def find_output_conflicts(fields: Mapping[str, Any]) -> list[Finding]:
    """Find rules of an output that its comparison does not know, and ranges that nothing can meet."""
    return [*_rules_of_another_kind(fields), *_secret_without_baseline(fields), *_empty_ranges(fields)]


def _rules_of_another_kind(fields: Mapping[str, Any]) -> Iterator[Finding]:
    path, declared = fields.get("path"), fields.get("compare")
    if declared is None and not isinstance(path, str):
        return
    comparison = declared or comparison_of_pattern(str(path))
    found = f"{path} does not say by its suffix what it is" if comparison is None else f"this output is {comparison}"
    for rule, comparisons in COMPARISONS_OF_RULE.items():
        if _is_said(fields.get(rule)) and comparison not in comparisons:
            wanted = " or ".join(f"compare: {word}" for word in comparisons)
            yield Finding((rule,), f"{rule} is for {wanted}, and {found}; write that, or remove {rule}")


def _secret_without_baseline(fields: Mapping[str, Any]) -> Iterator[Finding]:
    if fields.get("allow_secret") is not None and fields.get("compare") == "exists":
        told = "allow_secret is only for outputs that become baselines, and compare: exists keeps none; remove it"
        yield Finding(("allow_secret",), told)


def _empty_ranges(fields: Mapping[str, Any]) -> Iterator[Finding]:
    for low, high in (("min_rows", "max_rows"), ("min_bytes", "max_bytes")):
        least, most = fields.get(low), fields.get(high)
        if least is not None and most is not None and least > most:
            yield Finding((low,), f"{least} is more than {high}, {most}; nothing could meet both")


def _is_said(value: Any) -> bool:
    # A value that equals the default asks for nothing. 0 rows or bytes are a bound, and only those numbers are ints here.
    return value is not None and (value not in (False, (), 0.0) or (isinstance(value, int) and value is not False))


OUTPUT_KEYS = Table.of(
    (
        Key("path", GLOB, "Pattern (a glob) of the files, below project_dir.", required=True),
        Key(
            "compare",
            one_of(*COMPARISONS),
            "How a file is compared with its baseline. Default: by the suffix of each file.",
            nullable=True,
        ),
        Key(
            "ignore_lines", list_of(PATTERN, one_alone=True), "text: lines in which one of these is found do not count."
        ),
        Key("masks", list_of(PATTERN, one_alone=True), "text, json: what these match in texts counts as equal."),
        Key(
            "ignore_paths",
            list_of(JSON_PATH, one_alone=True),
            "json: parts that do not count, such as $.run.id, $.rows[0], $.rows[*].at or $..updated_at.",
        ),
        Key("unordered", FLAG, "text, json, table: lines, arrays or rows may stand in any order."),
        Key("absolute_tolerance", TOLERANCE, "json, table: numbers are equal that differ by no more than this."),
        Key(
            "relative_tolerance",
            TOLERANCE,
            "json, table: numbers are equal that differ by no more than this part of the larger.",
        ),
        Key("key", list_of(TEXT, one_alone=True), "table: the columns that tell rows apart; they must be unique."),
        Key("ignore_columns", list_of(TEXT, one_alone=True), "table: columns that do not count."),
        Key("schema_only", FLAG, "table: true compares the columns and their types, and no rows."),
        Key("min_rows", COUNT, "table: the least number of rows.", nullable=True),
        Key("max_rows", COUNT, "table: the greatest number of rows.", nullable=True),
        Key(
            "allow_secret",
            TEXT,
            "Why this output may become a baseline although redaction finds a secret in it, such as 'made-up test data'.",
            nullable=True,
        ),
        Key("min_bytes", BYTES, "exists: the least size; bytes, or 10kB, 2MiB.", nullable=True),
        Key("max_bytes", BYTES, "exists: the greatest size.", nullable=True),
    ),
    find_conflicts=find_output_conflicts,
)
MOUNT_KEYS = Table.of(
    (
        Key(
            "path",
            TEXT,
            "A folder or file outside project_dir; relative to workspace_root, absolute, or with ~.",
            required=True,
        ),
        Key(
            "mode",
            one_of("read", "copy", "write"),
            "read, copy (copy-on-write: changes are thrown away) or write (really written: weakens the floor).",
        ),
    )
)
QUARANTINE_KEYS = Table.of(
    (
        Key(
            "until", DAY, "The last day of the quarantine; afterwards the project fails the gate again.", required=True
        ),
        Key("reason", TEXT, "Why its result does not count until then.", required=True),
    )
)
RETIRED_KEYS = Table.of(
    (
        Key("name", NAME, "The name of a golden project that is no longer declared.", required=True),
        Key("reason", TEXT, "Why it is gone.", required=True),
    )
)
PROJECT_KEYS = Table.of(
    (
        Key("name", NAME, "Unique; letters, digits, _ . and -. Default: the path's stem."),
        Key("path", TEXT, "The pipeline: absolute (also D:/...) or relative to workspace_root.", required=True),
        Key("description", ARGUMENT, "What it does and why it must never break.", nullable=True),
        Key(
            "expected_outcome",
            OUTCOME,
            'How it must end: success, "specific_error:<regular expression>" or "exit_code:<n>".',
        ),
        Key("title", TEXT, "Free text for people. Default: the name.", nullable=True),
        Key(
            "runner",
            NAME,
            "auto, command, or the name of a runner: odibi, dbt, python, shell, notebook, or a plugged-in one.",
        ),
        Key("args", list_of(ARGUMENT), "Arguments added to the runner's command."),
        Key(
            "command",
            COMMAND,
            "Instead of the runner's command: a list, or a text split as a shell would, without a shell. "
            "{path} stands for the pipeline. A named runner still reads the steps and judges as it does.",
            nullable=True,
        ),
        Key(
            "project_dir",
            TEXT,
            "The folder that the pipeline sees copy-on-write and works in. Default: the folder of path.",
            nullable=True,
        ),
        Key("timeout", DURATION, "After this time the pipeline is ended: seconds, or 500ms, 90s, 10m, 2h."),
        Key(
            "memory_limit",
            SIZE,
            "Resident memory of the whole process tree: bytes, or 500MB, 2GiB. null: none.",
            nullable=True,
        ),
        Key("network", FLAG, "false cuts the network off, except loopback inside the view."),
        Key(
            "venv",
            TEXT,
            "A virtual environment of its own, first on PATH. Default: the environment of the gate.",
            nullable=True,
        ),
        Key("set_env", ENVIRONMENT, "Environment variables with their values. Numbers are taken as they are written."),
        Key("pass_env", list_of(VARIABLE), "Names of environment variables that are passed on."),
        Key("pass_files", list_of(TEXT), "Files shown read-only in the view's HOME; the values in them are redacted."),
        Key("mounts", list_of(record_of(MOUNT_KEYS)), "Folders and files outside project_dir that the pipeline needs."),
        Key(
            "before", list_of(COMMAND), "Commands run in the same view before the pipeline; a failing one is an ERROR."
        ),
        Key("after", list_of(COMMAND), "Commands run in the same view after the pipeline; a failing one is an ERROR."),
        Key("needs", list_of(NAME), "Projects declared earlier without whose pass this one is not run."),
        Key(
            "depends_on",
            list_of(TEXT),
            "Patterns of further files that the pipeline reads, for running only what changed.",
        ),
        Key(
            "quarantine",
            record_of(QUARANTINE_KEYS),
            "It runs and is reported, and does not fail the gate until that day.",
            nullable=True,
        ),
        Key(
            "tags",
            list_of(TAG, one_alone=True),
            "pytest markers of this project, for -m. One may stand without a list.",
        ),
        Key("retries", COUNT, "How often a run that is not as expected is tried again. A pass after that is flaky."),
        Key("independent", FLAG, "true: it may run beside other projects under pytest-xdist."),
        Key(
            "steps",
            STEPS,
            "Which step readers look at what the pipeline left behind: auto, a name, or a list of names. otel receives"
            " OpenTelemetry's spans.",
        ),
        Key("skip_if_missing", list_of(TEXT), "Programs or Python modules without which it is SKIPPED."),
        Key(
            "cpu_limit",
            DURATION,
            "CPU time of the whole process tree, written like timeout. null: none.",
            nullable=True,
        ),
        Key(
            "unexpected_files",
            one_of("allow", "warn", "fail"),
            "What to do about written files that no output and no pattern of writes names.",
        ),
        Key(
            "writes",
            list_of(PATTERN_BELOW),
            "Patterns of the files that the pipeline is expected to write, below project_dir.",
        ),
        Key(
            "outputs",
            list_of(record_of(OUTPUT_KEYS)),
            "Files that it must write, each compared with its baseline below golden_baselines.",
        ),
        Key(
            "max_slowdown",
            FACTOR,
            "How many times as long as the median of its own recent passes it may take. null: any.",
            nullable=True,
        ),
    )
)
DEFAULT_KEYS = PROJECT_KEYS.without(
    {name: f"{name} cannot have a default; write it in each project" for name in ("name", "path")}
)


def _unread(schema: Mapping[str, Any]) -> Kind:
    """Make the kind of a block that `reader.py` checks part by part, so that one mistake hides no other."""
    return Kind(lambda value: value, {"anyOf": [dict(schema), {"type": "null"}]})


FILE_KEYS = Table.of(
    (
        Key("version", VERSION, "The version of this file's form: 1."),
        Key("workspace_root", TEXT, "The folder that relative paths resolve against. Default: the manifest's folder."),
        Key("require_golden_projects", FLAG, "true: a manifest without golden projects is an error."),
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
        Key("setup", COMMAND, "A command that prepares an environment for golden verify.", nullable=True),
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
