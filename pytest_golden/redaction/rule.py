"""Patterns that are compiled when they are first used: most texts need few, and whoever starts a program waits for all.

What stands where a secret could stand and is none: references, placeholders, nothing, numbers.

`password: ${DB_PASSWORD}` tells a reader where to look; hiding it would hide the mistake and no secret.

A rule for text: a pattern, what stands for what it finds, and the words without one of which it cannot find anything.

A pattern either has a bounded length or consumes a whole run of characters before it decides, so no text makes it slow.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what does all that a compiled pattern does; it costs nothing until then, and once more a pattern's own time."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._given)
        # From now on they are found without this detour.
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


_METHODS = ("match", "fullmatch", "search", "sub", "finditer", "findall", "split")


MARK = "[REDACTED]"
"""What a secret is replaced by. Plain enough for JSON text, XML and URLs."""

_QUOTE = r"\\{0,3}[\"']"
_NAME_IN_QUOTES = rf"{_QUOTE}\w{{1,128}}{_QUOTE}"
_NO_DEFAULT = r"(?:,[ ]?(?:None|none|''|\"\"|\\\"\\\"))?"
_FORMS = (
    r"\$\{(?:env:)?[A-Za-z_][\w.]{0,128}(?::\?[^}\n]{0,100})?\}",
    r"\$\{\{[^{}\n]{0,200}\}\}",
    r"\$\([^()\n]{0,200}\)",
    r"\$env:\w{1,128}",
    r"\$[A-Z_][A-Z0-9_]{0,128}",
    r"\$[a-z_]{0,64}(?:password|passwd|passphrase|pass|secret|token|key|credentials?)",
    r"%[A-Za-z_]\w{0,128}%",
    r"%\(\w{1,128}\)s",
    r"%[sr]",
    rf"\{{\{{[^{{}},\n]{{0,200}}{_NO_DEFAULT}[ )]{{0,8}}\}}\}}",
    r"\{[A-Za-z_]?[\w.]{0,128}(?:![rsa])?(?::[^{}\n]{0,20})?\}",
    r"<[A-Za-z][\w .\-]{0,60}>",
    rf"(?:os\.)?environ\[{_NAME_IN_QUOTES}\]",
    rf"(?:os\.environ\.get|(?:os\.)?getenv|env_var|env)\({_NAME_IN_QUOTES}{_NO_DEFAULT}\)",
    rf"(?:ENV|process\.env)\[{_NAME_IN_QUOTES}\]",
    r"(?:self|cls|args|config|conf|cfg|settings|options|opts|params|kwargs|ctx|context|request|var|local|secrets|env|data"
    r"|module|inputs|process\.env)\.[A-Za-z_][\w.]{0,128}",
    r"!(?:env|ENV|secret|vault|Ref|Sub|GetAtt|ImportValue)[ ]{1,4}[\w.${}\-]{1,128}",
    r"(?:op|vault|gcp-sm|awssm|keyring)://[^\s\"']{1,256}",
    r"arn:aws[\w:/.+=@\-]{1,256}",
    r"\*{2,}",
    r"[xX]{3,}",
    r"\.{3,}",
    r"\[?REDACTED\]?",
)
REFERENCE = compile_late("(?:" + "|".join(_FORMS) + r")(?![\w\-+$!#%^*~(\[{])")
"""A reference or placeholder, with nothing secret stuck to its end. Every repetition is bounded."""

# What one of the forms begins with: most values are told from all of them by their first sign.
_FIRST_SIGNS = frozenset("$%{<!*.[RxXEoegpscakrvldmi")
NUMBER = compile_late(r"[+-]?\d[\d,._]*+(?:[eE][+-]?\d{1,4})?%?")
_NOTHING = frozenset(
    [
        "null",
        "none",
        "nil",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "undefined",
        "n/a",
        "nan",
        "str",
        "string",
        "int",
        "integer",
        "float",
        "bool",
        "boolean",
        "bytes",
        "text",
        "optional",
        "required",
        "inherit",
        "secretstr",
    ]
)
_LONGEST_NOTHING = max(map(len, _NOTHING))
_LOOKS_RANDOM = compile_late(r"[0-9]|[^A-Za-z0-9\s]|[a-z][A-Z]")


def is_reference(value: str) -> bool:
    """Tell whether a whole value is a reference, a placeholder or already a mark."""
    stripped = value.strip()
    return stripped[:1] in _FIRST_SIGNS and REFERENCE.fullmatch(stripped) is not None


def starts_reference(text: str, position: int) -> bool:
    """Tell whether a reference, a placeholder or a mark stands at this place of a text, with nothing stuck to its end."""
    return text[position : position + 1] in _FIRST_SIGNS and REFERENCE.match(text, position) is not None


def is_nothing(value: str) -> bool:
    """Tell whether a value says that there is nothing (null, true, a type's name) or is a few marks of punctuation."""
    stripped = value.strip()
    if len(stripped) > _LONGEST_NOTHING:
        return False
    return stripped.lower() in _NOTHING or (len(stripped) < 4 and not any(sign.isalnum() for sign in stripped))


def is_number(value: str) -> bool:
    """Tell whether a value is a number or a count."""
    return NUMBER.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Tell whether a value is more than plain words."""
    return _LOOKS_RANDOM.search(value) is not None


QUOTE = r"\\{0,7}[\"']"
"""A quotation mark, also one in JSON text inside JSON text."""
BREAK = r"(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
"""The end of a line, also as JSON writes it."""
WORD = r"(?:(?<![\w.\-])|(?<=\\[nrt])|(?<=[\d\[]m))"
"""The start of a word, also behind the n of a JSON text's \\n and behind the end of a colour."""
TO_QUOTE = r"(?:[^\\\"'\n]|\\{8,}+|\\(?!\\{0,6}[\"'])[^\n])++"
"""What stands in quotation marks, up to the next one."""


def mark_value(match: re.Match[str]) -> str:
    """Return what was found with the mark for its group `value`, or for all but its group `keep`."""
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
    """Return the text with what the rules find replaced.

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
    """Return the text in lower case and of the same length; U+0130 is the one character that would grow."""
    return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def list_keywords(rules: Iterable[Rule]) -> frozenset[str]:
    """Return in lower case what a text holds at least one of, when there is anything for these rules in it."""
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
