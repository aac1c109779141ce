"""Text as XML 1.0 can carry it: no colours, no control characters, no lone surrogates."""

from __future__ import annotations

import re

from pytest_golden.redaction.escapes import strip_escapes

# What XML 1.0 forbids or discourages, and what junit-xml would drop without a word.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)


def clean_xml_text(text: str) -> str:
    """Take colours out, and write what XML cannot carry as backslash escapes."""
    return _UNFIT.sub(_escape, strip_escapes(text).replace("\r\n", "\n"))


def clean_xml_line(text: str) -> str:
    """Make one line of a text, for an attribute."""
    return " ".join(clean_xml_text(text).split())


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
