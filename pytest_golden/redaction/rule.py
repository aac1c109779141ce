"""A rule for text: a pattern, what stands for what it finds, and the words without one of which it cannot find anything.

A pattern either has a bounded length or consumes a whole run of characters before it decides, so no text makes it slow.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction.references import MARK, is_nothing, is_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

QUOTE = r"\\{0,7}[\"']"
"""A quotation mark, also one in JSON text inside JSON text."""
BREAK = r"(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
"""The end of a line, also as JSON writes it."""
WORD = r"(?:(?<![\w.\-])|(?<=\\[nrt])|(?<=[\d\[]m))"
"""The start of a word, also behind the n of a JSON text's \\n and behind the end of a colour."""
TO_QUOTE = r"(?:[^\\\"'\n]|\\{8,}+|\\(?!\\{0,6}[\"'])[^\n])++"
"""What stands in quotation marks, up to the next one."""


def mark_value(match: re.Match[str]) -> str:
    """Give what was found with the mark for its group `value`, or for all but its group `keep`."""
    groups = match.re.groupindex
    if "value" not in groups:
        return (match["keep"] if "keep" in groups else "") + MARK
    value = match["value"]
    if value is None or is_reference(value) or is_nothing(value):
        return match[0]
    return match[0][: match.start("value") - match.start()] + MARK + match[0][match.end("value") - match.start() :]


class Rule(NamedTuple):
    """A pattern with the keywords without one of which it cannot match; `ignores_case` asks the lowered text for them.

    With `offset` every match has a keyword so many characters after its beginning: then nothing else is looked at.
    One of `needs` must be there too.
    """

    keywords: tuple[str, ...]
    pattern: str
    replace: Callable[[re.Match[str]], str] = mark_value
    ignores_case: bool = False
    offset: int | None = None
    needs: tuple[str, ...] = ()


def apply_rules(rules: Iterable[Rule], text: str, lowered: str, absent: set[int]) -> str:
    """Give the text with what the rules find replaced.

    Args:
        rules: one after another.
        text: what to redact.
        lowered: the same text in lower case.
        absent: the rules without any of whose keywords it is; those found to be so are added. A mark makes no keyword, so
            that they need no further look when the text comes again with more marks in it.
    """
    for rule in rules:
        if id(rule) in absent:
            continue
        haystack = lowered if rule.ignores_case else text
        present = [keyword for keyword in rule.keywords if keyword in haystack]
        if not present or (rule.needs and not any(word in haystack for word in rule.needs)):
            if "[" not in rule.keywords:
                absent.add(id(rule))
            continue
        before = text
        if rule.offset is None:
            text = compile_once(rule.pattern).sub(rule.replace, before)
        else:
            text = _replace_at(sorted(_places(present, haystack)), rule, before)
        if text != before:
            lowered = lower_each(text)
    return text


@cache
def compile_once(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: most texts need few, and whoever starts a program waits for all."""
    return re.compile(pattern)


def lower_each(text: str) -> str:
    """Give the text in lower case and of the same length; U+0130 is the one character that would grow."""
    return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def list_keywords(rules: Iterable[Rule]) -> frozenset[str]:
    """Give in lower case what a text holds at least one of, when there is anything for these rules in it."""
    return frozenset(keyword.lower() for rule in rules for keyword in rule.needs or rule.keywords)


def _places(keywords: Iterable[str], text: str) -> Iterator[int]:
    for keyword in keywords:
        place = text.find(keyword)
        while place >= 0:
            yield place
            place = text.find(keyword, place + 1)


def _replace_at(places: Iterable[int], rule: Rule, text: str) -> str:
    pieces: list[str] = []
    done = 0
    pattern = compile_once(rule.pattern)
    for place in places:
        start = place - (rule.offset or 0)
        if start >= done and (found := pattern.match(text, start)):
            pieces += (text[done:start], rule.replace(found))
            done = found.end()
    return "".join((*pieces, text[done:])) if pieces else text
