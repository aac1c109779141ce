"""Compares two texts: whether the lines that count are the same, and how they differ.

Where one word says it (line ends, encoding, order), a difference is described by that word, each measured, none guessed.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from itertools import chain
from typing import TYPE_CHECKING

from pytest_golden.compare.opening import Mismatch, is_archive, read_size
from pytest_golden.compare.showing import (
    LONGEST_LINE,
    LONGEST_REDACTED,
    NOT_SHOWN,
    compose,
    cut,
    cut_pair,
    find_first_difference,
    show,
)
from pytest_golden.compare.text import text_lines
from pytest_golden.compare.text.text_lines import CountingLines, SideBySide
from pytest_golden.compare.text_patterns import PatternProcess
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pytest_golden.compare.opening import Content
    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.text.text_lines import Line, UnorderedDifference
    from pytest_golden.manifest.model import DeclaredOutput


_LEGEND = "(- baseline, + output)"
_MOST_UNORDERED = 17
# A secret can go on beyond the lines that are shown.
_MOST_JOINED = 200
_KEY_MARK = b"PRIVATE KEY"
_OF_KEY = re.compile(rb"[A-Za-z0-9+/=]{16}")
_GIT_ADVICE = "if git did that to the baseline, write `golden_baselines/** -text` into .gitattributes"

# The search for the same lines in another order reads both files once more.
_MOST_BYTES_TRIED = 64 << 20
_MOST_BYTES_MASKED = 8 << 20

_WINDOW_LINES = 120
_WINDOW_BYTES = 256 << 10
_MOST_OF_BLOCK = 6
# Enough to find the way again; fewer equal lines between two changes are shown in one hunk with them.
_SYNC_LINES = text_lines.CONTEXT_LINES
NO_NEWLINE = "\\ no line end at the end of the file"


def compare_text(
    declared: DeclaredOutput, actual: Content, baseline: Content, *, shown_as: str, redact: Redact
) -> Mismatch | None:
    """Compare two texts by `ignore_lines`, `masks` and `unordered`.

    Raises:
        UnreadableError: one of them cannot be read.
        PatternTimedOutError: a pattern backtracks without end.
    """
    with PatternProcess(declared.ignore_lines, declared.masks) as patterns:
        compare = _compare_unordered if declared.unordered else _compare_ordered
        message = compare(actual, baseline, patterns, shown_as, redact)
    return None if message is None else Mismatch(ReasonKind.OUTPUT_DIFFERS, message)


def _compare_ordered(
    actual: Content, baseline: Content, patterns: PatternProcess, shown_as: str, redact: Redact
) -> str | None:
    pair = SideBySide(CountingLines(actual, patterns), CountingLines(baseline, patterns))
    if not pair.find_difference():
        return None
    ours, theirs = (next(iter(side.look(1, 0)), None) for side in (pair.ours, pair.theirs))
    if ours is not None and theirs is not None and ours.text.rstrip(b"\r\n") == theirs.text.rstrip(b"\r\n"):
        if pair.ours.fill(2) == pair.theirs.fill(2) == 1:
            return _describe_last_line(ours, theirs, shown_as)
        if differs_in_line_ends_only(actual, baseline, patterns):
            return _describe_line_ends(ours, shown_as)
    notes = find_line_notes(actual, baseline, ours, theirs)
    if has_another_order(actual, baseline, patterns):
        notes.append("the lines are the same in another order, which `unordered: true` would accept")
    lines = chain((f"note: {note}" for note in notes), write_hunks(pair, redact))
    return compose(_headline(pair, ours, theirs, shown_as), lines)


def _describe_last_line(ours: Line, theirs: Line, shown_as: str) -> str:
    one, other = _name_line_end(ours), _name_line_end(theirs)
    return (
        f"{shown_as} differs from its baseline only after the last line: "
        f"there the output has {one}, its baseline {other}"
    )


def _describe_line_ends(ours: Line, shown_as: str) -> str:
    one, other = ("CRLF", "LF") if ours.text.endswith(b"\r\n") else ("LF", "CRLF")
    return (
        f"{shown_as} differs from its baseline only in line ends, first at line {ours.number:,}: "
        f"the output has {one}, its baseline {other}; {_GIT_ADVICE}"
    )


def _name_line_end(line: Line) -> str:
    end = line.text[len(line.text.rstrip(b"\r\n")) :]
    return {b"": "no line end", b"\n": "a line end (LF)", b"\r\n": "a line end (CRLF)"}.get(end, "a carriage return")


def _headline(pair: SideBySide, ours: Line | None, theirs: Line | None, shown_as: str) -> str:
    if ours is not None and theirs is not None:
        return f"{shown_as} differs from its baseline, first at line {ours.number:,} {_LEGEND}"
    if ours is not None:
        return f"{shown_as} differs from its baseline: it goes on at line {ours.number:,}, where its baseline ends {_LEGEND}"
    return f"{shown_as} differs from its baseline: it ends after {count_of(pair.ours.lines_read, 'line')}, and its baseline goes on {_LEGEND}"


def _compare_unordered(
    actual: Content, baseline: Content, patterns: PatternProcess, shown_as: str, redact: Redact
) -> str | None:
    found = text_lines.find_unordered_difference(
        lambda: CountingLines(actual, patterns), lambda: CountingLines(baseline, patterns)
    )
    if found is None:
        return None
    # A single line of a private key does not show that it belongs to one.
    blocks = (block for content in (actual, baseline) for block in text_lines.read_blocks(content, whole_lines=False))
    holds_key = any(_KEY_MARK in block.replace(b"\0", b"") for block in blocks)
    lines = _write_unordered(found, redact, holds_key=holds_key)
    return compose(_headline_unordered(found, shown_as), lines)


def _headline_unordered(found: UnorderedDifference, shown_as: str) -> str:
    least = "" if found.is_whole else "at least "
    ours, theirs = (sum(count for _, count in lines) for lines in (found.only_ours, found.only_theirs))
    return (
        f"{shown_as} differs from its baseline, whatever the order: {least}{count_of(ours, 'line')} only in the output, "
        f"{least}{theirs:,} only in its baseline {_LEGEND}"
    )


def _write_unordered(found: UnorderedDifference, redact: Redact, *, holds_key: bool) -> Iterator[str]:
    if found.our_lines != found.their_lines:
        yield f"the output has {count_of(found.our_lines, 'line')}, its baseline {count_of(found.their_lines, 'line')}"
    for sign, lines in (("-", found.only_theirs), ("+", found.only_ours)):
        is_split = _holds_long_secret([line for line, _ in lines[:_MOST_JOINED]], redact)
        for line, count in lines[:_MOST_UNORDERED]:
            times = f"  [{count:,} times more]" if count > 1 else ""
            is_of_key = holds_key and _OF_KEY.search(line.replace(b"\0", b"")) is not None
            text = NOT_SHOWN if is_split or is_of_key else hide(decode(line[:LONGEST_REDACTED]), redact)
            yield f"{sign} {cut(show(text), LONGEST_LINE)}{times}"
        if len(lines) > _MOST_UNORDERED:
            yield f"{sign} [... {count_of(len(lines) - _MOST_UNORDERED, 'more line')} ...]"


def differs_in_line_ends_only(actual: Content, baseline: Content, patterns: PatternProcess) -> bool:
    """Tell whether two files are the same but for CRLF here and LF there."""
    ours, theirs = (CountingLines(content, patterns, as_unix=True) for content in (actual, baseline))
    return not SideBySide(ours, theirs).find_difference()


def find_line_notes(actual: Content, baseline: Content, ours: Line | None, theirs: Line | None) -> list[str]:
    """Return what is special about the first lines that differ."""
    one, other = text_lines.find_encoding(actual), text_lines.find_encoding(baseline)
    notes = [] if one == other else [f"the output is {one}, its baseline {other}"]
    if ours is None or theirs is None:
        return notes
    texts = decode(ours.text), decode(theirs.text)
    notes += [
        f"{whose} is not UTF-8 there"
        for whose, text in zip(("the output", "its baseline"), texts, strict=True)
        if any("\udc80" <= sign <= "\udcff" for sign in text)
    ]
    return [*notes, *_note_of_pair(*texts)]


def _note_of_pair(ours: str, theirs: str) -> list[str]:
    if ours == theirs:
        return []
    if "".join(ours.split()) == "".join(theirs.split()):
        return ["the first lines that differ do so only in blanks"]
    if ours.lstrip("\ufeff") == theirs.lstrip("\ufeff"):
        return ["a byte-order mark stands at the beginning of one of them"]
    if unicodedata.normalize("NFC", ours) == unicodedata.normalize("NFC", theirs):
        return ["the same letters in another Unicode form (composed or decomposed)"]
    return []


def has_another_order(actual: Content, baseline: Content, patterns: PatternProcess) -> bool:
    """Tell whether two files have the same lines in another order; False for files too large to be read once more."""
    most = _MOST_BYTES_TRIED if patterns.is_idle else _MOST_BYTES_MASKED
    if is_archive(actual) or max(read_size(actual), read_size(baseline)) > most:
        return False
    # But for the end of the last line, another order has as many bytes.
    if patterns.is_idle and abs(read_size(actual) - read_size(baseline)) > 1:
        return False
    return text_lines.has_same_lines(CountingLines(actual, patterns), CountingLines(baseline, patterns))


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
    before = [lines for lines in list(pair.passed)[-text_lines.CONTEXT_LINES :] if lines[0].number > shown]
    ours, theirs = pair.ours.look(1, 0), pair.theirs.look(1, 0)
    first, their_first = before[0] if before else (ours[0] if ours else None, theirs[0] if theirs else None)
    start = pair.ours.lines_read + 1 if first is None else first.number
    their_start = pair.theirs.lines_read + 1 if their_first is None else their_first.number
    if not shown or start > shown + 1:
        yield f"@@ -{their_start} +{start} @@"
    if not _holds_long_secret([line.text for line, _ in pair.passed], redact):
        for line, _ in before:
            yield from _write_line(" ", line, redact)


def _write_window(pair: SideBySide, shown: int, redact: Redact) -> Generator[str, None, int]:
    """Write one window, up to where the files are together again; returns the last line of the output that was shown."""
    ours = pair.ours.look(_WINDOW_LINES, _WINDOW_BYTES)
    theirs = pair.theirs.look(_WINDOW_LINES, _WINDOW_BYTES)
    before = [line for line, _ in pair.passed]
    if any(_holds_long_secret([line.text for line in (*before, *lines)], redact) for lines in (ours, theirs)):
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


def _holds_long_secret(lines: list[bytes], redact: Redact) -> bool:
    """Tell whether a secret goes over several lines, of which one by one none would be known."""
    text = "\n".join(decode(line[:LONGEST_REDACTED]) for line in lines)
    return any(redact(one).count("\n") != len(lines) - 1 for one in {text, text.replace("\0", "")}) if lines else False


def hide(text: str, redact: Redact) -> str:
    """Redact a text; one whose signs have zeros between them, as in UTF-16 among other bytes, is not shown when it holds a secret."""
    plain = text.replace("\0", "")
    return NOT_SHOWN if plain != text and redact(plain) != plain else redact(text)


def _write_end(line: Line) -> Iterator[str]:
    # After a piece of a long line another follows.
    if not line.text.endswith(b"\n") and len(line.text) != text_lines.LONGEST_PIECE:
        yield NO_NEWLINE


def decode(line: bytes) -> str:
    r"""Return a line as text without its `\n`; bytes that are not UTF-8 stay as surrogates, which `show` knows."""
    return line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
