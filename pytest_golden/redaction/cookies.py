"""Cookies that sign somebody in: `Set-Cookie: session=...`. Which theme or language is liked stays.

Source of the form: RFC 6265, sections 4.1 and 4.2.
"""

from __future__ import annotations

import re

from pytest_golden.redaction.late import compile_late
from pytest_golden.redaction.references import MARK, is_reference

_HEADER = compile_late(
    r"""(?i:(?:(?<![A-Za-z])|(?<=\\[nrt])|(?<=[\d\[]m))cookies?)(?:\\{0,7}["'])?[ ]?[:=,][ ]?(?:(?P<mapping>\{)\s{0,32}+(?:\\{0,7}["'])?|(?:\\{0,7}["'])?)(?=[^\s])"""
)
# A header ends with its line or with the text that it is in, a mapping with its brace.
_HEADER_REST = compile_late(r"""[^\n}"'\\]{1,8192}+""")
_MAPPING_REST = compile_late(r"[^}]{1,8192}+")
_PAIR = compile_late(
    r"""(?P<name>[\w.\-]{1,64}+)(?:\\{0,7}["'])?(?:=|:[ ]?)(?:\\{0,7}["'])?(?P<value>[^\s;,"'\\{}]{1,4096}+)"""
)
_TELLING = compile_late(r"sess|sid$|token|auth|jwt|csrf|xsrf|login|identity|credential")
_ATTRIBUTES = frozenset({"path", "domain", "expires", "max-age", "samesite"})
_SHORTEST = 8
_SHORTEST_UNNAMED = 24

#: What a text in lower case holds at least one of, when there is anything for these rules in it.
COOKIE_KEYWORDS = frozenset({"cookie"})


def redact_cookies(text: str, lowered: str) -> str:
    """Replace what signs somebody in by the mark; `lowered` is the same text in lower case."""
    if "cookie" not in lowered:
        return text
    pieces: list[str] = []
    done = 0
    for header in _HEADER.finditer(text):
        if header.end() >= done and (
            rest := (_MAPPING_REST if header["mapping"] else _HEADER_REST).match(text, header.end())
        ):
            pieces += (text[done : rest.start()], redact_cookie_pairs(rest[0]))
            done = rest.end()
    return "".join((*pieces, text[done:])) if pieces else text


def redact_cookie_pairs(text: str) -> str:
    """Give the value of a cookie header without what signs somebody in."""
    return _PAIR.sub(_mark, text)


def is_cookie_name(name: str) -> bool:
    """Tell whether a key or header of this name holds cookies."""
    return name.lower().endswith(("cookie", "cookies"))


def is_signing_in(name: str, value: str) -> bool:
    """Tell whether a cookie of this name signs somebody in: by its name, or a long value of letters and digits."""
    lowered = name.lower()
    if lowered in _ATTRIBUTES or is_reference(value):
        return False
    if _TELLING.search(lowered):
        return len(value) >= _SHORTEST and not value.isalpha()
    return len(value) >= _SHORTEST_UNNAMED and re.search(r"[0-9]", value) is not None and value.isascii()


def _mark(match: re.Match[str]) -> str:
    if not is_signing_in(match["name"], match["value"]):
        return match[0]
    return match[0][: match.start("value") - match.start()] + MARK
