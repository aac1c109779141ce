"""What the server says on its terminal: each thing once a minute at most, and nothing that a stranger could fill a disk with."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_golden.clock import monotonic_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_QUIET_SECONDS = 60.0
_MOST_SENTENCES = 500
# What those who send requests that are no requests get told themselves.
_OF_STRANGERS = ("Invalid HTTP request received.", "Unsupported upgrade request.", "No supported WebSocket library")
_READERS_OF_FORMS = ("python_multipart", "multipart")


class SaidOnce(logging.Filter):
    """Lets a sentence pass that was not said in the last minute; while `is_ending`, nothing of what is cut off by that."""

    def __init__(self, is_ending: Callable[[], bool], clock: Callable[[], float] = monotonic_seconds) -> None:
        super().__init__()
        self._is_ending = is_ending
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether it is said."""
        sentence = record.getMessage()
        if record.name.startswith(_READERS_OF_FORMS):
            return False
        if record.name == "uvicorn.error" and (self._is_ending() or sentence.startswith(_OF_STRANGERS)):
            return False
        now = self._clock()
        before = self._said.pop(sentence, None)
        is_news = before is None or now - before >= _QUIET_SECONDS
        self._said[sentence] = now if is_news or before is None else before
        if len(self._said) > _MOST_SENTENCES:
            self._said.pop(next(iter(self._said)))
        return is_news


@contextmanager
def saying(is_ending: Callable[[], bool]) -> Iterator[None]:
    """Let what is logged be said on the terminal."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("golden: %(message)s"))
    handler.addFilter(SaidOnce(is_ending))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
