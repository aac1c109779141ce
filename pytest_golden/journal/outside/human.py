"""What a person's message says of work done: praise, a correction, or no word. A small English grammar, never a guess.

A message that is not in the grammar is no word. A person's word overrides every rule, so a wrong reading would cost more
than none, and a person can always say it plainly.

Time grows with the length of the text alone: it is passed over a fixed number of times.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_golden.journal.model import SignalType
from pytest_golden.journal.outside.human_words import (
    IRONY,
    THUMBS_DOWN,
    THUMBS_UP,
    is_correction,
    is_opener,
    leads_on,
    plain_words,
    praises,
    takes_back,
)
from pytest_golden.journal.outside.quoting import blank_quotations
from pytest_golden.journal.sources import HUMAN
from pytest_golden.manifest.unquoted import show
from pytest_golden.storage.text import storable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.journal.outside.human_words import Words

_FRIENDLY = (":)", ":-)", "👍", "🎉", "👏", "🙏", "🚀", "🙂", "😀", "😊", "❤")
_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ＇", "'"))
# Skin tones and the mark that asks for a coloured picture.
_TONES = dict.fromkeys((*range(0x1F3FB, 0x1F400), 0xFE0F))
_TOKEN = re.compile(r"@?\w+(?:['-]\w+)*|\n|[^\w\s]")
_FIRST_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…？！]+|\n")
_PAUSES = frozenset({",", ".", ";", ":", "!", "…", "–", "—", "-", "\n"})
_LONGEST_CLAUSE = 20
_IRONY = re.compile(
    "|".join(rf"(?<![\w/]){re.escape(mark)}(?![\w/])" if mark[-1].isalpha() else re.escape(mark) for mark in IRONY)
)


def human_signal(text: str) -> dict[str, Any] | None:
    """Give the arguments of `Journal.add_signal` for a person's message: positive, or a correction; None for no word.

    The summary of a correction is what follows its phrase, else the message. Nothing is redacted here.

    Raises:
        ValueError: it is no text.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a text, not {show(text)}")  # noqa: TRY004 - one kind of refusal
    # Of equal length, so that places in it are places in the text.
    spoken = blank_quotations(text).translate(_APOSTROPHES)
    if _is_ironic(spoken):
        return None
    bare = spoken.translate(_TONES).split()
    if _is_thumb(bare, THUMBS_UP) or _is_praise(spoken):
        return _signal(SignalType.POSITIVE, spoken)
    if _is_thumb(bare, THUMBS_DOWN):
        return _signal(SignalType.CORRECTION, spoken)
    end = _find_correction(spoken)
    if end is None:
        return None
    rest = text[end:].lstrip(" \t\r\n,.;:!…–—-)")
    return _signal(SignalType.CORRECTION, rest if any(map(str.isalnum, rest)) else spoken)


def _signal(signal_type: SignalType, summary: str) -> dict[str, Any]:
    return {"source": HUMAN, "signal_type": signal_type.value, "summary": storable(" ".join(summary.split()))}


def _is_ironic(spoken: str) -> bool:
    return _IRONY.search(" ".join(spoken.lower().split())) is not None


def _is_thumb(bare: list[str], thumbs: tuple[str, ...]) -> bool:
    return bool(bare) and all(part in thumbs or set(part) == {thumbs[0]} for part in bare)


def _is_praise(spoken: str) -> bool:
    for mark in _FRIENDLY:
        spoken = spoken.replace(mark, "\n")
    has_praise = False
    for words, pause in _clauses(spoken.translate(_TONES)):
        meaning = praises(words)
        if pause is None or meaning is None:
            return False
        has_praise |= meaning
    return has_praise


def _clauses(spoken: str) -> Iterator[tuple[Words, str | None]]:
    """Give the words up to each pause; None as the pause stands for what has no place in praise."""
    clause: list[str] = []
    for found in _TOKEN.finditer(spoken):
        token = found[0]
        if token in _PAUSES or token.lower() == "and":
            yield plain_words(clause), token
            clause = []
        elif len(clause) > _LONGEST_CLAUSE or not _is_word(token):
            yield (), None
        else:
            clause.append(token)
    yield plain_words(clause), "\n"


def _find_correction(spoken: str) -> int | None:
    """Give the place behind a correction's phrase; None where there is none, or it is asked or doubted."""
    clause, pause = _first_clause(spoken)
    for length in range(len(clause), 0, -1):
        if not is_correction(plain_words(found[0] for found in clause[:length])):
            continue
        if length < len(clause):
            end = clause[length].end()
            is_plain = leads_on(clause[length][0])
        else:
            end = clause[-1].end()
            is_plain = pause in _PAUSES and not _is_doubted(spoken, end)
        return end if is_plain and not _is_asked(spoken, end) else None
    return None


def _first_clause(spoken: str) -> tuple[list[re.Match[str]], str]:
    """Give the words before the first pause that says something, without openers, and the pause."""
    clause: list[re.Match[str]] = []
    for found in _TOKEN.finditer(spoken):
        token = found[0]
        if _is_word(token):
            clause.append(found)
        elif token not in _PAUSES or not is_opener(plain_words(found[0] for found in clause)):
            return clause, token
        else:
            clause = []
        if len(clause) > _LONGEST_CLAUSE:
            break
    return clause, "\n"


def _is_word(token: str) -> bool:
    return token[-1] == "_" or token[-1].isalnum()


def _is_doubted(spoken: str, start: int) -> bool:
    """Tell whether the first word behind a pause takes the phrase back."""
    following = _FIRST_WORD.search(spoken, start)
    return following is not None and takes_back(following[0])


def _is_asked(spoken: str, start: int) -> bool:
    """Tell whether the sentence ends with a question mark. A full stop inside a word or number ends none."""
    for found in _SENTENCE_END.finditer(spoken, start):
        if found.end() == len(spoken) or found[0] == "\n" or spoken[found.end()].isspace():
            return "?" in found[0] or "？" in found[0]
    return False
