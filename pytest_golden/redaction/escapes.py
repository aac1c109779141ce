r"""Escape sequences of terminals: colours and cursor movements that would hide a secret from a search, or forge a line.

Source: ECMA-48, sections 5.4 (control sequences) and 8.3.89 (operating system commands, as terminals read them).
"""

from __future__ import annotations

from pytest_golden.redaction.late import compile_late

# Bounded, so that one that never ends takes nothing with it.
_ESCAPES = compile_late(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)


def strip_escapes(text: str) -> str:
    """Give the text without its escape sequences."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text else text
