"""The words of praise and correction: the grammar's tables, and what a clause is by them. Texts are read in `human.py`.

A slash stands between words of which one is in its place: `good/great job` is "good job" or "great job".
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Words = tuple[str, ...]

#: Praise is made of these and of courtesies, from the first word to the last.
PRAISE = (
    "good/great/nice/excellent/amazing/awesome/fantastic job/work",
    "well done",
    "perfect/excellent",
    "exactly right",
    "spot on",
    "that's/it's perfect/excellent/right/correct",
    "that/this/it is perfect/excellent/right/correct",
    "that's/it's exactly right",
    "looks good/great/perfect/right",
    "that/this/it looks good/great/perfect/right",
    "looks good to me",
    "lgtm",
)
#: A correction begins with one of these, ended by punctuation or a connective; what follows tells what is wrong.
CORRECTIONS = (
    "wrong/incorrect",
    "wrong answer",
    "that's/it's wrong/incorrect",
    "that/this/it is wrong/incorrect",
    "these/those/they are wrong/incorrect",
    "that's/it's a mistake",
    "that/this/it is a mistake",
    "you're wrong",
    "you are wrong",
    "you got it/that/this wrong",
    "bad/poor job/work",
)
#: Said beside praise, and alone no word.
COURTESIES = (
    "thanks/thx/cheers",
    "thank you",
    "thanks a lot",
    "thanks so much",
    "thank you so/very much",
    "thanks all/everyone/team",
    "thank you all/everyone/team",
    "all/everyone/team",
    "hi/hey/hello",
    "hi/hey/hello all/everyone/team",
    "ok/okay/yes/yep/yeah",
)
#: Beside courtesies they may stand before a correction, with punctuation behind.
OPENERS = ("no/nope", "sorry/actually", "hm/hmm")
#: Words that change nothing.
INTENSIFIERS = "really/very/so/absolutely/completely/totally/simply/just/still/also/quite"
#: After a correction they lead on to what is wrong.
CONNECTIVES = "because/since/and"
#: After a correction's punctuation they take it back.
DOUBTS = "if/unless/maybe/perhaps/probably/possibly/or/but/though"
#: Wherever they stand, the message is no word.
IRONY = ("/s", "jk", "just kidding", "never mind", "nevermind", ";)", ";-)", "🙃", "😉", "😜", "😏")
#: A message of nothing else is praise, or a correction.
THUMBS_UP = ("👍", "+1", ":+1:", ":thumbsup:")
THUMBS_DOWN = ("👎", "-1", ":-1:", ":thumbsdown:")

# What praise may be for: "on the sales report".
_OBJECT_OPENERS = frozenset({"on", "with", "for"})
_DETERMINERS = frozenset({"the", "this", "that", "these", "those", "your"})
_TURNING = frozenset({"but", "not", "no", "never", "except", "without", "that", "which"})
_LONGEST_OBJECT = 6


def plain(word: str) -> str:
    """Give a word as it is compared: small, and without apostrophes, which many leave out."""
    return word.replace("'", "").lower()


def plain_words(clause: Iterable[str]) -> Words:
    """Give a clause's words as they are compared, without mentions and intensifiers."""
    kept = (plain(word) for word in clause if not word.startswith("@"))
    return tuple(word for word in kept if word not in _INTENSIFIERS)


def praises(words: Words) -> bool | None:
    """Tell praise (True) from courtesy (False) and from anything else (None)."""
    for length in range(min(len(words), _LONGEST_PHRASE), 0, -1):
        tail = words[length:]
        if words[:length] in _PRAISE and (_is_courtesy(tail) or _is_object(tail)):
            return True
    return False if _is_courtesy(words) else None


def _is_courtesy(words: Words) -> bool:
    if not words or words in _COURTESIES:
        return True
    return any(words[:length] in _COURTESIES and _is_object(words[length:]) for length in (1, 2))


def _is_object(words: Words) -> bool:
    return (
        len(words) in range(3, _LONGEST_OBJECT + 1)
        and words[0] in _OBJECT_OPENERS
        and words[1] in _DETERMINERS
        and _TURNING.isdisjoint(words[2:])
    )


def is_correction(words: Words) -> bool:
    """Tell whether these words are a phrase of correction."""
    return words in _CORRECTIONS


def is_opener(words: Words) -> bool:
    """Tell whether these words may stand before a correction."""
    return words in _OPENERS or _is_courtesy(words)


def leads_on(word: str) -> bool:
    """Tell whether a word may follow a correction without a pause."""
    return plain(word) in _CONNECTIVES


def takes_back(word: str) -> bool:
    """Tell whether a word behind a correction's pause takes it back."""
    return plain(word) in _DOUBTS


def _expand(patterns: Iterable[str]) -> frozenset[Words]:
    """Write out patterns as the words that are compared."""
    choices = ([place.split("/") for place in pattern.split()] for pattern in patterns)
    return frozenset(plain_words(phrase) for choice in choices for phrase in product(*choice))


_INTENSIFIERS = frozenset(INTENSIFIERS.split("/"))
_CONNECTIVES = frozenset(CONNECTIVES.split("/"))
_DOUBTS = frozenset(DOUBTS.split("/"))
_PRAISE, _CORRECTIONS, _COURTESIES, _OPENERS = map(_expand, (PRAISE, CORRECTIONS, COURTESIES, OPENERS))
_LONGEST_PHRASE = max(map(len, _PRAISE | _CORRECTIONS))
