"""Ids of the steps of one recorder, which it knows again without keeping them: what is streamed must not fill memory.

An id is a ULID whose random part ends in a count: ten random digits of the recorder, six that count its steps.
"""

from __future__ import annotations

import itertools

from pytest_golden.clock import millisecond_digits, random_digits

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(map("".join, itertools.product(_CROCKFORD, repeat=2)))
_PREFIX = "step_"
_RANDOM = slice(15, 25)
_COUNT = slice(25, 31)
_LENGTH = 31
_MOST = 32**6
# The interpreter reads base 32 with the letters a to v.
_READABLE = str.maketrans(_CROCKFORD, "0123456789abcdefghijklmnopqrstuv")


class StepIds:
    """Makes ids and tells whether it made one. Not safe between threads by itself."""

    __slots__ = ("_count", "_earlier", "_numbers", "_random")

    def __init__(self) -> None:
        self._earlier: dict[str, int] = {}
        self._random = random_digits(10)
        self._numbers = itertools.count()
        self._count = 0

    def make(self) -> str:
        """Make the next id."""
        # One step in the machine, so that a signal's handler that comes in between makes another.
        number = next(self._numbers)
        if number >= _MOST:
            self.renew()
            number = next(self._numbers)
        self._count = max(self._count, number + 1)
        digits = f"{_PAIRS[number >> 20]}{_PAIRS[number >> 10 & 1023]}{_PAIRS[number & 1023]}"
        return f"{_PREFIX}{millisecond_digits()}{self._random}{digits}"

    def knows(self, step_id: object) -> bool:
        """Tell whether this id was made here."""
        if not isinstance(step_id, str) or len(step_id) != _LENGTH or not step_id.startswith(_PREFIX):
            return False
        random = step_id[_RANDOM]
        made = self._count if random == self._random else self._earlier.get(random, 0)
        try:
            return int(step_id[_COUNT].translate(_READABLE), 32) < made
        except ValueError:
            return False

    def renew(self) -> None:
        """Go on with another random part, so that a fork and its parent never make the same id."""
        self._earlier[self._random] = self._count
        self._random = random_digits(10)
        self._numbers = itertools.count()
        self._count = 0
