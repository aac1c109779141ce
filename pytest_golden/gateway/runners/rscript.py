"""R: scripts by `Rscript`, and pipelines of the package targets by `tar_make()`, with the targets in their metadata."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.runners.runner import Runner, find_program
from pytest_golden.trajectory.readers.engine_reports import ReportReader, milliseconds_of, read_text
from pytest_golden.trajectory.readers.model import StepDraft
from pytest_golden.trajectory.vocabulary import Importance

if TYPE_CHECKING:
    from pytest_golden.gateway.runners.runner import PipelineFile

_TARGETS = "_targets.R"
_KINDS = frozenset({"stem", "branch"})


def _read_meta(text: Any) -> list[StepDraft | None]:
    """Read the targets in the order in which they were built last; branches are targets, the pattern above them is none."""
    lines = str(text).splitlines()
    names = lines[0].split("|") if lines else []
    rows: dict[str, dict[str, str]] = {}
    for line in lines[1:]:
        row = dict(zip(names, line.split("|"), strict=False))
        if row.get("name") and row.get("type") in _KINDS:
            # A target that was built again stands again, further down.
            rows.pop(row["name"], None)
            rows[row["name"]] = row
    return [_read_target(row) for row in rows.values()]


def _read_target(row: dict[str, str]) -> StepDraft:
    error = row.get("error") or ""
    facts = {"reader": "targets", "status": "failed" if error else "success"}
    facts |= {key: row[key] for key in ("warnings", "bytes", "parent") if row.get(key)}
    return StepDraft(
        content=row["name"],
        importance=Importance.CRITICAL if error else Importance.MEDIUM,
        duration_ms=milliseconds_of(_read_number(row.get("seconds"))),
        metadata={**facts, "error": error} if error else facts,
    )


def _read_number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _find_start(pipeline: PipelineFile) -> tuple[str, ...]:
    return find_program("Rscript", pipeline, "install R, or give `command:`")


READERS = (
    ReportReader(
        "targets",
        re.compile(r"(?:^|/)_targets/meta/meta$"),
        _read_meta,
        "the metadata of targets,",
        "targets have no name",
        read_text,
    ),
)
RUNNERS = (
    Runner(
        name="targets",
        files="_targets.R",
        suffixes=(".r",),
        recognises=lambda pipeline: pipeline.file.name == _TARGETS,
        find_start=_find_start,
        arguments=lambda _: ("-e", 'targets::tar_make(callr_function = NULL, reporter = "verbose")'),
        environment=lambda _: {"NO_COLOR": "1"},
        step_readers=("targets",),
        engine_files=("_targets/**",),
        is_incremental=True,
        is_sure=True,
    ),
    Runner(
        name="r",
        files="R scripts (.R)",
        suffixes=(".r",),
        recognises=lambda pipeline: pipeline.file.name != _TARGETS,
        find_start=_find_start,
        environment=lambda _: {"NO_COLOR": "1"},
        program="Rscript",
    ),
)
