from __future__ import annotations

import pytest

from pytest_golden.journal.closed_trees_store import Limit, Member, may_go

OLD, YOUNG = Member("old", 1, "a", 100), Member("young", 9, "a", 900)
OPEN, FOREIGN = Member("open", 2, "a", None), Member("foreign", 2, "b", 100)

CASES = {
    "old": ((OLD,), Limit(500), True),
    "at the limit": ((OLD,), Limit(100), True),
    "young": ((YOUNG,), Limit(500), False),
    "too many": ((OLD,), Limit(last_number=1), True),
    "among the newest": ((YOUNG,), Limit(last_number=8), False),
    "either limit": ((OLD,), Limit(50, 1), True),
    "young below old": ((OLD, YOUNG), Limit(500, 8), False),
    "open below old": ((OLD, OPEN), Limit(500, 8), False),
    "another's below": ((OLD, FOREIGN), Limit(500, 8), False),
    "no limit": ((OLD,), Limit(), False),
}


@pytest.mark.parametrize(("tree", "limit", "goes"), CASES.values(), ids=CASES)
def test_a_tree_goes_as_a_whole_or_stays(tree: tuple[Member, ...], limit: Limit, goes: bool) -> None:
    assert may_go(tree, limit, ()) is goes


def test_what_is_needed_stays() -> None:
    assert not may_go((OLD,), Limit(500), {"old"})
