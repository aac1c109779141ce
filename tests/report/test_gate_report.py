"""The gate report and its schema."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import GoldenProjectResult
from pytest_golden.regression.verdict import RegressionCheckResult, Weakening, WeakeningKind
from pytest_golden.report.gate_report import gate_report, gate_report_text, report_schema
from pytest_golden.report.report_files import write_report
from tests.report.samples import every_kind_of_result

if TYPE_CHECKING:
    from pathlib import Path

GATE = {"entry_id": None, "commit": "8b1a9953", "branch": "main", "dirty": False, "deselected": ("a",)}
FLOOR = (Weakening("sales", WeakeningKind.LIMIT, "timeout was raised", "10m", "20m"),)


def test_the_report_follows_its_schema() -> None:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for check in (every_kind_of_result(), RegressionCheckResult()):
        report = gate_report(check, gate=GATE, weakened_floor=FLOOR)
        validator.validate(json.loads(json.dumps(report, allow_nan=False)))


def test_the_schema_names_every_key_of_a_result() -> None:
    schema = report_schema()
    report = gate_report(every_kind_of_result(), gate=GATE, weakened_floor=FLOOR)
    assert set(report) == set(schema["properties"])
    result = schema["$defs"]["GoldenProjectResult"]
    # A report that was read back from the store has one more.
    assert {*report["results"][0], "entry_id"} == set(result["properties"])
    assert set(report["weakened_floor"][0]) == set(schema["$defs"]["Weakening"]["properties"])


def test_the_schema_refuses_other_things() -> None:
    report = gate_report(RegressionCheckResult(), gate={})
    validator = jsonschema.Draft202012Validator(report_schema())
    for change in ({"schema_version": 99}, {"results": None}, {"total_count": -1}):
        assert not validator.is_valid({**report, **change})
    assert validator.is_valid({**report, "a_later_key": 1})


def test_results_can_be_read_back_from_the_report() -> None:
    check = every_kind_of_result()
    report = gate_report(check, gate=GATE)
    again = tuple(GoldenProjectResult.from_dict(result) for result in report["results"])
    assert [(result.name, result.status, result.is_regression) for result in again] == [
        (result.name, result.status, result.is_regression) for result in check.results
    ]


def write(path: Path, report: dict[str, Any]) -> None:
    write_report(path, gate_report_text(report), option="--golden-json")


def test_the_file_is_utf8_json_and_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "new" / "gate.json"
    write(path, gate_report(RegressionCheckResult(), gate={}))
    path.chmod(0o640)
    write(path, gate_report(every_kind_of_result(), gate=GATE, weakened_floor=FLOOR))
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["failed_count"] == 4
    assert "漢" in text
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["gate.json"]  # noqa: PTH208


def test_a_link_to_the_report_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "real.json"
    target.write_text("old")
    link = tmp_path / "gate.json"
    link.symlink_to(target)
    write(link, gate_report(RegressionCheckResult(), gate={}))
    assert link.is_symlink()
    assert json.loads(target.read_text())["final_status"] == "nothing_ran"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, gate_report(RegressionCheckResult(), gate={}))
    reader.join(60)
    assert json.loads(read[0])["schema_version"] == 1


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"^--golden-json .*cannot be written"):
        write(tmp_path, gate_report(RegressionCheckResult(), gate={}))
    assert not [file for file in tmp_path.parent.iterdir() if file.name.startswith(f".{tmp_path.name}.")]
