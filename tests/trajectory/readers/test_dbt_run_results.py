from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.trajectory.readers.engine_reports import DbtRunResultsReader
from tests.trajectory.readers.views import Folder, Run, Written, run_that_wrote_all

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.trajectory.readers.model import StepReading

MODELS = {
    "orders.sql": "select 1 as id, 10.0 as amount union all select 2, null",
    "broken.sql": "select nonsense from {{ ref('orders') }}",
    "after_broken.sql": "select * from {{ ref('broken') }}",
    "schema.yml": (
        "version: 2\nmodels:\n  - name: orders\n    columns:\n      - name: amount\n"
        "        data_tests: [{not_null: {config: {severity: warn}}}]\n"
    ),
}


@pytest.mark.dbt
@pytest.mark.skipif(importlib.util.find_spec("dbt") is None, reason="dbt is not installed")
def test_a_real_build_gives_one_step_a_result(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name, content in MODELS.items():
        (tmp_path / "models" / name).write_text(content)
    (tmp_path / "dbt_project.yml").write_text('name: shop\nversion: "1.0"\nprofile: shop\nmodel-paths: [models]\n')
    (tmp_path / "profiles.yml").write_text(
        "shop:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: shop.duckdb, threads: 2}\n"
    )
    command = [sys.executable, "-m", "dbt.cli.main", "build", "--profiles-dir", ".", "--no-send-anonymous-usage-stats"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    reading = DbtRunResultsReader().read(Folder(tmp_path), run_that_wrote_all(tmp_path))
    steps = {step.content.split(".")[2]: step for step in reading.steps}
    assert (reading.lost_count, reading.warnings) == (0, ())
    assert steps["orders"].metadata["status"] == "success"
    assert (steps["orders"].type, steps["not_null_orders_amount"].type) == ("action", "observation")
    assert (steps["not_null_orders_amount"].importance, steps["not_null_orders_amount"].metadata["failures"]) == (
        "high",
        1,
    )
    assert steps["broken"].importance == "critical"
    assert "Referenced column" in steps["broken"].metadata["error"]
    assert (steps["after_broken"].metadata["status"], steps["after_broken"].timestamp) == ("skipped", None)
    assert steps["orders"].duration_ms is not None
    assert len({step.metadata["invocation_id"] for step in reading.steps}) == 1


def _read(
    tmp_path: Path, document: Any, path: str = "target/run_results.json", **written: tuple[str, ...]
) -> StepReading:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(document if isinstance(document, str) else json.dumps(document))
    return DbtRunResultsReader().read(Folder(tmp_path), Run(Written(**(written or {"created": (path,)}))))


def _result(name: str, start: str | None = None, **more: Any) -> dict[str, Any]:
    return {"unique_id": name, "status": "success", "timing": [{"started_at": start}] if start else [], **more}


def test_results_stand_in_the_order_of_their_start(tmp_path: Path) -> None:
    results = [
        _result("model.a.skipped_first"),
        _result("model.a.second", "2026-01-01T12:00:02Z", adapter_response={"rows_affected": 7}),
        _result("model.a.skipped"),
        _result("model.a.first", "2026-01-01T12:00:01Z"),
    ]
    steps = _read(tmp_path, {"results": results}).steps
    assert [step.content.split(".")[2] for step in steps] == ["skipped_first", "first", "second", "skipped"]
    assert steps[2].metadata["rows_affected"] == 7


def test_a_stale_file_is_not_read(tmp_path: Path) -> None:
    document = {"results": [_result("model.a.b")]}
    assert len(_read(tmp_path, document, changed=("target/run_results.json",)).steps) == 1
    assert len(_read(tmp_path, document, path="elsewhere/run_results.json").steps) == 1
    assert _read(tmp_path, document, created=("target/manifest.json",)).steps == ()


@pytest.mark.parametrize(
    ("document", "lost", "warned"),
    [
        ("{torn", 0, True),
        ("[]", 0, False),
        ({"results": 5, "metadata": 5}, 0, False),
        ({"results": [5, {"unique_id": None}]}, 2, True),
    ],
)
def test_a_document_of_another_form_gives_no_steps(tmp_path: Path, document: Any, lost: int, warned: bool) -> None:
    reading = _read(tmp_path, document)
    assert (reading.steps, reading.lost_count, bool(reading.warnings)) == ((), lost, warned)


def test_odd_values_in_a_result_cost_only_themselves(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "timing": [{}],
        "execution_time": "long",
        "adapter_response": 5,
        "message": ["x"],
        "status": "fail",
    }
    (step,) = _read(tmp_path, {"metadata": 5, "results": [_result("test.a.b", **odd)]}).steps
    assert (step.duration_ms, step.timestamp, step.metadata["message"]) == (None, None, None)
    assert step.metadata["error"] == "dbt reports status fail"


def test_a_document_that_is_too_large_is_a_warning(tmp_path: Path) -> None:
    limit_bytes = 64 * 1024 * 1024
    (tmp_path / "target").mkdir()
    with (tmp_path / "target" / "run_results.json").open("wb") as file:
        file.truncate(limit_bytes + 1)
    written = Run(Written(created=("target/run_results.json",)))
    reading = DbtRunResultsReader().read(Folder(tmp_path), written)
    assert f"larger than {limit_bytes} bytes" in reading.warnings[0]
