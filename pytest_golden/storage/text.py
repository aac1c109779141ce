"""Text as every database takes it."""

from __future__ import annotations


def storable(text: str) -> str:
    r"""Write what a database cannot keep as an escape: NUL as `\x00`, a lone surrogate as `\udc80`."""
    if text.isascii():
        return text.replace("\0", "\\x00") if "\0" in text else text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
