from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_golden.web import access as attempts
from pytest_golden.web.access import Attempts, Refusal

now = [0.0]


def make(most: int = 2) -> Attempts:
    now[0] = 0.0
    return Attempts(most, 300.0, lambda: now[0])


def is_refused(address: str, *, by: Attempts) -> bool:
    try:
        by.count(address)
    except Refusal as refusal:
        return refusal.status == 429
    return False


def test_an_address_that_is_wrong_too_often_is_told_when_it_may_go_on() -> None:
    wrongs = make()
    assert [is_refused("10.0.0.5", by=wrongs) for _ in range(3)] == [False, False, True]
    assert not is_refused("10.0.0.6", by=wrongs)
    now[0] = 100.0
    with pytest.raises(Refusal) as refused:
        wrongs.count("10.0.0.5")
    assert refused.value.headers == {"Retry-After": "200"}
    now[0] = 300.0
    assert not is_refused("10.0.0.5", by=wrongs)


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.5", "10.0.0.5", True),
        ("::ffff:10.0.0.5", "::ffff:10.0.0.6", False),
        ("10.0.0.5", "10.0.0.6", False),
        ("10.0.0.5:1025", "10.0.0.5:1026", True),
        ("[2001:db8::1]:1025", "2001:db8::2", True),
        ("", "unknown", False),
    ],
)
def test_all_addresses_of_one_network_are_one_sender(one: str, other: str, are_same: bool) -> None:
    wrongs = make(1)
    assert not is_refused(one, by=wrongs)
    assert is_refused(other, by=wrongs) is are_same


def test_of_very_many_addresses_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_MOST_ADDRESSES", 3)
    wrongs = make(1)
    for number in range(4):
        assert not is_refused(f"10.0.0.{number}", by=wrongs)
    assert [is_refused(f"10.0.0.{number}", by=wrongs) for number in (3, 2, 1, 0)] == [True, True, True, False]


def test_who_is_wrong_in_many_threads_at_once_is_counted_each_time() -> None:
    wrongs, times = make(1_000), 3_000
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            refused = sum(pool.map(lambda _: is_refused("10.0.0.5", by=wrongs), range(times)))
    finally:
        sys.setswitchinterval(before)
    assert refused == times - 1_000
