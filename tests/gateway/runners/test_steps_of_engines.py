from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.gateway.runners.choice import list_readers
from pytest_golden.regression.cause import find_cause
from pytest_golden.trajectory.model import Trajectory
from tests.gateway.runners import recorded
from tests.trajectory.readers.views import Folder, Run, Written, run_that_wrote_all

if TYPE_CHECKING:
    from pytest_golden.trajectory.readers.model import StepReading

READERS = {reader.name: reader for reader in list_readers()}
ODIBI, DBT = READERS["odibi"], READERS["dbt"]

STORY_PATH = "out/stories/orders/2026-01-01/run_12-00-00.json"
# Odibi may abort or hang at interpreter shutdown: leave by what its main() returned.
RUN_ODIBI = """
import os, sys
from odibi.cli.main import main
sys.argv = ["odibi", "run", "odibi.yaml"]
try:
    code = main()
except SystemExit as leaving:
    code = leaving.code
sys.stdout.flush()
os._exit(code if isinstance(code, int) else 0)
"""
PROJECT = """
project: orders
engine: pandas
retry: {enabled: false}
connections:
  data: {type: local, base_path: ./data}
  out: {type: local, base_path: ./out}
story: {connection: out, path: stories}
system: {connection: out}
pipelines:
  - pipeline: clean_orders
    nodes:
      - name: load_orders
        read: {connection: data, format: csv, path: orders.csv}
        write: {connection: out, format: csv, path: loaded.csv, mode: overwrite}
      - name: large_orders
        depends_on: [load_orders]
        transform: {steps: [{sql: "SELECT COLUMN FROM load_orders WHERE amount > 8"}]}
        write: {connection: out, format: csv, path: large.csv, mode: overwrite}
      - name: report
        depends_on: [large_orders]
        write: {connection: out, format: csv, path: report.csv, mode: overwrite}
"""


def _run_odibi(folder: Path, column: str) -> StepReading:
    (folder / "data").mkdir()
    (folder / "out").mkdir()
    (folder / "data/orders.csv").write_text(
        "order_id,customer,amount\n1,anna-secret,10.5\n2,bert,20\n3,anna-secret,7.25\n"
    )
    (folder / "odibi.yaml").write_text(PROJECT.replace("COLUMN", column))
    subprocess.run([sys.executable, "-c", RUN_ODIBI], cwd=folder, capture_output=True, timeout=120, check=False)
    return ODIBI.read(Folder(folder), run_that_wrote_all(folder))


@pytest.mark.odibi
@pytest.mark.skipif(importlib.util.find_spec("odibi") is None, reason="odibi is not installed")
def test_a_real_run_gives_one_step_a_node_and_no_rows(tmp_path: Path) -> None:
    reading = _run_odibi(tmp_path, "*")
    load, large, report = reading.steps
    assert [step.content for step in reading.steps] == ["load_orders", "large_orders", "report"]
    assert (load.metadata["status"], load.metadata["rows_in"], load.metadata["rows_out"]) == ("success", 3, 3)
    assert (large.metadata["rows_out"], large.metadata["depends_on"]) == (2, ["load_orders"])
    assert report.metadata["depends_on"] == ["large_orders"]
    assert load.duration_ms is not None
    assert load.timestamp is not None
    assert load.metadata["pipeline"] == "clean_orders"
    assert "anna-secret" not in repr(reading)
    assert "anna-secret" in next(tmp_path.glob("out/stories/clean_orders/*/run_*.json")).read_text()


@pytest.mark.odibi
@pytest.mark.skipif(importlib.util.find_spec("odibi") is None, reason="odibi is not installed")
def test_a_real_failure_is_critical_and_what_waited_for_it_is_skipped(tmp_path: Path) -> None:
    _, failed, skipped = _run_odibi(tmp_path, "nonsense").steps
    assert (failed.importance, failed.metadata["status"]) == ("critical", "failed")
    assert 'Referenced column "nonsense" not found' in failed.metadata["error"]
    assert failed.metadata["depends_on"] == ["load_orders"]
    assert (skipped.metadata["status"], skipped.metadata["depends_on"]) == ("skipped", ["large_orders"])
    assert skipped.importance == "medium"


def _read(tmp_path: Path, story: Any, path: str = STORY_PATH, write_set: Written | None = None) -> StepReading:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(story if isinstance(story, str) else json.dumps(story))
    return ODIBI.read(Folder(tmp_path), Run(write_set or Written(changed=(path,))))


def test_a_story_that_this_run_did_not_write_is_not_read(tmp_path: Path) -> None:
    story = {"pipeline_name": "p", "nodes": [{"node_name": "n", "status": "success"}]}
    assert len(_read(tmp_path, story).steps) == 1
    assert _read(tmp_path, story, write_set=Written(created=("other.txt",))).steps == ()
    assert _read(tmp_path, story, write_set=Written(created=("gone/2026-01-01/run_1.json",))).steps == ()
    assert _read(tmp_path, story, path="out/data.json").steps == ()


def test_counts_and_errors_are_taken_and_rows_never(tmp_path: Path) -> None:
    rows = [{"name": "anna-secret"}]
    node = {
        "node_name": "n",
        "status": "failed",
        "duration": 0.5,
        "started_at": "2026-01-01T12:00:00",
        "error_type": "ValidationError",
        "failed_rows_counts": {"not_null": 2, "odd": "anna-secret"},
        "validation_warnings": ["anna-secret is not a number"],
        "retry_history": [{"attempt": 1}],
        "sample_in": rows,
        "sample_data": rows,
        "failed_rows_samples": {"not_null": rows},
        "data_diff": {"sample_added": rows},
        "rows_in": rows,
        "a_later_key": rows,
    }
    reading = _read(tmp_path, {"pipeline_name": "p", "started_at": "2026-01-01T11:00:00Z", "nodes": [node]})
    (step,) = reading.steps
    assert step.metadata == {
        "reader": "odibi",
        "pipeline": "p",
        "operation": None,
        "status": "failed",
        "rows_in": None,
        "rows_out": None,
        "rows_written": None,
        "depends_on": [],
        "error_type": "ValidationError",
        "attempts": 1,
        "failed_rows_counts": {"not_null": 2},
        "validation_warning_count": 1,
        "error": "Odibi reports this node as failed",
    }
    assert (step.duration_ms, step.timestamp) == (500.0, datetime(2026, 1, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("story", "lost", "warned"),
    [
        ("{torn", 0, True),
        ("[" * 100_000, 0, True),
        ("[]", 0, False),
        ({"nodes": [{"node_name": "n"}]}, 0, False),
        ({"pipeline_name": "p", "nodes": 5}, 0, False),
        ({"pipeline_name": "p", "nodes": [5, {}, {"node_name": ""}]}, 3, True),
    ],
)
def test_a_story_of_another_form_gives_no_steps(tmp_path: Path, story: Any, lost: int, warned: bool) -> None:
    reading = _read(tmp_path, story)
    assert (reading.steps, reading.lost_count, bool(reading.warnings)) == ((), lost, warned)


def test_odd_values_in_a_node_cost_only_themselves(tmp_path: Path) -> None:
    node = {
        "node_name": "n",
        "status": "success",
        "duration": "long",
        "started_at": "soon",
        "config_snapshot": 5,
        "retry_history": {"a": 1},
        "failed_rows_counts": [1],
        "validation_warnings": "w",
    }
    story = {
        "pipeline_name": ["p"],
        "nodes": [node, {**node, "duration": -1}],
        "graph_data": {"nodes": [5, {"id": "n"}]},
    }
    reading = _read(tmp_path, story)
    assert [step.duration_ms for step in reading.steps] == [None, None]
    assert reading.steps[0].timestamp is None
    assert reading.steps[0].metadata["depends_on"] == []


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
    reading = DBT.read(Folder(tmp_path), run_that_wrote_all(tmp_path))
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


def _read_of_dbt_run_results(
    tmp_path: Path, document: Any, path: str = "target/run_results.json", **written: tuple[str, ...]
) -> StepReading:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(document if isinstance(document, str) else json.dumps(document))
    return DBT.read(Folder(tmp_path), Run(Written(**(written or {"created": (path,)}))))


def _result(name: str, start: str | None = None, **more: Any) -> dict[str, Any]:
    return {"unique_id": name, "status": "success", "timing": [{"started_at": start}] if start else [], **more}


def test_results_stand_in_the_order_of_their_start(tmp_path: Path) -> None:
    results = [
        _result("model.a.skipped_first"),
        _result("model.a.second", "2026-01-01T12:00:02Z", adapter_response={"rows_affected": 7}),
        _result("model.a.skipped"),
        _result("model.a.first", "2026-01-01T12:00:01Z"),
    ]
    steps = _read_of_dbt_run_results(tmp_path, {"results": results}).steps
    assert [step.content.split(".")[2] for step in steps] == ["skipped_first", "first", "second", "skipped"]
    assert steps[2].metadata["rows_affected"] == 7


def test_a_stale_file_is_not_read(tmp_path: Path) -> None:
    document = {"results": [_result("model.a.b")]}
    assert len(_read_of_dbt_run_results(tmp_path, document, changed=("target/run_results.json",)).steps) == 1
    assert len(_read_of_dbt_run_results(tmp_path, document, path="elsewhere/run_results.json").steps) == 1
    assert _read_of_dbt_run_results(tmp_path, document, created=("target/manifest.json",)).steps == ()


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
    reading = _read_of_dbt_run_results(tmp_path, document)
    assert (reading.steps, reading.lost_count, bool(reading.warnings)) == ((), lost, warned)


def test_odd_values_in_a_result_cost_only_themselves(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "timing": [{}],
        "execution_time": "long",
        "adapter_response": 5,
        "message": ["x"],
        "status": "fail",
    }
    (step,) = _read_of_dbt_run_results(tmp_path, {"metadata": 5, "results": [_result("test.a.b", **odd)]}).steps
    assert (step.duration_ms, step.timestamp, step.metadata["message"]) == (None, None, None)
    assert step.metadata["error"] == "dbt reports status fail"


def test_a_document_that_is_too_large_is_a_warning(tmp_path: Path) -> None:
    limit_bytes = 64 * 1024 * 1024
    (tmp_path / "target").mkdir()
    with (tmp_path / "target" / "run_results.json").open("wb") as file:
        file.truncate(limit_bytes + 1)
    written = Run(Written(created=("target/run_results.json",)))
    reading = DBT.read(Folder(tmp_path), written)
    assert f"larger than {limit_bytes} bytes" in reading.warnings[0]


def read(engine: str, stdout: str, stderr: str = "") -> list[tuple[str, str, float | None]]:
    """Return name, status and duration of each step."""
    steps = READERS[engine].read(Folder(Path()), Run(stdout=stdout, stderr=stderr)).steps
    return [(step.content, step.metadata["status"], step.duration_ms) for step in steps]


def read_error(engine: str, stdout: str, stderr: str = "") -> str:
    steps = READERS[engine].read(Folder(Path()), Run(stdout=stdout, stderr=stderr)).steps
    return next(str(step.metadata["error"]) for step in steps if "error" in step.metadata)


def test_snakemakes_jobs_have_times_wildcards_and_the_words_of_the_one_that_failed() -> None:
    assert read("snakemake", "", recorded.SNAKEMAKE) == [("orders", "success", 2000), ("bad", "failed", 1000)]
    error = read_error("snakemake", "", recorded.SNAKEMAKE)
    assert error.splitlines()[:3] == ["the task failed", "note", "cat: nope.txt: No such file or directory"]
    (orders, _) = READERS["snakemake"].read(Folder(Path()), Run(stderr=recorded.SNAKEMAKE)).steps
    assert (orders.metadata["wildcards"], orders.metadata["output"]) == ("day=monday", "out/orders.csv")
    assert read("snakemake", "", recorded.SNAKEMAKE_7) == [("orders", "success", 3000)]


def test_makes_targets_are_those_whose_recipes_ran() -> None:
    told = [("orders.csv", "success"), ("total.txt", "success"), ("bad.txt", "failed"), ("lost.txt", "failed")]
    assert read("make", recorded.MAKE, recorded.MAKE_ERRORS) == [(*each, None) for each in told]
    assert "cp: cannot stat 'nope.csv'" in read_error("make", recorded.MAKE, recorded.MAKE_ERRORS)


def test_dvcs_stages_ran_or_were_skipped() -> None:
    told = [("orders", "skipped"), ("clean", "success"), ("total", "failed")]
    assert read("dvc", recorded.DVC, recorded.DVC_ERRORS) == [(*each, None) for each in told]
    assert "cp: cannot stat 'nope.csv'" in read_error("dvc", recorded.DVC, recorded.DVC_ERRORS)
    silent = recorded.DVC_ERRORS.partition("\n")[2]
    assert read_error("dvc", recorded.DVC, silent) == "failed to run: cp nope.csv total.csv, exited with 1"


def test_dagsters_steps_are_told_by_events_and_the_exception_of_the_step_itself() -> None:
    told = [("orders", "success", 42), ("slow", "success", 62_000), ("bad", "failed", 0)]
    assert read("dagster", "", recorded.DAGSTER) == told
    assert read_error("dagster", "", recorded.DAGSTER) == "KeyError: 'amount'"


def test_prefects_task_runs_are_named_after_their_tasks() -> None:
    told = [("load", "success", None), ("bad", "failed", None), ("after", "failed", None)]
    assert read("prefect", "", recorded.PREFECT) == told
    assert read_error("prefect", "", recorded.PREFECT) == "KeyError('amount')"


def test_sqlmeshs_models_are_one_step_each() -> None:
    told = [("shop.orders", "success", 50), ("wh.shop.revenue", "failed", None), ("wh.shop.margin", "failed", None)]
    assert read("sqlmesh", recorded.SQLMESH) == told
    assert read_error("sqlmesh", recorded.SQLMESH).startswith("BinderException:\nBinder Error: Referenced column")


def test_a_failed_unit_test_of_sqlmesh_is_a_step_with_its_own_words() -> None:
    told = [("shop.revenue::test_revenue", "failed", None), ("shop.orders::test_orders", "failed", None)]
    assert read("sqlmesh", recorded.SQLMESH_TESTS) == told
    assert read_error("sqlmesh", recorded.SQLMESH_TESTS).startswith(
        "Detected unknown column(s)\nExpected column(s): cust"
    )
    only_rows = recorded.SQLMESH_TESTS.replace(" • `shop.revenue`::`test_revenue`\n", "")
    assert read_error("sqlmesh", only_rows).startswith("Missing rows\n")
    assert read_error("sqlmesh", " • `a`::`b`\n") == "the test failed"


RECORDED = "".join(text for name, text in vars(recorded).items() if name[0].isupper() and isinstance(text, str))


def test_a_job_of_snakemake_that_prints_its_cause_is_told_by_it() -> None:
    stderr = "Error in rule load:\n    jobid: 1\n"
    assert "this needs three cores" in read_error("snakemake", "load it\nthis needs three cores\n\n", stderr)
    assert read_error("snakemake", "", stderr) == "the task failed"


@pytest.mark.parametrize("engine", ["dagster", "dvc", "make", "prefect", "snakemake", "sqlmesh"])
@given(data=st.data())
def test_torn_output_of_any_engine_is_read_without_an_error(engine: str, data: st.DataObject) -> None:
    lines = RECORDED.splitlines(keepends=True)
    torn = st.sampled_from(lines).flatmap(lambda line: st.integers(0, len(line)).map(lambda end: line[:end]))
    text = "".join(data.draw(st.lists(st.sampled_from(lines) | torn | st.text(max_size=20), max_size=40)))
    reading = READERS[engine].read(Folder(Path()), Run(stdout=text, stderr=text))
    assert all(step.content for step in reading.steps)


# What a task prints, and what one that fails prints after all others; by engine and stream.
LONG_RUNS = {
    "snakemake": ("stderr", "[Fri Nov 27 09:10:57 2026]\nrule t{0}:\n    jobid: {0}\n[Fri Nov 27 09:10:58 2026]\nFinished jobid: {0} (Rule: t{0})\n"),
    "make": ("stdout", "Makefile:{0}: update target 't{0}' due to: orders.csv\ntrue\n"),
    "dvc": ("stdout", "Running stage 't{0}':\n> true\nUpdating lock file 'dvc.lock'\n"),
    "dagster": (
        "stderr",
        "2026-11-27 09:04:14 +0000 - dagster - DEBUG - __ASSET_JOB - af35a5e6 - 2129 - t{0} - STEP_START - Started execution of step \"t{0}\".\n"
        "2026-11-27 09:04:15 +0000 - dagster - DEBUG - __ASSET_JOB - af35a5e6 - 2129 - t{0} - STEP_SUCCESS - Finished execution of step \"t{0}\" in 42ms.\n",
    ),
    "prefect": ("stderr", "09:14:25.204 | INFO    | Task run 't{0}-2e1' - Finished in state Completed()\n"),
    "sqlmesh": ("stdout", "[{0}/10000] shop.t{0}    [full refresh]   0.02s\n"),
}  # fmt: skip


@pytest.mark.parametrize("engine", LONG_RUNS)
def test_each_of_ten_thousand_tasks_is_a_step(engine: str) -> None:
    stream, task = LONG_RUNS[engine]
    told = {"stdout": "", "stderr": "", stream: "".join(task.format(number) for number in range(10_000))}
    steps = read(engine, **told)
    assert [name.rpartition(".")[2] for name, _, _ in steps] == [f"t{number}" for number in range(10_000)]
    assert {status for _, status, _ in steps} == {"success"}


def read_report(folder: Path, engine: str, path: str, text: str) -> list[Any]:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    steps = READERS[engine].read(Folder(folder), run_that_wrote_all(folder)).steps
    return [(step.content, step.metadata["status"], step.duration_ms) for step in steps]


def test_nextflows_tasks_are_those_of_its_trace(tmp_path: Path) -> None:
    unzip, generate, qc = read_report(tmp_path, "nextflow", ".golden-trace.txt", recorded.NEXTFLOW)
    assert unzip == ("UNZIP (hg19.zip)", "cached", None)
    assert generate == ("GENERATE (sample2)", "completed", 224)
    assert qc == ("QC (sample1)", "failed", 62_500)


def test_targets_are_those_of_its_metadata(tmp_path: Path) -> None:
    found = read_report(tmp_path, "targets", "_targets/meta/meta", recorded.TARGETS)
    names = [name for name, _, _ in found]
    assert names == ["raw_data", "points_940d58fc", "fox_plot", "total"]
    assert found[0] == ("raw_data", "success", 397)
    assert found[-1][1] == "failed"


@pytest.mark.parametrize("text", ["", "name|type", "status\n", "name\tstatus\nx", "\0|\0\n\0", recorded.TARGETS[:700]])
@pytest.mark.parametrize(("engine", "path"), [("nextflow", ".golden-trace.txt"), ("targets", "_targets/meta/meta")])
def test_a_torn_report_is_read_without_an_error(tmp_path: Path, engine: str, path: str, text: str) -> None:
    assert all(name for name, _, _ in read_report(tmp_path, engine, path, text))


FAILURES = Path(__file__).parents[2] / "regression" / "failures"
QUOTES = json.loads((FAILURES / "quotes.json").read_text())
PRINTED = [name for name in QUOTES if name.split("_")[0] in READERS and name.split("_")[0] not in {"dbt", "odibi"}]


@pytest.mark.parametrize("name", PRINTED)
def test_steps_never_make_the_headline_of_a_failure_worse(name: str) -> None:
    parts = re.split(r"^--- (.+)\n", (FAILURES / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]
    streams = dict(zip(parts[::2], parts[1::2], strict=True))
    stdout, stderr = streams.get("stdout", ""), streams.get("stderr", "")
    steps = READERS[name.split("_")[0]].read(Folder(Path()), Run(stdout=stdout, stderr=stderr)).steps
    trajectory = Trajectory.new()
    for step in steps:
        trajectory = trajectory.add_step(step.type, step.content, metadata=step.metadata)
    cause = find_cause(PipelineOutcome(Ending.EXITED, 1, stdout=stdout, stderr=stderr, trajectory=trajectory))
    assert QUOTES[name] in str(cause)
