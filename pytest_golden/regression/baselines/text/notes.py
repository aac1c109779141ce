"""What a difference of texts comes down to, where one word says it: line ends, encoding, order. Each is measured, none guessed."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.opening import is_archive, read_size
from pytest_golden.regression.baselines.text.hunks import decode
from pytest_golden.regression.baselines.text.lines import find_encoding
from pytest_golden.regression.baselines.text.sequence import CountingLines, SideBySide
from pytest_golden.regression.baselines.text.unordered import has_same_lines

if TYPE_CHECKING:
    from pytest_golden.regression.baselines.model import Content
    from pytest_golden.regression.baselines.patterns import PatternProcess
    from pytest_golden.regression.baselines.text.sequence import Line

# The search for the same lines in another order reads both files once more.
_MOST_BYTES_TRIED = 64 << 20
_MOST_BYTES_MASKED = 8 << 20


def differs_in_line_ends_only(actual: Content, baseline: Content, patterns: PatternProcess) -> bool:
    """Tell whether two files are the same but for CRLF here and LF there."""
    ours, theirs = (CountingLines(content, patterns, as_unix=True) for content in (actual, baseline))
    return not SideBySide(ours, theirs).find_difference()


def find_line_notes(actual: Content, baseline: Content, ours: Line | None, theirs: Line | None) -> list[str]:
    """Give what is special about the first lines that differ."""
    one, other = find_encoding(actual), find_encoding(baseline)
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


def has_another_order(actual: Content, baseline: Content, patterns: PatternProcess) -> bool:
    """Tell whether two files have the same lines in another order; those too large for one more look count as not."""
    most = _MOST_BYTES_TRIED if patterns.is_idle else _MOST_BYTES_MASKED
    if is_archive(actual) or max(read_size(actual), read_size(baseline)) > most:
        return False
    # But for the end of the last line, another order has as many bytes.
    if patterns.is_idle and abs(read_size(actual) - read_size(baseline)) > 1:
        return False
    return has_same_lines(CountingLines(actual, patterns), CountingLines(baseline, patterns))


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
