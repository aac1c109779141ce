from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.storage.columns import from_ms, to_ms

MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(MOMENTS)
def test_moment_comes_back_to_the_millisecond(moment: datetime) -> None:
    back = from_ms(to_ms(moment))
    assert timedelta(0) <= moment - back < timedelta(milliseconds=1)
    assert back.tzinfo is UTC


@given(MOMENTS, MOMENTS)
def test_order_is_kept(one: datetime, other: datetime) -> None:
    assert one > other or to_ms(one) <= to_ms(other)


def test_other_zones_are_the_same_moment() -> None:
    there = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert from_ms(to_ms(there)) == there
    assert to_ms(datetime(1970, 1, 1, 0, 0, 1, 2000, tzinfo=UTC)) == 1002
