"""TRACED: what happened inside a run, as an immutable trajectory of steps; readers that find the steps. No judgement."""

from pytest_golden.trajectory.batch import BatchStatistics, TrajectoryBatch, merge_trajectories
from pytest_golden.trajectory.building import build_trajectory
from pytest_golden.trajectory.difference import StepChange, TrajectoryDiff, diff_trajectories
from pytest_golden.trajectory.jsonlines import iter_steps, read_trajectory, write_trajectory
from pytest_golden.trajectory.metrics import (
    ConfidenceInterval,
    Measurement,
    MetricComparison,
    MetricsCollector,
    MetricStatistics,
    TaskMeans,
    compare_metrics,
    flakiness,
)
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.query import StepQuery, where
from pytest_golden.trajectory.query_text import parse_query
from pytest_golden.trajectory.readers import (
    DEFAULT_READERS,
    GoldenStepsReader,
    StepDraft,
    StepReader,
    StepReading,
    read_all,
    read_golden_steps,
)
from pytest_golden.trajectory.recorder import TrajectoryRecorder
from pytest_golden.trajectory.recording import Recording, current_recorder, recording
from pytest_golden.trajectory.statistics import TrajectoryStatistics
from pytest_golden.trajectory.step import StateSnapshot, Step
from pytest_golden.trajectory.tree import StepNode
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome

__all__ = [
    "DEFAULT_READERS",
    "BatchStatistics",
    "ConfidenceInterval",
    "GoldenStepsReader",
    "Importance",
    "Measurement",
    "MetricComparison",
    "MetricStatistics",
    "MetricsCollector",
    "Recording",
    "StateSnapshot",
    "Step",
    "StepChange",
    "StepDraft",
    "StepNode",
    "StepQuery",
    "StepReader",
    "StepReading",
    "StepType",
    "TaskMeans",
    "Trajectory",
    "TrajectoryBatch",
    "TrajectoryDiff",
    "TrajectoryOutcome",
    "TrajectoryRecorder",
    "TrajectoryStatistics",
    "build_trajectory",
    "compare_metrics",
    "current_recorder",
    "diff_trajectories",
    "flakiness",
    "iter_steps",
    "merge_trajectories",
    "parse_query",
    "read_all",
    "read_golden_steps",
    "read_trajectory",
    "recording",
    "where",
    "write_trajectory",
]
