"""All readers of one run. A reader that fails costs its steps and a warning, never the result."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pytest_golden.trajectory.readers.dbt_run_results import DbtRunResultsReader
from pytest_golden.trajectory.readers.model import StepReading
from pytest_golden.trajectory.readers.odibi_story import OdibiStoryReader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.trajectory.readers.model import RunFacts, StepReader, ViewFiles

_LOG = logging.getLogger(__name__)

DEFAULT_READERS: tuple[StepReader, ...] = (OdibiStoryReader(), DbtRunResultsReader())


def read_all(readers: Iterable[StepReader], view: ViewFiles, outcome: RunFacts) -> tuple[StepReading, ...]:
    """Return one reading for each reader, in their order; never raises for what a reader does."""
    return tuple(_read_one(reader, view, outcome) for reader in readers)


def _read_one(reader: StepReader, view: ViewFiles, outcome: RunFacts) -> StepReading:
    name = getattr(reader, "name", type(reader).__name__)
    try:
        reading: object = reader.read(view, outcome)
    except Exception as error:  # a plugged-in reader may raise anything
        # Without its traceback: that may quote what the pipeline printed, and nobody has redacted it.
        _LOG.warning("a step reader failed", extra={"reader": name, "error": type(error).__name__})
        return StepReading(
            warnings=(f"step reader {name} failed, its steps are lost: {type(error).__name__}: {error}",)
        )
    if isinstance(reading, StepReading):
        return reading
    return StepReading(warnings=(f"step reader {name} gave {type(reading).__name__} instead of a StepReading",))
