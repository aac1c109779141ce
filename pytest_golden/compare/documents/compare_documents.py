"""Compares two JSON documents by value, and writes how they differ, by path.

Before that, ignored parts are taken out and texts are masked, in place.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pytest_golden.compare.documents.document_values import (
    Equality,
    Json,
    Repeated,
    Thinned,
    difference_of,
    is_container,
    is_number,
    is_same,
    kind_of,
    make_object,
    position_of,
    read_number,
    write_number,
)
from pytest_golden.compare.opening import Mismatch, Side, UnreadableError, read_chunks
from pytest_golden.compare.showing import LONGEST_REDACTED, compose, cut, cut_middle, cut_pair, show
from pytest_golden.compare.text_patterns import PatternProcess
from pytest_golden.manifest.units import JsonStep, JsonStepKind, parse_json_path
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.compare.opening import Content
    from pytest_golden.compare.showing import Redact
    from pytest_golden.manifest.model import DeclaredOutput

    Progress = tuple[tuple[tuple[JsonStep, ...], int], ...]


#: A document is held whole, as values that take ten times its size.
MOST_BYTES = 128 << 20
_DECODER_HOOKS: dict[str, Any] = {
    "object_pairs_hook": make_object,
    "parse_int": str.encode,
    "parse_float": str.encode,
    # NaN and the infinities, which are not JSON but common.
    "parse_constant": str.encode,
}
_BATCH_CHARACTERS = 256 << 10
_MOST_SHOWN = 20
_MOST_COUNTED = 100_000

# What differs between two arrays of other lengths is looked for in this many items at most.
_MOST_ALIGNED = 5000
# In longer arrays, items that occur often do not help to align, and cost much.
_MOST_ALIGNED_WHOLE = 400
# An item without a partner is compared with so many others, to find one that is alike.
_MOST_TRIED = 50

_PLAIN_NAME = re.compile(r"""[^\s.\[\]*'"]+""")
_LONGEST_PATH = 100
_LONGEST_VALUE = 80
_DEEPEST_SHOWN = 3
_MOST_MEMBERS = 12
_SIX_DIGITS = Context(prec=6, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def compare_json(
    declared: DeclaredOutput, actual: Content, baseline: Content, *, shown_as: str, redact: Redact
) -> Mismatch | None:
    """Compare two JSON documents by `ignore_paths`, `masks`, `unordered` and the tolerances.

    Raises:
        UnreadableError: one of them cannot be read, or is not JSON.
        PatternTimedOutError: a mask backtracks without end.
    """
    with PatternProcess(masks=declared.masks) as patterns:
        ours, theirs = (_read(content, declared, patterns) for content in (actual, baseline))
    # The shortest text of a float is what the manifest says.
    absolute, relative = (Decimal(str(part)) for part in (declared.absolute_tolerance, declared.relative_tolerance))
    equality = Equality(unordered=declared.unordered, absolute=absolute, relative=relative)
    try:
        message = _describe(ours, theirs, equality, shown_as, redact)
    except RecursionError:
        raise UnreadableError(Side.OUTPUT, "nests too deep to be compared by value; declare `compare: text`") from None
    return None if message is None else Mismatch(ReasonKind.OUTPUT_DIFFERS, message)


def _read(content: Content, declared: DeclaredOutput, patterns: PatternProcess) -> Json:
    parts, size = [], 0
    for chunk in read_chunks(content):
        parts.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            raise UnreadableError(content.side, "is more than 128 MiB of JSON, too much to be compared by value")
    try:
        document = parse_json(b"".join(parts))
    except ValueError as error:
        raise UnreadableError(content.side, f"is not JSON: {error}") from None
    document = take_out(document, declared.ignore_paths)
    return mask_document(document, patterns) if declared.masks else document


def parse_json(raw: bytes) -> Json:
    """Read a document.

    Raises:
        ValueError: it is not JSON, or nests deeper than the interpreter can follow; the message says why and where.
    """
    try:
        text = raw.decode(json.detect_encoding(raw), "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start:,} is not {error.encoding}") from None
    try:
        return json.loads(text, **_DECODER_HOOKS)
    except RecursionError:
        raise ValueError("it nests too deep; declare `compare: text` to compare it line by line") from None
    except json.JSONDecodeError as error:
        raise ValueError(_describe_error(error, text)) from None


def _describe_error(error: json.JSONDecodeError, text: str) -> str:
    message = f"line {error.lineno:,} column {error.colno:,}: {error.msg}"
    if error.msg == "Extra data" and error.pos < len(text):
        return f"{message} after the document; JSON Lines are compared with `compare: table`"
    return message


def take_out(document: Json, paths: Iterable[str]) -> Json:
    """Take out what the paths name; an item's position in its array stays known."""
    start = tuple((parse_json_path(path), 0) for path in paths)
    if not start:
        return document
    root = [document]
    todo: list[tuple[Json, Json, Progress]] = [(root, 0, start)]
    while todo:
        holder, place, progress = todo.pop()
        value = holder[place]
        if isinstance(value, dict):
            todo.extend(_thin_object(value, progress))
        elif isinstance(value, Repeated):
            todo.extend((value, index, progress) for index in range(len(value)))
        elif isinstance(value, list):
            holder[place], further = _thin_array(value, progress)
            todo.extend(further)
    return root[0]


def mask_document(document: Json, patterns: PatternProcess) -> Json:
    """Mask all texts of a document but the keys of its objects.

    Raises:
        PatternTimedOutError: a pattern backtracks without end.
    """
    root = [document]
    places: list[tuple[Json, Json]] = []
    letters = 0
    for holder, place in _find_texts(root):
        places.append((holder, place))
        letters += len(holder[place])
        if letters > _BATCH_CHARACTERS:
            _mask_places(places, patterns)
            places, letters = [], 0
    _mask_places(places, patterns)
    return root[0]


def _thin_object(value: dict[str, Json], progress: Progress) -> Iterator[tuple[Json, Json, Progress]]:
    for key in tuple(value):
        further = _advance(progress, key, None)
        if further is None:
            del value[key]
        elif further:
            yield value, key, further


def _thin_array(value: list[Json], progress: Progress) -> tuple[Json, list[tuple[Json, Json, Progress]]]:
    kept, positions, ways = [], [], []
    for position, item in enumerate(value):
        further = _advance(progress, None, position)
        if further is not None:
            kept.append(item)
            positions.append(position)
            ways.append(further)
    thinned = value if len(kept) == len(value) else Thinned(kept, positions)
    return thinned, [(thinned, index, further) for index, further in enumerate(ways) if further]


def _advance(progress: Progress, key: str | None, position: int | None) -> Progress | None:
    """Return how far the paths have come at a member or item; None when one of them names it."""
    further = []
    for steps, behind in progress:
        step = steps[behind]
        if step.kind is JsonStepKind.ANYWHERE:
            further.append((steps, behind))
        if _fits(step, key, position):
            if behind + 1 == len(steps):
                return None
            further.append((steps, behind + 1))
    return tuple(further)


def _fits(step: JsonStep, key: str | None, position: int | None) -> bool:
    if step.kind is JsonStepKind.EVERY:
        return True
    if step.kind is JsonStepKind.INDEX:
        return position == step.position
    return key == step.name


def _find_texts(root: list[Json]) -> Iterator[tuple[Json, Json]]:
    todo: list[Json] = [root]
    while todo:
        holder = todo.pop()
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for place, value in pairs:
            if isinstance(value, str):
                yield holder, place
            elif isinstance(value, dict | list):
                todo.append(value)


def _mask_places(places: Sequence[tuple[Json, Json]], patterns: PatternProcess) -> None:
    masked = patterns.mask_texts([holder[place] for holder, place in places])
    for (holder, place), text in zip(places, masked, strict=True):
        holder[place] = text


def _describe(ours: Json, theirs: Json, equality: Equality, shown_as: str, redact: Redact) -> str | None:
    lines: list[str] = []
    count = 0
    for found in find_differences(ours, theirs, equality):
        count += 1
        if count <= _MOST_SHOWN:
            lines.append(write_difference(found, equality, redact))
        elif count > _MOST_COUNTED:
            break
    if not count:
        return None
    if count > _MOST_SHOWN:
        lines.append(f"[... {_count(count - _MOST_SHOWN)} more ...]")
    return compose(
        f"{shown_as} differs from its baseline in {_count(count)} {'place' if count == 1 else 'places'} (baseline -> output)",
        lines,
    )


def _count(number: int) -> str:
    return f"{number:,}" if number <= _MOST_COUNTED - _MOST_SHOWN else f"more than {_MOST_COUNTED - _MOST_SHOWN:,}"


#: Stands for the value of a side that has none.
ABSENT: Final = object()


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
    """Yield the innermost differences between an output and its baseline, in the baseline's order, without recursion.

    A place is that in the output where the output has one.
    """
    if is_same(ours, theirs):
        return
    todo: list[Iterator[Difference]] = [iter([Difference(None, ours, theirs)])]
    while todo:
        found = next(todo[-1], None)
        if found is None:
            todo.pop()
        elif not (is_container(found.ours) and kind_of(found.ours) == kind_of(found.theirs)):
            sides = (found.ours, found.theirs)
            is_one_container = any(side is ABSENT or is_container(side) for side in sides)
            if is_one_container or not equality.has_equal_scalars(*sides):
                yield found
        elif isinstance(found.ours, Repeated) and len(found.ours) != len(found.theirs):
            yield found
        else:
            todo.append(_look_into(found, equality))


def _look_into(found: Difference, equality: Equality) -> Iterator[Difference]:
    if isinstance(found.ours, dict):
        return _look_into_objects(found)
    if isinstance(found.ours, Repeated):
        pairs = zip(found.ours, found.theirs, strict=True)
        return (Difference(found.place, one, other) for one, other in pairs)
    return _look_into_arrays(found, equality)


def _look_into_objects(found: Difference) -> Iterator[Difference]:
    ours, theirs = found.ours, found.theirs
    for key, value in theirs.items():
        mine = ours.get(key, ABSENT)
        if not is_same(mine, value):
            yield Difference(Place(found.place, key), mine, value)
    for key in ours:
        if key not in theirs:
            yield Difference(Place(found.place, key), ours[key], ABSENT)


def _look_into_arrays(found: Difference, equality: Equality) -> Iterator[Difference]:
    ours, theirs = found.ours, found.theirs
    if not equality.unordered:
        pairs = _align(ours, theirs, equality)
    elif len(ours) == len(theirs) == 1:
        pairs = iter([(0, 0)])
    else:
        pairs = _pair_alike(ours, theirs, equality)
    for one, other in pairs:
        if one is not None and other is not None and is_same(ours[one], theirs[other]):
            continue
        position = position_of(theirs, other or 0) if one is None else position_of(ours, one)
        yield Difference(
            Place(found.place, position),
            ABSENT if one is None else ours[one],
            ABSENT if other is None else theirs[other],
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
    """Pair what has no equal but is alike, so that what changed in it can be seen: the last two, or objects half equal."""
    alone = equality.match(ours, theirs)
    if len(alone.ours) == len(alone.theirs) == 1:
        ((one,), (other,)) = alone
        if kind_of(ours[one]) == kind_of(theirs[other]):
            yield one, other
            return
    free = dict.fromkeys(alone.ours)
    for other in alone.theirs:
        likeness = {one: _likeness(ours[one], theirs[other], equality) for one in islice(free, _MOST_TRIED)}
        most = max(likeness, key=likeness.__getitem__, default=None)
        if most is not None and likeness[most] >= 0.5:
            del free[most]
            yield most, other
        else:
            yield None, other
    yield from ((one, None) for one in free)


def _likeness(ours: Json, theirs: Json, equality: Equality) -> float:
    """Return the share of an object's members that are equal in another."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or not theirs:
        return 0.0
    return sum(key in ours and equality.is_equal(ours[key], value) for key, value in theirs.items()) / len(theirs)


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
    """Write the path to a place as `ignore_paths` takes it, `$` for the whole document."""
    return "$" + "".join(reversed([write_path_step(step) for step in _walk_up(place)]))


def _walk_up(place: Place | None) -> Iterator[str | int]:
    while place is not None:
        yield place.step
        place = place.before


def _write_value(value: Json, place: Place | None, redact: Redact) -> str:
    """Write a value as JSON, as far as one line and three levels go; its key can tell that it is a secret."""
    if value is ABSENT:
        return ""
    names = list(islice((step for step in _walk_up(place) if isinstance(step, str)), 1))
    before = "".join(f"{{{_quote(name)}: " for name in names)
    probe = f"{before}{_write(value, 0)}{'}' * len(names)}"
    redacted = redact(probe)
    if redacted.startswith(before):
        return redacted[len(before) : len(redacted) - len(names)]
    return redacted


def write_path_step(step: str | int) -> str:
    """Write one step of a JSON path: `[3]`, `.name`, or a quoted name."""
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
    return "null" if value is None else value.decode()


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{show(escaped)}"'


def _remark(found: Difference, equality: Equality) -> str:
    kinds = kind_of(found.ours), kind_of(found.theirs)
    if kinds[0] != kinds[1]:
        return f"  ({kinds[1]} became {kinds[0]})"
    if not is_number(found.ours) or equality.is_exact:
        return ""
    one, other = read_number(found.ours), read_number(found.theirs)
    if one is None or other is None or not (one.is_finite() and other.is_finite()):
        return ""
    off, allowed = difference_of(one, other), equality.allowed_difference(one, other)
    return f"  (off by {_round(off)}, allowed {_round(allowed)})"


def _round(number: Decimal) -> str:
    return write_number(_SIX_DIGITS.plus(number))
