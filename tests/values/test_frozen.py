from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.values.frozen import FrozenDict, FrozenList

if TYPE_CHECKING:
    from collections.abc import Callable

WAYS_TO_WRITE_A_DICT: list[Callable[[Any], Any]] = [
    lambda kept: kept.__setitem__("a", 2),
    lambda kept: kept.__delitem__("a"),
    lambda kept: kept.update(a=2),
    lambda kept: kept.setdefault("b", 2),
    lambda kept: kept.pop("a"),
    lambda kept: kept.popitem(),
    lambda kept: kept.clear(),
    lambda kept: kept.__ior__({"b": 2}),
    lambda kept: kept.__setstate__({"b": 2}),
]
WAYS_TO_WRITE_A_LIST: list[Callable[[Any], Any]] = [
    lambda kept: kept.__setitem__(0, 2),
    lambda kept: kept.__delitem__(0),
    lambda kept: kept.append(2),
    lambda kept: kept.extend([2]),
    lambda kept: kept.insert(0, 2),
    lambda kept: kept.pop(),
    lambda kept: kept.remove(1),
    lambda kept: kept.clear(),
    lambda kept: kept.reverse(),
    lambda kept: kept.sort(),
    lambda kept: kept.__iadd__([2]),
    lambda kept: kept.__imul__(2),
    lambda kept: kept.__setstate__([2]),
]


@pytest.mark.parametrize("write", WAYS_TO_WRITE_A_DICT)
def test_a_kept_dict_refuses_to_be_written(write: Callable[[Any], Any]) -> None:
    kept = FrozenDict(a=1)
    with pytest.raises(TypeError, match="a kept dict cannot be written; make a copy"):
        write(kept)
    assert kept == {"a": 1}


@pytest.mark.parametrize("write", WAYS_TO_WRITE_A_LIST)
def test_a_kept_list_refuses_to_be_written(write: Callable[[Any], Any]) -> None:
    kept = FrozenList([1])
    with pytest.raises(TypeError, match="a kept list cannot be written; make a copy"):
        write(kept)
    assert kept == [1]


def test_kept_values_travel_and_stay_what_they_are() -> None:
    kept = FrozenDict(a=FrozenList([1]))
    for travelled in (pickle.loads(pickle.dumps(kept)), copy.deepcopy(kept), copy.copy(kept)):
        assert travelled == {"a": [1]}
        assert (type(travelled), type(travelled["a"])) == (FrozenDict, FrozenList)
    assert json.dumps(kept) == '{"a": [1]}'


def test_a_copy_by_its_own_method_may_be_written() -> None:
    writable = FrozenDict(a=1).copy()
    writable["a"] = 2
    assert writable == {"a": 2}
