"""Secrets that show themselves by their form: cloud keys, service tokens, JWT, Bearer and Basic, private key blocks.

Each rule is tried only on texts that hold one of its keywords. A pattern either has a bounded length or consumes a
whole run of characters before it decides, so no text makes it slow.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction.references import MARK, is_reference, looks_random

if TYPE_CHECKING:
    from collections.abc import Callable


class Rule(NamedTuple):
    """A pattern with the keywords without one of which it cannot match; `ignores_case` asks the lowered text for them."""

    keywords: tuple[str, ...]
    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str]
    ignores_case: bool = False


def redact_tokens(text: str, lowered: str) -> str:
    """Replace secrets of a known form by the mark; `lowered` is the same text in lower case."""
    for rule in _RULES:
        haystack = lowered if rule.ignores_case else text
        if any(keyword in haystack for keyword in rule.keywords):
            text = rule.pattern.sub(rule.replace, text)
    return _redact_private_keys(text) if "PRIVATE KEY" in text else text


def _mark(match: re.Match[str]) -> str:
    return (match["keep"] if "keep" in match.re.groupindex else "") + MARK


def _mark_sk(match: re.Match[str]) -> str:
    body = match["body"]
    known = body.startswith(("ant-", "proj-", "svcacct-", "admin-", "or-v1-"))
    unbroken = max(len(part) for part in body.split("-")) >= 20
    telling = len(body) >= 16 and re.search(r"[0-9A-Z]", body) is not None
    return MARK if len(body) >= 8 and (known or unbroken or telling) else match[0]


def _mark_jwt(match: re.Match[str]) -> str:
    parts = match[0].split(".")
    return MARK if len(parts) >= 3 and len(parts[0]) >= 8 and len(parts[1]) >= 2 else match[0]


def _mark_bearer(match: re.Match[str]) -> str:
    value = match["value"]
    if is_reference(value) or len(value) < 8 or not looks_random(value):
        return match[0]
    return match["keep"] + MARK


def _mark_basic(match: re.Match[str]) -> str:
    value = match["value"]
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return match[0]
    return match["keep"] + MARK if b":" in plain else match[0]


def _mark_aws_id(match: re.Match[str]) -> str:
    """Hide a key id, and the secret that follows it as in AWS's own CSV files."""
    gap, value = match["gap"], match["value"]
    if value is None:
        return MARK
    return f"{MARK}{gap}{MARK if _is_mixed(value) else value}"


def _mark_aws_secret(match: re.Match[str]) -> str:
    return match["keep"] + MARK if _is_mixed(match["value"]) else match[0]


def _is_mixed(value: str) -> bool:
    """Tell a random value from a hash, which is all lower case."""
    return all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9/+]"))


# The start of a word, also behind the n of a JSON text's \\n and behind the end of a colour.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\dm))"

_RULES = (
    Rule(
        ("AKIA", "ASIA"),
        re.compile(
            r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
            r"(?:(?P<gap>[^A-Za-z0-9/+]{1,24})(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=]))?"
        ),
        _mark_aws_id,
    ),
    Rule(
        ("aws", "AWS", "ecret access key", "ecret Access Key"),
        re.compile(
            r"(?P<keep>(?:aws|AWS|ecret access key|ecret Access Key)[^\n]{0,40}?(?<![A-Za-z0-9/+]))"
            r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        _mark_aws_secret,
    ),
    Rule(("AIza",), re.compile(r"AIza[0-9A-Za-z_\-]{35}"), _mark),
    Rule(("ya29.", "GOCSPX-"), re.compile(r"(?:ya29\.|GOCSPX-)[\w\-]{20,}+"), _mark),
    Rule(("sig=",), re.compile(r"(?P<keep>(?<![A-Za-z0-9])sig=)[A-Za-z0-9%+/=_\-]{16,}+"), _mark),
    Rule(
        ("x-amz-signature=", "x-goog-signature="),
        re.compile(r"(?P<keep>x-(?:amz|goog)-signature=)[0-9a-f]{32,}+", re.IGNORECASE),
        _mark,
        ignores_case=True,
    ),
    Rule(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"(?:gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{16,}+)"),
        _mark,
    ),
    Rule(("glpat-",), re.compile(r"glpat-[\w\-]{16,}+"), _mark),
    Rule(("xox", "xapp-"), re.compile(r"(?:xox[a-z](?:\.[a-z]+)?|xapp)-[A-Za-z0-9\-]{8,}+"), _mark),
    Rule(("hooks.slack.com/",), re.compile(r"(?P<keep>hooks\.slack\.com/[a-z]{1,20}/)[A-Za-z0-9/]{8,}+"), _mark),
    Rule(("sk-",), re.compile(_START + r"sk-(?P<body>[A-Za-z0-9_\-]++)"), _mark_sk),
    Rule(("k_live_", "k_test_"), re.compile(r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"), _mark),
    Rule(("npm_", "hf_"), re.compile(_START + r"(?:npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,}+)"), _mark),
    Rule(("pypi-AgE",), re.compile(r"pypi-AgE[\w\-]{50,}+"), _mark),
    Rule(("dapi",), re.compile(_START + r"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"), _mark),
    Rule(("SG.",), re.compile(_START + r"SG\.[\w\-]{16,32}\.[\w\-]{32,64}"), _mark),
    Rule(("hvs.",), re.compile(_START + r"hvs\.[\w\-]{24,}+"), _mark),
    Rule(("eyJ",), re.compile(r"eyJ[\w\-]*+(?:\.[\w\-]*+)*+"), _mark_jwt),
    Rule(
        ("bearer ", "bearer\t"),
        re.compile(r"(?i:(?P<keep>(?<![A-Za-z])bearer[ \t]{1,8}+))(?P<value>[\w\-.~+/=%:|]++)"),
        _mark_bearer,
        ignores_case=True,
    ),
    Rule(
        ("basic ",),
        re.compile(r"(?i:(?P<keep>(?<![A-Za-z])basic[ \t]{1,8}+))(?P<value>[A-Za-z0-9+/_\-]{6,}+={0,2})"),
        _mark_basic,
        ignores_case=True,
    ),
)

#: What a text in lower case holds at least one of, when there is anything for these rules in it.
TOKEN_KEYWORDS = frozenset({"private key"} | {keyword.lower() for rule in _RULES for keyword in rule.keywords})
_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,64}(?:-{5})?")
# The lines that may follow in a block whose end was cut off: one unbroken word each, or a header of the block.
_KEY_LINE = re.compile(r"[^\w\n]{0,16}+(?:(?:[A-Z][\w\-]{1,20}:[^\n]*+)|[A-Za-z0-9+/=\\:]*+[^\w\n]{0,8}+)(?:\n|$)")
_KEY_TAIL = re.compile(r"[A-Za-z0-9+/=\\,:\-]++")


def _redact_private_keys(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        pieces += (text[done : begin.start()], MARK)
        done = _block_end(text, begin.end())
    return "".join((*pieces, text[done:]))


def _block_end(text: str, start: int) -> int:
    next_begin = text.find("-----BEGIN", start)
    end = _END.search(text, start, len(text) if next_begin < 0 else next_begin)
    if end is not None:
        return end.end()
    tail = _KEY_TAIL.match(text, start)
    position = tail.end() if tail else start
    if text[position : position + 1] == "\n":
        position += 1
        while position < len(text) and (line := _KEY_LINE.match(text, position)) and line.end() > position:
            position = line.end()
        if position < len(text) and (tail := _KEY_TAIL.match(text, position)) and len(tail[0]) >= 40:
            position = tail.end()
    return position
