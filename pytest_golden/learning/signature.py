"""The form of an error that stays the same from run to run: what differs each time is taken out. Pure text."""

from __future__ import annotations

import hashlib
import re

from pytest_golden.redaction.escapes import strip_escapes

_MOST_READ, _MOST_KEPT = 20_000, 1_000
_MOST_ROUNDS = 5
_DAY = r"\d{4}[-/]\d{2}[-/]\d{2}|\d{2}[-/.]\d{2}[-/.]\d{4}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
# In this order: what is quoted hides what is in it, and a hash or a path is no number.
_RULES = tuple(
    (re.compile(pattern), mark)
    for pattern, mark in (
        (r"(?<!\w)'[^']{0,400}'(?!\w)|\"[^\"]{0,400}\"|`[^`]{0,400}`", "<value>"),
        (rf"(?<!\d)(?:{_DAY})(?:[T ]{_CLOCK})?(?:Z|[ ]?[+-]\d{{2}}:?\d{{2}}(?!\d))?|(?<!\d){_CLOCK}", "<time>"),
        (r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])", "<uuid>"),
        (r"(?<![0-9A-Za-z])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Za-z])", "<id>"),
        (
            r"(?<![\w.~+@%\\/-])(?:[A-Za-z][A-Za-z0-9+.-]*:(?=[\\/]))?[\w.~+@%-]*(?:[\\/]+[\w.~+@%=:,-]*[\w~+@%=])+[\\/]?",
            "<path>",
        ),
        (r"0[xX][0-9a-fA-F]+|(?<![0-9A-Za-z])(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,64}(?![0-9A-Za-z])", "<hex>"),
        (r"(?:(?<![\w<>.)])[-+])?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?", "<n>"),
    )
)
# What the gate puts around the cause when it judges an exit code.
_MORE = re.compile(r" \(and \d+ more reasons?\)$")
_VERDICT = re.compile(r"^exit code -?\d+(?: \([^)\n]*\))?(?:, expected -?\d+)?: (?=\S)")


def error_signature(text: str) -> str:
    """Give the normalised form of an error's text.

    Quoted values, times, UUIDs and ULIDs, paths, hexadecimal and other numbers become `<value>`, `<time>`, `<uuid>`,
    `<id>`, `<path>`, `<hex>` and `<n>`; runs of blanks become one. A text of more than 20,000 characters is read so far.
    """
    normal = " ".join(strip_escapes(text[:_MOST_READ]).split())
    # One replacement can complete what another rule looks for.
    for _ in range(_MOST_ROUNDS):
        before = normal
        for rule, mark in _RULES:
            normal = rule.sub(mark, normal)
        if normal == before:
            break
    return normal[:_MOST_KEPT].rstrip()


def cause_of(message: str) -> str:
    """Give a result's message without what the gate puts around the cause: the exit code, how many more reasons."""
    return _VERDICT.sub("", _MORE.sub("", message.strip()), count=1)


def digest_signature(signature: str) -> str:
    """Give the 32 hexadecimal digits under which failures with this signature are counted."""
    return hashlib.sha256(signature.encode("utf-8", "backslashreplace")).hexdigest()[:32]
