"""The gate report (`--golden-json`): one gate run as JSON with a versioned schema, for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import GoldenProjectResult
from pytest_golden.regression.verdict import RegressionCheckResult, RunVerdict, Weakening
from pytest_golden.values.shape import VersionedShape, form

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.history.recorded_store import RecordedRun

_ALWAYS_CLEAN = frozenset({bool, int, NoneType})


@dataclass(frozen=True, slots=True)
class GateReport(VersionedShape):
    """What `pytest --golden --golden-json` writes. Readers must tolerate further keys."""

    verdict: RunVerdict = field(metadata=form(merged=True))
    regression_detected: bool = field(metadata=form(about="A golden project failed the gate."))
    weakened_floor: tuple[Weakening, ...]
    gate: Mapping[str, Any] = field(metadata=form(write=dict))
    results: tuple[GoldenProjectResult, ...] = field(metadata=form(about="In declaration order."))


def gate_report(
    check: RegressionCheckResult,
    *,
    gate: Mapping[str, Any],
    verdict: RunVerdict | None = None,
    weakened_floor: Iterable[Weakening] = (),
) -> dict[str, Any]:
    """Return the gate run as JSON-safe values.

    Args:
        check: all results.
        verdict: the run's verdict; None to make one from the results alone.
        gate: facts of the run itself: entry_id, commit, branch, dirty, deselected and the like.
        weakened_floor: what is weaker than in the base.
    """
    report = GateReport(verdict or check.verdict, check.regression_detected, tuple(weakened_floor), gate, check.results)
    told: dict[str, Any] = make_encodable(report.to_dict())
    return told


def recorded_report(recorded: RecordedRun) -> dict[str, Any]:
    """Return the report of a run from the store; each result also has its `entry_id`."""
    report = gate_report(
        recorded.check, verdict=recorded.verdict, gate=recorded.gate, weakened_floor=recorded.weakened_floor
    )
    for result, entry_id in zip(report["results"], recorded.entry_ids, strict=True):
        result["entry_id"] = entry_id
    return report


def gate_report_text(report: Mapping[str, Any]) -> str:
    """Return a gate report as `--golden-json` writes it."""
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def make_encodable(value: Any) -> Any:
    """Return JSON content with every text encodable (lone surrogates become escapes) and every number finite."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        # A run of a thousand projects has sixty thousand values: no call for those that stay as they are.
        return {
            key if type(key) is str and key.isascii() else make_encodable(str(key)): item
            if type(item) in _ALWAYS_CLEAN
            else make_encodable(item)
            for key, item in value.items()
        }
    return [make_encodable(item) for item in value] if isinstance(value, list | tuple) else value


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the gate report: it follows from `GateReport`, and for what no class has from `report_parts.json`.

    Readers must tolerate further keys.
    """
    # A report is written without a schema.
    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step
    from pytest_golden.values.shape_model import model_of, schema_of

    schema = schema_of(model_of(GateReport))
    parts = json.loads(Path(__file__).with_name("report_parts.json").read_text(encoding="utf-8"))
    schema["properties"] |= {"schema_version": {"const": GateReport.SCHEMA_VERSION}, "gate": parts["gate"]}
    result = schema["$defs"]["GoldenProjectResult"]["properties"]
    # A plugged-in gateway's steps need not have every key.
    step, trajectory = schema_of(model_of(Step)), schema_of(model_of(Trajectory))
    result["steps"]["items"] = {**step, "required": []}
    result["trajectory"]["anyOf"][0] = {**trajectory, "required": ["id"]}
    trajectory["properties"].pop("steps")
    schema["$defs"] |= trajectory.pop("$defs")
    schema["$defs"].pop("Step")
    result["entry_id"] = parts["entry_id"]
    # A plug-in's kinds have members of their own.
    result["known"]["items"] = parts["known"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "pytest-golden-projects gate report",
    }
