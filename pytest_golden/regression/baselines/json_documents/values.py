"""What a JSON document is made of, beside dict, list, str, bool and None: exact numbers, and what plain values cannot tell."""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# An int is written in time that grows with the square of its digits, a Decimal is not.
_LONGEST_INT = 4000
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)

Json: TypeAlias = Any
Number: TypeAlias = int | Decimal


class Repeated(list[Json]):
    """The values of a key that stands more than once in an object, which readers take differently."""


class Thinned(list[Json]):
    """An array without the items that do not count; `positions` are those that the others had."""

    def __init__(self, items: Iterable[Json], positions: Sequence[int]) -> None:
        super().__init__(items)
        self.positions = positions


def make_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Make an object of its members in order; values of a repeated key are kept, all of them."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    found = {}
    for key, value in pairs:
        if key not in found:
            found[key] = value
        elif isinstance(found[key], Repeated):
            found[key].append(value)
        else:
            found[key] = Repeated((found[key], value))
    return found


def make_int(text: str) -> Number:
    """Read a number without point and exponent."""
    return int(text) if len(text) < _LONGEST_INT else Decimal(text)


def make_number(text: str) -> Number:
    """Read any number.

    Raises:
        decimal.InvalidOperation: its exponent has more than 18 digits.
    """
    return Decimal(text) if any(sign in text for sign in ".eE") else make_int(text)


def make_constant(text: str) -> Decimal:
    """Read `NaN`, `Infinity` or `-Infinity`, which are no JSON and common."""
    return Decimal(text)


def is_number(value: Json) -> bool:
    """Tell whether a value is a number; true and false are none."""
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def write_number(number: Number) -> str:
    """Write a number so that equal ones are written alike: `1`, `1.0` and `1e0` are `1`."""
    if isinstance(number, int):
        return str(number)
    if not number.is_finite():
        return str(number)
    if not number:
        return "0"
    plain = number.normalize(_EXACT)
    exponent = int(plain.as_tuple().exponent)
    return format(plain, "f") if exponent >= 0 and plain.adjusted() < _LONGEST_INT else str(plain)


def position_of(array: Json, index: int) -> int:
    """Give the position that an item had in the file."""
    return int(array.positions[index]) if isinstance(array, Thinned) else index
