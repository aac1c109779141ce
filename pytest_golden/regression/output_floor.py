"""The floor of what a pipeline writes: outputs, the rules they are compared by, and their baselines. Pure.

Outputs of the base and of the head belong together by their `path`; what asks for as much or more is nothing.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from pytest_golden.manifest.comparisons import comparison_of_pattern
from pytest_golden.redaction import redact
from pytest_golden.regression.unexpected import is_named
from pytest_golden.regression.weakening import Weakening, WeakeningKind
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig
    from pytest_golden.regression.weakening import ChangedBaseline

_MOST_NAMED = 10
_ALL = "all of them (a submodule)"
_BY_SUFFIX = "by suffix"
# How much a comparison sees. Where each file's suffix decides, it may be any of those between.
_STRENGTH = {"exists": 0, "image_size": 1, "table": 2, "json": 2, _BY_SUFFIX: 2, "text": 3, "bytes": 4}
_LISTS = ("ignore_lines", "masks", "ignore_paths", "ignore_columns")
_SWITCHES = ("unordered", "schema_only")
_TOLERANCES = ("absolute_tolerance", "relative_tolerance")
_LEAST = ("min_rows", "min_bytes")
_MOST = ("max_rows", "max_bytes")


def find_weaker_outputs(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    """Compare the outputs of one project, in the order of the base."""
    then, now = _by_path(old.outputs), _by_path(new.outputs)
    for path, outputs in then.items():
        for was, becomes in zip_longest(outputs, now.get(path, ())):
            if becomes is None:
                yield _weaker(new.name, path, "is no output any more: bring it back", path, None)
            elif was is not None:
                yield from _compare(new.name, was, becomes)
    yield from _find_allowed_files(old, new)


def find_changed_baselines(old: GoldenProjectConfig, changed: Iterable[ChangedBaseline]) -> Iterator[Weakening]:
    """Say which of the changed baselines an output of the base was compared with."""
    patterns = [output.path for output in old.outputs if output.compare != "exists"]
    for is_gone in (False, True):
        paths = [
            show_path(redact(baseline.path)) or _ALL
            for baseline in changed
            if baseline.is_gone == is_gone and any(_covers(pattern, baseline.path) for pattern in patterns)
        ]
        if not paths:
            continue
        named = ", ".join(paths[:_MOST_NAMED])
        more = len(paths) - _MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        count = "baseline was" if len(paths) == 1 else f"{len(paths)} baselines were"
        message = f"{count} {'removed' if is_gone else 'changed'}: {named}{rest}"
        yield Weakening(old.name, WeakeningKind.BASELINE, message)


def _covers(pattern: str, path: str) -> bool:
    return not path or is_named(path, pattern)


def _by_path(outputs: Sequence[DeclaredOutput]) -> dict[str, list[DeclaredOutput]]:
    groups: dict[str, list[DeclaredOutput]] = {}
    for output in outputs:
        groups.setdefault(output.path, []).append(output)
    return groups


def _find_allowed_files(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    """Find new outputs that only let files be there which were unexpected."""
    if old.unexpected_files == "allow":
        return
    known = {output.path for output in old.outputs}
    added = [output.path for output in new.outputs if output.compare == "exists" and output.path not in known]
    if added:
        message = f"outputs gained {', '.join(added)} (compare: exists)"
        yield Weakening(new.name, WeakeningKind.UNEXPECTED_FILES, message, head=", ".join(added))


def _compare(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    was, now = _comparison(old), _comparison(new)
    if was == now:
        yield from _loosened_ranges(name, old, new)
        if set(old.key) != set(new.key):
            before, after = ", ".join(old.key) or "none", ", ".join(new.key) or "none"
            yield _weaker(name, old.path, f"key changed from {before} to {after}", before, after)
    elif _is_weaker(was, now):
        yield _weaker(name, old.path, f"compare was weakened from {was} to {now}", was, now)
    elif was == "exists" or now == "bytes":
        return
    yield from _gained_exceptions(name, old, new)
    yield from _raised_tolerances(name, old, new)


def _comparison(output: DeclaredOutput) -> str:
    return output.compare or comparison_of_pattern(output.path) or _BY_SUFFIX


def _is_weaker(was: str, now: str) -> bool:
    # A file that the suffix decides on may have been compared byte by byte.
    return _STRENGTH[now] <= _STRENGTH["bytes" if was == _BY_SUFFIX and now != "bytes" else was]


def _gained_exceptions(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    for rule in _LISTS:
        gained = [redact(item) for item in getattr(new, rule) if item not in getattr(old, rule)]
        if gained:
            yield _weaker(name, old.path, f"{rule} gained {', '.join(gained)}", None, ", ".join(gained))
    for rule in _SWITCHES:
        if getattr(new, rule) and not getattr(old, rule):
            yield _weaker(name, old.path, f"{rule} was switched on", "false", "true")


def _raised_tolerances(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    for rule in _TOLERANCES:
        was, now = getattr(old, rule), getattr(new, rule)
        if now > was:
            message = f"{rule} was raised from {was:g} to {now:g}"
            yield _weaker(name, old.path, message, f"{was:g}", f"{now:g}", WeakeningKind.TOLERANCE)


def _loosened_ranges(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    yield from _moved_bounds(name, old, new, _LEAST, lambda was, now: now < was)
    yield from _moved_bounds(name, old, new, _MOST, lambda was, now: now > was)


def _moved_bounds(
    name: str, old: DeclaredOutput, new: DeclaredOutput, rules: tuple[str, ...], is_wider: Callable[[int, int], bool]
) -> Iterator[Weakening]:
    for rule in rules:
        was, now = getattr(old, rule), getattr(new, rule)
        if was is not None and (now is None or is_wider(was, now)):
            after = "none" if now is None else str(now)
            yield _weaker(name, old.path, f"{rule} was widened from {was} to {after}", str(was), after)


def _weaker(
    name: str, path: str, what: str, base: str | None, head: str | None, kind: WeakeningKind = WeakeningKind.OUTPUT
) -> Weakening:
    return Weakening(name, kind, f"the output {redact(path)}: {what}", base, head)
