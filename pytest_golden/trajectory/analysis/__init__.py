"""What trajectories show: failure points, successes, faults of reasoning, patterns, comparisons, summaries.

Pure rules over values, English wording where words are read, and no language model anywhere. In doubt nothing is found.
Nothing is redacted here: analyse what was redacted before. `trajectory/__init__.py` does not hand these names on, so that
a gate run does not pay for what it does not use.
"""

from pytest_golden.trajectory.analysis.analyzing import analyze_trajectory
from pytest_golden.trajectory.analysis.comparison import (
    TrajectoryComparison,
    TrajectoryDifference,
    compare_trajectories,
)
from pytest_golden.trajectory.analysis.model import (
    Detail,
    FailureCategory,
    FailurePoint,
    Quality,
    ReasoningIssue,
    ReasoningIssueType,
    Severity,
    SuccessIndicator,
    SuccessType,
    TrajectoryAnalysis,
)
from pytest_golden.trajectory.analysis.patterns import ErrorPattern, SuccessPattern, error_patterns, success_patterns
from pytest_golden.trajectory.analysis.summary import describe_analysis, summarize_trajectory

__all__ = [
    "Detail",
    "ErrorPattern",
    "FailureCategory",
    "FailurePoint",
    "Quality",
    "ReasoningIssue",
    "ReasoningIssueType",
    "Severity",
    "SuccessIndicator",
    "SuccessPattern",
    "SuccessType",
    "TrajectoryAnalysis",
    "TrajectoryComparison",
    "TrajectoryDifference",
    "analyze_trajectory",
    "compare_trajectories",
    "describe_analysis",
    "error_patterns",
    "success_patterns",
    "summarize_trajectory",
]
