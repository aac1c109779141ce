"""Find secrets by the form of a document: netrc, .pgpass, Kubernetes secrets, JSON web keys, PuTTY keys, SQL.

Pairs such as `("X-Api-Key", "...")` and groups such as `"passwords": {"bob": "..."}` are found too.
"""

from __future__ import annotations

import base64
import binascii
import re

from pytest_golden.redaction import rule
from pytest_golden.redaction.rule import BREAK, MARK, QUOTE, TO_QUOTE, WORD, Rule, compile_late, mark_value

_SPACE = rf"(?:[ \t]|{BREAK}){{1,32}}+"
_MAYBE_SPACE = rf"(?:[ \t]|{BREAK}){{0,32}}+"
_NAME = r"(?P<name>[\w.\-]{1,128}+)"
_GROUP = compile_late(
    rf"(?P<keep>{QUOTE}:[ ]?(?P<quote>{QUOTE}))(?P<value>(?:(?!(?P=quote))[^\n]){{1,4096}})(?=(?P=quote))"
)
_BLOCK_VALUE = compile_late(rf"(?P<keep>[\w.\-/]{{1,253}}+{QUOTE}?:[ ]{{1,8}}+)(?P<value>[^\s\"'\\|>{{][^\s\"'\\]*+)")
_QUOTED_VALUE = compile_late(rf"(?P<keep>[\w.\-/]{{1,253}}+{QUOTE}?:[ ]{{0,8}}+{QUOTE})(?P<value>{TO_QUOTE})")
_KUBERNETES_DATA = compile_late(
    rf"(?:(?:^|(?<=\n)|(?<=\\n))(?P<indent>[ ]*+)(?:stringData|data):[ ]*+"
    rf"(?P<lines>(?:{BREAK}(?P=indent)[ ]++[^\n\\]*+(?:\\(?!\\{{0,6}}n)[^\n\\]*+)*+)++)"
    rf"|{QUOTE}(?:stringData|data){QUOTE}:[ ]?\{{(?P<flat>[^{{}}]*+)\}})"
)
_KUBERNETES_KIND = compile_late(rf"{WORD}kind(?:{QUOTE})?:[ ]?(?:{QUOTE})?Secret(?!\w)")
_SETTER = compile_late(r"(?:[gs]et\w{0,16}|config|conf|define|env|option|header|pop|putenv)$", re.IGNORECASE)
_SHORTEST_IN_PAIR = 8


def redact_documents(text: str, lowered: str, absent: set[int]) -> str:
    """Replace the secrets that a document's form shows with the mark; `lowered` and `absent` are those of `rule.apply_rules`."""
    text = rule.apply_rules(_RULES, text, lowered, absent)
    if "Secret" in text and _KUBERNETES_KIND.search(text):
        text = "---".join(
            _KUBERNETES_DATA.sub(_mark_data, part) if _KUBERNETES_KIND.search(part) else part
            for part in text.split("---")
        )
    return text


def is_pair_of_secret(name: str, value: str) -> bool:
    """Tell whether two adjacent texts are a secret name and its value, not two names."""
    if not rule.is_secret_name(name) or rule.is_reference(value):
        return False
    return rule.is_authorization_name(name) or (
        len(value) >= _SHORTEST_IN_PAIR and rule.looks_random(value) and re.search(r"[0-9]", value) is not None
    )


def is_basic_credential(value: str) -> bool:
    """Tell whether a value is a user and a password in base64."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def _mark_data(match: re.Match[str]) -> str:
    found = match["lines"] or match["flat"]
    redacted = _QUOTED_VALUE.sub(mark_value, found)
    if match["lines"]:
        redacted = _BLOCK_VALUE.sub(mark_value, redacted)
    return match[0].replace(found, redacted)


def _mark_pair(match: re.Match[str]) -> str:
    scheme = re.match(r"[A-Z][\w\-]{1,30}[ ]", match["value"]) if rule.is_authorization_name(match["name"]) else None
    called = _SETTER.search(match.string, max(0, match.start() - 24), match.start())
    if not is_pair_of_secret(match["name"], match["value"]) and not (called and rule.is_secret_name(match["name"])):
        return match[0]
    return mark_value(match) if scheme is None else mark_value(match).replace(MARK, scheme[0] + MARK)


def _mark_named(match: re.Match[str]) -> str:
    group = "value" if match["bare"] is None else "bare"
    return mark_value(match, group) if rule.is_secret_name(match["name"]) else match[0]


def _mark_basic_pair(match: re.Match[str]) -> str:
    return mark_value(match) if match["name"].startswith("_") or is_basic_credential(match["value"]) else match[0]


def _mark_group(match: re.Match[str]) -> str:
    return match["keep"] + _GROUP.sub(mark_value, match["rest"])


_SQL_TEXT = rf"(?P<quote>{QUOTE})(?P<value>(?:(?!(?P=quote))[^\n]){{1,512}})(?=(?P=quote))"

_RULES = (
    Rule(
        ("machine", "login", "account"),
        rf"(?P<keep>{WORD}(?:machine|login|account){_SPACE}[^\s\\]{{1,256}}+{_SPACE}password{_SPACE})(?P<value>[^\s\"'\\]++)",
        needs=("password",),
    ),
    Rule(
        (":54", ":64", ":*:", ":26257:"),
        (
            r"(?P<keep>(?<![\w.\-/:])(?:[\w.\-]{1,253}+|\*):(?:[56]4\d\d|26257|\*):(?=[\w.\-]{0,63}[A-Za-z*])[\w.\-*]{1,64}+"
            r":(?=[\w.\-@]{0,63}[A-Za-z*])[\w.\-@*]{1,64}+:)(?P<value>(?:[^\s\"'\\,]|\\[:\\])++)"
        ),
        offset=None,
    ),
    Rule(
        ("kty",), rf"(?P<keep>{QUOTE}(?:d|p|q|dp|dq|qi|k){QUOTE}[ ]?:[ ]?{QUOTE})(?P<value>[\w\-]{{16,}}+)", offset=None
    ),
    Rule(
        ("Private-Lines:",),
        rf"(?P<keep>Private-Lines:[ ]?\d+)(?P<value>(?:{BREAK}[ \t]{{0,64}}+[A-Za-z0-9+/=]++(?![^\r\n\\\"']))++)",
    ),
    Rule(
        ("create", "alter", "grant"),
        (
            rf"(?P<keep>{WORD}(?i:(?:create|alter|grant)\b[^;\n]{{0,300}}?\bidentified[ ]+(?:with[ ]+[\w']{{1,64}}+[ ]+)?"
            rf"(?:by|as)[ ]+(?:password[ ]+)?)){_SQL_TEXT}"
        ),
        needs=("identified",),
    ),
    Rule(("with password", "set password"), rf"(?P<keep>{WORD}(?i:(?:with|set)[ ]password[ ]+)){_SQL_TEXT}"),
    Rule(
        ("SECRET ", "TOKEN ", "SESSION_TOKEN "),
        rf"(?P<keep>{WORD}(?:SESSION_TOKEN|TOKEN|(?<!CREATE )(?<!DROP )SECRET)[ ]+){_SQL_TEXT}",
    ),
    Rule(("jdbc:oracle:",), r"(?P<keep>jdbc:oracle:\w{1,16}:[\w$#.]{1,128}+/)(?P<value>[^\s\"'@\\]{1,128}+)(?=@)"),
    Rule(
        ("auth=(", "auth("),
        (
            rf"(?P<keep>(?i:auth)=?\([ ]?(?:username=|login=)?(?P<quote>{QUOTE})[^\"'\\\n]{{0,128}}+(?P=quote)[ ]?,[ ]?"
            rf"(?:password=)?(?P=quote))(?P<value>{TO_QUOTE})"
        ),
    ),
    Rule(
        ("password(", "passwd(", "passphrase(", "token(", "secret("),
        (
            rf"(?P<keep>(?i:(?<=\.)|(?<=set)|(?<=set_)|(?<=with)|(?<=with_))(?i:password|passwd|passphrase|token|secret)\([ ]?{QUOTE})"
            rf"(?P<value>{TO_QUOTE})(?={QUOTE}[ ]?[,)])"
        ),
    ),
    Rule(("securestring ",), rf"(?P<keep>(?i:securestring[ ](?:-string[ ])?){QUOTE})(?P<value>{TO_QUOTE})"),
    Rule(
        ("password is ", "password was ", "password to ", "passphrase is ", "token is ", "secret is ", "api key is "),
        (
            rf"(?P<keep>(?i:password|passphrase|token|secret|api key)[ ](?i:is|was|to)[ ](?:{QUOTE})?)"
            r"(?P<value>(?=[^\s\d\"'\\\x1b]{0,64}\d)(?=[^\sA-Za-z\"'\\\x1b]{0,64}[A-Za-z])(?![/~.])[^\s\"'\\,;)\x1b]{6,256}+)"
        ),
    ),
    Rule(
        ("echo ",),
        (
            rf"(?P<keep>{WORD}echo[ ](?:-n[ ])?(?:{QUOTE})?(?:[\w.\-]{{1,64}}+:(?=[^\n]{{1,300}}?chpasswd))?)"
            rf"(?P<value>[^\s\"'\\|]{{4,256}}+)(?=(?:{QUOTE})?[ ]{{0,4}}\|[ ]{{0,4}}"
            r"[\w./ =@:\-]{0,200}?(?:--password-stdin|-stdin|--with-token|sudo -S|chpasswd))"
        ),
        needs=("stdin", "--with-token", "sudo -S", "chpasswd"),
    ),
    Rule(
        ("_auth", "auth"),
        (
            rf"(?P<keep>{WORD}(?P<name>_?auth)(?:{QUOTE})?[ ]{{0,4}}+[:=][ ]{{0,4}}+(?:{QUOTE})?)"
            r"(?P<value>[A-Za-z0-9+/]{8,}+={0,2})"
        ),
        _mark_basic_pair,
    ),
    Rule(
        ("auth.user.info",),
        r"(?P<keep>auth\.user\.info[\"']?[ ]?[:=][ ]?[\"']?[^\s:\"'\\]{1,128}+:)(?P<value>[^\s\"',\\]++)",
    ),
    Rule(
        ("account.key.",),
        rf"(?P<keep>account\.key\.[\w.\-]{{1,128}}+(?:{QUOTE})?[ ]?[,:= ][ ]?(?:{QUOTE})?)(?P<value>[\w+/]{{40,}}+={{0,2}})",
    ),
    Rule(
        ("name", "key", "variable"),
        (
            rf"(?<![A-Za-z])(?i:name|key|variable)(?:{QUOTE})?[ ]?[:=][ ]?(?:{QUOTE})?{_NAME}(?:{QUOTE})?,?{_MAYBE_SPACE}"
            rf"(?:{QUOTE})?(?i:value)(?:{QUOTE})?[ ]?[:=][ ]?(?:{QUOTE}(?P<value>{TO_QUOTE})|(?P<bare>[^\s\"'\\{{\[,]++))"
        ),
        _mark_named,
        needs=("value",),
    ),
    Rule(
        ("(", "["),
        (
            rf"[(\[]{_MAYBE_SPACE}(?P<quote>{QUOTE}){_NAME}(?P=quote),{_MAYBE_SPACE}(?P=quote)(?P<value>{TO_QUOTE})"
            rf"(?=(?P=quote){_MAYBE_SPACE}[)\]])"
        ),
        _mark_pair,
        needs=("pass", "pwd", "secret", "token", "key", "credential", "authorization", "_pat"),
    ),
    Rule(
        ("passwords", "secrets", "api_keys", "apikeys"),
        rf"(?P<keep>(?<=[\"'])(?i:passwords|secrets|api_?keys){QUOTE}:[ ]?\{{)(?P<rest>[^{{}}]{{1,65536}}+)(?=\}})",
        _mark_group,
    ),
)


#: These rules change no text that contains none of these in lower case.
DOCUMENT_KEYWORDS = rule.list_keywords(_RULES) | {"secret"}
