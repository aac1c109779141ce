"""The kinds of values of the rules on values: bounds, accepted values, a share of rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.kinds import (
    NUMBER_FORM,
    Finding,
    Kind,
    WrongValueError,
    check_each,
    check_text,
    findings_below,
    wrong,
)
from pytest_golden.manifest.units import Unquoted, bare, show
from pytest_golden.values.json_form import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Callable

_PERCENT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%")
_NUMBER = re.compile(NUMBER_FORM)
_TIME = "2026-11-20, or 2026-11-20 06:00:00"
_TIME_FORM = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$"
_BOUNDS = "two bounds such as [0, 1e6] or [2024-01-01, null]"


def _mapping_of(check: Callable[[Any], Any], item: Mapping[str, Any], example: str) -> Kind:
    """Make the kind of a mapping from columns to something."""

    def check_all(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise wrong(f"this must be a mapping, not {show(value)}; write it as {example}")
        clean: dict[str, Any] = {}
        findings: list[Finding] = []
        for name, one in value.items():
            try:
                clean[check_text(name)] = check(one)
            except ValueError as error:
                findings += findings_below(name, error)
        if findings:
            raise WrongValueError(findings)
        return FrozenDict(clean)

    return Kind(check_all, {"type": "object", "additionalProperties": dict(item)})


def _check_bound(value: Any) -> float | str | None:
    """Return a number, or a day or time as text; None for no bound."""
    plain = bare(value)
    if plain is None and (value is None or value.kind == "null"):
        return None
    if isinstance(plain, str) and _NUMBER.fullmatch(plain):
        return float(plain)
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        return float(plain)
    text = value.text if isinstance(value, Unquoted) else value.isoformat() if isinstance(value, date) else value
    try:
        datetime.fromisoformat(check_text(text))
    except ValueError:
        raise wrong(f"{show(value)} is not a number, day or time; write one, or null for no bound") from None
    return str(text)


def _check_clock(value: Any) -> str:
    """Return a time of day on a day as text, `2026-11-20 06:00:00`."""
    text = value.text if isinstance(value, Unquoted) else value.isoformat() if isinstance(value, date) else value
    try:
        time = datetime.fromisoformat(check_text(text)) if re.match(_TIME_FORM, str(text)) else None
    except ValueError:
        time = None
    if time is None:
        raise wrong(f"{show(value)} is neither a day nor a time without a zone; write one, such as {_TIME}")
    return f"{time:%Y-%m-%d %H:%M:%S}"


def _check_bounds(value: Any) -> tuple[float | str | None, float | str | None]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong(f"this must be {_BOUNDS}, not {show(value)}")
    low, high = check_each(value, _check_bound)
    if low is None and high is None:
        raise wrong(f"has no bound; write {_BOUNDS}")
    if low is not None and high is not None and type(low) is not type(high):
        raise wrong(f"one bound is a number and the other a time; write {_BOUNDS}")
    if low is not None and high is not None and low > high:
        raise wrong(f"the first bound, {low}, is above the second, {high}; nothing could meet both")
    return low, high


def _check_value(value: Any) -> str:
    if isinstance(value, Unquoted) and value.kind != "null":
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        raise wrong(f"this must be a value, not {show(value)}; nulls are for not_null")
    return value


def _check_values(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise wrong(f"this must be a list of values, not {show(value)}; write it as [paid, open]")
    return check_each(value, _check_value)


def _check_share(value: Any) -> float:
    plain = bare(value)
    found = _PERCENT.fullmatch(plain) if isinstance(plain, str) else None
    if found:
        return float(found[1]) / 100
    if isinstance(plain, int | float) and not isinstance(plain, bool) and 0 <= plain < float("inf"):
        return float(plain)
    raise wrong(f"{show(value)} is not a share; write it in percent, such as 10%, or as a number, such as 0.1")


_NUMBER_OR_TIME = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]}
BETWEEN = _mapping_of(
    _check_bounds,
    {"type": "array", "items": _NUMBER_OR_TIME, "minItems": 2, "maxItems": 2},
    "{amount: [0, 1e6]}",
)
ACCEPTED = _mapping_of(
    _check_values,
    {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1},
    "{status: [paid, open]}",
)
SHARE = Kind(
    _check_share,
    {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^[0-9]{1,6}(\.[0-9]{1,6})?\s*%$"},
        ]
    },
)
CLOCK = Kind(_check_clock, {"type": "string", "pattern": _TIME_FORM})
