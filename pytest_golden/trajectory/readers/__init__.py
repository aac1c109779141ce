"""Step readers: each turns what one kind of pipeline left behind into steps. What the steps mean is not decided here."""

from pytest_golden.trajectory.readers.golden_steps import GoldenStepsReader, read_golden_steps
from pytest_golden.trajectory.readers.model import StepDraft, StepReader, StepReading
from pytest_golden.trajectory.readers.reading import DEFAULT_READERS, read_all

__all__ = [
    "DEFAULT_READERS",
    "GoldenStepsReader",
    "StepDraft",
    "StepReader",
    "StepReading",
    "read_all",
    "read_golden_steps",
]
