"""The colours of results in lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS_STYLES: Mapping[ResultStatus, str] = {
    ResultStatus.PASSED: "green",
    ResultStatus.FAILED: "bold red",
    ResultStatus.ERROR: "bold red",
    ResultStatus.SKIPPED: "yellow",
}
