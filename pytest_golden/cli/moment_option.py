"""Options whose value is a moment, told as an age or as a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.journal.reading.moments import parse_moment

if TYPE_CHECKING:
    from datetime import datetime


def read_moment(option: str, text: str) -> datetime:
    """Read `90d`, `12h` or `30m` ago, or a time; one without a zone is local.

    Raises:
        SettingsError: it is no moment.
    """
    try:
        return parse_moment(text, utc_now())
    except ValueError as error:
        raise SettingsError(f"{option} {error}") from None
