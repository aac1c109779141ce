"""Nextflow pipelines: `nextflow run`, and the tasks in its trace."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from typing import Any

from pytest_golden.gateway.runners.runner import Runner, find_program
from pytest_golden.trajectory.readers.engine_reports import ReportReader, read_text
from pytest_golden.trajectory.readers.model import StepDraft, order_by_start
from pytest_golden.trajectory.vocabulary import Importance

_TRACE = ".golden-trace.txt"
_PART = re.compile(r"([\d.]+) ?(ms|s|m|h|d)\b")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_FIRST = datetime.min.replace(tzinfo=UTC)
_DONE = frozenset({"COMPLETED", "CACHED"})


def _read_trace(text: Any) -> list[StepDraft | None]:
    """Read the tasks in the order in which they were submitted."""
    rows = csv.DictReader(str(text).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if not {"name", "status"} <= set(rows.fieldnames or ()):
        return []
    drafts = [_read_task(row) for row in rows]
    usable = (draft for draft in drafts if draft is not None)
    return [*order_by_start(usable, lambda draft: draft.timestamp, _FIRST), *[None] * drafts.count(None)]


def _read_task(row: dict[str, Any]) -> StepDraft | None:
    name, status = row["name"], row["status"]
    if not name or not status:
        return None
    facts = {key: row.get(key) for key in ("exit", "hash", "peak_rss") if row.get(key)}
    return StepDraft(
        content=name,
        importance=Importance.MEDIUM if status in _DONE else Importance.CRITICAL,
        duration_ms=_read_duration(row.get("realtime") or ""),
        timestamp=_read_time(row.get("submit") or ""),
        metadata={"reader": "nextflow", "status": status.lower(), **facts},
    )


def _read_duration(text: str) -> float | None:
    parts = _PART.findall(text)
    return sum(float(number) * _MILLISECONDS[unit] for number, unit in parts) if parts else None


def _read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


READERS = (
    ReportReader(
        "nextflow",
        re.compile(rf"(?:^|/){re.escape(_TRACE)}$"),
        _read_trace,
        "Nextflow's",
        "tasks in Nextflow's trace have no name or no status",
        read_text,
    ),
)
RUNNERS = (
    Runner(
        name="nextflow",
        files="Nextflow's main.nf",
        suffixes=(".nf",),
        find_start=lambda pipeline: find_program("nextflow", pipeline),
        arguments=lambda _: ("run", "{path}", "-ansi-log", "false", "-with-trace", _TRACE),
        environment=lambda _: {"NXF_ANSI_LOG": "false", "NXF_DISABLE_CHECK_LATEST": "true"},
        step_readers=("nextflow",),
        engine_files=(".nextflow/**", ".nextflow.log*", "work/**", _TRACE),
        program="nextflow",
    ),
)
