"""Whether a lesson is worth keeping: sure enough, of use beyond one task, and something that one can act on. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.learning.lessons.specifics import find_specifics
from pytest_golden.storage.words import STOP_WORDS, find_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.learning.lessons.model import SkillMemory

LEAST_CONFIDENCE = 0.7
MOST_CHARACTERS = 800
_LEAST_WORDS = 3
_MOST_NAMED, _MOST_OF_NAMED = 3, 60
_QUOTED = re.compile(r"`[^`\s][^`]*`")
# Advice of these words alone, and of those that no search looks for, tells nobody what to do.
_VAGUE_WORDS = """
about account actually after again alright always another any anything approach approaches appropriate
appropriately attempt attempts attention aware bad been before best better both broken bug bugs can cant care
careful carefully carry cause caution cautious change check checking checks clear clearly code consider correct
correctly could debug debugging different do docs documentation does doesn doing don done dont double each easy
effort ensure error errors every everything exact exactly expect expected fail failed failing fails failure
failures find first fix fixed fixes fixing follow follows forget general get gets give given go goes good guess
guideline guidelines handle handled handling happen happens hard he help here idea if important instead
instruction instructions isn issue issues just keep keeps know known last later learn least less lesson lessons
let like look looking make makes making may maybe me mind mistake mistakes more most much must my need needed
needs never new next nothing ok okay once one only other others our out over patient pay perhaps persist plan
please possible practice practices prepared problem problems proceed proper properly quality quick quickly re read
ready really reliable remember repeat resolve rest result results retry review right run running same second see
should shouldn simple simply slow slowly so solution solutions solve solved some something sometimes soon specific
step steps still stop strategy succeed succeeds success successful successfully suitable sure task tasks test
tested testing tests them thing things think thorough thoroughly through time times too tool tools tried try
trying twice understand until up us use used useful uses using usually valid validate verify very want watch way
ways we well while whole wise without won work worked working works worse worst would wrong your
"""
_VAGUE = frozenset(_VAGUE_WORDS.split())


def check_lesson(skill: SkillMemory) -> tuple[str, ...]:
    """Give the reasons to refuse a lesson; none when it is good.

    It must be sure enough (0.7), neither empty nor long, general (no path, id, date, time or address in `lesson`), and
    more than a platitude. What its other fields say is not judged: they tell of the case it was learned from.
    """
    return tuple(_find_reasons(skill))


def _find_reasons(skill: SkillMemory) -> Iterator[str]:
    if skill.confidence < LEAST_CONFIDENCE:
        yield f"its confidence is {skill.confidence:g}, below {LEAST_CONFIDENCE:g}"
    text = skill.lesson.strip()
    words = find_words(text[: MOST_CHARACTERS * 2], keep_all=True)
    if not words:
        yield "it is empty"
        return
    if len(text) > MOST_CHARACTERS:
        yield f"it has {len(text):,} characters, and at most {MOST_CHARACTERS} are read where it is shown"
    if len(words) < _LEAST_WORDS:
        yield f"it is too short to act on: {text!r:.60}"
    elif is_platitude(text):
        yield "it says nothing to act on"
    yield from _name_specifics(text)


def is_platitude(text: str) -> bool:
    """Tell whether advice has no word that says what to do, or with what; what stands in backticks does."""
    return _QUOTED.search(text) is None and all(
        word in _VAGUE or word in STOP_WORDS or (len(word) == 1 and word.isascii()) for word in find_words(text)
    )


def _name_specifics(text: str) -> Iterator[str]:
    found = find_specifics(text)
    if found:
        named = ", ".join(f"{one.kind} {text[one.start : one.end]:.{_MOST_OF_NAMED}}" for one in found[:_MOST_NAMED])
        yield f"it is about one task alone: {named}"
