"""A document made ready to be compared: what does not count is taken out, and texts are masked. It is changed in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.manifest.json_paths import JsonStep, JsonStepKind, parse_json_path
from pytest_golden.regression.baselines.json_documents.values import Json, Repeated, Thinned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.regression.baselines.patterns import PatternProcess

    # How far each path has come on the way to a value: its steps, and how many of them lie behind.
    Progress = tuple[tuple[tuple[JsonStep, ...], int], ...]

_BATCH_LETTERS = 256 << 10


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
        if letters > _BATCH_LETTERS:
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
    """Give how far the paths have come at a member or item; None when one of them names it."""
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
