"""Durations and sizes as people write them. Pure; the limits themselves are enforced by the gateway."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

from pytest_golden.manifest.unquoted import bare, show

# For the JSON Schema: the same forms, without their bounds.
DURATION_FORM = r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|h)?\s*$"
SIZE_FORM = r"^\s*[0-9]+(\.[0-9]+)?\s*(([kKmMgGtT][iI]?)?[bB])?\s*$"

_LONGEST_SECONDS = 366 * 24 * 3600
_LARGEST_BYTES = 2**63 - 1
_SECONDS = {"ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600)}
_BYTES = {"b": 1} | {
    f"{prefix}{end}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("b", 1000), ("ib", 1024))
}
_AMOUNT = re.compile(r"([-+]?[0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z]*)")
_DURATIONS = "a number of seconds, or a duration such as 500ms, 90s, 10m or 1.5h"
_SIZES = "a number of bytes, or a size such as 500MB (10^6) or 2GiB (2^30)"


def parse_duration(value: Any) -> float:
    """Read a duration in seconds: a number, or text with the unit ms, s, m or h (none means seconds).

    Raises:
        ValueError: it is no such thing, not above 0, or longer than 366 days.
    """
    amount = _read_amount(value, _SECONDS, default="s")
    if amount is None:
        message = f"{show(value)} is not a duration; write {_DURATIONS}"
        raise ValueError(message)
    if not 0 < amount <= _LONGEST_SECONDS or not float(amount):
        message = f"{show(value)} is not above 0 and at most 366 days; write {_DURATIONS}"
        raise ValueError(message)
    return float(amount)


def parse_size(value: Any) -> int:
    """Read a size in bytes: a whole number, or text with B, kB, MB, GB, TB (1000) or KiB, MiB, GiB, TiB (1024).

    Raises:
        ValueError: it is no such thing, less than one byte, or beyond 2^63 - 1.
    """
    amount = _read_amount(value, _BYTES, default="b")
    if amount is None or (amount.denominator != 1 and not isinstance(value, str)):
        message = f"{show(value)} is not a size; write {_SIZES}"
        raise ValueError(message)
    if not 1 <= amount <= _LARGEST_BYTES:
        message = f"{show(value)} is not above 0 and below 2^63 bytes; write {_SIZES}"
        raise ValueError(message)
    return int(amount)


def _read_amount(value: Any, units: dict[str, Fraction] | dict[str, int], *, default: str) -> Fraction | None:
    value = bare(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Fraction(value) if math.isfinite(value) else None
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    unit = match[2] or default
    scale = units.get(unit if default == "s" else unit.lower())
    return None if scale is None else Fraction(match[1]) * scale
