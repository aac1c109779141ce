"""Odibi projects: `odibi run`, so that Odibi's own exit code is left (see `odibi_child.py`), and the steps in its stories."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.runners.runner import Runner, find_tool_python, read_beginning
from pytest_golden.trajectory.readers.engine_reports import (
    ReportReader,
    list_of,
    member_of,
    milliseconds_of,
    scalar_of,
)
from pytest_golden.trajectory.readers.model import StepDraft
from pytest_golden.trajectory.vocabulary import Importance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.runners.runner import PipelineFile

_CHILD = Path(__file__).with_name("odibi_child.py")
_TOP_LEVEL_KEY = re.compile(r"""^["']?([A-Za-z_]\w*)["']?\s*:(?:\s|$)""", re.MULTILINE)
_PIPELINE_KEYS = frozenset({"pipelines", "imports"})
_PROJECT_KEYS = frozenset({"project", "engine", "connections", "story", "system"})


def _recognises(pipeline: PipelineFile) -> bool:
    """Tell an Odibi project config by the top-level keys that Odibi demands.

    They are found without parsing the YAML: a config that got broken is still Odibi's, whose own error is the news.
    """
    text = read_beginning(pipeline).decode("utf-8-sig", "replace")
    keys = frozenset(_TOP_LEVEL_KEY.findall(text))
    return not keys.isdisjoint(_PIPELINE_KEYS) and len(keys & _PROJECT_KEYS) > 1


def _environment(_: PipelineFile) -> Mapping[str, str]:
    return {
        # Odibi prints by rich, which wraps at the terminal's width: an expected error's text would be cut in two. The
        # script that runs Odibi takes away the spaces with which rich fills the lines.
        "COLUMNS": "1000",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
        # A gate run is not a production run, so it must not appear in the company's lineage. Spans go nowhere by themselves,
        # since Odibi sends them only where OTEL_EXPORTER_OTLP_ENDPOINT says.
        "OPENLINEAGE_DISABLED": "true",
    }


# <story path>/<pipeline>/<date>/run_<time>.json; the lineage files beside them have no such nodes.
_STORY_PATH = re.compile(r"(?:^|/)[^/]+/\d{4}-\d{2}-\d{2}/run_[^/]*\.json$")
_TAKEN_AS_THEY_ARE = ("operation", "status", "rows_in", "rows_out", "rows_written")


def _read_story(story: Any) -> list[StepDraft | None]:
    is_story = isinstance(story, dict) and "pipeline_name" in story
    return [_read_node(node, story) for node in list_of(story, "nodes")] if is_story else []


def _read_node(node: Any, story: Mapping[str, Any]) -> StepDraft | None:
    if not isinstance(node, dict) or not isinstance(node.get("node_name"), str) or not node["node_name"].strip():
        return None
    error = _error_of(node)
    return StepDraft(
        content=node["node_name"],
        importance=Importance.CRITICAL if error else Importance.MEDIUM,
        duration_ms=milliseconds_of(node.get("duration")),
        timestamp=_moment(node.get("started_at")) or _moment(story.get("started_at")),
        metadata={**_facts(node, story), **({"error": error} if error else {})},
    )


def _facts(node: Mapping[str, Any], story: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"reader": "odibi", "pipeline": scalar_of(story["pipeline_name"])}
    facts |= {key: scalar_of(node.get(key)) for key in _TAKEN_AS_THEY_ARE}
    facts["depends_on"] = _dependencies(node, story)
    if error_type := node.get("error_type"):
        facts["error_type"] = scalar_of(error_type)
    if attempts := node.get("retry_history"):
        facts["attempts"] = len(attempts) if isinstance(attempts, list) else None
    if node.get("failed_rows_counts"):
        counts = member_of(node, "failed_rows_counts").items()
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
    names = member_of(node, "config_snapshot").get("depends_on")
    if not names:
        listed = list_of(member_of(story, "graph_data"), "nodes")
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


READERS = (
    ReportReader(
        "odibi", _STORY_PATH, _read_story, "Odibi's story", "nodes in Odibi's stories have no name or no usable figures"
    ),
)
RUNNERS = (
    Runner(
        name="odibi",
        files="Odibi's YAML (top-level `pipelines` with `project`, `connections`, `story` or `system`)",
        suffixes=(".yaml", ".yml"),
        recognises=_recognises,
        find_start=lambda pipeline: (find_tool_python("odibi", "odibi", pipeline), str(_CHILD)),
        arguments=lambda _: ("run", "{path}"),
        environment=_environment,
        step_readers=("odibi",),
        program="odibi",
        is_sure=True,
        distributions=("odibi",),
    ),
)
