"""What a manifest declares, as frozen values that check their own fields by a table of keys. No file is read here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from functools import wraps
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pytest_golden.manifest.findings import WrongValueError
from pytest_golden.manifest.keys import MOUNT_KEYS, OUTPUT_KEYS, PROJECT_KEYS, QUARANTINE_KEYS, RETIRED_KEYS
from pytest_golden.manifest.kinds import LONGEST_NAME, NAME_FORM, collect
from pytest_golden.manifest.rules import find_conflicts
from pytest_golden.manifest.units import ExpectedKind, ExpectedOutcome
from pytest_golden.values.frozen import FrozenDict
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.manifest.kinds import Table


_Value = TypeVar("_Value")


def refuse_wrong_arguments(value_type: type[_Value]) -> type[_Value]:
    """Make a dataclass raise `ValueError` for unknown and missing arguments too, as for every wrong value."""
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


def check_fields(value: object, table: Table) -> dict[str, Any]:
    """Replace the fields of a new dataclass by what the checks of their keys return, and return these fields.

    Raises:
        WrongValueError: all mistakes of all fields.
    """
    fields = vars(value)
    defaults = vars(type(value))
    given = {name: field for name, field in fields.items() if name not in defaults or field is not defaults[name]}
    clean, findings = collect(given, table)
    if findings:
        raise WrongValueError(findings)
    fields.update(clean)
    return fields


__all__ = [
    "DeclaredOutput",
    "ExpectedKind",
    "ExpectedOutcome",
    "GoldenProjectConfig",
    "Manifest",
    "Mount",
    "Quarantine",
    "RetiredProject",
    "is_absolute_path",
    "slug",
    "stem_name",
]


@refuse_wrong_arguments
@dataclass(frozen=True)
class Mount(Shape):
    """A folder or file outside project_dir that the pipeline needs, and what it may do there."""

    path: str
    mode: Literal["read", "copy", "write"] = "read"

    def __post_init__(self) -> None:
        check_fields(self, MOUNT_KEYS)


@refuse_wrong_arguments
@dataclass(frozen=True)
class Quarantine(Shape):
    """Until that day, the day itself included, the result is reported and does not fail the gate."""

    until: date
    reason: str

    def __post_init__(self) -> None:
        check_fields(self, QUARANTINE_KEYS)


@refuse_wrong_arguments
@dataclass(frozen=True)
class RetiredProject(Shape):
    """A golden project that was taken out on purpose."""

    name: str
    reason: str

    def __post_init__(self) -> None:
        check_fields(self, RETIRED_KEYS)


@refuse_wrong_arguments
@dataclass(frozen=True)
class DeclaredOutput(Shape):
    """Files that a pipeline must write and how they are compared with their baselines: `OUTPUT_KEYS` in `keys.py`.

    `path` is a glob below project_dir. `compare` None goes by the suffix of each file that is found.
    """

    path: str
    compare: Literal["bytes", "text", "json", "table", "image_size", "exists"] | None = None
    ignore_lines: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    ignore_paths: tuple[str, ...] = ()
    unordered: bool = False
    absolute_tolerance: float = 0.0
    relative_tolerance: float = 0.0
    key: tuple[str, ...] = ()
    ignore_columns: tuple[str, ...] = ()
    schema_only: bool = False
    min_rows: int | None = None
    max_rows: int | None = None
    allow_secret: str | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, OUTPUT_KEYS)


@refuse_wrong_arguments
@dataclass(frozen=True)
class GoldenProjectConfig(Shape):
    """One golden project: the manifest's keys under their own names, described in `keys.py`.

    `path` and the other paths are kept as declared, relative to the workspace root or absolute (`is_absolute_path`).
    `timeout` and `cpu_limit` are seconds, `memory_limit` is bytes; all take the manifest's texts as well.
    `steps` is the text `auto` or the names of step readers.
    """

    name: str
    path: str
    description: str | None = None
    expected_outcome: str = "success"
    _: KW_ONLY
    title: str | None = None
    runner: str = "auto"
    args: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    project_dir: str | None = None
    timeout: float = 600.0
    memory_limit: int | None = None
    network: bool = True
    venv: str | None = None
    set_env: Mapping[str, str] = field(default_factory=FrozenDict, hash=False)
    pass_env: tuple[str, ...] = ()
    pass_files: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    needs: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    quarantine: Quarantine | None = None
    tags: tuple[str, ...] = ()
    retries: int = 0
    independent: bool = False
    steps: str | tuple[str, ...] = "auto"
    skip_if_missing: tuple[str, ...] = ()
    cpu_limit: float | None = None
    unexpected_files: Literal["allow", "warn", "fail"] = "allow"
    writes: tuple[str, ...] = ()
    outputs: tuple[DeclaredOutput, ...] = ()
    max_slowdown: float | None = None

    def __post_init__(self) -> None:
        fields = check_fields(self, PROJECT_KEYS)
        findings = find_conflicts(fields)
        if findings:
            raise WrongValueError(findings)
        fields["set_env"] = FrozenDict(self.set_env)
        fields["mounts"] = tuple(Mount(**mount) for mount in fields["mounts"])
        fields["outputs"] = tuple(DeclaredOutput(**output) for output in fields["outputs"])
        fields["quarantine"] = None if self.quarantine is None else Quarantine(**fields["quarantine"])

    @property
    def display_title(self) -> str:
        """The title for people, the name where none is declared."""
        return self.title or self.name

    @property
    def expected(self) -> ExpectedOutcome:
        """The expected outcome, taken apart."""
        return ExpectedOutcome.parse(self.expected_outcome)


@dataclass(frozen=True, slots=True)
class Manifest(Shape):
    """All golden projects in the order of their declaration.

    `workspace_root` is absolute and need not exist. `path` is the file, None for an inline form or a text from
    elsewhere. `lines` gives the line in which each project's declaration begins, counted from 1.
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


def is_absolute_path(text: str) -> bool:
    """Tell whether a declared path is absolute; one with a drive letter is, also where there are no drives."""
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def slug(text: str) -> str:
    """Make a name of any text; empty when no letter or digit is left."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", plain).strip("_.-")[:LONGEST_NAME]


def stem_name(path: str) -> str:
    """Return the name that a project has by its path: the stem, as a slug where it is no name."""
    stem = PureWindowsPath(path).stem
    return stem[:LONGEST_NAME] if re.fullmatch(NAME_FORM, stem) else slug(stem)


def find_independent(projects: Iterable[GoldenProjectConfig]) -> frozenset[str]:
    """Return the projects that may run beside others: those declared `independent` that no other project needs."""
    everyone = tuple(projects)
    needed = {name for project in everyone for name in project.needs}
    return frozenset(project.name for project in everyone if project.independent and project.name not in needed)
