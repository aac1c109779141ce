"""One golden project run with one candidate, as plain values that GEPA passes on and may pickle. Pure.

A rollout is an output of `evaluate` and, where traces are asked for, its trajectory; results are redacted already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate.gepa.rules import describe_verdict, find_step_errors, name_steps, score_result
from pytest_golden.learning.reflective.records import join_lines, make_record
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

_MOST_STEPS, _MOST_FILES = 100, 50


def make_output(result: GoldenProjectResult) -> dict[str, Any]:
    """Give what came of a run, small enough to keep for every candidate."""
    output: dict[str, Any] = redact(
        {
            "project": result.name,
            "status": str(result.status),
            "exit_code": result.exit_code,
            "error_message": result.error_message,
            "output_summary": result.output_summary,
            "execution_time_seconds": result.execution_time_seconds,
            "written": [*result.write_set.created, *result.write_set.changed][:_MOST_FILES],
            "removed": list(result.write_set.removed[:_MOST_FILES]),
        }
    )
    return output


def make_trajectory(project: GoldenProjectConfig, result: GoldenProjectResult, known: str = "") -> dict[str, Any]:
    """Give all that a reflection needs of a run; `known` is what earlier runs know of its failure."""
    trajectory: dict[str, Any] = redact(
        {
            **make_output(result),
            "score": score_result(result),
            "verdict": describe_verdict(result, score_result(result)),
            "reasons": [reason.to_dict() for reason in result.reasons],
            "steps": name_steps(result)[:_MOST_STEPS],
            "step_errors": find_step_errors(result)[-_MOST_STEPS:],
            "known": known,
            "task": {
                "golden project": project.display_title,
                "description": project.description,
                "pipeline": str(project.path),
                "expected outcome": project.expected_outcome,
            },
        }
    )
    return trajectory


def reflect_on(trajectory: Mapping[str, Any], component: str, path: str) -> dict[str, Any]:
    """Give the record of a run for one of its texts."""
    inputs = {"component": component, "file": path, **trajectory["task"]}
    outputs = {
        "steps": " → ".join(trajectory["steps"]),
        "files written": join_lines(trajectory["written"]),
        "output": trajectory["output_summary"],
    }
    findings = {
        "reasons": join_lines(reason["message"] for reason in trajectory["reasons"]),
        "failed steps": join_lines(trajectory["step_errors"]),
        "known of this failure": trajectory["known"],
    }
    return make_record(inputs, outputs, trajectory["verdict"], findings)
