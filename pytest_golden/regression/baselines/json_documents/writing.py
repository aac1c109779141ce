"""A difference between two documents in one line: the path, as `ignore_paths` takes it, and both values."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.json_documents.differences import ABSENT
from pytest_golden.regression.baselines.json_documents.equality import difference_of, kind_of
from pytest_golden.regression.baselines.json_documents.values import Json, Repeated, is_number, write_number
from pytest_golden.regression.baselines.showing import LONGEST_REDACTED, count_of, cut, cut_middle, cut_pair, show

if TYPE_CHECKING:
    from pytest_golden.regression.baselines.json_documents.differences import Difference, Place
    from pytest_golden.regression.baselines.json_documents.equality import Equality
    from pytest_golden.regression.baselines.showing import Redact

_PLAIN_NAME = re.compile(r"""[^\s.\[\]*'"]+""")
_LONGEST_PATH = 100
_LONGEST_VALUE = 80
_DEEPEST_SHOWN = 3
_MOST_MEMBERS = 12
_SIX_DIGITS = Context(prec=6, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def write_difference(found: Difference, equality: Equality, redact: Redact) -> str:
    """Write `$.rows[2].price: 10.5 -> 10.7`, or on which side alone a value stands; values are redacted before they are cut."""
    path = cut_middle(write_place(found.place), _LONGEST_PATH)
    theirs, ours = (_write_value(value, found.place, redact) for value in (found.theirs, found.ours))
    if found.ours is ABSENT:
        return f"{path}: only in the baseline: {cut(theirs, _LONGEST_VALUE)}"
    if found.theirs is ABSENT:
        return f"{path}: only in the output: {cut(ours, _LONGEST_VALUE)}"
    if kind_of(found.ours) == kind_of(found.theirs):
        theirs, ours = cut_pair(theirs, ours, _LONGEST_VALUE)
    else:
        theirs, ours = cut(theirs, _LONGEST_VALUE), cut(ours, _LONGEST_VALUE)
    return f"{path}: {theirs} -> {ours}{_remark(found, equality)}"


def write_place(place: Place | None) -> str:
    """Write the path to a place, `$` for the whole document."""
    steps = []
    while place is not None:
        steps.append(_write_step(place.step))
        place = place.before
    return "$" + "".join(reversed(steps))


def _write_value(value: Json, place: Place | None, redact: Redact) -> str:
    """Write a value as JSON, as far as one line and three levels go; its key can tell that it is a secret."""
    if value is ABSENT:
        return ""
    names = _names_before(place)
    before = "".join(f"{{{_quote(name)}: " for name in names)
    probe = f"{before}{_write(value, 0)}{'}' * len(names)}"
    redacted = redact(probe)
    if redacted.startswith(before):
        return redacted[len(before) : len(redacted) - len(names)]
    return redacted


def _names_before(place: Place | None) -> list[str]:
    """Give the nearest name on the way to a place, in a list, which is empty where there is none."""
    while place is not None:
        if isinstance(place.step, str):
            return [place.step]
        place = place.before
    return []


def _write_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_NAME.fullmatch(step) and step.isprintable():
        return f".{step}"
    return "['" + show(step.replace("\\", "\\\\").replace("'", "\\'")) + "']"


def _write(value: Json, depth: int) -> str:
    if isinstance(value, Repeated):
        return f"{count_of(len(value), 'value')} of one key: {', '.join(_write(item, depth + 1) for item in value[:5])}"
    if isinstance(value, dict | list) and depth >= _DEEPEST_SHOWN and value:
        return "{...}" if isinstance(value, dict) else "[...]"
    if isinstance(value, dict):
        shown = (
            f"{_quote(key)}: {_write(value[key], depth + 1)}"
            for key, _ in zip(value, range(_MOST_MEMBERS), strict=False)
        )
        return "{" + ", ".join(shown) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_write(item, depth + 1) for item in value[:_MOST_MEMBERS]) + "]"
    return _write_scalar(value, depth)


def _write_scalar(value: Json, depth: int) -> str:
    if isinstance(value, str):
        return _quote(cut(value, LONGEST_REDACTED if depth == 0 else 2 * _LONGEST_VALUE))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{show(escaped)}"'


def _remark(found: Difference, equality: Equality) -> str:
    kinds = kind_of(found.ours), kind_of(found.theirs)
    if kinds[0] != kinds[1]:
        return f"  ({kinds[1]} became {kinds[0]})"
    if not is_number(found.ours) or equality.is_exact:
        return ""
    one, other = Decimal(found.ours), Decimal(found.theirs)
    if not (one.is_finite() and other.is_finite()):
        return ""
    off, allowed = difference_of(one, other), equality.allowed_difference(one, other)
    return f"  (off by {_round(off)}, allowed {_round(allowed)})"


def _round(number: Decimal) -> str:
    return write_number(_SIX_DIGITS.plus(number))
