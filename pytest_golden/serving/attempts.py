"""How often an address may be wrong. Whoever is right is never counted, and never refused."""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_ADDRESSES = 10_000
_BITS_OF_NETWORK = 64


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
        # Or one thread would find none while another one counts.
        self._turn = threading.Lock()

    def count(self, address: str) -> None:
        """Count a wrong attempt.

        Raises:
            Refusal: there were too many; it says when the next is allowed.
        """
        now, sender = self._clock(), _find_sender(address)
        with self._turn:
            wrongs = self._wrongs.pop(sender, None)
            if wrongs is None or now - wrongs.since >= self._window_seconds:
                wrongs = _Wrongs(now, 0)
            self._wrongs[sender] = wrongs._replace(times=wrongs.times + 1)
            if len(self._wrongs) > _MOST_ADDRESSES:
                self._wrongs.popitem(last=False)
        if wrongs.times >= self._most:
            wait = ceil(max(1.0, wrongs.since + self._window_seconds - now))
            raise Refusal(429, f"Too many wrong attempts: try again in {wait} seconds.", {"Retry-After": str(wait)})


def _find_sender(address: str) -> str:
    """Give what is counted: of IPv6 the network, since one sender has all addresses of it. Some proxies add a port."""
    name = address[1:].partition("]")[0] if address.startswith("[") else address
    name = name.partition(":")[0] if name.count(":") == 1 else name
    try:
        found = ipaddress.IPv6Address(name)
    except ValueError:
        return name
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), _BITS_OF_NETWORK), strict=False))
