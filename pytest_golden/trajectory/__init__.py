"""TRACED: what happened inside a run, as an immutable trajectory of steps; readers that find the steps. No judgement."""

from pytest_golden.trajectory.building import build_trajectory
from pytest_golden.trajectory.difference import StepChange, TrajectoryDiff, diff_trajectories
from pytest_golden.trajectory.jsonlines import iter_steps, read_trajectory, write_trajectory
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.readers import (
    DEFAULT_READERS,
    GoldenStepsReader,
    StepDraft,
    StepReader,
    StepReading,
    read_all,
    read_golden_steps,
)
from pytest_golden.trajectory.statistics import TrajectoryStatistics
from pytest_golden.trajectory.step import StateSnapshot, Step
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome

__all__ = [
    "DEFAULT_READERS",
    "GoldenStepsReader",
    "Importance",
    "StateSnapshot",
    "Step",
    "StepChange",
    "StepDraft",
    "StepReader",
    "StepReading",
    "StepType",
    "Trajectory",
    "TrajectoryDiff",
    "TrajectoryOutcome",
    "TrajectoryStatistics",
    "build_trajectory",
    "diff_trajectories",
    "iter_steps",
    "read_all",
    "read_golden_steps",
    "read_trajectory",
    "write_trajectory",
]
