"""Read the steps of an engine from the report that it leaves: Odibi's story, dbt's run results. A reader that fails costs its steps and a warning."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.storage.folder import open_regular
from pytest_golden.trajectory.readers.model import StepDraft, StepReading, order_by_start
from pytest_golden.trajectory.vocabulary import Importance, StepType, check_duration
from pytest_golden.values.checking import as_mapping, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pytest_golden.trajectory.readers.model import StepReader, ViewFiles

_LOG = logging.getLogger(__name__)
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


def read_all(readers: Iterable[StepReader], view: ViewFiles, outcome: Any) -> tuple[StepReading, ...]:
    """Return one reading for each reader, in their order; never raises for what a reader does."""
    return tuple(_read_one(reader, view, outcome) for reader in readers)


def _read_one(reader: StepReader, view: ViewFiles, outcome: Any) -> StepReading:
    name = getattr(reader, "name", type(reader).__name__)
    try:
        reading: object = reader.read(view, outcome)
    except Exception as error:  # a plugged-in reader may raise anything
        # Without its traceback, which may quote unredacted output of the pipeline.
        _LOG.warning("a step reader failed", extra={"reader": name, "error": type(error).__name__})
        return StepReading(
            warnings=(f"step reader {name} failed, its steps are lost: {type(error).__name__}: {error}",)
        )
    if isinstance(reading, StepReading):
        return reading
    return StepReading(warnings=(f"step reader {name} gave {type(reading).__name__} instead of a StepReading",))


class ReportReader(NamedTuple):
    """Reads each report of one engine that this run wrote; an old one that it left unchanged is not this run's.

    `parse` gives None for each part of a report that is not usable; `title` and `unusable` are for warnings.
    """

    name: str
    path: re.Pattern[str]
    parse: Callable[[Any], list[StepDraft | None]]
    title: str
    unusable: str

    def read(self, view: ViewFiles, outcome: Any) -> StepReading:
        """Return the steps of all reports, by the paths of these."""
        drafts: list[StepDraft | None] = []
        warnings = []
        for relative in filter(self.path.search, sorted({*outcome.write_set.created, *outcome.write_set.changed})):
            path = view.find_file(relative)
            try:
                drafts += [] if path is None else self.parse(_read_json(path))
            except (OSError, ValueError) as error:
                warnings.append(f"{self.title} {relative} cannot be read: {error}")
        if lost := drafts.count(None):
            warnings.append(f"{lost} {self.unusable}")
        return StepReading(tuple(draft for draft in drafts if draft is not None), lost, tuple(warnings))


def _read_json(path: Path) -> Any:
    """Read one JSON document of at most 64 MiB; NaN and infinities become text. The pipeline that wrote it is not trusted."""
    with open_regular(path) as file:
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it is larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return json.loads(content, parse_constant=str)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _scalar(given: Any) -> Any:
    return given if isinstance(given, (str, int, float)) else None


def _member(given: Any, key: str) -> Mapping[str, Any]:
    return as_mapping(as_mapping(given).get(key))


def _list(given: Any, key: str) -> list[Any]:
    value = as_mapping(given).get(key)
    return value if isinstance(value, list) else []


def _milliseconds(seconds: Any) -> float | None:
    try:
        return check_duration("duration", seconds * 1000)
    except (TypeError, ValueError):
        return None


# <story path>/<pipeline>/<date>/run_<time>.json; the lineage files beside them have no such nodes.
_STORY_PATH = re.compile(r"(?:^|/)[^/]+/\d{4}-\d{2}-\d{2}/run_[^/]*\.json$")
_TAKEN_AS_THEY_ARE = ("operation", "status", "rows_in", "rows_out", "rows_written")


def _read_story(story: Any) -> list[StepDraft | None]:
    is_story = isinstance(story, dict) and "pipeline_name" in story
    return [_read_node(node, story) for node in _list(story, "nodes")] if is_story else []


def _read_node(node: Any, story: Mapping[str, Any]) -> StepDraft | None:
    if not isinstance(node, dict) or not isinstance(node.get("node_name"), str) or not node["node_name"].strip():
        return None
    error = _error_of(node)
    return StepDraft(
        content=node["node_name"],
        importance=Importance.CRITICAL if error else Importance.MEDIUM,
        duration_ms=_milliseconds(node.get("duration")),
        timestamp=_moment(node.get("started_at")) or _moment(story.get("started_at")),
        metadata={**_facts(node, story), **({"error": error} if error else {})},
    )


def _facts(node: Mapping[str, Any], story: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"reader": "odibi", "pipeline": _scalar(story["pipeline_name"])}
    facts |= {key: _scalar(node.get(key)) for key in _TAKEN_AS_THEY_ARE}
    facts["depends_on"] = _dependencies(node, story)
    if error_type := node.get("error_type"):
        facts["error_type"] = _scalar(error_type)
    if attempts := node.get("retry_history"):
        facts["attempts"] = len(attempts) if isinstance(attempts, list) else None
    if node.get("failed_rows_counts"):
        counts = _member(node, "failed_rows_counts").items()
        facts["failed_rows_counts"] = {key: count for key, count in counts if isinstance(count, int)}
    if warnings := node.get("validation_warnings"):
        facts["validation_warning_count"] = len(warnings) if isinstance(warnings, list) else None
    return facts


def _error_of(node: Mapping[str, Any]) -> str | None:
    if node.get("status") != "failed":
        return None
    message = node.get("error_message")
    return message if isinstance(message, str) and message.strip() else "Odibi reports this node as failed"


def _dependencies(node: Mapping[str, Any], story: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes that this one waits for. The story lacks the configuration of a failed or skipped node."""
    names = _member(node, "config_snapshot").get("depends_on")
    if not names:
        listed = _list(_member(story, "graph_data"), "nodes")
        found = (entry for entry in listed if isinstance(entry, dict) and entry.get("id") == node["node_name"])
        names = next(found, {}).get("dependencies")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _moment(text: Any) -> datetime | None:
    """Read one of Odibi's times; those without a zone are UTC, as the gateway sets the pipeline's clock."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


FAILED_STATUSES = frozenset({"error", "fail", "runtime error", "partial success"})
_FIRST = datetime.min.replace(tzinfo=UTC)
_TEST_KINDS = frozenset({"test", "unit_test"})


def _read_run_results(document: Any) -> list[StepDraft | None]:
    invocation_id = _scalar(_member(document, "metadata").get("invocation_id"))
    drafts = [_read_result(result, invocation_id) for result in _list(document, "results")]
    # dbt lists results as they end, in several threads.
    usable = order_by_start((draft for draft in drafts if draft is not None), lambda draft: draft.timestamp, _FIRST)
    return [*usable, *[None] * (len(drafts) - len(usable))]


def _read_result(result: Any, invocation_id: Any) -> StepDraft | None:
    if not isinstance(result, dict) or not isinstance(result.get("unique_id"), str) or not result["unique_id"].strip():
        return None
    status = _scalar(result.get("status"))
    message = _scalar(result.get("message"))
    metadata = {
        "reader": "dbt",
        "status": status,
        "message": message,
        "failures": _scalar(result.get("failures")),
        "rows_affected": _scalar(_member(result, "adapter_response").get("rows_affected")),
        "invocation_id": invocation_id,
    }
    has_failed = status in FAILED_STATUSES
    if has_failed:
        metadata["error"] = message or f"dbt reports status {status}"
    return StepDraft(
        content=result["unique_id"],
        type=StepType.OBSERVATION if result["unique_id"].split(".")[0] in _TEST_KINDS else StepType.ACTION,
        importance=Importance.CRITICAL if has_failed else Importance.HIGH if status == "warn" else Importance.MEDIUM,
        duration_ms=_milliseconds(result.get("execution_time")),
        timestamp=_start_of(result),
        metadata=metadata,
    )


def _start_of(result: Mapping[str, Any]) -> datetime | None:
    """Return the start of the result's first phase; a skipped result has none."""
    timing = result.get("timing")
    try:
        return min(parse_time("started_at", phase["started_at"]) for phase in timing) if timing else None
    except (TypeError, KeyError, ValueError):
        return None


ODIBI = ReportReader(
    "odibi", _STORY_PATH, _read_story, "Odibi's story", "nodes in Odibi's stories have no name or no usable figures"
)
DBT = ReportReader(
    "dbt",
    re.compile(r"(?:^|/)run_results\.json$"),
    _read_run_results,
    "dbt's",
    "results in dbt's run_results.json have no unique_id or no usable figures",
)
DEFAULT_READERS: tuple[StepReader, ...] = (ODIBI, DBT)
