"""The one place that reads the time and makes ids.

Everything else takes times and ids as arguments or calls these functions, so that tests never sleep.
"""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def utc_now() -> datetime:
    """Give the present moment as an aware UTC datetime."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Give seconds on a clock that never goes back; only differences mean anything."""
    return time.monotonic()


def new_id(prefix: str) -> str:
    """Make `<prefix>_<ULID>`: sortable by time to the millisecond and unique across processes.

    Source: https://github.com/ulid/spec (48 bits of milliseconds, 80 random bits, Crockford base 32).
    """
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    digits = [_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def iso_utc(moment: datetime) -> str:
    """Write an aware datetime as ISO-8601 in UTC with `Z` and microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
