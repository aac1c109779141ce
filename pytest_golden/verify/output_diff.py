"""Runs golden projects on a base and on the head, and compares what they write with each other: no baselines, no verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_golden.compare.comparing import compare_with
from pytest_golden.gate.calibrating import OutputCollector
from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.table_difference import TableDifference
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.rules import judge
from pytest_golden.regression.wording import format_size
from pytest_golden.values.shape import Shape, VersionedShape, form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.gateway.service import ExecutionGateway
    from pytest_golden.manifest.model import GoldenProjectConfig


# What says where outputs are, and what of them moves by itself.
_KEPT = (
    *("path", "table", "tables", "exclude", "database", "dbt", "header", "key", "unordered"),
    *("absolute_tolerance", "relative_tolerance", "ignore_columns", "ignore_lines", "ignore_paths", "masks"),
)


class DiffKind(StrEnum):
    """What a change does to one output."""

    SAME = "same"
    CHANGED = "changed"
    NEW = "new"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class OutputDiff(Shape):
    """What a change does to one output. `message` tells how it differs, with the base's in the place of the baseline."""

    path: str
    kind: DiffKind
    message: str = ""
    table: TableDifference | None = field(default=None, metadata=form(unless_none=True))


@dataclass(frozen=True, slots=True)
class ProjectDiff(Shape):
    """What a change does to the outputs of one project. `base_error` and `head_error` say why a side has none."""

    name: str
    outputs: tuple[OutputDiff, ...] = ()
    base_error: str | None = None
    head_error: str | None = None

    @property
    def is_comparable(self) -> bool:
        """Tell whether both sides ended as expected."""
        return self.base_error is None and self.head_error is None

    @property
    def changed(self) -> tuple[OutputDiff, ...]:
        """Return the outputs that are not the same on both sides."""
        return tuple(output for output in self.outputs if output.kind is not DiffKind.SAME)


@dataclass(frozen=True, slots=True)
class DataDiff(VersionedShape):
    """What a change does to the outputs of projects; `base` and `head` are commits, and `dirty` tells of edits of the head.

    `env_a` and `env_b` are the lock files of the base's and the head's environment, where one commit is run in both.
    """

    base: str | None
    head: str | None
    dirty: bool
    projects: tuple[ProjectDiff, ...] = ()
    env_a: str | None = field(default=None, metadata=form(unless_none=True))
    env_b: str | None = field(default=None, metadata=form(unless_none=True))


@dataclass(frozen=True, slots=True)
class DiffSide:
    """One side: its project (None if it declares none of that name), and the gateway that runs it."""

    project: GoldenProjectConfig | None
    gateway: ExecutionGateway


def diff_project(name: str, base: DiffSide, head: DiffSide, folder: Path) -> ProjectDiff:
    """Run one project on both sides, and compare their outputs; `folder` is an empty one for copies.

    Raises:
        GoldenError: the harness could not do its job.
    """
    outputs = _list_outputs(base.project, head.project)
    then, base_error = _run(base, outputs, folder / "base")
    now, head_error = _run(head, outputs, folder / "head")
    if base_error is not None or head_error is not None:
        return ProjectDiff(name, (), base_error, head_error)
    redacting = head if head.project is not None else base
    found = tuple(_compare(redacting, then, now))
    changed = {output.path for output in found if output.kind is not DiffKind.SAME}
    # What a changed model is made of comes before it.
    found = tuple(sorted(found, key=lambda output: len(changed.intersection(now.upstream.get(output.path, ())))))
    return ProjectDiff(name, found)


def _list_outputs(base: GoldenProjectConfig | None, head: GoldenProjectConfig | None) -> tuple[DeclaredOutput, ...]:
    """Return the entries of the head, and those of the base that it lacks, all of them compared by content."""
    mine = () if head is None else head.outputs
    known = {output.shown for output in mine}
    others = () if base is None else tuple(output for output in base.outputs if output.shown not in known)
    return tuple(map(_by_content, (*mine, *others)))


def _by_content(output: DeclaredOutput) -> DeclaredOutput:
    """Return an entry that only says where its files are, and what moves by itself."""
    compare = None if output.compare in {None, "exists", "image_size"} else output.compare
    return DeclaredOutput(compare=compare, **{name: getattr(output, name) for name in _KEPT})


def _run(side: DiffSide, outputs: tuple[DeclaredOutput, ...], folder: Path) -> tuple[OutputCollector, str | None]:
    """Run a side's project; return what it wrote, and why it wrote nothing that counts."""
    collector = OutputCollector(outputs, folder)
    if side.project is None:
        return collector, None
    # What else the project must hold is the gate's to judge.
    project = replace(side.project, outputs=outputs, stdout=None, stderr=None, unexpected_files="allow")
    outcome = side.gateway.run_pipeline(
        project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions(can_edit_source=False), examine=collector
    )
    result = judge(project, outcome)
    if result.status is ResultStatus.PASSED:
        return collector, None
    return collector, result.error_message or str(result.status)


def _compare(side: DiffSide, then: OutputCollector, now: OutputCollector) -> Iterator[OutputDiff]:
    def redact(text: str) -> str:
        return text if side.project is None else side.gateway.redact(side.project, text)

    for path in sorted({*then.files, *now.files}):
        shown = redact(path)
        if path not in then.files:
            yield OutputDiff(shown, DiffKind.NEW, format_size(now.files[path].stat().st_size))
        elif path not in now.files:
            yield OutputDiff(shown, DiffKind.REMOVED, format_size(then.files[path].stat().st_size))
        else:
            found = compare_with(now.expected[path], now.files[path], then.files[path], redact)
            if found is None:
                yield OutputDiff(shown, DiffKind.SAME)
            else:
                yield OutputDiff(shown, DiffKind.CHANGED, _of_base(redact(found.message)), found.difference)


def _of_base(message: str) -> str:
    """Say `base` for what the message of a comparison calls the baseline."""
    for told, meant in (("its baseline", "the base"), ("the baseline", "the base"), ("  baseline", "  base    ")):
        message = message.replace(told, meant)
    return message
