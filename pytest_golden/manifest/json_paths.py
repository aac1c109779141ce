"""JSON paths such as `$.a.b`, `$.rows[0]`, `$.rows[*].at` and `$..generated_at`, taken apart. What they find is elsewhere."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from pytest_golden.manifest.unquoted import show

LONGEST_PATH: Final = 1000
_STEP = re.compile(
    r"""\.\.(?P<anywhere>[^\s.\[\]*'"]+)
    |\.(?P<member>[^\s.\[\]*'"]+)
    |\[(?P<index>[0-9]{1,15})\]
    |(?P<every>\[\*\]|\.\*)
    |\['(?P<single>(?:[^'\\]|\\.)+)'\]
    |\["(?P<double>(?:[^"\\]|\\.)+)"\]""",
    re.VERBOSE,
)
_FORMS = "write $ and then .name, ['a name'], [0], [*] or ..name, such as $.rows[*].updated_at"


class JsonStepKind(StrEnum):
    """What one step of a JSON path goes into."""

    MEMBER = "member"
    INDEX = "index"
    EVERY = "every"
    ANYWHERE = "anywhere"


class JsonStep(NamedTuple):
    """One step: the member `name`, the item at `position` from 0, every member or item, or members `name` at any depth."""

    kind: JsonStepKind
    name: str = ""
    position: int = -1


@lru_cache(maxsize=1024)
def parse_json_path(text: str) -> tuple[JsonStep, ...]:
    """Take a JSON path apart; there is one step at least.

    `..name` finds members of that name in what the steps before it give, itself included, and in all that lies below.

    Raises:
        ValueError: it is no such path, or names the whole document.
    """
    if not text.startswith("$"):
        raise _wrong(text, f"does not begin with $; {_FORMS}")
    if text == "$":
        raise _wrong(text, "names the whole document; name a part of it, or write compare: exists")
    if len(text) > LONGEST_PATH:
        raise _wrong(text, f"is longer than {LONGEST_PATH} characters; shorten it")
    steps: list[JsonStep] = []
    place = 1
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise _wrong(text, f"cannot be read from character {place + 1} on ({text[place : place + 20]!r}); {_FORMS}")
        steps.append(_read_step(match))
        place = match.end()
    return tuple(steps)


def _read_step(match: re.Match[str]) -> JsonStep:
    kind, text = str(match.lastgroup), str(match[str(match.lastgroup)])
    if kind == "index":
        return JsonStep(JsonStepKind.INDEX, position=int(text))
    if kind == "every":
        return JsonStep(JsonStepKind.EVERY)
    if kind == "anywhere":
        return JsonStep(JsonStepKind.ANYWHERE, text)
    return JsonStep(JsonStepKind.MEMBER, text if kind == "member" else re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL))


def _wrong(text: str, what: str) -> ValueError:
    return ValueError(f"the JSON path {show(text)} {what}")
