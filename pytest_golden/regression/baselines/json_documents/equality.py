"""When two values are equal: numbers within a tolerance, arrays in order or as multisets. No paths are known here."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.json_documents.matching import Alone, NearMatching, match_equal
from pytest_golden.regression.baselines.json_documents.values import Json, Repeated, is_number, write_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.regression.baselines.json_documents.values import Number

# Enough digits for any tolerance; nothing is trapped, since numbers of any exponent come in.
_ARITHMETIC = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


@dataclass(slots=True)
class Equality:
    """The rules by which values are compared, and what was found out about them.

    `digests` are of containers, by their ids: the documents must outlive this.
    """

    unordered: bool = False
    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    digests: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Tell whether there is no tolerance."""
        return not self.absolute and not self.relative

    def has_equal_scalars(self, left: Json, right: Json) -> bool:
        """Compare two values that are no containers; true is not 1, and null equals nothing else."""
        if is_number(left) and is_number(right):
            return self.has_equal_numbers(left, right)
        return type(left) is type(right) and bool(left == right)

    def has_equal_numbers(self, left: Number, right: Number) -> bool:
        """Compare numbers: the difference is at most max(absolute, relative * the larger). NaN equals NaN."""
        one, other = Decimal(left), Decimal(right)
        if one.is_nan() or other.is_nan():
            return one.is_nan() and other.is_nan()
        if one == other or self.is_exact or not (one.is_finite() and other.is_finite()):
            return one == other
        return difference_of(one, other) <= self.allowed_difference(one, other)

    def allowed_difference(self, one: Decimal, other: Decimal) -> Decimal:
        """Give by how much two finite numbers may differ."""
        return max(self.absolute, _ARITHMETIC.multiply(self.relative, max(one.copy_abs(), other.copy_abs())))

    def is_equal(self, left: Json, right: Json) -> bool:
        """Compare two values of any kind.

        Recurses only where arrays in any order lie within each other and there is a tolerance.
        """
        todo = [(left, right)]
        while todo:
            one, other = todo.pop()
            if not is_container(one) or not is_container(other):
                if is_container(one) or is_container(other) or not self.has_equal_scalars(one, other):
                    return False
            elif self.digest(one) != self.digest(other):
                pairs = None if self.is_exact else self._pair_up(one, other)
                if pairs is None:
                    return False
                todo.extend(pairs)
        return True

    def match(self, ours: Sequence[Json], theirs: Sequence[Json]) -> Alone:
        """Find the items of two multisets that have no partner."""
        digests = [*map(self.digest, ours)], [*map(self.digest, theirs)]
        alone = match_equal(*digests)
        if self.is_exact or not alone.ours or not alone.theirs:
            return alone
        return NearMatching(ours, theirs, self.is_equal).match(*digests, alone)

    def digest(self, value: Json) -> bytes:
        """Give 16 bytes that are equal for equal values, tolerances aside."""
        if not is_container(value):
            return _digest_scalar(value)
        if id(value) not in self.digests:
            self._digest_all(value)
        return self.digests[id(value)]

    def _pair_up(self, one: Json, other: Json) -> list[tuple[Json, Json]] | None:
        """Give what has to be equal for two containers to be so; None when they cannot be."""
        if kind_of(one) != kind_of(other) or len(one) != len(other):
            return None
        if isinstance(one, dict):
            return [(one[key], other[key]) for key in one] if one.keys() == other.keys() else None
        if self.unordered and len(one) > 1 and not isinstance(one, Repeated):
            return None if any(self.match(one, other)) else []
        return list(zip(one, other, strict=True))

    def _digest_all(self, value: Json) -> None:
        """Digest containers from the innermost out."""
        todo: list[tuple[Json, bool]] = [(value, False)]
        while todo:
            container, is_ready = todo.pop()
            if id(container) in self.digests:
                continue
            if is_ready:
                self.digests[id(container)] = self._digest_container(container)
                continue
            todo.append((container, True))
            members = container.values() if isinstance(container, dict) else container
            todo.extend((member, False) for member in members if is_container(member))

    def _digest_container(self, container: Json) -> bytes:
        total = blake2b(kind_of(container).encode(), digest_size=16)
        if isinstance(container, dict):
            for key in sorted(container):
                total.update(_digest_scalar(key) + self.digest(container[key]))
            return total.digest()
        parts = [self.digest(item) for item in container]
        if self.unordered and not isinstance(container, Repeated):
            parts.sort()
        for part in parts:
            total.update(part)
        return total.digest()


def difference_of(one: Decimal, other: Decimal) -> Decimal:
    """Give by how much two finite numbers differ."""
    return _ARITHMETIC.subtract(one, other).copy_abs()


def is_container(value: Json) -> bool:
    """Tell whether a value is an object or an array."""
    return isinstance(value, dict | list)


def kind_of(value: Json) -> str:
    """Give what a value is in a word of JSON."""
    if isinstance(value, Repeated):
        return "repeated key"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    if isinstance(value, str):
        return "text"
    if value is None:
        return "null"
    return "true or false" if isinstance(value, bool) else "number"


def _digest_scalar(value: Json) -> bytes:
    sign = "s" if isinstance(value, str) else "n" if is_number(value) else "c"
    text = sign + (write_number(value) if sign == "n" else str(value))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
