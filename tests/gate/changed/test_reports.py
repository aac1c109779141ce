from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.history.unchanged_tree import list_reports

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "text", "is_report"),
    [
        ("a.xml", '<?xml version="1.0"?>\n<testsuites tests="1">', True),
        ("a.xml", "<testsuite name='x'>", True),
        ("a.xml", "<coverage>", True),
        ("a.xml", "<data>", False),
        ("a.json", '{\n "schema_version": 1,\n "final_status": "passed"', True),
        ("a.json", '{"final_status": 1}', False),
        ("a.html", "<!DOCTYPE html>", True),
        ("a.csv", "1", False),
        ("x/__pycache__/a.pyc", "", True),
    ],
)
def test_report_is_known_by_how_it_begins(tmp_path: Path, name: str, text: str, is_report: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert list_reports(tmp_path, [name]) == ((name,) if is_report else ())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe")
def test_pipe_or_file_that_is_gone_is_none_and_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.xml")
    assert list_reports(tmp_path, ["a.xml", "gone.json"]) == ()
