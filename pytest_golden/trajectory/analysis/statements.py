"""Statements in plain English, in a form in which a statement and its negation differ by one flag. Pure text.

Not a grammar: a sentence that asks, supposes, or speaks of another time is left out, and so is one whose subject is a
pronoun. In doubt two sentences are different statements.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|\n+")
_CLAUSE_ENDS = re.compile(r",\s+(?:but|and|while|whereas|yet|so)\s+|,\s+")
_WORD = re.compile(r"\w+(?:[.'/-]\w+)*")
_CONTRACTIONS = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "it's": ("it", "is"),
    "that's": ("that", "is"),
    "there's": ("there", "is"),
    "i'm": ("i", "am"),
    "i've": ("i", "have"),
    "i'll": ("i", "will"),
}
_NEGATORS = frozenset({"not", "no", "never"})
_OPPOSITES = {
    "false": "true",
    "invalid": "valid",
    "incorrect": "correct",
    "wrong": "correct",
    "impossible": "possible",
    "unavailable": "available",
    "unnecessary": "necessary",
    "unsafe": "safe",
    "absent": "present",
    "missing": "present",
    "disabled": "enabled",
    "failed": "passed",
    "fails": "passes",
    "fail": "pass",
}
_SAME_VERB = {
    "has": "have",
    "had": "haved",
    "goes": "go",
    "succeeded": "passed",
    "succeeds": "passes",
    "succeed": "pass",
}
_UNSETTLED_WORDS = (
    "if whether unless suppose supposing assume assuming maybe perhaps might may could would either or until when once "
    "now already yet still earlier previously before after then later longer anymore first initially again but "
    "possibly probably likely seems appears"
)
_UNSETTLED = frozenset(_UNSETTLED_WORDS.split())
_PRONOUN_WORDS = "it this that they these those he she which what who"
_PRONOUNS = frozenset(_PRONOUN_WORDS.split())
_EMPTY_WORDS = "a an the any some do does so thus therefore hence and also indeed"
_LEFT_OUT = frozenset(_EMPTY_WORDS.split())
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|on second thoughts?|scratch that|my mistake|i was wrong|that was wrong|oops|"
    r"turns out|no,)(?!\w)",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """What is said, whether it is denied, and the words in which it was said."""

    words: tuple[str, ...]
    is_denied: bool
    said: str


def list_statements(text: str) -> Iterator[Statement]:
    """Give the statements of a text that are long and firm enough to be contradicted."""
    for sentence in _SENTENCE_ENDS.split(text):
        if sentence.rstrip().endswith("?"):
            continue
        for clause in _CLAUSE_ENDS.split(sentence):
            statement = _parse_clause(clause)
            if statement is not None:
                yield statement


def takes_back(text: str) -> bool:
    """Tell whether a text says that what was said before was wrong."""
    return _CORRECTION.search(text) is not None


def split_sentences(text: str) -> list[str]:
    """Give the sentences of a text, with their marks."""
    return [sentence for sentence in _SENTENCE_ENDS.split(text) if sentence and not sentence.isspace()]


def words_of(text: str) -> list[str]:
    """Give the words of a text in lower case, contractions written out."""
    words: list[str] = []
    for word in _WORD.findall(text.lower().replace("\u2019", "'")):
        if word in _CONTRACTIONS:
            words += _CONTRACTIONS[word]
        elif word.endswith("n't") and len(word) > len("n't"):
            words += (word[:-3], "not")
        else:
            words.append(word)
    return words


def _parse_clause(clause: str) -> Statement | None:
    words = words_of(clause)
    if not words or not _UNSETTLED.isdisjoint(words):
        return None
    kept: list[str] = []
    denials, in_past = 0, False
    for word in words:
        if word in _NEGATORS:
            denials += 1
        elif word == "did":
            in_past = True
        elif word not in _LEFT_OUT:
            denials += word in _OPPOSITES
            kept.append(_stem(_OPPOSITES.get(word, _SAME_VERB.get(word, word)), in_past=in_past))
            in_past = False
    if len(kept) < 2 or kept[0] in _PRONOUNS:
        return None
    return Statement(tuple(kept), denials % 2 == 1, clause.strip())


def _stem(word: str, *, in_past: bool) -> str:
    """Take off what a verb loses behind `does not` and `did not`; the past keeps a mark, so that it stays the past."""
    if word.endswith("ed") and len(word) > 4:
        return f"{word[:-2].rstrip('e')}~"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    word = word.rstrip("e") if len(word) > 3 else word
    return f"{word}~" if in_past else word
