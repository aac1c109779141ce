"""Read praise and corrections in a person's messages, by a small English grammar that never guesses.

A message outside the grammar decides nothing. A person's word overrides every rule, so a wrong reading would cost more than
none, and a person can always say it plainly. Quoted lines and blocks of code (Markdown) are not the writer's own words.
In the tables, a slash separates alternatives: `good/great job` is "good job" or "great job". `it` means "this", "they",
"the totals" and similar words, and may be missing before a verb; `it is` means "that's" and "they are". A text is read a
fixed number of times, so the time grows only with its length.
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

#: Praise consists of these and of courtesies only.
PRAISE = (
    "good/great/nice/excellent/amazing/awesome/fantastic/brilliant job/work/catch/find/fix/stuff/one",
    "well done",
    "great/perfect/excellent/awesome/amazing/fantastic/brilliant/beautiful/lovely/approved",
    "exactly right",
    "spot on",
    "it is/looks good/great/perfect/excellent/right/correct/fine/beautiful/brilliant",
    "it is/looks exactly right",
    "it is/looks much/far/way better",
    "much/far/way better",
    "it looks good to me",
    "lgtm",
    "it works",
    "it works great/fine/well/perfectly/nicely/now/again",
    "it works for me/us",
    "it works as expected/intended/designed",
    "it works like a charm",
    "exactly what i/we wanted/needed/meant",
    "exactly what i/we asked for",
    "it is exactly what i/we wanted/needed/meant",
    "it is exactly what i/we asked for",
    "it is what i/we wanted/needed/meant",
    "it is what i/we asked for",
    "it fixed/solved it/this/that",
    "it fixed/solved the problem/issue/bug/error",
    "it did it",
    "it did the trick",
    "nailed it",
    "you nailed it",
    "ship it",
    "love it/this/that",
    "i/we love/like it/this/that",
    "happy with it/this/that",
    "i am happy",
    "i am happy with it/this/that",
    "all good",
    "good to go/merge",
    "ready to merge",
    "no complaints",
)
#: A correction begins with one of these, then punctuation, a connective or a preposition, and then what is wrong.
CORRECTIONS = (
    "wrong/incorrect",
    "wrong answer",
    "it is/looks wrong/incorrect/broken/unacceptable",
    "it looks off",
    "it is a mistake/regression",
    "it is not right/correct/true/good/acceptable/working",
    "it is not good enough",
    "it is not what i/we wanted/needed/meant",
    "it is not what i/we asked for",
    "it does not work/help",
    "it does not look right/correct/good",
    "it does not make sense",
    "it makes no sense",
    "it fails/crashes",
    "you are wrong",
    "you got it/that/this wrong",
    "you misunderstood/misread",
    "still wrong/broken/failing",
    "bad/poor/terrible/awful/sloppy job/work",
    "no good",
    "i/we disagree",
    "i/we had to revert/undo/redo/fix it/this/that",
    "i/we reverted/undid it/this/that",
    "revert/undo it/this/that",
    "please revert/undo/redo",
    "please revert/undo/redo/fix it/this/that",
    "please try again",
)
#: Directly after one of these comes what is wrong: "you forgot the refunds".
OPEN_CORRECTIONS = (
    "you forgot/missed/broke/misread/misunderstood/overlooked/ignored",
    "it breaks",
    "it should have been",
    "it is supposed to be/have",
    "i/we had to revert/undo/redo/fix",
    "i/we reverted/undid",
    "i/we meant",
    "i/we asked for",
    "please revert/undo/redo the/your/these/those",
)
#: After one of these comes what is right, with "instead" or ", not": "it should be 5, not 7".
REPLACEMENTS = ("it should be/use/have", "you should use/have")
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
    "now",
)
#: They may come before a correction, as courtesies may, followed by punctuation.
OPENERS = ("no/nope", "sorry/actually", "hm/hmm")
#: Words that change nothing.
INTENSIFIERS = "really/very/so/absolutely/completely/totally/simply/just/still/also/quite"
#: Between a correction and what is wrong.
CONNECTIVES = "because/since/and"
#: They belong to what is wrong: "this fails on Windows".
PREPOSITIONS = "on/in/for/with/when/at/under/here/again/now/anymore"
#: If one of these follows what is wrong, the work is not to blame: "this fails on main too".
EXCUSES = "unrelated/expected/intended/known/fine/fixed/already/too/anyway/ignore/ok/okay/purpose/flaky"
#: After the punctuation of a correction they take it back.
DOUBTS = "if/unless/maybe/perhaps/probably/possibly/or/but/though"
#: A message with one of these decides nothing.
IRONY = (
    *("/s", "jk", "just kidding", "never mind", "nevermind", "yeah right", "as if", "lol", "haha"),
    *(";)", ";-)", "🙃", "😉", "😜", "😏", "🙄", "😂", "🤦"),
)
#: A message of only these is praise, or a correction.
THUMBS_UP = ("👍", "+1", ":+1:", ":thumbsup:", ":shipit:", "💯")
THUMBS_DOWN = ("👎", "-1", ":-1:", ":thumbsdown:")

# What praise may be for: "on the sales report".
_OBJECT_OPENERS = frozenset({"on", "with", "for"})
_DETERMINERS = frozenset({"the", "this", "that", "these", "those", "your"})
_TURNING = frozenset({"but", "not", "no", "never", "except", "without", "that", "which"})
_LONGEST_OBJECT = 6
# "it" in the tables is a subject, or an article and a few words: "the totals". A clause about an earlier
# version says nothing about this one.
_SUBJECTS = frozenset({"it", "this", "that", "these", "those", "they", "everything"})
_ARTICLES = frozenset({"the", "your", "this", "that", "these", "those", "all"})
_EARLIER = frozenset({"old", "previous", "original", "former", "earlier", "last", "other", "that", "which", "who"})
_LONGEST_SUBJECT = 5
_CONTRACTIONS = {
    "thats": ("it", "is"),
    "its": ("it", "is"),
    "theyre": ("it", "is"),
    "youre": ("you", "are"),
    "im": ("i", "am"),
}
_VERBS = {
    **dict.fromkeys(("is", "are", "seems", "seem"), ("is",)),
    **dict.fromkeys(("isnt", "arent"), ("is", "not")),
    **dict.fromkeys(("doesnt", "dont", "didnt"), ("does", "not")),
    **dict.fromkeys(("does", "do"), ("does",)),
    **dict.fromkeys(("looks", "look"), ("looks",)),
    **dict.fromkeys(("works", "work", "worked"), ("works",)),
    **dict.fromkeys(("fails", "fail", "failed"), ("fails",)),
    **dict.fromkeys(("crashes", "crash", "crashed"), ("crashes",)),
    **dict.fromkeys(("breaks", "break", "broke"), ("breaks",)),
    **dict.fromkeys(("fixed", "fixes"), ("fixed",)),
    **dict.fromkeys(("solved", "solves"), ("solved",)),
    **dict.fromkeys(("makes", "make"), ("makes",)),
    "did": ("did",),
    "should": ("should",),
}
_PAST = {**dict.fromkeys(("was", "were"), ("is",)), **dict.fromkeys(("wasnt", "werent"), ("is", "not"))}
_VERBS_AND_PAST = _VERBS | _PAST
# Verbs before which "it" may be missing.
_UNDERSTOOD = frozenset({"looks", "works", "worked", "fails", "crashes", "breaks", "makes", "does", "doesnt", "didnt"})
_YES = frozenset({"yes", "yep", "yeah", "ok", "okay", "thanks", "thx"})
# Before the first words of a sentence they change nothing: "no that's wrong".
_LEADS = frozenset({"no", "nope", "but", "sorry", "actually", "hm", "hmm", "unfortunately", "well", "wait"})
_BEGINNINGS = _SUBJECTS | _ARTICLES | _UNDERSTOOD | {*_CONTRACTIONS, "you", "i", "we", "please"}
# With such an object it is not a mistake: "you missed nothing", "I meant to thank you".
_HALTS = frozenset({"not", "nothing", "no", "none", "nobody", "never", "to", "it"})
_GUESSES = frozenset({"maybe", "perhaps", "probably", "possibly"})
_EXCUSES = frozenset(EXCUSES.split("/"))
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_QUOTED = re.compile(r" {0,3}>| {4}| {0,3}\t")
_FRIENDLY = (":)", ":-)", "👍", "🎉", "👏", "🙏", "🚀", "👌", "💯", "✅", "🙂", "😀", "😊", "❤")
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

    The summary of a correction is the text after its phrase, or the whole message. Nothing is redacted here.

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
    if _is_thumb(bare, THUMBS_UP) or ("..." not in spoken and _is_praise(spoken)):
        return _signal(SignalType.POSITIVE, spoken)
    if _is_thumb(bare, THUMBS_DOWN):
        return _signal(SignalType.CORRECTION, spoken)
    start = _find_correction(spoken)
    if start is None:
        return None
    rest = text[start:].lstrip(" \t\r\n,.;:!…–—-)")
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
    """Return where the description of the mistake begins, or the end if the whole message is one; None without a correction."""
    clause, pause = _first_clause(spoken)
    clause = _without_leads(clause)
    words = [found[0] for found in clause]
    for length in range(len(clause), 0, -1):
        said = about_it(plain_words(words[:length]))
        if said not in _ALL_CORRECTIONS:
            continue
        end = clause[length - 1].end()
        start = None
        if length == len(clause):
            start = end if said in _CORRECTIONS and pause in _PAUSES and not _is_doubted(spoken, end) else None
        elif said in _CORRECTIONS and plain(words[length]) in _CONNECTIVES:
            start = clause[length].end()
        elif _goes_on(said, words[length:], spoken[clause[-1].end() :]) and not _is_excused(spoken[end:]):
            start = len(spoken)
        is_plain = start is not None and not _is_asked(spoken, end) and not _is_praised_too(spoken[end:])
        return start if is_plain else None
    return None


def _goes_on(said: Words, behind: list[str], rest: str) -> bool:
    """Tell whether the words after a phrase, and the rest of the message, describe the mistake."""
    if said in _CORRECTIONS and plain(behind[0]) in _PREPOSITIONS:
        return True
    if said in _REPLACEMENTS and not _is_replaced(behind, rest):
        return False
    told = plain_words(behind)
    # "I meant this as praise" is not a correction.
    is_of_speaker = said[0] in {"i", "we"} and told[:1] and told[0] in _SUBJECTS
    return said not in _CORRECTIONS - _OPEN and not is_of_speaker and _tells_mistake(told)


def _tells_mistake(behind: Words) -> bool:
    is_pronoun = len(behind) == 1 and behind[0] in _SUBJECTS
    return bool(behind) and behind[0] not in _HALTS and not is_pronoun and _GUESSES.isdisjoint(behind)


def _is_excused(rest: str) -> bool:
    return not _EXCUSES.isdisjoint(plain(found[0]) for found in _TOKEN.finditer(rest))


def _is_replaced(behind: list[str], rest: str) -> bool:
    return "instead" in map(plain, behind) or rest.lower().lstrip().startswith(", not ")


def _is_praised_too(rest: str) -> bool:
    return any(praises(words) for words, _ in _clauses(rest))


def _without_leads(clause: list[re.Match[str]]) -> list[re.Match[str]]:
    first = 0
    while first + 1 < len(clause) and plain(clause[first][0]) in _LEADS:
        if plain(clause[first + 1][0]) not in _BEGINNINGS | _LEADS | _INTENSIFIERS:
            break
        first += 1
    return clause[first:]


def _first_clause(spoken: str) -> tuple[list[re.Match[str]], str]:
    """Return the first clause that is not an opener, and the pause after it."""
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
    """Tell whether the first word after a pause takes the phrase back."""
    following = _FIRST_WORD.search(spoken, start)
    return following is not None and plain(following[0]) in _DOUBTS


def _is_asked(spoken: str, start: int) -> bool:
    """Tell whether the sentence ends with a question mark. A full stop inside a word or number does not end it."""
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
        # In Markdown, more backticks later in the line make it a line with code, not a fence.
        return "" if marks[0] == "`" and "`" in rest else marks
    closes = marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip()
    return "" if closes else fence


def plain(word: str) -> str:
    """Return a word as it is compared: in lower case, without apostrophes, which many people leave out."""
    return word.replace("'", "").lower()


def plain_words(clause: Iterable[str]) -> Words:
    """Return the words of a clause as they are compared, without mentions and intensifiers."""
    kept = (plain(word) for word in clause if not word.startswith("@"))
    return tuple(word for word in kept if word not in _INTENSIFIERS)


def about_it(words: Words) -> Words:
    """Write a clause as in the tables: "the totals are wrong" and "that's wrong" are "it is wrong"."""
    if not words:
        return words
    words = (*_CONTRACTIONS.get(words[0], words[:1]), *words[1:])
    if words[0] in _UNDERSTOOD:
        words = ("it", *words)
    if words[0] in _SUBJECTS and words[1:2] and words[1] in _VERBS_AND_PAST:
        return ("it", *_VERBS_AND_PAST[words[1]], *words[2:])
    if words[0] in _ARTICLES:
        for place in range(2, min(len(words), _LONGEST_SUBJECT + 1)):
            if words[place] in _VERBS and _EARLIER.isdisjoint(words[1:place]):
                return ("it", *_VERBS[words[place]], *words[place + 1 :])
    return words


def praises(words: Words) -> bool | None:
    """Tell praise (True) from courtesy (False) and from anything else (None)."""
    if _is_courtesy(words):
        return False
    said = about_it(words[1:] if words[0] in _YES else words)
    for length in range(min(len(said), _LONGEST_PHRASE), 0, -1):
        tail = said[length:]
        if said[:length] in _PRAISE and (_is_courtesy(tail) or _is_object(tail)):
            return True
    return None


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
    """Return all phrases of some patterns, as they are compared."""
    choices = ([place.split("/") for place in pattern.split()] for pattern in patterns)
    return frozenset(about_it(plain_words(phrase)) for choice in choices for phrase in product(*choice))


_INTENSIFIERS = frozenset(INTENSIFIERS.split("/"))
_CONNECTIVES = frozenset(CONNECTIVES.split("/"))
_PREPOSITIONS = frozenset(PREPOSITIONS.split("/"))
_DOUBTS = frozenset(DOUBTS.split("/"))
_PRAISE, _CORRECTIONS, _COURTESIES, _OPENERS = map(_expand, (PRAISE, CORRECTIONS, COURTESIES, OPENERS))
_REPLACEMENTS = _expand(REPLACEMENTS)
_OPEN = _expand(OPEN_CORRECTIONS)
_ALL_CORRECTIONS = _CORRECTIONS | _OPEN | _REPLACEMENTS
_LONGEST_PHRASE = max(map(len, _PRAISE))
