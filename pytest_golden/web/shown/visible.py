"""Signs that nobody sees, made visible: they would hide a text, turn it round, or forge a line."""

from __future__ import annotations

import re

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}} | {0x7F: "\u2421"}
# C1 controls, the marks that reorder text, line ends of other alphabets, signs without a width, halves of a pair.
_UNSEEN = re.compile(
    "[\x80-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def make_visible(text: str) -> str:
    """Show control characters as their pictures (U+2400 on) and other unseen signs as escapes; tabs and newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_escape, text.replace("\r\n", "\n").translate(_PICTURES))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
