"""The JSON form that follows from a dataclass's fields, and the way back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Literal

import pytest

from pytest_golden.values.json_form import FrozenDict, FrozenList, json_form
from pytest_golden.values.shape import Amount, Count, Shape, VersionedShape, form, in_form, list_parts

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Part(Shape):
    name: str
    colour: Colour = Colour.RED


@dataclass(frozen=True, slots=True)
class Note:
    """A dataclass that is not a shape."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Shape):
    """Everything at once."""

    id: str
    at: datetime
    ended: datetime | None = None
    count: Count = 0
    seconds: Amount | None = None
    is_good: bool = True
    parts: tuple[Part, ...] = ()
    notes: tuple[Note, ...] = ()
    words: frozenset[str] = frozenset()
    by_name: Mapping[str, Part] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=FrozenDict)
    kind: Literal["a", "b"] = "a"
    either: str | tuple[str, ...] = "auto"
    anything: Any = field(default=None, metadata=form(write=json_form))
    days: tuple[date, ...] = ()
    where: PurePosixPath | None = None
    path: str | None = field(default=None, metadata=form(unless_none=True, about="Where it is."))
    status: str = field(default="open", metadata=form(key="state"))
    secret: str = field(default="", metadata=form(hidden=True))
    _own: int = 0

    @property
    @in_form(key="is_closed")
    def closed(self) -> bool:
        """Tell whether it is closed."""
        return self.status == "closed"


@dataclass(frozen=True, slots=True)
class Listed(Shape):
    whole: Part = field(metadata=form(merged=True))
    agent: str | None


@dataclass(frozen=True, slots=True)
class Kept(VersionedShape):
    text: str


FULL = Whole(
    id="w",
    at=AT,
    ended=AT,
    count=3,
    seconds=1.5,
    parts=(Part("p", Colour.BLUE),),
    notes=(Note("n"),),
    words=frozenset({"b", "a"}),
    by_name={"p": Part("q")},
    data=FrozenDict(a=FrozenList([1, FrozenDict()]), b=None),
    either=("x", "y"),
    path="a.csv",
    status="closed",
    secret="s",
)
WRITTEN = {
    "id": "w",
    "at": "2026-01-31T12:00:00.000000Z",
    "ended": "2026-01-31T12:00:00.000000Z",
    "count": 3,
    "seconds": 1.5,
    "is_good": True,
    "parts": [{"name": "p", "colour": "blue"}],
    "notes": [{"text": "n"}],
    "words": ["a", "b"],
    "by_name": {"p": {"name": "q", "colour": "red"}},
    "data": {"a": [1, {}], "b": None},
    "kind": "a",
    "either": ["x", "y"],
    "anything": None,
    "days": [],
    "where": None,
    "path": "a.csv",
    "state": "closed",
    "is_closed": True,
}


def test_form_has_every_field_in_order() -> None:
    assert json.dumps(FULL.to_dict()) == json.dumps(WRITTEN)


def test_values_of_other_classes_are_written_as_text() -> None:
    told = Whole(id="w", at=AT, days=(date(2026, 1, 2),), where=PurePosixPath("a/b"), anything={1, AT}).to_dict()
    assert (told["days"], told["where"]) == (["2026-01-02"], "a/b")
    assert told["anything"] == json_form({1, AT})
    assert "path" not in told


def test_every_word_is_plain_text_in_the_form() -> None:
    told = Whole(id=Colour.RED, at=AT).to_dict()  # a word where text is declared
    assert type(told["id"]) is str
    assert type(Part("p", Colour.BLUE).to_dict()["colour"]) is str


def test_value_is_read_back() -> None:
    again = Whole.from_dict({**json.loads(json.dumps(WRITTEN)), "unknown": 1})
    assert (again.secret, again.status) == ("", "closed")
    assert again.parts == FULL.parts
    assert (again.words, again.by_name, again.at, again.notes) == (FULL.words, FULL.by_name, AT, FULL.notes)


def test_what_is_absent_has_its_default() -> None:
    assert Whole.from_dict({"id": "w", "at": "2026-01-31T12:00:00Z"}) == Whole(id="w", at=AT)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": None}, "id must be text, not None"),
        ({"count": True}, "count must be a whole number, not True"),
        ({"count": 1.5}, "count must be a whole number, not 1.5"),
        ({"seconds": "1"}, "seconds must be a number, not '1'"),
        ({"is_good": 1}, "is_good must be true or false, not 1"),
        ({"at": "yesterday"}, "at must be ISO-8601 text"),
        ({"parts": "p"}, "parts must be a list, not 'p'"),
        ({"parts": [{"name": "p"}, 5]}, "parts[1]: a part must be a mapping (a dict), not 5"),
        ({"parts": [{"colour": "red"}]}, "parts[0]: name is missing"),
        ({"parts": [{"name": "p", "colour": "green"}]}, "parts[0]: colour 'green' is unknown: give one of red, blue"),
        ({"by_name": [1]}, "by_name must be a mapping"),
        ({"by_name": {"p": {}}}, "by_name.p: name is missing"),
        ({"words": [1]}, "words[0] must be text, not 1"),
        ({"state": 5}, "state must be text"),
    ],
)
def test_wrong_value_is_refused_with_its_place(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="^" + told.replace("[", r"\[").replace("(", r"\(").replace(")", r"\)")):
        Whole.from_dict({"id": "w", "at": "2026-01-31T12:00:00Z", **change})


def test_missing_key_and_foreign_value_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^at is missing$"):
        Whole.from_dict({"id": "w"})
    with pytest.raises(ValueError, match=r"^a whole must be a mapping \(a dict\), not \[\]$"):
        Whole.from_dict([])  # type: ignore[arg-type]


def test_merged_value_stands_beside_the_other_keys() -> None:
    listed = Listed(Part("p"), "ada")
    assert listed.to_dict() == {"name": "p", "colour": "red", "agent": "ada"}
    assert Listed.from_dict(listed.to_dict()) == listed


def test_version_comes_first_and_a_newer_one_is_refused() -> None:
    assert list(Kept("t").to_dict()) == ["schema_version", "text"]
    assert Kept.from_dict({"text": "t"}) == Kept.from_dict({"schema_version": 1, "text": "t"}) == Kept("t")
    for version in (2, "1", True, None):
        with pytest.raises(ValueError, match=r"schema_version .* is not known here: at most 1; upgrade"):
            Kept.from_dict({"schema_version": version, "text": "t"})
    with pytest.raises(ValueError, match="a kept must be a mapping"):
        Kept.from_dict(None)  # type: ignore[arg-type]


def test_parts_tell_where_they_come_from() -> None:
    parts = {part.key: part for part in list_parts(Whole)}
    assert parts["state"].name == "status"
    assert parts["path"].rule.about == "Where it is."
    assert not parts["is_closed"].is_field
    assert "secret" not in parts
