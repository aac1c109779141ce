"""Find secrets by their own form: cloud keys, service tokens, JWT, Bearer and Basic, private key blocks."""

from __future__ import annotations

import base64
import binascii
import re

from pytest_golden.redaction import rule
from pytest_golden.redaction.rule import MARK, Rule, compile_late, mark_value


def redact_tokens(text: str, lowered: str, absent: set[int]) -> str:
    """Replace secrets of a known form with the mark; `lowered` and `absent` are those of `rule.apply_rules`."""
    text = rule.apply_rules(_RULES, text, lowered, absent)
    if "PRIVATE KEY" not in text:
        return text
    begins = ((begin.start(), begin) for begin in _BEGIN.finditer(text))
    return rule.replace_hits(text, begins, lambda begin: (begin.start(), _block_end(text, begin.end()), MARK))


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
    return mark_value(match) if len(value) >= 8 and rule.looks_random(value) else match[0]


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

# Marks of services that tokens begin with, and what follows them.
_MARKED = {
    "$2": r"[aby]\$\d\d\$[A-Za-z0-9./]{53}",
    "$5$": "[A-Za-z0-9./=$]{40,}+",
    "$6$": "[A-Za-z0-9./=$]{80,}+",
    "$apr1$": r"[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}",
    "$argon2": r"(?:id|i|d)\$[\w=,$+/]{40,}+",
    "AGE-SECRET-KEY-1": "[A-Z0-9]{50,}+",
    "AKCp xai-": "[A-Za-z0-9]{60,}+",
    "ATATT3": r"[\w\-]{50,}+(?:=[0-9A-F]{8})?",
    "ATBB": "[A-Za-z0-9]{28,}+",
    "CFPAT- sq0csp-": r"[\w\-]{40,}+",
    "CCIPAT_": r"\w{40,}+",
    "HRKU-": r"[\w\-]{30,}+",
    "LTAI": "[A-Za-z0-9]{16,20}(?![A-Za-z0-9])",
    "NRAK-": "[A-Z0-9]{27}",
    "PMAK-": "[0-9a-f]{24}-[0-9a-f]{34}",
    "dbtc_ dbtu_ hf_": "[A-Za-z0-9]{30,}+",
    "dckr_pat_ gldt- glrt-": r"[\w\-]{20,}+",
    "dop_v1_": "[0-9a-f]{64}",
    "dp.pt. gsk_ ntn_ pplx-": "[A-Za-z0-9]{40,}+",
    "figd_": r"[\w\-]{36,}+",
    "glc_": "[A-Za-z0-9+/=]{60,}+",
    "glpat-": r"[\w\-]{16,}+",
    "glptt- pul- sbp_ sqa_ sqp_ squ_": "[0-9a-f]{40}",
    "glsa_": "[A-Za-z0-9]{32}_[0-9a-f]{8}",
    "hvb. hvs.": r"[\w\-]{24,}+",
    "lin_api_": "[A-Za-z0-9]{32,}+",
    "lsv2_pt_ lsv2_sk_": "[0-9a-f]{32}_[0-9a-f]{10}",
    "nfp_ npm_ pnb_ pnu_": "[A-Za-z0-9]{36}",
    "ops_eyJ": r"[\w\-]{60,}+",
    "pbkdf2_sha256$": r"\d{1,9}\$[^\s$]{1,64}\$[A-Za-z0-9+/=]{40,}+",
    "pscale_pw_ pscale_tkn_": r"[\w\-]{32,}+",
    "pypi-AgE": r"[\w\-]{50,}+",
    "r8_": "[A-Za-z0-9]{37}",
    "rubygems_": "[0-9a-f]{48}",
    "shpat_ shpss_": "[0-9a-fA-F]{32}",
    "sntrys_": r"[\w\-=]{40,}+",
    "sq0atp-": r"[\w\-]{22,}+",
    "tskey-": "[a-z]{1,16}-[A-Za-z0-9]{8,}+(?:-[A-Za-z0-9]{16,}+)?",
    "whsec_": "[A-Za-z0-9+/=]{24,}+",
}
_MARKS = {mark: rest for marks, rest in _MARKED.items() for mark in marks.split()}

_RULES = (
    Rule(tuple(_MARKS), _START + "(?:" + "|".join(re.escape(mark) + rest for mark, rest in _MARKS.items()) + ")"),
    Rule((".atlasv1.",), _START + r"[A-Za-z0-9]{14}\.atlasv1\.[\w\-]{40,}+", offset=14),
    Rule(("Q~",), r"(?<![\w~.\-])[\w~.\-]{3}[0-9]Q~[\w~.\-]{31,40}", offset=4),
    Rule(("1//0",), r"(?<![\w/:])1//0[\w\-]{30,}+"),
    Rule((":AA",), r"\d{8}:AA[\w\-]{33}(?![\w\-])", offset=8),
    Rule((":APA91b",), r"[\w\-]{11}:APA91b[\w\-]{100,}+", offset=11),
    Rule(("key-",), r"(?<![\w\-])key-[0-9a-f]{32}(?![0-9a-f])"),
    Rule(("-us",), r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\d)", offset=32),
    Rule(
        ("AKIA", "ASIA"),
        (
            r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
            r"(?:(?P<gap>[^A-Za-z0-9/+]{1,24})(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=]))?"
        ),
        _mark_aws_id,
    ),
    Rule(
        ("aws", "AWS", "ecret access key", "ecret Access Key"),
        (
            r"(?P<keep>(?:aws|AWS|ecret access key|ecret Access Key)[^\n]{0,40}?(?<![A-Za-z0-9/+]))"
            r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        _mark_aws_secret,
    ),
    Rule(("AIza",), r"AIza[0-9A-Za-z_\-]{35}"),
    Rule(("ya29.", "GOCSPX-"), r"(?:ya29\.|GOCSPX-)[\w\-]{20,}+"),
    Rule(("sig=",), r"(?P<keep>(?<![A-Za-z0-9])sig=)[A-Za-z0-9%+/=_\-]{16,}+"),
    Rule(
        ("x-amz-signature=", "x-goog-signature=", "signedheaders="),
        r"(?i)(?P<keep>(?:x-(?:amz|goog)-|signedheaders=[\w;\-]{1,256}+[ ,]{1,3})signature=)[0-9a-f]{32,}+",
    ),
    Rule(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{16,}+)",
    ),
    Rule(("hooks.slack.com/",), r"(?P<keep>hooks\.slack\.com/[a-z]{1,20}/)[A-Za-z0-9/]{8,}+"),
    Rule(("/api/webhooks/",), r"(?P<keep>/api/webhooks/\d{1,32}+/)[\w\-]{20,}+"),
    Rule(("/IncomingWebhook/",), r"(?P<keep>/IncomingWebhook/)[\w\-]{16,}+(?:/[\w\-]{1,128}+)*+"),
    Rule(("xox", "xapp-"), r"(?:xox[a-z](?:\.[a-z]+)?|xapp)-[A-Za-z0-9\-]{8,}+"),
    Rule(("sk-",), _START + r"sk-(?P<body>[A-Za-z0-9_\-]++)", _mark_sk),
    Rule(("k_live_", "k_test_"), r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+", offset=1),
    Rule(("dapi",), _START + r"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    Rule(("SG.",), _START + r"SG\.[\w\-]{16,32}\.[\w\-]{32,64}"),
    Rule(("eyJ",), r"eyJ[\w\-]*+(?:\.[\w\-]*+)*+", _mark_jwt),
    Rule(
        ("bearer ", "bearer\t"),
        r"(?i:(?P<keep>(?<![A-Za-z])bearer[ \t]{1,8}+))(?P<value>[\w\-.~+/=%:|]++)",
        _mark_bearer,
    ),
    Rule(
        ("basic ",), r"(?i:(?P<keep>(?<![A-Za-z])basic[ \t]{1,8}+))(?P<value>[A-Za-z0-9+/_\-]{6,}+={0,2})", _mark_basic
    ),
)

#: These rules change no text that contains none of these in lower case.
TOKEN_KEYWORDS = rule.list_keywords(_RULES) | {"private key"}
_BEGIN = compile_late(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_END = compile_late(r"-----END [A-Z0-9 ]{0,64}(?:-{5})?")
_COLOUR = r"(?:\x1b\[[\d;]{0,16}m)"
# The lines that may follow in a block whose end was cut off: one unbroken word each, or a header of the block.
_LINE_END = compile_late(r"\r?\n")
_KEY_LINE = compile_late(
    rf"[^\w\n]{{0,16}}+(?:(?:[A-Z][\w\-]{{1,20}}:[^\n]*+)|[A-Za-z0-9+/=\\:]*+[^\w\n\x1b]{{0,8}}+{_COLOUR}?)(?:\n|$)"
)
_KEY_TAIL = compile_late(
    r"""(?:[A-Za-z0-9+/=,:\-]++|\\{1,7}[nr](?=\\)|\\{1,7}[nr][ \t]*+[A-Z][\w\-]{1,20}:[ ][\w\-,]{1,80}+"""
    r"""|\\{1,7}[nr][ \t]*+(?=[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/]{1,15}={0,2}(?:[\\"']|$))|\\{1,7}(?=[A-Za-z0-9+/]{16}))++"""
)


# The usual name of a token, by its beginning. For other tokens the beginning itself is shown.
_KINDS = {
    "AKIA": "an AWS access key",
    "ASIA": "an AWS access key",
    "AIza": "a Google API key",
    "eyJ": "a JSON web token",
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "a GitHub token"),
    "github_pat_": "a GitHub token",
    "glpat-": "a GitLab token",
    "xox": "a Slack token",
    "dapi": "a Databricks token",
    "-----BEGIN": "a private key",
}


def describe_token(text: str, position: int) -> str | None:
    """Return a description of the token that begins at this position, or None if its beginning is unknown."""
    kind = next((kind for mark, kind in _KINDS.items() if text.startswith(mark, position)), None)
    if kind is not None:
        return kind
    marks = (*_MARKS, *(word for one in _RULES if one.offset == 0 for word in one.keywords))
    mark = next((mark for mark in marks if text.startswith(mark, position)), None)
    return None if mark is None else f"a token that begins with {mark}"


def _block_end(text: str, start: int) -> int:
    next_begin = text.find("-----BEGIN", start)
    end = _END.search(text, start, len(text) if next_begin < 0 else next_begin)
    if end is not None:
        return end.end()
    tail = _KEY_TAIL.match(text, start)
    position = tail.end() if tail else start
    if line_end := _LINE_END.match(text, position):
        position = line_end.end()
        while position < len(text) and (line := _KEY_LINE.match(text, position)) and line.end() > position:
            position = line.end()
        tail = _KEY_TAIL.match(text, position)
        if tail and (len(tail[0]) >= 40 or (len(tail[0]) >= 16 and _is_mixed(tail[0]))):
            position = tail.end()
    return position
