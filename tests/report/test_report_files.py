from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.report.report_files import append_report

if TYPE_CHECKING:
    from pathlib import Path


def test_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "summary")
    with pytest.raises(GoldenError, match="it is a pipe"):
        append_report(tmp_path / "summary", lambda _: "text", named="GITHUB_STEP_SUMMARY")
