"""JUDGED: what a run means. Facts become a result (PASSED, FAILED, ERROR, SKIPPED) with its reasons; a weakened floor is seen.

Nothing is executed here, and no result depends on anything but the manifest and the outcome.
"""

from pytest_golden.regression.judge import judge
from pytest_golden.regression.model import (
    AcceptedOutput,
    GoldenProjectResult,
    OutputChange,
    Reason,
    ReasonKind,
    RegressionCheckResult,
    ResultStatus,
)

__all__ = [
    "AcceptedOutput",
    "GoldenProjectResult",
    "OutputChange",
    "Reason",
    "ReasonKind",
    "RegressionCheckResult",
    "ResultStatus",
    "judge",
]
