"""What the rules of redaction share: which names and values are secrets, and what a rule is.

A name promises a secret (`DB_PASSWORD`, `apiKey`, `client-secret`) or not (`max_tokens`, `tokenizer`, `public_key`). A value
that is a reference, a placeholder, a number or nothing is not a secret: `password: ${DB_PASSWORD}` tells a reader where to
look, and hiding it would hide the mistake. A rule is a pattern, its replacement, and keywords: a text without them is
skipped. Each pattern has a bounded length or consumes a whole run of characters before it decides, so no text makes it slow.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return an object that acts as a compiled pattern but is compiled on first use: most texts need few of the patterns."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._given)
        # From now on they are found without this method.
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


_METHODS = ("match", "fullmatch", "search", "sub", "finditer", "findall", "split")


_WORD_OF_NAME = compile_late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT_ALNUM = compile_late(r"[^a-z0-9]+")

_ENDINGS = word_set("""
    password passwords passwd passphrase passcode secret secrets token credential credentials authorization pwd
""")
_KEY_KINDS = word_set("""
    access account api app application auth client consumer crypt deploy encryption fernet function functions hmac
    jwt license master private secret service session shared signing ssh storage subscription webhook
""")
_SECRET_ENDINGS = (*_ENDINGS, *(f"{kind}{key}" for kind in _KEY_KINDS for key in ("key", "keys")))
_PASS_OWNERS = word_set("""
    admin api auth db database email ftp http imap ldap login mail mysql pg postgres proxy redis root sftp smtp ssh
    sudo user vault
""")
# Words after the telling one that leave a value secret: PASSWORD_2, TOKEN_PROD, SECRET_KEY_BASE.
_NEUTRAL_TAILS = word_set("""
    base base64 b64 current dev encoded new old plain plaintext prod production raw stage staging string test text v
    value
""")
_COUNTERS = word_set("""
    count has is max maximum min minimum n no num number per require requires total use uses
""")
_FOLDER_VARIABLES = frozenset({"PWD", "OLDPWD"})


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a key, variable, header or option of this name holds a secret."""
    if name in _FOLDER_VARIABLES:
        return False
    words = [word.lower() for word in _WORD_OF_NAME.findall(name)]
    while len(words) > 1 and (words[-1] in _NEUTRAL_TAILS or words[-1].isdigit()):
        words.pop()
    if not words or words[0] in _COUNTERS or "public" in words:
        return False
    return "".join(words).endswith(_SECRET_ENDINGS) or _is_pass(words)


@lru_cache(maxsize=4096)
def is_weak_name(name: str) -> bool:
    """Tell whether a name holds a secret only when its value looks like one (`pass` is also a word of test reports)."""
    return name.endswith("_AUTH") or _NOT_ALNUM.sub("", name.lower()) == "pass"


def is_authorization_name(name: str) -> bool:
    """Tell whether a name is that of an HTTP header whose value starts with a scheme."""
    return name.lower().endswith("authorization")


def _is_pass(words: list[str]) -> bool:
    if words[-1] == "pat":
        return len(words) > 1
    return words[-1] == "pass" and len(words) > 1 and words[-2] in _PASS_OWNERS


MARK = "[REDACTED]"
"""Replaces a secret; plain enough for JSON text, XML and URLs."""

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

# The first characters of all forms; most values begin with another one, which is a quick test.
_FIRST_SIGNS = frozenset("$%{<!*.[RxXEoegpscakrvldmi")
NUMBER = compile_late(r"[+-]?\d[\d,._]*+(?:[eE][+-]?\d{1,4})?%?")
_NOTHING = word_set("""
    null none nil true false yes no on off undefined n/a nan str string int integer float bool boolean bytes text
    optional required inherit secretstr
""")
_LONGEST_NOTHING = max(map(len, _NOTHING))
_LOOKS_RANDOM = compile_late(r"[0-9]|[^A-Za-z0-9\s]|[a-z][A-Z]")


def is_reference(value: str) -> bool:
    """Tell whether a whole value is a reference, a placeholder or already a mark."""
    stripped = value.strip()
    return stripped[:1] in _FIRST_SIGNS and REFERENCE.fullmatch(stripped) is not None


def starts_reference(text: str, position: int) -> bool:
    """Tell whether a reference, a placeholder or a mark begins at this position, with nothing stuck to its end."""
    return text[position : position + 1] in _FIRST_SIGNS and REFERENCE.match(text, position) is not None


def is_nothing(value: str) -> bool:
    """Tell whether a value means nothing (null, true, the name of a type) or is a few punctuation marks."""
    stripped = value.strip()
    if len(stripped) > _LONGEST_NOTHING:
        return False
    return stripped.lower() in _NOTHING or (len(stripped) < 4 and not any(sign.isalnum() for sign in stripped))


def looks_random(value: str) -> bool:
    """Tell whether a value is more than plain words."""
    return _LOOKS_RANDOM.search(value) is not None


QUOTE = r"\\{0,7}[\"']"
"""A quotation mark, also of JSON text inside JSON text."""
BREAK = r"(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)"
"""The end of a line, also as JSON writes it."""
WORD = r"(?:(?<![\w.\-])|(?<=\\[nrt])|(?<=[\d\[]m))"
"""The start of a word, also behind the n of a JSON text's \\n and behind the end of a colour."""
TO_QUOTE = r"(?:[^\\\"'\n]|\\{8,}+|\\(?!\\{0,6}[\"'])[^\n])++"
"""The text in quotation marks, up to the next one."""


def mark_value(match: re.Match[str], group: str = "value") -> str:
    """Return the match with the mark in place of a group, or of everything but its group `keep`."""
    groups = match.re.groupindex
    if group not in groups:
        return (match["keep"] if "keep" in groups else "") + MARK
    value = match[group]
    if value is None or is_reference(value) or is_nothing(value):
        return match[0]
    return match[0][: match.start(group) - match.start()] + MARK + match[0][match.end(group) - match.start() :]


Hit = TypeVar("Hit")


def replace_hits(text: str, hits: Iterable[tuple[int, Hit]], find: Callable[[Hit], tuple[int, int, str] | None]) -> str:
    """Replace what `find` gives for each hit: start, end, and the new text.

    A hit comes with its place. One inside what is already replaced is passed over, so the time is linear.
    """
    pieces: list[str] = []
    done = 0
    for place, hit in hits:
        if place >= done and (found := find(hit)) is not None:
            pieces += (text[done : found[0]], found[2])
            done = found[1]
    return "".join((*pieces, text[done:])) if pieces else text


class Rule(NamedTuple):
    """A pattern that can only match a text with one of its keywords, and one of `needs` if there are any, in whatever case.

    Every match has a keyword `offset` characters after its start, so only these places are tried; None tries all.
    """

    keywords: tuple[str, ...]
    pattern: str
    replace: Callable[[re.Match[str]], str] = mark_value
    offset: int | None = 0
    needs: tuple[str, ...] = ()


def apply_rules(rules: Iterable[Rule], text: str, lowered: str, absent: set[int]) -> str:
    """Return the text with all matches of the rules replaced.

    Args:
        rules: applied in this order.
        text: what to redact.
        lowered: the same text in lower case.
        absent: the ids of rules whose keywords the text does not contain; more are added. A mark adds no keyword, so these
            rules need not be tried when the text comes again with more marks.
    """
    for rule in rules:
        if id(rule) in absent:
            continue
        present = [keyword for keyword in _lower_all(rule.keywords) if keyword in lowered]
        if not present or (rule.needs and not any(word in lowered for word in _lower_all(rule.needs))):
            if "[" not in rule.keywords:
                absent.add(id(rule))
            continue
        before = text
        if rule.offset is None:
            text = compile_once(rule.pattern).sub(rule.replace, before)
        else:
            text = _replace_at(sorted(_places(present, lowered)), rule, before)
        if text != before:
            lowered = lower_each(text)
    return text


@cache
def _lower_all(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.lower() for word in words))


#: Compile a pattern on first use.
compile_once = cache(re.compile)


def lower_each(text: str) -> str:
    """Return the text in lower case and of the same length; U+0130 is the one character that would grow."""
    return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def list_keywords(rules: Iterable[Rule]) -> frozenset[str]:
    """Return keywords in lower case: a text without any of them has no match for these rules."""
    return frozenset(keyword.lower() for rule in rules for keyword in rule.needs or rule.keywords)


def _places(keywords: Iterable[str], text: str) -> Iterator[int]:
    for keyword in keywords:
        place = text.find(keyword)
        while place >= 0:
            yield place
            place = text.find(keyword, place + 1)


def _replace_at(places: Iterable[int], rule: Rule, text: str) -> str:
    def find(start: int) -> tuple[int, int, str] | None:
        found = compile_once(rule.pattern).match(text, start)
        return (start, found.end(), rule.replace(found)) if found else None

    starts = (place - (rule.offset or 0) for place in places)
    return replace_hits(text, ((start, start) for start in starts), find)
