"""The JSON Schema of the gate report. It follows from `GateReport`, and for what no class has from `report_parts.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_golden.report.gate_report import GateReport
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import Step
from pytest_golden.values.shape_model import model_of, schema_of


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the gate report. Readers must tolerate further keys."""
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
