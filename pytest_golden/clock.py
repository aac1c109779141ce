"""The one place that reads the time and makes ids.

Everything else takes times and ids as arguments or calls these functions, so that tests never sleep.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
#: `int(digits.translate(READABLE), 32)`: the interpreter reads base 32 with the letters a to v.
READABLE = str.maketrans(CROCKFORD, "0123456789abcdefghijklmnopqrstuv")
_ULID_DIGITS = 26
# Five bits of each of 256 bytes: every digit comes equally often.
_DIGIT_OF_BYTE = (CROCKFORD * 8).encode("ascii")


def utc_now() -> datetime:
    """Return the present moment as an aware UTC datetime."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Return seconds on a clock that never goes back; only differences mean anything."""
    return time.monotonic()


def thread_seconds() -> float:
    """Return seconds that the present thread has kept a processor busy; only differences mean anything."""
    return time.thread_time()


def new_id(prefix: str) -> str:
    """Make `<prefix>_<ULID>`: sortable by time to the millisecond and unique across processes.

    Source: https://github.com/ulid/spec (48 bits of milliseconds, 80 random bits, Crockford base 32).
    """
    return f"{prefix}_{millisecond_digits()}{random_digits(16)}"


def random_digits(count: int) -> str:
    """Make so many random digits of base 32, in Crockford's alphabet, from the system's own randomness."""
    return os.urandom(count).translate(_DIGIT_OF_BYTE).decode("ascii")


def millisecond_digits() -> str:
    """Write the present millisecond as the ten digits that an id starts with; they are made once for each."""
    global _last_millisecond  # noqa: PLW0603 - one reference that is replaced whole, so that threads need no lock
    now = time.time_ns() // 1_000_000
    known, digits = _last_millisecond
    if now != known:
        digits = "".join(CROCKFORD[(now >> shift) & 31] for shift in range(45, -1, -5))
        _last_millisecond = (now, digits)
    return digits


_last_millisecond = (-1, "")


def new_id_after(last_id: str, prefix: str) -> str:
    """Make an id as `new_id` does that also sorts behind the last one of the same prefix, whatever the clock says.

    Within a millisecond it lies a random distance behind, so that no two that follow the same one are the same.
    """
    made = new_id(prefix)
    digits = last_id.removeprefix(f"{prefix}_")
    if made > last_id or len(digits) != _ULID_DIGITS or digits.strip(CROCKFORD):
        return made
    number = int(digits.translate(READABLE), 32) + 1 + int.from_bytes(os.urandom(8), "big")
    return f"{prefix}_{''.join([CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5)])}"


def iso_utc(moment: datetime) -> str:
    """Write an aware datetime as ISO-8601 in UTC with `Z` and microseconds."""
    if moment.tzinfo is UTC:
        return f"{moment.isoformat(timespec='microseconds')[:-6]}Z"
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
