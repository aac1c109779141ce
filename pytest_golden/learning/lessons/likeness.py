"""How much alike two errors read, once what differs from run to run is taken out. Pure; strict, since noise costs trust."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A variable that is not set is another cause than a key that is not there.
_MARK = re.compile(r"<(?!variable>)[a-z]+>")
_KEPT = re.compile(r"'[^']{1,80}'|<variable>|\b0xf[ef]\b|\b[1-5]\d\d\b|\bdialects:\w+")
_CLASS = re.compile(r"\b_?[A-Z]\w*?(?:Error|Exception|Interrupt|Timeout|Exit|Invalid|NotFound)\b")
_HEADLINE = re.compile(r"(?:^|> )(_?[A-Z]\w+): ")
_WORD = re.compile(r"[^\W\d_]{2,}")


def _read_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# These say that something failed, and not what.
_GENERIC_CLASSES = _read_words("""
    Exception RuntimeError ValueError TypeError OSError AssertionError SystemExit Error BaseException IOError
    NodeExecutionError PipelineError TaskError Invalid AttributeError ConnectionError
""")
_COMMON = _read_words("""
    error errors exception failed failure fail exit code expected status run job task step pipeline process returned non zero
    see log line column char position an the of at in on to for is it with and or by be this that you your please try use using
    more reason reasons caused during while from encountered model node execution location runtime unknown message details
    internal name value object type file path data after has was are got ended can completed partial successes warnings done
    pass warn skip total op creating sql start starting finished fatal exhausted attempts attempt retry all one test result
    results configured rows row max retries exceeded url httpconnectionpool httpsconnectionpool
    inspect specific next steps suggestions database compilation dependency parsing
""")
# Each names a cause by itself: where only one of two errors has it, they are two.
_TELLING = _read_words("""
    not no never without missing duplicate exists already unique null ambiguous refused timed timeout reset aborted denied
    unauthorized forbidden expired locked readonly empty invalid undefined unexpected full memory overflow truncated corrupted
    cycle duplicated overlapping mismatch required unsupported resolve unreachable signature extra more fewer less large small
    larger smaller too syntax permission quota directory table column function view schema host port certificate hostname macro
    profile test snapshot source key keys index encode decode read write connect
""")
_CLASS_WEIGHT, _COMMON_WEIGHT, _RUN_WEIGHT = 2.0, 0.25, 0.5
_FEWEST_WORDS, _FEWEST_SEARCHED = 2, 3


@dataclass(frozen=True, slots=True)
class ErrorFeatures:
    """What an error's signature says: kept names, the classes of its exceptions, its words, and pairs of neighbours."""

    kept: frozenset[str]
    classes: frozenset[str]
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @property
    def tells_a_cause(self) -> bool:
        """Tell whether it says what failed, and not only that something did."""
        informative = self.words - _COMMON
        return bool(self.classes - _GENERIC_CLASSES or self.kept) or len(informative) >= _FEWEST_WORDS


def read_features(signature: str) -> ErrorFeatures:
    """Take a signature apart."""
    bare = _MARK.sub(" ", signature)
    kept = _KEPT.findall(bare)
    without = _KEPT.sub(" ", bare)
    classes = {*_CLASS.findall(without), *_HEADLINE.findall(without)}
    words = [
        word.lower() for word in _WORD.findall(_HEADLINE.sub(" ", _CLASS.sub(" ", without)).replace("n't", " not"))
    ]
    pairs = pairwise(words)
    return ErrorFeatures(frozenset(kept), frozenset(classes), frozenset(words), frozenset(pairs))


def measure_likeness(one: ErrorFeatures, other: ErrorFeatures) -> float:
    """Measure from 0 to 1 how much of what either says the other says too; rarer words count for more.

    0 when something that names a cause is in one alone: another exception, module, attribute or state, another negation.
    """
    if one.kept != other.kept or not (one.tells_a_cause and other.tells_a_cause):
        return 0.0
    if any(ours and theirs and not ours & theirs for ours, theirs in _pair_classes(one, other)):
        return 0.0
    if (one.words ^ other.words) & _TELLING:
        return 0.0
    shared, all_of_it = 0.0, 0.0
    for ours, theirs, weigh in (
        (one.classes, other.classes, _weigh_class),
        (one.words, other.words, _weigh_word),
    ):
        shared += sum(map(weigh, ours & theirs))
        all_of_it += sum(map(weigh, ours | theirs))
    shared += _RUN_WEIGHT * len(one.pairs & other.pairs)
    all_of_it += _RUN_WEIGHT * len(one.pairs | other.pairs)
    return shared / all_of_it if all_of_it else 0.0


def _pair_classes(one: ErrorFeatures, other: ErrorFeatures) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    yield one.classes, other.classes
    yield one.classes - _GENERIC_CLASSES, other.classes - _GENERIC_CLASSES


def holds_all_words(asked: ErrorFeatures, told: str) -> bool:
    """Tell whether what a person typed, three words that mean something or more, stands in what a lesson tells."""
    words = asked.words - _COMMON
    return len(words) >= _FEWEST_SEARCHED and words <= set(map(str.lower, _WORD.findall(told)))


def choose_query(features: Iterable[ErrorFeatures], most: int) -> str:
    """Choose the words by which errors like these are looked up."""
    found: dict[str, None] = {}
    for one in features:
        found.update(dict.fromkeys(sorted(one.classes)))
        found.update(dict.fromkeys(sorted((one.words - _COMMON), key=len, reverse=True)))
    return " ".join(list(found)[:most])


def _weigh_class(name: str) -> float:
    return 1.0 if name in _GENERIC_CLASSES else _CLASS_WEIGHT


def _weigh_word(word: str) -> float:
    return _COMMON_WEIGHT if word in _COMMON else 1.0
