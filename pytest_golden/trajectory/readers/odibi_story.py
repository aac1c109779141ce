"""Odibi's story JSON, one step for each node.

A story holds samples of real rows (`sample_in`, `sample_data`, `failed_rows_samples`, `data_diff`). Only status, counts,
durations and errors are taken, by name, so that a new key never brings rows along. Key names: odibi 3.15,
`odibi/story/metadata.py`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.readers.files import find_written, read_json
from pytest_golden.trajectory.readers.model import StepDraft, StepReading
from pytest_golden.trajectory.vocabulary import Importance, check_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_golden.trajectory.readers.model import RunFacts, ViewFiles

# <story path>/<pipeline>/<date>/run_<time>.json
_STORY_PATH = re.compile(r"(?:^|/)[^/]+/\d{4}-\d{2}-\d{2}/run_[^/]*\.json$")
_TAKEN_AS_THEY_ARE = ("operation", "status", "rows_in", "rows_out", "rows_written")


class OdibiStoryReader:
    """Reads the stories that this run wrote; Odibi's lineage files beside them have no nodes of this kind."""

    name = "odibi"

    def read(self, view: ViewFiles, outcome: RunFacts) -> StepReading:
        """Return one step a node, in the order in which Odibi lists them."""
        steps: list[StepDraft] = []
        lost, warnings = 0, []
        for relative, path in find_written(view, outcome, lambda name: _STORY_PATH.search(name) is not None):
            try:
                story = read_json(path)
            except (OSError, ValueError) as error:
                warnings.append(f"Odibi's story {relative} cannot be read: {error}")
                continue
            for node in _list_nodes(story):
                draft = _read_node(node, story)
                lost += draft is None
                steps += [] if draft is None else [draft]
        if lost:
            warnings.append(f"{lost} nodes in Odibi's stories have no name or no usable figures")
        return StepReading(tuple(steps), lost, tuple(warnings))


def _list_nodes(story: Any) -> list[Any]:
    if not isinstance(story, dict) or "pipeline_name" not in story:
        return []
    nodes = story.get("nodes")
    return nodes if isinstance(nodes, list) else []


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
    facts: dict[str, Any] = {"reader": OdibiStoryReader.name, "pipeline": _scalar(story["pipeline_name"])}
    facts |= {key: _scalar(node.get(key)) for key in _TAKEN_AS_THEY_ARE}
    facts["depends_on"] = _dependencies(node, story)
    if error_type := node.get("error_type"):
        facts["error_type"] = _scalar(error_type)
    if attempts := node.get("retry_history"):
        facts["attempts"] = len(attempts) if isinstance(attempts, list) else None
    if failed_rows := node.get("failed_rows_counts"):
        facts["failed_rows_counts"] = dict(_counts(failed_rows))
    if warnings := node.get("validation_warnings"):
        facts["validation_warning_count"] = len(warnings) if isinstance(warnings, list) else None
    return facts


def _error_of(node: Mapping[str, Any]) -> str | None:
    if node.get("status") != "failed":
        return None
    message = node.get("error_message")
    return message if isinstance(message, str) and message.strip() else "Odibi reports this node as failed"


def _dependencies(node: Mapping[str, Any], story: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes this one waits for; a failed or skipped node's own configuration is not in the story."""
    names = _member(node, "config_snapshot").get("depends_on")
    if not names:
        graph_nodes = _member(story, "graph_data").get("nodes")
        listed = graph_nodes if isinstance(graph_nodes, list) else []
        found = (entry for entry in listed if isinstance(entry, dict) and entry.get("id") == node["node_name"])
        names = next(found, {}).get("dependencies")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _member(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = mapping.get(key)
    return value if isinstance(value, dict) else {}


def _counts(given: Any) -> Iterator[tuple[str, int]]:
    yield from (
        ((key, count) for key, count in given.items() if isinstance(count, int)) if isinstance(given, dict) else ()
    )


def _scalar(given: Any) -> Any:
    return given if isinstance(given, (str, int, float)) else None


def _milliseconds(seconds: Any) -> float | None:
    try:
        return check_duration("duration", seconds * 1000)
    except (TypeError, ValueError):
        return None


def _moment(text: Any) -> datetime | None:
    """Read one of Odibi's times; those without a zone are UTC, as the gateway sets the pipeline's clock."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
