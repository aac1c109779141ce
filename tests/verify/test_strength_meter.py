"""The score of a project, and its bounds."""

from __future__ import annotations

import pytest

from pytest_golden.verify.mutants import Mutant
from pytest_golden.verify.strength_meter import Noticed, ProjectStrength, TriedMutant


def tried(*found: Noticed) -> ProjectStrength:
    mutant = Mutant("1", "a.py", 1, "constant", "1", "2")
    return ProjectStrength("orders", ("a.py",), 99, tuple(TriedMutant(mutant, one, "why") for one in found))


@pytest.mark.parametrize(
    ("found", "score"),
    [
        ((), None),
        ((Noticed.SAME, Noticed.INVALID, Noticed.UNCLEAR), None),
        ((Noticed.CAUGHT,), 100),
        ((Noticed.SURVIVED, Noticed.SAME), 0),
        ((Noticed.CAUGHT, Noticed.CAUGHT, Noticed.SURVIVED, Noticed.INVALID), 66),
    ],
)
def test_score_is_the_share_of_what_made_a_difference(found: tuple[Noticed, ...], score: int | None) -> None:
    strength = tried(*found)
    assert strength.score == score
    if score is None:
        assert strength.interval is None
    else:
        low, high = strength.interval or (0, 0)
        assert 0 <= low <= score <= high <= 100
        assert high - low > 50
    assert ProjectStrength.from_dict(strength.to_dict()) == strength


def test_bounds_are_closer_after_more_changes() -> None:
    few, many = (tried(*[Noticed.CAUGHT] * (8 * times), *[Noticed.SURVIVED] * (2 * times)) for times in (1, 20))
    assert few.score == many.score == 80
    assert few.interval is not None
    assert many.interval is not None
    assert few.interval[0] < many.interval[0] < 80 < many.interval[1] < few.interval[1]
