"""How long the page of a gate run with many projects takes, and how large it is, beside the same report as JSON.

Run: python benchmarks/html_report.py [PROJECTS]
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.report.gate_report import gate_report
from pytest_golden.report.html_page import html_report

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
OUTPUT = "\n".join(f"2026-01-01 12:00:00 INFO loaded <{number:,}> rows" for number in range(80))
STEPS = tuple(
    {"id": str(number), "type": "action", "content": f"step {number}", "duration_ms": 12.5, "metadata": {}}
    for number in range(10)
)


def make(number: int, failing_every: int) -> GoldenProjectResult:
    status = ResultStatus.PASSED if number % failing_every else ResultStatus.FAILED
    reasons = () if status is ResultStatus.PASSED else (Reason(ReasonKind.EXIT_CODE, "exit code 3, expected 0"),)
    return GoldenProjectResult(
        f"project_{number}", "etl.py", status, 0, OUTPUT, reasons=reasons, steps=STEPS, steps_total=len(STEPS)
    )


def measure(write: Callable[[dict[str, Any]], str], report: dict[str, Any]) -> tuple[float, int]:
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        text = write(report)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), len(text.encode())


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for told, failing_every in (("one in fifty failed", 50), ("all failed", 1)):
        check = RegressionCheckResult(tuple(make(number, failing_every) for number in range(count)))
        report = gate_report(check, gate={})
        for name, write in (("page", html_report), ("JSON", lambda plain: json.dumps(plain, indent=2))):
            seconds, size = measure(write, report)
            print(f"{count:,} projects, {told}, {name}: {seconds:.2f} s, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
