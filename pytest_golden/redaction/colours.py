"""The colours of lines that are shown without them: found again where a line was not changed by anything else.

Secrets are looked for in plain text, since a colour in its middle would hide one. So a colour is given back only to a line
that stands among the redacted ones as it is, and nothing but numbers comes with it.
"""

from __future__ import annotations

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.redaction.late import compile_late

_SIGN = "\x1b["
_MOST_CHARACTERS = 2_000
# Select graphic rendition; source: ECMA-48, section 8.3.117.
_COLOUR = compile_late("\x1b\\[[0-9;:]{0,32}m")
_OTHERS = compile_late("\x1b(?!\\[[0-9;:]{0,32}m)[^\n]?")


def find_coloured_lines(raw: str, redacted: str) -> dict[str, str]:
    """Give, by the plain form of a line, how a terminal would have coloured it; long lines stay plain.

    Args:
        raw: what was printed.
        redacted: what is shown of it.
    """
    if _SIGN not in raw:
        return {}
    shown = set(redacted.split("\n"))
    found: dict[str, str] = {}
    for line in raw.split("\n"):
        if _SIGN not in line or len(line) > _MOST_CHARACTERS:
            continue
        plain = strip_escapes(line)
        # One that moves the cursor too is no line of its own.
        if plain in shown and plain.strip() and _COLOUR.sub("", line) == plain and not _OTHERS.search(line):
            found[plain] = line
    return found
