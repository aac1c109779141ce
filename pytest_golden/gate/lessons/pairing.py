"""Which results of a project belong together: a failure and the pass that ended it, a pass and the failure that broke it. Pure.

A store holds the runs of many branches and machines. Two results are related when the later one goes on from the earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.learning.signature import cause_of, error_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_golden.gate.lessons.model import Point

    #: Tells whether the first commit has the second in its past.
    Descends = Callable[[str, str], bool]


def find_turned(point: Point, earlier: Sequence[Point], descends: Descends) -> Point | None:
    """Find the result that ended otherwise right before this one; None where a related one of the same ending lies between.

    Args:
        point: a result that counts.
        earlier: the project's results before it, newest first.
        descends: asks git.
    """
    before = (one for one in earlier if one.counts and is_related(point, one, descends))
    last = next(before, None)
    return last if last is not None and last.has_passed != point.has_passed else None


def is_chance(failed: Point, passed: Point, earlier: Iterable[Point]) -> bool:
    """Tell whether the failure came and went by itself: a retry helped, or it had passed on the same before."""
    return passed.is_flaky or passed.is_as(failed) or any(one.has_passed and one.is_as(failed) for one in earlier)


def find_ending(shown: Point, later: Iterable[Point], descends: Descends) -> Point | None:
    """Find what followed a failure: a pass, or the same failure again; None as long as neither came."""
    related = (one for one in later if one.counts and is_related(one, shown, descends))
    return next((one for one in related if one.has_passed or _sign(one) == _sign(shown)), None)


def is_repeat(shown: Point, earlier: Iterable[Point]) -> bool:
    """Tell whether a failure was only run again, newest first: the same one on the same, so that nobody tried anything."""
    last = next((one for one in earlier if one.counts), None)
    return last is not None and not last.has_passed and _sign(last) == _sign(shown) and last.is_as(shown)


def is_related(later: Point, earlier: Point, descends: Descends) -> bool:
    """Tell whether a result goes on from an earlier one: the same branch, or a commit that has the other in its past.

    Outside git, it is the same folder.
    """
    if later.commit is None or earlier.commit is None:
        return later.commit == earlier.commit and later.workspace_root == earlier.workspace_root
    is_same_branch = later.branch is not None and later.branch == earlier.branch
    return is_same_branch or descends(later.commit, earlier.commit)


def _sign(point: Point) -> str:
    return error_signature(cause_of(point.message or ""))
