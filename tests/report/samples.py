"""Results of every kind for the tests of this room."""

from __future__ import annotations

from pytest_golden.gateway.model import WriteSet, WrittenFile
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult

NASTY = "\x1b[31mred\x1b[0m \x00\x07 ]]> <b>&amp; \ud800 \udc80 \ufffe \U0001ffff \x9b2J é 漢 \U0001f600 \r\n end"


def every_kind_of_result() -> RegressionCheckResult:
    written = WrittenFile("out.csv", "file", 3, "ab" * 32)
    return RegressionCheckResult(
        (
            GoldenProjectResult("passes", "a.py", ResultStatus.PASSED, 0, "fine", execution_time_seconds=1.25),
            GoldenProjectResult(
                "fails",
                "b.py",
                ResultStatus.FAILED,
                3,
                NASTY,
                f"exit code 3, expected 0 {NASTY}",
                0.5,
                reasons=(Reason(ReasonKind.EXIT_CODE, NASTY), Reason(ReasonKind.UNEXPECTED_FILE, "x", NASTY)),
                attempts=2,
                steps=({"id": "s", "content": NASTY, "metadata": {"ratio": float("nan")}},),
                steps_total=1,
                write_set=WriteSet(created=("out.csv",), files={"out.csv": written}),
                warnings=(NASTY,),
                log_path="/tmp/fails.log",
            ),
            GoldenProjectResult(
                "errs", "c.py", ResultStatus.ERROR, None, reasons=(Reason(ReasonKind.PATH_NOT_FOUND, "no such path"),)
            ),
            GoldenProjectResult("bare", "c.py", ResultStatus.ERROR),
            GoldenProjectResult(
                "skipped", "d.py", ResultStatus.SKIPPED, error_message="dbt is not installed here", attempts=0
            ),
            GoldenProjectResult(
                "needs",
                "e.py",
                ResultStatus.SKIPPED,
                reasons=(Reason(ReasonKind.NEED_NOT_PASSED, "fails did not pass"),),
            ),
            GoldenProjectResult("flaky", "f.py", ResultStatus.FAILED, 1, quarantined="flaky upstream"),
        )
    )
