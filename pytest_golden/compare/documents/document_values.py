"""The values of a JSON document, and when two are equal: numbers within a tolerance, arrays in order or as multisets.

A number is kept as it is written, as bytes. So it is exact, and `==` never confuses it with a text or with true. Paths are
not known here.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, DecimalException
from hashlib import blake2b
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


Json: TypeAlias = Any
Number: TypeAlias = bytes
# Longer whole numbers are written with an exponent.
_LONGEST_INT = 4000
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)

# Enough digits for any tolerance. No signal is trapped, because numbers can have any exponent.
_ARITHMETIC = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

# Finding near partners can take quadratic time in an array's length.
_MOST_TRIALS = 500_000
_MOST_VALUES_RANKED = 200


@dataclass(slots=True)
class Equality:
    """The rules by which values are compared, and the results so far.

    `digests` are those of containers, by their ids, so the documents must live longer than this object.
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
        """Compare two values that are not containers. true is not 1, and null only equals null."""
        if is_number(left) and is_number(right):
            return self.has_equal_numbers(left, right)
        return type(left) is type(right) and bool(left == right)

    def has_equal_numbers(self, left: Number, right: Number) -> bool:
        """Compare numbers: the difference is at most max(absolute, relative * the larger). NaN equals NaN."""
        if left == right:
            return True
        one, other = read_number(left), read_number(right)
        if one is None or other is None:
            return False
        if one.is_nan() or other.is_nan():
            return one.is_nan() and other.is_nan()
        if one == other or self.is_exact or not (one.is_finite() and other.is_finite()):
            return one == other
        return difference_of(one, other) <= self.allowed_difference(one, other)

    def allowed_difference(self, one: Decimal, other: Decimal) -> Decimal:
        """Return the allowed difference of two finite numbers."""
        return max(self.absolute, _ARITHMETIC.multiply(self.relative, max(one.copy_abs(), other.copy_abs())))

    def is_equal(self, left: Json, right: Json) -> bool:
        """Compare two values of any kind."""
        todo = [(left, right)]
        while todo:
            one, other = todo.pop()
            if is_same(one, other):
                continue
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
        """Return 16 bytes that are equal for equal values, without tolerances. Recurses into nested values."""
        if not is_container(value):
            return _digest_scalar(value)
        if id(value) not in self.digests:
            total = blake2b(kind_of(value).encode(), digest_size=16)
            if isinstance(value, dict):
                for key in sorted(value):
                    total.update(_digest_scalar(key) + self.digest(value[key]))
            else:
                parts = list(map(self.digest, value))
                is_multiset = self.unordered and not isinstance(value, Repeated)
                total.update(b"".join(sorted(parts) if is_multiset else parts))
            self.digests[id(value)] = total.digest()
        return self.digests[id(value)]

    def _pair_up(self, one: Json, other: Json) -> list[tuple[Json, Json]] | None:
        """Return the pairs that must be equal for two containers to be equal; None if they cannot be equal."""
        if kind_of(one) != kind_of(other) or len(one) != len(other):
            return None
        if isinstance(one, dict):
            return [(one[key], other[key]) for key in one] if one.keys() == other.keys() else None
        if self.unordered and len(one) > 1 and not isinstance(one, Repeated):
            return None if any(self.match(one, other)) else []
        return list(zip(one, other, strict=True))


def is_same(one: Json, other: Json) -> bool:
    """Tell whether two values are written the same, except for spaces and the order of members. Most are, and this is fast."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


def difference_of(one: Decimal, other: Decimal) -> Decimal:
    """Return the difference of two finite numbers."""
    return _ARITHMETIC.subtract(one, other).copy_abs()


def is_container(value: Json) -> bool:
    """Tell whether a value is an object or an array."""
    return isinstance(value, dict | list)


def kind_of(value: Json) -> str:
    """Return JSON's name for the kind of a value."""
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
    number = read_number(value) if sign == "n" else None
    text = sign + (str(value) if number is None else write_number(number))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Repeated(list[Json]):
    """The values of a key that occurs more than once in an object. Readers treat such keys differently."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        """Compare with the values of another repeated key; an array is never equal."""
        return isinstance(other, Repeated) and super().__eq__(other)


class Thinned(list[Json]):
    """An array without its ignored items; `positions` are the positions of the remaining ones."""

    def __init__(self, items: Iterable[Json], positions: Sequence[int]) -> None:
        super().__init__(items)
        self.positions = positions


def make_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Make an object from its members in order; all values of a repeated key are kept."""
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


def is_number(value: Json) -> bool:
    """Tell whether a value is a number; true and false are not."""
    return isinstance(value, bytes)


def read_number(number: Number) -> Decimal | None:
    """Return a number's value; None if its exponent is too large, so that it only equals itself."""
    try:
        return Decimal(number.decode("ascii"))
    except DecimalException:
        return None


def write_number(number: Decimal) -> str:
    """Write a number so that equal numbers are written the same: `1`, `1.0` and `1e0` are `1`."""
    if not number.is_finite():
        return str(number)
    if not number:
        return "0"
    plain = number.normalize(_EXACT)
    exponent = int(plain.as_tuple().exponent)
    return format(plain, "f") if exponent >= 0 and plain.adjusted() < _LONGEST_INT else str(plain)


def position_of(array: Json, index: int) -> int:
    """Return the position that an item had in the file."""
    return int(array.positions[index]) if isinstance(array, Thinned) else index


class Alone(NamedTuple):
    """The positions of items without a partner, in one multiset and in the other."""

    ours: list[int]
    theirs: list[int]


def match_equal(ours: Sequence[bytes], theirs: Sequence[bytes]) -> Alone:
    """Find the items that stay without a partner when equal digests are partners. Of equal items, the last ones stay."""
    excess = Counter(ours)
    excess.subtract(Counter(theirs))
    return Alone(_last_ones(ours, excess, 1), _last_ones(theirs, excess, -1))


class NearMatching:
    """Finds partners within a tolerance for the items that `match_equal` left. Items that have a partner may get another one.

    `is_near` is called at most 500,000 times; after that, nothing is near.
    """

    def __init__(self, ours: Sequence[Json], theirs: Sequence[Json], is_near: Callable[[Json, Json], bool]) -> None:
        self._ours = ours
        self._theirs = theirs
        self._is_near = is_near
        self._trials = _MOST_TRIALS
        self._partner_of: dict[int, int] = {}
        # When both sides are sorted, items that are near each other have near positions.
        ranked = sorted(range(len(ours)), key=lambda index: _rank(ours[index]))
        self._rank_of = {index: rank for rank, index in enumerate(ranked)}
        self._ranked_theirs = sorted(range(len(theirs)), key=lambda index: _rank(theirs[index]))

    def match(self, ours: Sequence[bytes], theirs: Sequence[bytes], alone: Alone) -> Alone:
        """Find the items that stay without a partner, given the digests of all items and the items that the digests left."""
        waiting: defaultdict[bytes, list[int]] = defaultdict(list)
        for index in sorted({*range(len(ours))} - {*alone.ours}):
            waiting[ours[index]].append(index)
        for index in sorted({*range(len(theirs))} - {*alone.theirs}):
            self._partner_of[index] = waiting[theirs[index]].pop()
        left = [index for index in alone.ours if not find_partner(index, self._candidates, self._try, self._partner_of)]
        return Alone(left, [index for index in range(len(theirs)) if index not in self._partner_of])

    def _candidates(self, index: int) -> Iterator[int]:
        """Yield the other side's items, the likely ones first."""
        rank, count = self._rank_of[index], len(self._ranked_theirs)
        for distance in range(max(rank + 1, count - rank)):
            if rank + distance < count:
                yield self._ranked_theirs[rank + distance]
            if 0 < distance <= rank and rank - distance < count:
                yield self._ranked_theirs[rank - distance]

    def _try(self, index: int, other: int) -> bool:
        self._trials -= 1
        return self._trials >= 0 and self._is_near(self._ours[index], self._theirs[other])


def find_partner(
    start: int,
    candidates: Callable[[int], Iterable[int]],
    is_near: Callable[[int, int], bool],
    partner_of: dict[int, int],
) -> bool:
    """Find a partner for one more item. Others get a new partner if that helps (augmenting paths, breadth first).

    An item can be paired with those of its `candidates` that it `is_near` to. `partner_of` holds the pairs, and is changed.
    """
    reached_by: dict[int, int] = {}
    todo = deque([start])
    while todo:
        index = todo.popleft()
        for other in candidates(index):
            if other in reached_by or not is_near(index, other):
                continue
            reached_by[other] = index
            if other not in partner_of:
                _reassign(other, start, reached_by, partner_of)
                return True
            todo.append(partner_of[other])
    return False


def _reassign(last: int, start: int, reached_by: dict[int, int], partner_of: dict[int, int]) -> None:
    before = {index: other for other, index in partner_of.items()}
    while True:
        index = reached_by[last]
        partner_of[last] = index
        if index == start:
            return
        last = before[index]


def _last_ones(digests: Sequence[bytes], excess: Counter[bytes], sign: int) -> list[int]:
    left = {digest: count * sign for digest, count in excess.items() if count * sign > 0}
    found = []
    for index in range(len(digests) - 1, -1, -1):
        if left.get(digests[index], 0) > 0:
            left[digests[index]] -= 1
            found.append(index)
    return found[::-1]


def _rank(item: Json) -> tuple[str, list[float]]:
    """Return a sort key for items, from their first values: first those that are not numbers, then the numbers."""
    texts, numbers = [], []
    todo = [item]
    for _ in range(_MOST_VALUES_RANKED):
        if not todo:
            break
        value = todo.pop()
        if is_number(value):
            numbers.append(_as_float(value))
        elif isinstance(value, dict):
            todo.extend(value[key] for key in sorted(value, reverse=True))
        elif isinstance(value, list):
            todo.extend(value[:_MOST_VALUES_RANKED][::-1])
        else:
            texts.append(str(value))
    return "\0".join(texts), numbers


def _as_float(number: Number) -> float:
    found = float(number)
    # NaN cannot be ordered.
    return float("inf") if isnan(found) else found
