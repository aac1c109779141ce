from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from pytest_golden.cli.options import raise_when_ended

REQUESTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", REQUESTS)
def test_request_to_end_interrupts_and_handlers_are_as_before(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in REQUESTS]
    with pytest.raises(KeyboardInterrupt), raise_when_ended():
        signal.raise_signal(number)
    assert [signal.getsignal(one) for one in REQUESTS] == before


@pytest.mark.parametrize("number", REQUESTS)
def test_what_breaks_after_a_request_that_was_swallowed_is_the_interruption(number: signal.Signals) -> None:
    def be_cut_off() -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise AttributeError("a module that was not loaded to its end")

    with pytest.raises(KeyboardInterrupt), raise_when_ended():
        be_cut_off()


def test_what_breaks_by_itself_is_no_interruption() -> None:
    with pytest.raises(AttributeError), raise_when_ended():
        raise AttributeError("a mistake")


def test_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with raise_when_ended():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
