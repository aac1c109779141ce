"""Strip the escape sequences of terminals, which could hide a secret or forge a line, and keep colours on safe lines."""

from __future__ import annotations

from itertools import takewhile

from pytest_golden.redaction.rule import compile_late

# Source: ECMA-48, sections 5.4 (control sequences) and 8.3.89 (operating system commands, as terminals read them), and
# ECMA-35, section 13.2.1 (how a character set is chosen, such as by the `ESC ( B` of `tput sgr0`).
# Bounded, so that an unterminated sequence does not swallow the text after it. A lone ESC is removed too. Otherwise it
# could form a new sequence with the text after it.
_ESCAPES = compile_late(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()*+\-./][0-~]|[@-Z\\-_])?"
    r"|\x9b(?:[0-?]{0,64}[ -/]{0,8}[@-~])?"
)
# Colours as JSON, Python and shells spell them, also nested in quoted text.
_SPELLED_COLOURS = compile_late(r"(?<!\\)\\++(?:(?:u00|x)1[bB]|033|e)(?:\[[0-9;:]{0,32}m|\(B)")
_SPELLED_STARTS = ("1b[", "1B[", "033[", "\\e[", "1b(B", "1B(B", "033(B", "\\e(B")
#: In lower case, every text with an escape sequence or a spelled colour contains one of these.
ESCAPE_KEYWORDS = frozenset({"\x1b", "\x9b"}).union(start.lower() for start in _SPELLED_STARTS)


def strip_escapes(text: str) -> str:
    """Return the text without its escape sequences. Stripping it again changes nothing."""
    return _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text else text


def may_hold_escape(text: str) -> bool:
    """Tell whether a text holds an escape sequence, or what looks like a spelled colour."""
    if "\x1b" in text or "\x9b" in text:
        return True
    if "\\" not in text:
        return False
    return any(colour in text for colour in _SPELLED_STARTS)


def strip_all_colours(text: str) -> str:
    r"""Return the text without escape sequences and spelled colours such as `\u001b[36m`."""
    return _SPELLED_COLOURS.sub("", strip_escapes(text))


def merge_redacted(text: str, plain: str, redacted: str) -> str:
    """Return `text`, but take the lines that redaction changed from `redacted`, without colours.

    Args:
        text: what was printed, with its escape sequences.
        plain: the same without them.
        redacted: `plain` without its secrets.
    """
    lines = text.split("\n")
    plain_lines, new_lines = [strip_all_colours(line) for line in lines], redacted.split("\n")
    if "\n".join(plain_lines) != plain:  # A sequence crosses a line end.
        return redacted
    if len(lines) == len(new_lines):
        return "\n".join(
            line if old == new else new for line, old, new in zip(lines, plain_lines, new_lines, strict=True)
        )
    start = _count_equal(plain_lines, new_lines)
    end = _count_equal(plain_lines[start:][::-1], new_lines[start:][::-1])
    return "\n".join((*lines[:start], *new_lines[start : len(new_lines) - end], *lines[len(lines) - end :]))


def _count_equal(old: list[str], new: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


_COLOUR_START = "\x1b["
_MOST_CHARACTERS = 2_000
# Select graphic rendition; source: ECMA-48, section 8.3.117.
_COLOUR = compile_late("\x1b\\[[0-9;:]{0,32}m")
_OTHER_ESCAPE = compile_late("\x1b(?!\\[[0-9;:]{0,32}m)[^\n]?")


def find_coloured_lines(raw: str, redacted: str) -> dict[str, str]:
    """Map the plain form of each shown line to its coloured form; long lines stay plain.

    Args:
        raw: what was printed.
        redacted: what is shown of it.
    """
    if _COLOUR_START not in raw:
        return {}
    shown = set(redacted.split("\n"))
    found: dict[str, str] = {}
    for line in raw.split("\n"):
        if _COLOUR_START not in line or len(line) > _MOST_CHARACTERS:
            continue
        plain = strip_escapes(line)
        # A line that also moves the cursor is not shown as it is.
        if plain in shown and plain.strip() and _COLOUR.sub("", line) == plain and not _OTHER_ESCAPE.search(line):
            found[plain] = line
    return found
