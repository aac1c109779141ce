"""What a look at entries can be narrowed to by their assessment. Pure."""

from __future__ import annotations

from pytest_golden.journal.model import Assessment
from pytest_golden.manifest.unquoted import show

ALL = "all"
#: What entries can be asked for.
FILTERS = (ALL, *(assessment.value for assessment in Assessment))


def read_filter(word: str) -> Assessment | None:
    """Give the assessment that is asked for; None for all.

    Raises:
        ValueError: the word is unknown.
    """
    if word not in FILTERS:
        raise ValueError(f"filter {show(word)} is unknown: give one of {', '.join(FILTERS)}")
    return None if word == ALL else Assessment(word)
