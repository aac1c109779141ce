from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pytest_golden.web.listening import SaidOnce

if TYPE_CHECKING:
    from collections.abc import Callable

now = [0.0]


def says(sentence: str, name: str = "pytest_golden.web", *, by: SaidOnce) -> bool:
    return bool(by.filter(logging.LogRecord(name, logging.ERROR, "", 0, sentence, None, None)))


def make(is_ending: Callable[[], bool] = lambda: False) -> SaidOnce:
    return SaidOnce(is_ending, lambda: now[0])


def test_same_sentence_is_said_once_a_minute() -> None:
    book, told = make(), []
    for second in range(130):
        now[0] = float(second)
        told += [second] if says("the store is gone", by=book) else []
    assert told == [0, 60, 120]
    assert says("another", by=book)


def test_what_strangers_cause_is_not_said() -> None:
    assert not says("Invalid HTTP request received.", "uvicorn.error", by=make())
    assert not says("Expected boundary character 45", "python_multipart.multipart", by=make())
    assert says("Invalid HTTP request received.", by=make())


def test_what_an_end_cuts_off_is_not_said() -> None:
    assert not says("Exception in ASGI application\n", "uvicorn.error", by=make(lambda: True))
    assert says("Exception in ASGI application\n", "uvicorn.error", by=make())
    assert says("the store is gone", by=make(lambda: True))


def test_very_many_sentences_are_forgotten_again() -> None:
    book = make()
    for number in range(2000):
        assert says(f"sentence {number}", by=book)
    assert len(book._said) <= 500
