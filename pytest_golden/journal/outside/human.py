"""Read praise and corrections in a person's messages, by a small English grammar that never guesses.

A message outside the grammar decides nothing. A person's word overrides every rule, so a wrong reading would cost more than
none, and a person can always say it plainly. Quoted lines and blocks of code (Markdown) are not the writer's own words.
In the tables, a slash stands between alternatives: `good/great job` is "good job" or "great job". Time grows with the
length of the text alone: it is read a fixed number of times.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

from pytest_golden.journal.model import SignalType
from pytest_golden.journal.rules import HUMAN
from pytest_golden.manifest.units import show
from pytest_golden.storage.columns import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
#: Allowed beside praise; alone they decide nothing.
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
#: Wherever one stands, the message decides nothing.
IRONY = ("/s", "jk", "just kidding", "never mind", "nevermind", ";)", ";-)", "🙃", "😉", "😜", "😏")
#: A message of nothing else is praise, or a correction.
THUMBS_UP = ("👍", "+1", ":+1:", ":thumbsup:")
THUMBS_DOWN = ("👎", "-1", ":-1:", ":thumbsdown:")

# What praise may be for: "on the sales report".
_OBJECT_OPENERS = frozenset({"on", "with", "for"})
_DETERMINERS = frozenset({"the", "this", "that", "these", "those", "your"})
_TURNING = frozenset({"but", "not", "no", "never", "except", "without", "that", "which"})
_LONGEST_OBJECT = 6
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_QUOTED = re.compile(r" {0,3}>| {4}| {0,3}\t")
_FRIENDLY = (":)", ":-)", "👍", "🎉", "👏", "🙏", "🚀", "🙂", "😀", "😊", "❤")
_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ＇", "'"))
# Skin tones, and the selector of an emoji's coloured form.
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
    """Return the arguments of `Journal.add_signal` for a person's message: positive, or a correction; None for neither.

    The summary of a correction is what follows its phrase, else the message. Nothing is redacted here.

    Raises:
        ValueError: it is not a text.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a text, not {show(text)}")  # noqa: TRY004 - one kind of refusal
    # Of equal length, so that positions in it are positions in the text.
    spoken = blank_quotations(text).translate(_APOSTROPHES)
    if _IRONY.search(" ".join(spoken.lower().split())):
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
    """Yield the words up to each pause; the pause is None for a token that praise cannot contain."""
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
    """Return the position after a correction's phrase; None without one, or in a question or a doubt."""
    clause, pause = _first_clause(spoken)
    for length in range(len(clause), 0, -1):
        if plain_words(found[0] for found in clause[:length]) not in _CORRECTIONS:
            continue
        if length < len(clause):
            end = clause[length].end()
            is_plain = plain(clause[length][0]) in _CONNECTIVES
        else:
            end = clause[-1].end()
            is_plain = pause in _PAUSES and not _is_doubted(spoken, end)
        return end if is_plain and not _is_asked(spoken, end) else None
    return None


def _first_clause(spoken: str) -> tuple[list[re.Match[str]], str]:
    """Return the first clause that is no opener, and the pause after it."""
    clause: list[re.Match[str]] = []
    for found in _TOKEN.finditer(spoken):
        token = found[0]
        if _is_word(token):
            clause.append(found)
        elif token in _PAUSES and ((said := plain_words(one[0] for one in clause)) in _OPENERS or _is_courtesy(said)):
            clause = []
        else:
            return clause, token
        if len(clause) > _LONGEST_CLAUSE:
            break
    return clause, "\n"


def _is_word(token: str) -> bool:
    return token[-1] == "_" or token[-1].isalnum()


def _is_doubted(spoken: str, start: int) -> bool:
    """Tell whether the first word behind a pause takes the phrase back."""
    following = _FIRST_WORD.search(spoken, start)
    return following is not None and plain(following[0]) in _DOUBTS


def _is_asked(spoken: str, start: int) -> bool:
    """Tell whether the sentence ends with a question mark. A full stop inside a word or number ends none."""
    for found in _SENTENCE_END.finditer(spoken, start):
        if found.end() == len(spoken) or found[0] == "\n" or spoken[found.end()].isspace():
            return "?" in found[0] or "？" in found[0]
    return False


def blank_quotations(text: str) -> str:
    """Replace quoted lines and code by spaces, and line ends by newlines, so that all other text keeps its position."""
    blanked, fence = [], ""
    for line in text.splitlines(keepends=True):
        words = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        end = "\n" * (len(line) - len(words))
        was_code, fence = bool(fence), _next_fence(words, fence)
        is_own = not (was_code or fence or _QUOTED.match(words))
        blanked.append((words if is_own else " " * len(words)) + end)
    return "".join(blanked)


def _next_fence(line: str, fence: str) -> str:
    """Return the code fence that is open after this line, "" for none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    marks, rest = found[1], found[2]
    if not fence:
        # In Markdown, backticks further on make this a line with code in it, and no fence.
        return "" if marks[0] == "`" and "`" in rest else marks
    closes = marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip()
    return "" if closes else fence


def plain(word: str) -> str:
    """Return a word in its compared form: lower case, without apostrophes, which many leave out."""
    return word.replace("'", "").lower()


def plain_words(clause: Iterable[str]) -> Words:
    """Return a clause's words in their compared form, without mentions and intensifiers."""
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


def _expand(patterns: Iterable[str]) -> frozenset[Words]:
    """Return all phrases of some patterns, in their compared form."""
    choices = ([place.split("/") for place in pattern.split()] for pattern in patterns)
    return frozenset(plain_words(phrase) for choice in choices for phrase in product(*choice))


_INTENSIFIERS = frozenset(INTENSIFIERS.split("/"))
_CONNECTIVES = frozenset(CONNECTIVES.split("/"))
_DOUBTS = frozenset(DOUBTS.split("/"))
_PRAISE, _CORRECTIONS, _COURTESIES, _OPENERS = map(_expand, (PRAISE, CORRECTIONS, COURTESIES, OPENERS))
_LONGEST_PHRASE = max(map(len, _PRAISE | _CORRECTIONS))
