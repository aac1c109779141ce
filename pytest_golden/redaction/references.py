"""What stands where a secret could stand and is none: references, placeholders, nothing, numbers.

`password: ${DB_PASSWORD}` tells a reader where to look; hiding it would hide the mistake and no secret.
"""

from __future__ import annotations

from pytest_golden.redaction.late import compile_late

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
