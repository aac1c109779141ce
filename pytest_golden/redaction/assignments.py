"""Find secrets by the name before them: `KEY=value`, `key: value`, `"key": "value"`, `--password value`, `<password>`.

The text is searched for the stems of secret names. Only what surrounds a stem is examined, and each piece of text is
consumed at most once, so the time is linear for every text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_golden.redaction import rule
from pytest_golden.redaction.rule import MARK, compile_late

# What may follow or precede some stems tells at once that no secret is named: `tokens: 3`, `tokenizer`, `primary_key`.
_STEMS = {
    "pass": "pass",
    "pwd": "pwd",
    "secret": "secret",
    "token": r"token(?!s[^a-z]|iz)",
    "key": r"key(?:(?<=[sthirncedgkpy]key)|(?<=[sthirncedgkpy][_\-. ]key))",
    "_auth": r"_auth(?![a-z])",
    "_pat": r"_pat(?![a-z])",
    "credential": "credential",
    "authorization": "authorization",
}
#: These rules change no text that contains none of these in lower case.
ASSIGNMENT_KEYWORDS = frozenset(_STEMS)
# A value that is already the mark is skipped.
_FOLLOWED = (
    r"""(?=[\w.\-]{0,48}+(?:\\{0,7}["'`]\]?|\])?+[ \t]{0,16}+[:=>%"']"""
    r"""(?!(?<=[:=])[ \t]{0,16}+(?:"\[redacted\]"|'\[redacted\]'|\[redacted\](?=[\s,;<)\]}]|$))))"""
)
_NAME_REACH = 64
_NAME_SIGNS = compile_late(r"[\w.\-]*+")
# The value of REDISCLI_AUTH, not that of a constant or an expression in code.
_LOGIN = compile_late(r"(?!0x)(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[^\s()\[\]]{6,}+")
# The value of X_PAT, a personal access token; with other values it is the name of a pattern.
_ACCESS_TOKEN = compile_late(r"(?=\D*\d)[\w.\-]{20,}+")
# Names of secrets and of files that hold them.
_FILE_TOO = ("credential", "credentials", "pwd")
# Passwords may be all digits; the digits of a token are a count.
_PASSWORDS = ("passw", "pwd", "passphrase", "passcode")
# ODBC's password. It is the shell's folder too, whose value is a path.
_ODBC_PASSWORD = "PWD"

_HEAD = compile_late(
    r"""
    [\w.\-]{0,48}+                                   # the rest of the name
    (?:\\{0,7}["'`]\]?|\])?                          # the end of a quoted key
    (?:
        [ \t]{0,16}+
        (?P<sep> :[ ]?(?:str|bytes|SecretStr|Optional\[\w+\])(?:[ ]\|[ ]None)?[ ]?=(?!=) | := | => | ={1,3} | : | %3[AaDd] )
        [ \t]{0,16}+
      | (?P<element> > )
      | (?P<gap> [ \t]{1,16}+ )(?=["'])
    )
    """,
    re.VERBOSE,
)
_OPTION = compile_late(r"(?P<name>-(?<![\w\-]-)-?[A-Za-z][\w\-]{0,64}+)(?P<gap>[ \t]{1,8}+)(?=[^\s\-])")
# In a list each argument has its own quotation marks; what a colon follows is the next key of a mapping.
_LISTED_OPTION = compile_late(
    r"""(?P<quote>\\{0,7}["'])(?P<name>--?[A-Za-z][\w\-]{0,64}+)(?P=quote)(?P<gap>,\s{0,32}+(?=(?P=quote)[^\-]))"""
)
_KEY_END = compile_late(r"""\\{0,7}["']\s{0,8}:""")
_QUOTED = compile_late(
    r"""[bBrRuUfF]{0,2}(?:"(?P<double>(?:[^"\\\n]|\\[^\n])*+)|'(?P<single>(?:[^'\\\n]|\\[^\n])*+))"""
)
_ESCAPED_QUOTED = compile_late(
    r"""(?P<open>\\{1,7}["'])(?P<body>(?:[^\\"'\n]|\\{8,}+|(?!(?P=open))\\++["']?|["'])*+)"""
)
_LIST = compile_late(
    r"""\[\s{0,16}+"(?P<body>(?:[^"\\\n]|\\[^\n])*+(?:"\s{0,16}+,\s{0,16}+"(?:[^"\\\n]|\\[^\n])*+)*+)"\s{0,16}+\]"""
)
_SINGLE_LIST = compile_late(
    r"""\[\s{0,16}+'(?P<body>(?:[^'\\\n]|\\[^\n])*+(?:'\s{0,16}+,\s{0,16}+'(?:[^'\\\n]|\\[^\n])*+)*+)'\s{0,16}+\]"""
)
_ESCAPED_BLOCK = compile_late(
    r"""[|>][0-9+\-]{0,2}[ \t]*+(?P<break>\\{1,7}n)(?P<indent>[ \t]++)(?P<body>(?:(?!(?P=break))[^\n"])++"""
    r"""(?:(?P=break)(?P=indent)(?:(?!(?P=break))[^\n"])++)*+)"""
)
_BLOCK = compile_late(r"[|>][0-9+\-]{0,2}[ \t]*+\r?\n(?P<indent>[ \t]++)(?P<body>\S[^\n]*+(?:\n(?P=indent)[^\n]*+)*+)")
# Which of them can begin with a sign.
_FORMS = {
    **dict.fromkeys("\"'bBrRuUfF", (_QUOTED,)),
    "\\": (_ESCAPED_QUOTED,),
    "[": (_LIST, _SINGLE_LIST),
    **dict.fromkeys("|>", (_BLOCK, _ESCAPED_BLOCK)),
}
_ELEMENT = compile_late(r"(?P<body>[^<\s][^<]*+)(?=</)")
_CHUNK = compile_late(r"""(?:[^\s"'`,;&\\]|\\\\|\\u[0-9a-fA-F]{4}|\\(?![nrtbfu"'\\]))++""")
_BLANK = compile_late(r"\s|\x1b\[0?m(?=\s|$)")
_LINE_END = compile_late(r"\n|\x1b\[0?m(?=\n|$)")
_COLOURS_END = compile_late(r"(?:\x1b\[[\d;]{0,16}m)$")
_ESCAPED_BREAK = compile_late(r"\\{2,7}[nrt]")
_SCHEME = compile_late(r"(?:[A-Z][\w\-]{1,30}|token|bearer|basic)[ ]{1,4}(?=\S)")
_PARAMETERS = compile_late(
    r"""[\w\-]{1,32}+=(?:\\{0,7}"[^"\\\n]*+\\{0,7}"|[^\s"',\\]++)(?:,[ ]?[\w\-]{1,32}+=(?:\\{0,7}"[^"\\\n]*+\\{0,7}"|[^\s"',\\]++))*+"""
)
_ENCODED_END = compile_late(r"%(?:3[Bb]|26)")
_BRACED = compile_late(r"\{(?P<body>(?![A-Za-z_.]*(?:[!:][^{}]*)?\})[^{}\n\"']{1,256}+)\}(?=;|$|[\"'\s\\])")
_REST = compile_late(r"[ \t]#[^\n]*+$|;(?=[A-Za-z][\w ]{0,40}=)[^\n]*+$")
_LINE_START = compile_late(r"[ \t]*+(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+|env[ \t]+)?")
_PROSE_NEXT = compile_late(r"[ ][A-Za-z]")
_PARSER_SPEAK = compile_late(r"(?i)(?:unexpected|expected|missing|unknown|each|per|next|first|last|current)[ ]$")
_CLOSERS = {")": "(", "]": "[", "}": "{", ">": "<"}

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Span = tuple[int, int]


def redact_assignments(text: str, lowered: str) -> str:
    """Replace the values of secret names with the mark.

    Args:
        text: what to redact.
        lowered: the same text in lower case, of the same length.
    """
    stems = tuple(stem for stem in _STEMS if stem in lowered)
    if not stems:
        return text
    named = _mark_found(text, _stem_pattern(stems).finditer(lowered), _find_secret)
    if "-" not in named:
        return named
    listed = _mark_found(named, _LISTED_OPTION.finditer(named), _find_argument)
    return _mark_found(listed, _OPTION.finditer(listed), _find_argument)


def find_secret_part(name: str, value: str) -> Span | None:
    """Return where the secret lies in the whole value of a secret name, or None when it holds none.

    The scheme of an authorization header stays.
    """
    if rule.is_nothing(value) or rule.is_reference(value):
        return None
    lowered = name.lower()
    if (
        (rule.is_weak_name(name) and not rule.looks_random(value))
        or (name.endswith("_AUTH") and _LOGIN.fullmatch(value) is None)
        or (lowered.endswith("_pat") and _ACCESS_TOKEN.fullmatch(value) is None)
        or (lowered.endswith(_FILE_TOO) and _is_path(value))
    ):
        return None
    scheme = _SCHEME.match(value) if rule.is_authorization_name(name) else None
    start = scheme.end() if scheme else 0
    return None if rule.is_reference(value[start:]) else (start, len(value))


@lru_cache(maxsize=4_096)
def holds_secret(name: str) -> bool:
    """Tell whether values under this name may be secret."""
    return rule.is_secret_name(name) or rule.is_weak_name(name) or name == _ODBC_PASSWORD


@lru_cache(maxsize=128)
def _stem_pattern(stems: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(_STEMS[stem] for stem in stems)}){_FOLLOWED}")


def _mark_found(text: str, hits: Iterator[re.Match[str]], find: Callable[[str, re.Match[str]], Span | None]) -> str:
    def mark(hit: re.Match[str]) -> tuple[int, int, str] | None:
        span = find(text, hit)
        return None if span is None else (*span, MARK)

    return rule.replace_hits(text, ((hit.start(), hit) for hit in hits), mark)


def _find_argument(text: str, option: re.Match[str]) -> Span | None:
    """Return the argument of an option with a secret name: `--password value`."""
    name = option["name"]
    span = _value_span(text, name, option.start("name"), option) if holds_secret(name) else None
    return None if span is None or _KEY_END.match(text, span[1]) else span


def _find_secret(text: str, stem: re.Match[str]) -> Span | None:
    stem_start, stem_end = stem.span()
    head = _HEAD.match(text, stem_end)
    if head is None:
        return None
    name_start = _name_start(text, stem_start)
    name = text[name_start : _name_end(text, stem_end)]
    if not holds_secret(name) and not _is_spaced_key(text, name_start, name):
        return None
    if _is_only_a_word(text, name, name_start, head):
        return None
    if head["element"] is not None:
        return _element_span(text, name_start, head.end())
    return _value_span(text, name, name_start, head)


def _is_only_a_word(text: str, name: str, name_start: int, head: re.Match[str]) -> bool:
    """Tell whether a secret name is a word of a sentence, a parser's error, a chain such as an ARN, or a shell's check."""
    if head["gap"] is not None:
        return name not in {"PASSWORD", "Password"}
    if head["sep"] == ":" and text.startswith("?", head.end()) and text.endswith("${", 0, name_start):
        return True
    if name.lower().endswith("token") and _PARSER_SPEAK.search(text, max(0, name_start - 16), name_start):
        return True
    return head["sep"] == ":" and head[0].endswith(":") and text[name_start - 1 : name_start] == ":"


def _name_start(text: str, position: int) -> int:
    before = text[max(0, position - _NAME_REACH) : position]
    start = position - len(_NAME_SIGNS.match(before[::-1])[0])  # type: ignore[index]  # it matches nothing, too
    # The n of a JSON text's \n is not part of the name.
    if start and text[start - 1] == "\\" and text[start] in "nrt":
        start += 1
    return min(start, position)


def _name_end(text: str, position: int) -> int:
    return _NAME_SIGNS.match(text, position, position + _NAME_REACH).end()  # type: ignore[union-attr]


def _is_spaced_key(text: str, name_start: int, name: str) -> bool:
    """Tell whether `key` is the end of `API key` and the like, written as two words."""
    before = re.search(r"[A-Za-z]{1,16} $", text[max(0, name_start - 17) : name_start])
    return (
        before is not None and name.lower() in {"key", "keys"} and rule.is_secret_name(before[0].strip() + "_" + name)
    )


def _element_span(text: str, name_start: int, value_start: int) -> Span | None:
    if not name_start or text[name_start - 1] != "<":
        return None
    body = _ELEMENT.match(text, value_start)
    return (
        body.span("body")
        if body and not rule.is_reference(body["body"]) and not rule.is_nothing(body["body"])
        else None
    )


def _value_span(text: str, name: str, name_start: int, head: re.Match[str]) -> Span | None:
    start = head.end()
    braced = _BRACED.match(text, start)
    if braced and ";" in {text[name_start - 1 : name_start], text[braced.end() : braced.end() + 1]}:
        return braced.span("body")
    if rule.starts_reference(text, start):
        return None
    for pattern in _FORMS.get(text[start : start + 1], ()):
        if found := pattern.match(text, start):
            group = "double" if pattern is _QUOTED and found["double"] is not None else "single"
            span = found.span(group if pattern is _QUOTED else "body")
            return _part_of(name, text, span)
    if text[start : start + 1] in {"[", "{", "("} and head["gap"] is None and head[0].rstrip()[-1] != "=":
        return None
    return _bare_span(text, name, name_start, head)


def _bare_span(text: str, name: str, name_start: int, head: re.Match[str]) -> Span | None:
    start = head.end()
    if rule.is_authorization_name(name) and (scheme := _SCHEME.match(text, start)):
        start = scheme.end()
        if rule.starts_reference(text, start):
            return None
        if parameters := _PARAMETERS.match(text, start):
            return parameters.span()
    first = _first_word(text, start, head)
    if (
        not first
        or _is_plain_number(name, first, text, head)
        or rule.is_nothing(_ESCAPED_BREAK.split(first, maxsplit=1)[0])
    ):
        return None
    if head["gap"] is None and _is_line_start(text, name_start):
        return _part_of(name, text, (start, _line_value_end(text, start, head)))
    end = start + len(first)
    is_prose = head["gap"] is None and head["sep"] == ":" and first.isalpha() and first.islower()
    return None if is_prose and _PROSE_NEXT.match(text, end) else _part_of(name, text, (start, end))


def _first_word(text: str, start: int, head: re.Match[str]) -> str:
    chunk = _CHUNK.match(text, start)
    if chunk is None:
        return ""
    first = _without_closers(_COLOURS_END.sub("", chunk[0]))
    cut = _ENCODED_END.search(first) if "%" in head[0] else None
    return first if cut is None else first[: cut.start()]


def _is_plain_number(name: str, value: str, text: str, head: re.Match[str]) -> bool:
    if rule.NUMBER.fullmatch(value) is None:
        return False
    in_assignment = head["gap"] is not None or head["sep"].endswith("=")
    whole = rule.NUMBER.match(text, head.end())
    is_password = any(stem in name.lower() for stem in _PASSWORDS)
    return not (is_password and in_assignment and whole is not None and len(whole[0]) >= 4)


def _is_line_start(text: str, name_start: int) -> bool:
    line_start = text.rfind("\n", max(0, name_start - 128), name_start) + 1
    if not line_start and name_start > 128:
        return False
    return _LINE_START.fullmatch(text, line_start, name_start) is not None


def _line_value_end(text: str, start: int, head: re.Match[str]) -> int:
    """Return where a value at the start of a line ends: at a blank after `KEY=`, else with the line."""
    spaced = head[0].endswith((" ", "\t"))
    end = (_LINE_END if spaced else _BLANK).search(text, start)
    value = _REST.sub("", text[start : end.start() if end else len(text)]).rstrip()
    return start + len(value)


def _part_of(name: str, text: str, span: Span) -> Span | None:
    part = find_secret_part(name, text[span[0] : span[1]])
    return None if part is None else (span[0] + part[0], span[0] + part[1])


def _without_closers(value: str) -> str:
    openers = set(value)  # once: looking again for each closer would cost the square of their number
    end = len(value)
    while end and (value[end - 1] in ".:" or ((opener := _CLOSERS.get(value[end - 1])) and opener not in openers)):
        end -= 1
    return value[:end]


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~/", "./", "../")) or value[1:3] in {":\\", ":/"}
