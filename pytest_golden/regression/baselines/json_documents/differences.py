"""Where two documents differ: pairs of values with the path that leads there, in the order of the baseline. No recursion."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Final

from pytest_golden.regression.baselines.json_documents.equality import Equality, is_container, kind_of
from pytest_golden.regression.baselines.json_documents.values import Json, Repeated, position_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Absent(Enum):
    ABSENT = "absent"


#: Stands for the value of a side that has none.
ABSENT: Final = _Absent.ABSENT
# What differs between two arrays of other lengths is looked for in this many items at most.
_MOST_ALIGNED = 5000
# Where there are more, items that stand often are no help in finding the way, and cost much.
_MOST_ALIGNED_WHOLE = 400
# An item without a partner is compared with so many others, to find one that is alike.
_MOST_TRIED = 50


@dataclass(frozen=True, slots=True)
class Place:
    """A step on the way into a document: a member's name or an item's position, and the place before it."""

    before: Place | None
    step: str | int


@dataclass(frozen=True, slots=True)
class Difference:
    """Two values that are not equal, or one of them `ABSENT`. `place` is None for the whole document."""

    place: Place | None
    ours: Json
    theirs: Json


def find_differences(ours: Json, theirs: Json, equality: Equality) -> Iterator[Difference]:
    """Give the innermost differences between an output and its baseline.

    A place is one of the output, where it has one there.
    """
    todo: list[Iterator[Difference]] = [iter([Difference(None, ours, theirs)])]
    while todo:
        found = next(todo[-1], None)
        if found is None:
            todo.pop()
        elif not (is_container(found.ours) and kind_of(found.ours) == kind_of(found.theirs)):
            if ABSENT in {_if_absent(found.ours), _if_absent(found.theirs)} or not _is_same(found, equality):
                yield found
        elif isinstance(found.ours, Repeated) and len(found.ours) != len(found.theirs):
            yield found
        else:
            todo.append(_look_into(found, equality))


def _if_absent(value: Json) -> Json:
    return value if value is ABSENT else None


def _is_same(found: Difference, equality: Equality) -> bool:
    if is_container(found.ours) or is_container(found.theirs):
        return False
    return equality.has_equal_scalars(found.ours, found.theirs)


def _look_into(found: Difference, equality: Equality) -> Iterator[Difference]:
    if isinstance(found.ours, dict):
        return _look_into_objects(found)
    if isinstance(found.ours, Repeated):
        pairs = zip(found.ours, found.theirs, strict=True)
        return (Difference(found.place, one, other) for one, other in pairs)
    if equality.unordered:
        return _look_into_multisets(found, equality)
    return _look_into_arrays(found, equality)


def _look_into_objects(found: Difference) -> Iterator[Difference]:
    ours, theirs = found.ours, found.theirs
    for key in theirs:
        yield Difference(Place(found.place, key), ours.get(key, ABSENT), theirs[key])
    for key in ours:
        if key not in theirs:
            yield Difference(Place(found.place, key), ours[key], ABSENT)


def _look_into_arrays(found: Difference, equality: Equality) -> Iterator[Difference]:
    ours, theirs = found.ours, found.theirs
    for one, other in _align(ours, theirs, equality):
        place = position_of(theirs, other or 0) if one is None else position_of(ours, one)
        yield Difference(
            Place(found.place, place),
            ABSENT if one is None else ours[one],
            ABSENT if other is None else theirs[other],
        )


def _look_into_multisets(found: Difference, equality: Equality) -> Iterator[Difference]:
    ours, theirs = found.ours, found.theirs
    if len(ours) == len(theirs) == 1:
        yield Difference(Place(found.place, position_of(ours, 0)), ours[0], theirs[0])
        return
    alone = equality.match(ours, theirs)
    for one, other in _pair_alike([ours[at] for at in alone.ours], [theirs[at] for at in alone.theirs], equality):
        position = position_of(theirs, alone.theirs[other or 0]) if one is None else position_of(ours, alone.ours[one])
        yield Difference(
            Place(found.place, position),
            ABSENT if one is None else ours[alone.ours[one]],
            ABSENT if other is None else theirs[alone.theirs[other]],
        )


def _align(ours: list[Json], theirs: list[Json], equality: Equality) -> Iterator[tuple[int | None, int | None]]:
    """Pair the items of two arrays: by position, and where their lengths differ so that as much as possible is equal."""
    shorter = min(len(ours), len(theirs))
    if len(ours) == len(theirs):
        yield from ((at, at) for at in range(shorter))
        return
    start = next((at for at in range(shorter) if not equality.is_equal(ours[at], theirs[at])), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if not equality.is_equal(ours[-1 - at], theirs[-1 - at])), rest)
    our_rest, their_rest = range(start, len(ours) - end), range(start, len(theirs) - end)
    matcher = SequenceMatcher(
        None,
        [equality.digest(theirs[at]) for at in their_rest[:_MOST_ALIGNED]],
        [equality.digest(ours[at]) for at in our_rest[:_MOST_ALIGNED]],
        autojunk=max(len(our_rest), len(their_rest)) > _MOST_ALIGNED_WHOLE,
    )
    for tag, low, high, our_low, our_high in matcher.get_opcodes():
        if tag != "equal":
            yield from _pair_by_position(our_rest[our_low:our_high], their_rest[low:high])
    yield from _pair_by_position(our_rest[_MOST_ALIGNED:], their_rest[_MOST_ALIGNED:])


def _pair_by_position(ours: range, theirs: range) -> Iterator[tuple[int | None, int | None]]:
    for at in range(max(len(ours), len(theirs))):
        yield ours[at] if at < len(ours) else None, theirs[at] if at < len(theirs) else None


def _pair_alike(ours: list[Json], theirs: list[Json], equality: Equality) -> Iterator[tuple[int | None, int | None]]:
    """Pair what is alike, so that what changed in it can be seen: two that are left over, or objects half equal."""
    if len(ours) == len(theirs) == 1 and kind_of(ours[0]) == kind_of(theirs[0]):
        yield 0, 0
        return
    free = dict.fromkeys(range(len(ours)))
    for other, value in enumerate(theirs):
        likeness = {one: _likeness(ours[one], value, equality) for one in islice(free, _MOST_TRIED)}
        most = max(likeness, key=likeness.__getitem__, default=None)
        if most is not None and likeness[most] >= 0.5:
            del free[most]
            yield most, other
        else:
            yield None, other
    yield from ((one, None) for one in free)


def _likeness(ours: Json, theirs: Json, equality: Equality) -> float:
    """Give the share of an object's members that are equal in another."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or not theirs:
        return 0.0
    return sum(key in ours and equality.is_equal(ours[key], value) for key, value in theirs.items()) / len(theirs)
