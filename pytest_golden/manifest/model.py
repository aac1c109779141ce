"""What a manifest declares: frozen values that check their own fields. Reads no files.

Each field defines which values its key in the manifest can have, and the text that editors and the documentation show.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from functools import wraps
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_golden.errors import SettingsError
from pytest_golden.manifest import kinds, value_kinds
from pytest_golden.manifest.comparisons import COMPARISONS
from pytest_golden.manifest.kinds import TEXT, as_key, declared, list_of, one_of, record_of, table_of
from pytest_golden.manifest.rules import find_conflicts, find_output_conflicts
from pytest_golden.manifest.units import ExpectedOutcome, show
from pytest_golden.values.json_form import FrozenDict
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable

_Value = TypeVar("_Value")

# A database table with a larger file is kept as a profile, unless its entry says otherwise.
_LARGEST_WHOLE_BYTES = 50_000_000
_MOST_NAMED = 10


def refuse_wrong_arguments(value_type: type[_Value]) -> type[_Value]:
    """Make a dataclass raise `ValueError` for unknown and missing arguments too, as it does for every wrong value."""
    made: Any = value_type
    make = made.__init__

    @wraps(make)
    def make_or_refuse(self: _Value, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except TypeError as error:
            raise ValueError(str(error)) from None

    made.__init__ = make_or_refuse
    return value_type


def check_fields(value: object, table: kinds.Table) -> dict[str, Any]:
    """Replace the fields of a new dataclass with what the checks of their keys return, and return these fields.

    Raises:
        WrongValueError: all mistakes of all fields.
    """
    fields = vars(value)
    defaults = vars(type(value))
    given = {name: field for name, field in fields.items() if name not in defaults or field is not defaults[name]}
    clean, findings = kinds.collect(given, table)
    if findings:
        raise kinds.WrongValueError(findings)
    fields.update(clean)
    return fields


@refuse_wrong_arguments
@dataclass(frozen=True)
class Mount(Shape):
    """A folder or file outside project_dir that the pipeline needs, and whether it may write there."""

    path: str = field(
        metadata=as_key(TEXT, "A folder or file outside project_dir; relative to workspace_root, absolute, or with ~.")
    )
    mode: Literal["read", "copy", "write"] = declared(
        "read",
        one_of("read", "copy", "write"),
        "read, copy (copy-on-write: changes are discarded) or write (changes are real: weakens the floor).",
    )

    def __post_init__(self) -> None:
        check_fields(self, MOUNT_KEYS)


MOUNT_KEYS = table_of(Mount)


@refuse_wrong_arguments
@dataclass(frozen=True)
class Quarantine(Shape):
    """Until this day (inclusive), the result is reported and does not fail the gate."""

    until: date = field(
        metadata=as_key(kinds.DAY, "The last day of the quarantine; afterwards the project fails the gate again.")
    )
    reason: str = field(metadata=as_key(TEXT, "Why its result is ignored until then."))

    def __post_init__(self) -> None:
        check_fields(self, QUARANTINE_KEYS)


QUARANTINE_KEYS = table_of(Quarantine)


@refuse_wrong_arguments
@dataclass(frozen=True)
class RetiredProject(Shape):
    """A golden project that was removed on purpose."""

    name: str = field(metadata=as_key(kinds.NAME, "The name of a golden project that is no longer declared."))
    reason: str = field(metadata=as_key(TEXT, "Why it is gone."))

    def __post_init__(self) -> None:
        check_fields(self, RETIRED_KEYS)


RETIRED_KEYS = table_of(RetiredProject)


@refuse_wrong_arguments
@dataclass(frozen=True)
class Newest(Shape):
    """How old the newest value of a column may be when the run ends."""

    column: str = field(metadata=as_key(TEXT, "A column of times or days; without a zone they are in UTC."))
    max_age: float = field(metadata=as_key(kinds.DURATION, "The greatest age of its newest value, such as 2d."))

    def __post_init__(self) -> None:
        check_fields(self, NEWEST_KEYS)


NEWEST_KEYS = table_of(Newest)


@refuse_wrong_arguments
@dataclass(frozen=True)
class TextRules(Shape):
    """Texts that a file must contain, and texts that it must not contain. They are plain texts, not patterns."""

    contains: tuple[str, ...] = declared((), list_of(TEXT, one_alone=True), "Texts that must be in it.")
    not_contains: tuple[str, ...] = declared((), list_of(TEXT, one_alone=True), "Texts that must not be in it.")

    def __post_init__(self) -> None:
        check_fields(self, TEXT_RULE_KEYS)


TEXT_RULE_KEYS = table_of(TextRules, needs_one_of=("contains", "not_contains"))


@refuse_wrong_arguments
@dataclass(frozen=True)
class DeclaredOutput(Shape):
    """Files or tables that a pipeline must write, and how they are compared with their baselines.

    `path` is a glob below project_dir. With `table` or `tables`, it names database files, and the tables in them that count. `database` and
    `dbt` name tables instead. If `compare` is None, the suffix of each file decides.
    """

    path: str = declared(
        "", kinds.OUTPUT_PATH, "Pattern (a glob) of the files, below project_dir; of a database with table or tables."
    )
    compare: Literal["bytes", "text", "json", "table", "image_size", "exists"] | None = declared(
        None, one_of(*COMPARISONS), "How a file is compared with its baseline. Default: by the suffix of each file."
    )
    ignore_lines: tuple[str, ...] = declared(
        (), list_of(kinds.PATTERN, one_alone=True), "text: lines that contain a match of one of these are ignored."
    )
    masks: tuple[str, ...] = declared(
        (), list_of(kinds.PATTERN, one_alone=True), "text, json: matches of these in texts count as equal."
    )
    ignore_paths: tuple[str, ...] = declared(
        (),
        list_of(kinds.JSON_PATH, one_alone=True),
        "json: parts to ignore, such as $.run.id, $.rows[0], $.rows[*].at or $..updated_at.",
    )
    unordered: bool = declared(False, kinds.FLAG, "text, json, table: ignore the order of lines, array items or rows.")
    absolute_tolerance: float = declared(
        0.0, kinds.TOLERANCE, "json, table: numbers that differ by no more than this are equal."
    )
    relative_tolerance: float = declared(
        0.0, kinds.TOLERANCE, "json, table: numbers that differ by no more than this part of the larger are equal."
    )
    key: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), "table: the columns that identify a row; they must be unique."
    )
    ignore_columns: tuple[str, ...] = declared((), list_of(TEXT, one_alone=True), "table: columns to ignore.")
    header: bool = declared(
        True, kinds.FLAG, "table: false for CSV or TSV without a line of names: its columns are column1, column2, ..."
    )
    schema_only: bool = declared(False, kinds.FLAG, "table: compare the columns and their types, but no rows.")
    min_rows: int | None = declared(None, kinds.COUNT, "table: the least number of rows.")
    max_rows: int | None = declared(None, kinds.COUNT, "table: the greatest number of rows.")
    not_null: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), "table, exists: columns in which every row has a value."
    )
    unique: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), "table, exists: columns in which no value occurs twice."
    )
    between: Mapping[str, tuple[float | str | None, ...]] = field(
        default_factory=FrozenDict,
        hash=False,
        metadata=as_key(
            value_kinds.BETWEEN, "table, exists: the least and the greatest value of columns: {amount: [0, 1e6]}."
        ),
    )
    accepted: Mapping[str, tuple[str, ...]] = field(
        default_factory=FrozenDict,
        hash=False,
        metadata=as_key(
            value_kinds.ACCEPTED, "table, exists: all values that columns may have: {status: [paid, open]}."
        ),
    )
    newest: Newest | None = declared(
        None, record_of(NEWEST_KEYS), "table, exists: how old the newest value of a column of times may be."
    )
    row_count_change: float | None = declared(
        None, value_kinds.SHARE, "table with schema_only: how far the rows may differ from the baseline's, such as 10%."
    )
    profile_above: int | None = declared(
        None,
        kinds.BYTES,
        "table in a database: of larger ones a profile is kept in place of the rows. Default: 50MB.",
    )
    contains: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), "text, exists: texts that must be in the file."
    )
    not_contains: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), "text, exists: texts that must not be in the file."
    )
    table: str | None = declared(
        None,
        TEXT,
        "One table or view of a DuckDB or SQLite file or a folder of Delta tables (path), or of PostgreSQL (database).",
    )
    tables: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), 'Patterns of tables and views, such as "marts.*"; views count as tables.'
    )
    exclude: tuple[str, ...] = declared(
        (), list_of(TEXT, one_alone=True), "tables, dbt: patterns of tables that are left out."
    )
    database: str | None = declared(
        None,
        kinds.DATABASE,
        'PostgreSQL: the variable of pass_env that holds its URL, such as "${DATABASE_URL}". It is not sealed.',
    )
    dbt: tuple[str, ...] = declared(
        (),
        list_of(TEXT, one_alone=True),
        'Patterns of dbt models by name, folder or schema, such as "marts.*"; their keys come from dbt.',
    )
    allow_secret: str | None = declared(
        None,
        TEXT,
        "Why this output may become a baseline even if redaction finds a secret in it, such as 'made-up test data'.",
    )
    min_bytes: int | None = declared(None, kinds.BYTES, "exists: the least size; bytes, or 10kB, 2MiB.")
    max_bytes: int | None = declared(None, kinds.BYTES, "exists: the greatest size.")

    def __post_init__(self) -> None:
        fields = check_fields(self, OUTPUT_KEYS)
        fields["newest"] = None if self.newest is None else Newest(**fields["newest"])

    @property
    def has_value_rules(self) -> bool:
        """Tell whether it has rules on the values of a table."""
        return bool(self.not_null or self.unique or self.between or self.accepted or self.newest)

    @property
    def is_of_tables(self) -> bool:
        """Tell whether it names tables in a database, whose rows have no order."""
        return bool(self.table or self.tables or self.dbt)

    @property
    def is_tolerant(self) -> bool:
        """Tell whether numbers may differ within a tolerance."""
        return self.absolute_tolerance > 0 or self.relative_tolerance > 0

    @property
    def largest_whole_bytes(self) -> int:
        """Return the size (in bytes of the Parquet file) up to which a database table is kept with all its rows."""
        return _LARGEST_WHOLE_BYTES if self.profile_above is None else self.profile_above

    @property
    def shown(self) -> str:
        """Return its name in messages: the pattern of its files, or the tables and their database."""
        if not self.is_of_tables:
            return self.path
        named = ", ".join((self.table,) if self.table else self.tables or self.dbt)
        return f"{named} of {'dbt' if self.dbt else self.database or self.path}"


OUTPUT_KEYS = table_of(DeclaredOutput, needs_one_of=("path", "database", "dbt"), find_conflicts=find_output_conflicts)


@refuse_wrong_arguments
@dataclass(frozen=True)
class GoldenProjectConfig(Shape):
    """One golden project: the manifest's keys under their own names.

    `path` and the other paths are kept as declared, relative to the workspace root or absolute (`is_absolute_path`).
    `timeout` and `cpu_limit` are seconds, `memory_limit` and `disk_limit` are bytes; all of them also accept the manifest's texts.
    `steps` is the text `auto` or the names of step readers.
    """

    name: str = field(metadata=as_key(kinds.NAME, "Unique; letters, digits, _ . and -. Default: the path's stem."))
    path: str = field(metadata=as_key(TEXT, "The pipeline: absolute (also D:/...) or relative to workspace_root."))
    description: str | None = declared(None, kinds.ARGUMENT, "What it does and why it must never break.")
    expected_outcome: str = declared(
        "success", kinds.OUTCOME, 'How it must end: success, "specific_error:<regular expression>" or "exit_code:<n>".'
    )
    _: KW_ONLY
    title: str | None = declared(None, TEXT, "Free text for people. Default: the name.")
    runner: str = declared(
        "auto",
        kinds.NAME,
        "auto, command, or the name of a runner: odibi, dbt, python, shell, notebook, another engine's, or a plugged-in one.",
    )
    args: tuple[str, ...] = declared((), list_of(kinds.ARGUMENT), "Arguments added to the runner's command.")
    command: tuple[str, ...] | None = declared(
        None,
        kinds.COMMAND,
        "Replaces the runner's command: a list, or a text that is split as a shell would, but run without a shell. "
        "{path} stands for the pipeline. A named runner still reads the steps and judges the result.",
    )
    project_dir: str | None = declared(
        None, TEXT, "The working folder of the pipeline, which it sees copy-on-write. Default: the folder of path."
    )
    timeout: float = declared(
        600.0, kinds.DURATION, "The pipeline is ended after this time: seconds, or 500ms, 90s, 10m, 2h."
    )
    memory_limit: int | None = declared(
        None, kinds.SIZE, "Resident memory of the whole process tree: bytes, or 500MB, 2GiB. null: no limit."
    )
    network: bool | Literal["host"] = declared(
        True,
        kinds.NETWORK,
        "false, or loopback: only a loopback of its own. true: the internet, without the servers of this machine where"
        " slirp4netns is installed. host: all that this machine reaches.",
    )
    venv: str | None = declared(
        None,
        TEXT,
        "The project's virtual environment, or conda's, first on PATH. uv:FOLDER: uv makes it from the uv.lock in that folder."
        " Default: the environment of the gate.",
    )
    set_env: Mapping[str, str] = field(
        default_factory=FrozenDict,
        hash=False,
        metadata=as_key(kinds.ENVIRONMENT, "Environment variables with their values. Numbers are used as written."),
    )
    pass_env: tuple[str, ...] = declared(
        (), list_of(kinds.VARIABLE), "Names of environment variables to pass to the pipeline."
    )
    pass_files: tuple[str, ...] = declared(
        (), list_of(TEXT), "Files shown read-only in the view's HOME; the values in them are redacted."
    )
    not_secret: tuple[str, ...] = declared(
        (),
        list_of(TEXT),
        "Names of pass_env and pass_files whose ordinary values need not be hidden: only secret names count.",
    )
    mounts: tuple[Mount, ...] = declared(
        (), list_of(record_of(MOUNT_KEYS)), "Folders and files outside project_dir that the pipeline needs."
    )
    before: tuple[tuple[str, ...], ...] = declared(
        (), list_of(kinds.COMMAND), "Commands run in the same view before the pipeline; a failing one is an ERROR."
    )
    after: tuple[tuple[str, ...], ...] = declared(
        (), list_of(kinds.COMMAND), "Commands run in the same view after the pipeline; a failing one is an ERROR."
    )
    needs: tuple[str, ...] = declared(
        (), list_of(kinds.NAME), "Projects, declared earlier, that must pass before this one runs."
    )
    depends_on: tuple[str, ...] = declared(
        (), list_of(TEXT), "Patterns of further files that the pipeline reads, for --golden-changed."
    )
    quarantine: Quarantine | None = declared(
        None, record_of(QUARANTINE_KEYS), "It runs and is reported, but does not fail the gate until a given day."
    )
    tags: tuple[str, ...] = declared(
        (), list_of(kinds.TAG, one_alone=True), "pytest markers of this project, for -m. A single one needs no list."
    )
    retries: int = declared(
        0, kinds.COUNT, "How often a run that is not as expected is repeated. If it then passes, it is flaky."
    )
    independent: bool = declared(False, kinds.FLAG, "Whether it may run beside other projects under pytest-xdist.")
    steps: str | tuple[str, ...] = declared(
        "auto",
        kinds.STEPS,
        "Which step readers read the files that the pipeline left: auto, a name, or a list of names. otel receives"
        " OpenTelemetry's spans.",
    )
    skip_if_missing: tuple[str, ...] = declared(
        (), list_of(TEXT), "Programs or Python modules; if one is missing, the project is SKIPPED."
    )
    cpu_limit: float | None = declared(
        None, kinds.DURATION, "CPU time of the whole process tree, in the format of timeout. null: no limit."
    )
    process_limit: int | None = declared(
        None, kinds.NUMBER, "Processes and threads of the whole process tree at one time. null: no limit."
    )
    disk_limit: int | None = declared(
        None, kinds.SIZE, "What the pipeline writes to the disk: its view, HOME, /tmp and output. null: no limit."
    )
    unexpected_files: Literal["allow", "warn", "fail"] = declared(
        "allow",
        one_of("allow", "warn", "fail"),
        "What to do about written files that match no output and no pattern of writes.",
    )
    view: Literal["auto", "all", "tracked"] = declared(
        "auto",
        one_of("auto", "all", "tracked"),
        "Which files of project_dir the pipeline sees. tracked: those that git tracks, and depends_on. auto: tracked for"
        " engines that leave out what is done already, where git knows the project; else all.",
    )
    clock: str | None = declared(
        None,
        value_kinds.CLOCK,
        "The time at which each process of the pipeline starts, such as 2026-11-20 or 2026-11-20 06:00:00. Needs libfaketime.",
    )
    coverage: bool = declared(
        False, kinds.FLAG, "Whether `pytest --cov` counts the lines of Python that the pipeline runs."
    )
    writes: tuple[str, ...] = declared(
        (), list_of(kinds.PATTERN_BELOW), "Patterns of the files that the pipeline may write, below project_dir."
    )
    outputs: tuple[DeclaredOutput, ...] = declared(
        (),
        list_of(record_of(OUTPUT_KEYS)),
        "Files that it must write, each compared with its baseline below golden_baselines.",
    )
    stdout: TextRules | None = declared(
        None, record_of(TEXT_RULE_KEYS), "What its standard output must hold, and what it must not."
    )
    stderr: TextRules | None = declared(
        None, record_of(TEXT_RULE_KEYS), "What its standard error must hold, and what it must not."
    )
    max_slowdown: float | None = declared(
        None, kinds.FACTOR, "How many times the median of its own recent passes it may take. null: no limit."
    )
    min_strength: int | None = declared(
        None, kinds.PERCENT, "The least score of golden strength, on demand and never in a gate. null: none."
    )

    def __post_init__(self) -> None:
        fields = check_fields(self, PROJECT_KEYS)
        findings = find_conflicts(fields)
        if findings:
            raise kinds.WrongValueError(findings)
        fields["set_env"] = FrozenDict(self.set_env)
        fields["mounts"] = tuple(Mount(**mount) for mount in fields["mounts"])
        fields["outputs"] = tuple(DeclaredOutput(**output) for output in fields["outputs"])
        for name in ("stdout", "stderr"):
            fields[name] = None if fields[name] is None else TextRules(**fields[name])
        fields["quarantine"] = None if self.quarantine is None else Quarantine(**fields["quarantine"])

    @property
    def display_title(self) -> str:
        """The title for people; the name if no title is declared."""
        return self.title or self.name

    @property
    def expected(self) -> ExpectedOutcome:
        """The expected outcome, parsed."""
        return ExpectedOutcome.parse(self.expected_outcome)


PROJECT_KEYS = table_of(GoldenProjectConfig, optional="name")


@dataclass(frozen=True, slots=True)
class Manifest(Shape):
    """All golden projects in the order of their declaration.

    `workspace_root` is absolute and may be missing on disk. `path` is the file, or None for the inline form and for text from
    elsewhere. `lines` maps each project to the line where its declaration begins, counted from 1.
    """

    projects: tuple[GoldenProjectConfig, ...] = field(metadata=form(key="golden_projects"))
    workspace_root: Path
    require_golden_projects: bool = False
    retired: tuple[RetiredProject, ...] = ()
    setup: tuple[str, ...] | None = None
    path: Path | None = None
    lines: Mapping[str, int] = field(default_factory=FrozenDict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", FrozenDict(self.lines))

    def find_project(self, name: str) -> GoldenProjectConfig | None:
        """Find a project by its name."""
        return next((project for project in self.projects if project.name == name), None)

    def get_project(self, name: str) -> GoldenProjectConfig:
        """Get a project by its name.

        Raises:
            SettingsError: no project has this name; the message suggests the nearest one.
        """
        project = self.find_project(name)
        if project is not None:
            return project
        names = [project.name for project in self.projects]
        more = len(names) - _MOST_NAMED
        declared = f"declared are {', '.join(names[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")
        near = kinds.suggest(name, names)
        hint = f"did you mean {near!r}?" if near else declared if names else "none is declared"
        raise SettingsError(f"no golden project is called {show(name)} in {self.path}; {hint}")

    def list_passed(self) -> frozenset[str]:
        """Return the names of all environment variables that projects receive."""
        return frozenset(name for project in self.projects for name in project.pass_env)


DEFAULT_KEYS = PROJECT_KEYS.without(
    {name: f"{name} cannot have a default; write it in each project" for name in ("name", "path")}
)


def _unread(schema: Mapping[str, Any]) -> kinds.Kind:
    """Make the kind of a block whose parts `reader.py` checks one by one, so that one mistake does not hide another."""
    return kinds.Kind(lambda value: value, {"anyOf": [dict(schema), {"type": "null"}]})


FILE_KEYS = kinds.Table.of(
    (
        kinds.Key("version", kinds.VERSION, "The version of the manifest format: 1."),
        kinds.Key(
            "workspace_root", TEXT, "The folder that relative paths resolve against. Default: the manifest's folder."
        ),
        kinds.Key("require_golden_projects", kinds.FLAG, "Whether a manifest without golden projects is an error."),
        kinds.Key("defaults", _unread(record_of(DEFAULT_KEYS).schema), "Default values for all projects."),
        kinds.Key(
            "golden_projects",
            _unread(list_of(record_of(PROJECT_KEYS)).schema),
            "The pipelines that must always work, in the order in which they run.",
        ),
        kinds.Key(
            "retired",
            _unread(list_of(record_of(RETIRED_KEYS)).schema),
            "Golden projects that were removed on purpose, with the reason.",
        ),
        kinds.Key("setup", kinds.COMMAND, "A command that prepares an environment for golden verify.", nullable=True),
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

    It describes the values of single keys. Only `load_manifest` finds conflicts between keys or projects and broken regular
    expressions. Each call returns a new value.
    """
    return {
        "$schema": DIALECT,
        "title": "golden_projects.yaml",
        "description": "The golden projects of a workspace: pipelines that must always work.",
        **kinds.record_schema(FILE_KEYS),
    }


def is_absolute_path(text: str) -> bool:
    """Tell whether a declared path is absolute. A path with a drive letter is, on every system."""
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def slug(text: str) -> str:
    """Make a name from any text; empty if it has no letter or digit."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", plain).strip("_.-")[: kinds.LONGEST_NAME]


def stem_name(path: str) -> str:
    """Return a project's default name: the stem of its path, as a slug if it is not a valid name."""
    stem = PureWindowsPath(path).stem
    return stem[: kinds.LONGEST_NAME] if re.fullmatch(kinds.NAME_FORM, stem) else slug(stem)


def find_independent(projects: Iterable[GoldenProjectConfig]) -> frozenset[str]:
    """Return the projects that may run beside others: those declared `independent` that no other project needs."""
    everyone = tuple(projects)
    needed = {name for project in everyone for name in project.needs}
    return frozenset(project.name for project in everyone if project.independent and project.name not in needed)
