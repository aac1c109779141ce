"""How often an address may be wrong. Whoever is right is never counted, and never refused."""

from __future__ import annotations

from collections import OrderedDict
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.web.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_ADDRESSES = 10_000


class _Wrongs(NamedTuple):
    """How often an address was wrong since a moment."""

    since: float
    times: int


class Attempts:
    """Counts wrong attempts by address in windows of so many seconds; of very many addresses the oldest are forgotten."""

    def __init__(self, most: int, window_seconds: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._window_seconds = window_seconds
        self._clock = clock
        self._wrongs: OrderedDict[str, _Wrongs] = OrderedDict()

    def count(self, address: str) -> None:
        """Count a wrong attempt.

        Raises:
            Refusal: there were too many; it says when the next is allowed.
        """
        now = self._clock()
        wrongs = self._wrongs.pop(address, None)
        if wrongs is None or now - wrongs.since >= self._window_seconds:
            wrongs = _Wrongs(now, 0)
        self._wrongs[address] = wrongs._replace(times=wrongs.times + 1)
        if len(self._wrongs) > _MOST_ADDRESSES:
            self._wrongs.popitem(last=False)
        if wrongs.times >= self._most:
            wait = ceil(max(1.0, wrongs.since + self._window_seconds - now))
            raise Refusal(429, f"Too many wrong attempts: try again in {wait} seconds.", {"Retry-After": str(wait)})
