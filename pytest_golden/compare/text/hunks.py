"""Where two files differ, as hunks of a unified diff: `-` is the baseline, `+` the output, `?` points at what changed.

The files are walked, never held: each difference is looked at through a window of lines, and after it the walk goes on.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from pytest_golden.compare.showing import (
    LONGEST_LINE,
    LONGEST_REDACTED,
    NOT_SHOWN,
    count_of,
    cut,
    cut_pair,
    find_first_difference,
    show,
)
from pytest_golden.compare.text.text_lines import CONTEXT_LINES, LONGEST_PIECE

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.text.text_lines import Line, SideBySide

_WINDOW_LINES = 120
_WINDOW_BYTES = 256 << 10
_MOST_OF_BLOCK = 6
# Enough to find the way again; fewer equal lines between two changes are shown in one hunk with them.
_SYNC_LINES = CONTEXT_LINES
NO_NEWLINE = "\\ no line end at the end of the file"


def write_hunks(pair: SideBySide, redact: Redact) -> Iterator[str]:
    """Return the lines of the diff, from where the walk stands on a difference to the end of the files.

    The walk goes on as the lines are taken; who wants only some stops taking them. Lines are redacted before they are
    cut; around a secret of several lines nothing is shown.
    """
    shown = 0
    while True:
        yield from _start_hunk(pair, shown, redact)
        shown = yield from _write_window(pair, shown, redact)
        if not pair.find_difference():
            return


def _start_hunk(pair: SideBySide, shown: int, redact: Redact) -> Iterator[str]:
    """Write the lines before a difference that are not shown yet, and where they stand when lines were left out."""
    before = [lines for lines in list(pair.passed)[-CONTEXT_LINES:] if lines[0].number > shown]
    ours, theirs = pair.ours.look(1, 0), pair.theirs.look(1, 0)
    first, their_first = before[0] if before else (ours[0] if ours else None, theirs[0] if theirs else None)
    start = pair.ours.lines_read + 1 if first is None else first.number
    their_start = pair.theirs.lines_read + 1 if their_first is None else their_first.number
    if not shown or start > shown + 1:
        yield f"@@ -{their_start} +{start} @@"
    if not _holds_long_secret([line for line, _ in pair.passed], redact):
        for line, _ in before:
            yield from _write_line(" ", line, redact)


def _write_window(pair: SideBySide, shown: int, redact: Redact) -> Generator[str, None, int]:
    """Write one window, up to where the files are together again; returns the last line of the output that was shown."""
    ours = pair.ours.look(_WINDOW_LINES, _WINDOW_BYTES)
    theirs = pair.theirs.look(_WINDOW_LINES, _WINDOW_BYTES)
    before = [line for line, _ in pair.passed]
    if _holds_long_secret([*before, *ours], redact) or _holds_long_secret([*before, *theirs], redact):
        yield NOT_SHOWN
        pair.pass_by(len(ours), len(theirs))
        return ours[-1].number if ours else shown
    matcher = SequenceMatcher(None, [line.text for line in theirs], [line.text for line in ours], autojunk=False)
    for tag, start, end, our_start, our_end in matcher.get_opcodes():
        if tag == "equal":
            is_sync = end - start >= _SYNC_LINES
            upto = our_start + _SYNC_LINES if is_sync else our_end
            for line in ours[our_start:upto]:
                yield from _write_line(" ", line, redact)
            shown = ours[upto - 1].number
            if is_sync:
                pair.pass_by(our_start, start)
                return shown
        else:
            yield from _write_change(theirs[start:end], ours[our_start:our_end], redact)
            shown = ours[our_end - 1].number if our_end > our_start else shown
    pair.pass_by(len(ours), len(theirs))
    return shown


def _write_change(theirs: list[Line], ours: list[Line], redact: Redact) -> Iterator[str]:
    if len(theirs) == len(ours):
        for their, our in zip(theirs[:_MOST_OF_BLOCK], ours[:_MOST_OF_BLOCK], strict=True):
            yield from _write_pair(their, our, redact)
        if len(ours) > _MOST_OF_BLOCK:
            yield f"[... {count_of(len(ours) - _MOST_OF_BLOCK, 'more changed line')} ...]"
        return
    for sign, lines, whose in (("-", theirs, "the baseline"), ("+", ours, "the output")):
        for line in lines[:_MOST_OF_BLOCK]:
            yield from _write_line(sign, line, redact)
        if len(lines) > _MOST_OF_BLOCK:
            yield f"{sign} [... {count_of(len(lines) - _MOST_OF_BLOCK, 'more line')} of {whose} ...]"


def _write_pair(their: Line, our: Line, redact: Redact) -> Iterator[str]:
    theirs, ours = decode(their.text), decode(our.text)
    show_blanks = theirs.split() == ours.split()
    theirs, ours = (hide(text, redact) for text in cut_pair(theirs, ours, LONGEST_REDACTED))
    shown_theirs, shown_ours = (show(text, show_blanks=show_blanks) for text in cut_pair(theirs, ours))
    yield f"- {shown_theirs}"
    yield from _write_end(their)
    yield f"+ {shown_ours}"
    yield from _write_end(our)
    if mark := _mark(shown_theirs, shown_ours):
        yield f"? {mark}"


def _mark(theirs: str, ours: str) -> str:
    """Return carets below what changed in a line, where most of it did not."""
    start = find_first_difference(theirs, ours)
    rest, other = ours[start:], theirs[start:]
    same_end = find_first_difference(rest[::-1], other[::-1])
    changed = max(len(rest), len(other)) - same_end
    if not changed or changed > max(len(ours), len(theirs)) // 2:
        return ""
    return " " * start + "^" * max(1, len(rest) - same_end)


def _write_line(sign: str, line: Line, redact: Redact) -> Iterator[str]:
    yield f"{sign} {cut(show(hide(decode(line.text[:LONGEST_REDACTED]), redact)), LONGEST_LINE)}"
    yield from _write_end(line)


def _holds_long_secret(lines: list[Line], redact: Redact) -> bool:
    """Tell whether a secret goes over several lines, of which one by one none would be known."""
    text = "\n".join(decode(line.text[:LONGEST_REDACTED]) for line in lines)
    return any(redact(one).count("\n") != len(lines) - 1 for one in {text, text.replace("\0", "")}) if lines else False


def hide(text: str, redact: Redact) -> str:
    """Redact a text; one whose signs have zeros between them, as in UTF-16 among other bytes, is not shown when it holds a secret."""
    plain = text.replace("\0", "")
    return NOT_SHOWN if plain != text and redact(plain) != plain else redact(text)


def _write_end(line: Line) -> Iterator[str]:
    # After a piece of a long line another follows.
    if not line.text.endswith(b"\n") and len(line.text) != LONGEST_PIECE:
        yield NO_NEWLINE


def decode(line: bytes) -> str:
    r"""Return a line as text without its `\n`; bytes that are not UTF-8 stay as surrogates, which `show` knows."""
    return line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
