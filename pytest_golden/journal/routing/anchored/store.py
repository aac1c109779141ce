"""The expectations that are kept under the anchors of a signal's words. Each function works on an open connection.

A file is asked anchor by anchor, as far as anybody wants to know; a server about all of them at once, with whatever else is
asked of it.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Text, bindparam, literal_column, or_, select, true

from pytest_golden.journal.hints import anchors_of
from pytest_golden.storage.listed import list_numbers
from pytest_golden.storage.prepared import Prepared, Question, ask, is_near
from pytest_golden.storage.schema import expectations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Select

    from pytest_golden.journal.hints import Words

# How many resolved expectations under one anchor are looked at, the newest first.
_LOOK_BACK = 25
# Of the open ones under an anchor a server gives so many at once: mostly there is one, and it fits.
_FIRST_OPEN = 4
# A file is asked first which of more anchors than this lead anywhere.
_FEW_ANCHORS = 48
#: What a candidate is made of.
COLUMNS = (
    expectations.c.id,
    expectations.c.number,
    expectations.c.entry_id,
    expectations.c.agent_id,
    expectations.c.session_key,
    expectations.c.status,
    expectations.c.match_hint,
    expectations.c.created_at,
    expectations.c.expires_at,
)
#: Written out, so that the index of the open ones is known to hold them all.
IS_OPEN = expectations.c.status == literal_column("'open'")
HAS_SHAPE = expectations.c.hint_shape.is_not(None)
IS_THE_AGENT = expectations.c.agent_id == bindparam("the_agent", type_=Text())
NEAREST_FIRST = (expectations.c.hint_rank, expectations.c.number)
_GIVEN = list_numbers("the_anchors")
_AT_GIVEN: Select[Any] = select(literal_column("1")).where(expectations.c.hint_anchor == _GIVEN)
_USED_ANCHORS = Prepared(
    select(_GIVEN.label("anchor")).where(or_(_AT_GIVEN.where(HAS_SHAPE).exists(), _AT_GIVEN.where(IS_OPEN).exists()))
)
_OPEN = select(*COLUMNS).where(IS_OPEN).order_by(*NEAREST_FIRST)
_ANY = select(*COLUMNS).where(HAS_SHAPE).order_by(expectations.c.number.desc()).limit(_LOOK_BACK)


def _at_one(chosen: Select[Any]) -> Prepared:
    return Prepared(chosen.where(expectations.c.hint_anchor == bindparam("the_anchor", type_=BigInteger())))


def _at_each(chosen: Select[Any]) -> Prepared:
    """Make a statement that gives the first few under each anchor; the anchor stands behind the other columns."""
    found = chosen.where(expectations.c.hint_anchor == _GIVEN).lateral()
    return Prepared(select(*found.c, _GIVEN.label("anchor")).join(found, true()))


# By whether one agent is asked or all are: the open ones, and the newest of any status.
_AT_ONE = {
    is_of_agent: tuple(_at_one(chosen.where(IS_THE_AGENT) if is_of_agent else chosen) for chosen in (_OPEN, _ANY))
    for is_of_agent in (True, False)
}
_AT_EACH = {
    is_of_agent: tuple(
        _at_each(chosen.where(IS_THE_AGENT) if is_of_agent else chosen) for chosen in (_OPEN.limit(_FIRST_OPEN), _ANY)
    )
    for is_of_agent in (True, False)
}


def ask_at_anchors(words: Words, names: Mapping[str, Any], *, near: bool) -> list[Question]:
    """Ask what `find_at_anchors` wants to know of expectations with these words; `names` has the agent's, if one is asked."""
    given = {"the_anchors": json.dumps(list(dict.fromkeys(anchors_of(words))))}
    if near:
        return [Question(_USED_ANCHORS, given)]
    return [Question(statement, {**names, **given}) for statement in _AT_EACH["the_agent" in names]]


def find_at_anchors(
    connection: Connection, words: Words, names: Mapping[str, Any], answers: Sequence[Iterator[Any]] = ()
) -> Iterator[tuple[bool, Iterator[Any]]]:
    """Give the rows under each anchor: the open ones, the nearest expiry first, and then the newest of any status.

    Each comes with whether it is the open ones. `answers` are those to `ask_at_anchors`, where that was asked before.
    """
    near = is_near(connection)
    answers = answers or ask(connection, *ask_at_anchors(words, names, near=near))
    open_ones, any_ones = _AT_ONE["the_agent" in names]
    if near:
        anchors = list(dict.fromkeys(anchors_of(words)))
        if len(anchors) > _FEW_ANCHORS:
            anchors = [row[0] for row in answers[0]]
        for anchor in anchors:
            at_anchor = {**names, "the_anchor": anchor}
            yield True, open_ones.stream(connection, at_anchor)
            yield False, iter(any_ones.run(connection, at_anchor))
        return
    for anchor, rows in groupby(answers[0], key=_read_anchor):
        yield True, _go_on(connection, open_ones, {**names, "the_anchor": anchor}, [row[:-1] for row in rows])
    yield False, (row[:-1] for row in answers[1])


def _read_anchor(row: Sequence[Any]) -> int:
    return int(row[-1])


def _go_on(connection: Connection, statement: Prepared, names: Mapping[str, Any], rows: Sequence[Any]) -> Iterator[Any]:
    yield from rows
    if len(rows) == _FIRST_OPEN:
        # From the beginning: whoever wants more has let the first ones go, and does so again.
        yield from statement.stream(connection, names)
