"""Compare errors by their words, find equal and contradictory lessons, and join equal ones. Pure."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.learning import signature as errors
from pytest_golden.learning.signature import digest_signature
from pytest_golden.storage.columns import storable
from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_golden.learning.lessons.model import SkillMemory

# A variable that is not set is a different cause from a missing key.
_MARK = r"<(?!variable>)[a-z]+>"
_KEPT = r"'[^']{1,80}'|<variable>|\b0xf[ef]\b|\b[1-5]\d\d\b|\bdialects:\w+"
_CLASS = r"\b_?[A-Z]\w*?(?:Error|Exception|Interrupt|Timeout|Exit|Invalid|NotFound)\b"
_HEADLINE = r"(?:^|> )(_?[A-Z]\w+): "
_WORD = r"[^\W\d_]{2,}"
_CLASS_WEIGHT, _COMMON_WEIGHT, _RUN_WEIGHT = 2.0, 0.25, 0.5
_FEWEST_WORDS, _FEWEST_SEARCHED = 2, 3
# Comparisons, signs and the names of languages tell advice apart; other punctuation does not.
_TOKEN = r"[^\W_]+|[<>=!]=|[<>]|(?<![^\s(=,])-(?=\d)|\+\+|#"
_NEGATIONS = frozenset({"not", "never", "avoid", "without", "dont", "don", "cannot", "stop"})
# A word that negates another counts as that other word, negated.
_OPPOSITES = {
    "disable": "enable",
    "decrease": "increase",
    "reduce": "increase",
    "exclude": "include",
    "remove": "add",
    "false": "true",
    "disallow": "allow",
}
# In advice with these words the order of the words matters.
_TURNING = frozenset({"instead", "rather", "than", "over", "before", "after", "from", "to"})
_FILLERS = _NEGATIONS | {"t", "do", "always", "should", "must", "please", "using", "use", "the", "a", "an"}
MOST_ERRORS = 10
JOINED_TEXTS = ("context", "what_failed", "what_worked", "why", "tool_name")
_OWN_WORDS = (*JOINED_TEXTS, "lesson", "kind", "source", "confidence", "evidence", "approved")


# These say that something failed, but not what.
_GENERIC_CLASSES = word_set("""
    Exception RuntimeError ValueError TypeError OSError AssertionError SystemExit Error BaseException IOError
    NodeExecutionError PipelineError TaskError Invalid AttributeError ConnectionError
""")
_COMMON = word_set("""
    error errors exception failed failure fail exit code expected status run job task step pipeline process returned non zero
    see log line column char position an the of at in on to for is it with and or by be this that you your please try use using
    more reason reasons caused during while from encountered model node execution location runtime unknown message details
    internal name value object type file path data after has was are got ended can completed partial successes warnings done
    pass warn skip total op creating sql start starting finished fatal exhausted attempts attempt retry all one test result
    results configured rows row max retries exceeded url httpconnectionpool httpsconnectionpool
    inspect specific next steps suggestions database compilation dependency parsing
""")
# Each of these words identifies a cause: errors differ when only one of them has it.
_TELLING = word_set("""
    not no never without missing duplicate exists already unique null ambiguous refused timed timeout reset aborted denied
    unauthorized forbidden expired locked readonly empty invalid undefined unexpected full memory overflow truncated corrupted
    cycle duplicated overlapping mismatch required unsupported resolve unreachable signature extra more fewer less large small
    larger smaller too syntax permission quota directory table column function view schema host port certificate hostname macro
    profile test snapshot source key keys index encode decode read write connect
""")


class ErrorFeatures(NamedTuple):
    """The features of an error's signature: names, the classes of its exceptions, its words, and pairs of neighbouring words."""

    kept: frozenset[str]
    classes: frozenset[str]
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    @property
    def tells_a_cause(self) -> bool:
        """Return whether it says what failed, not only that something failed."""
        informative = self.words - _COMMON
        return bool(self.classes - _GENERIC_CLASSES or self.kept) or len(informative) >= _FEWEST_WORDS


def read_features(signature: str) -> ErrorFeatures:
    """Return the features of a signature."""
    bare = re.sub(_MARK, " ", signature)
    kept = re.findall(_KEPT, bare)
    without = re.sub(_KEPT, " ", bare)
    classes = {*re.findall(_CLASS, without), *re.findall(_HEADLINE, without)}
    words = [
        word.lower()
        for word in re.findall(_WORD, re.sub(_HEADLINE, " ", re.sub(_CLASS, " ", without)).replace("n't", " not"))
    ]
    pairs = pairwise(words)
    return ErrorFeatures(frozenset(kept), frozenset(classes), frozenset(words), frozenset(pairs))


def read_causes(text: str, clean: Callable[[str], str] = str) -> dict[str, ErrorFeatures]:
    """Return the features of each cause in a text by its signature, the most telling first; `clean` redacts the causes."""
    causes = dict.fromkeys(errors.normalise_cause(clean(cause)) for cause in errors.find_causes(text))
    features = {signature: read_features(signature) for signature in causes}
    return {signature: one for signature, one in features.items() if one.tells_a_cause}


def measure_likeness(one: ErrorFeatures, other: ErrorFeatures) -> float:
    """Return how much two errors have in common, from 0 to 1; rarer words count for more.

    It is 0 when only one has a word that identifies a cause: another exception, module, attribute or state, another negation.
    """
    if one.kept != other.kept or not (one.tells_a_cause and other.tells_a_cause):
        return 0.0
    for left_out in (frozenset(), _GENERIC_CLASSES):
        ours, theirs = one.classes - left_out, other.classes - left_out
        if ours and theirs and not ours & theirs:
            return 0.0
    if (one.words ^ other.words) & _TELLING:
        return 0.0
    shared, all_of_it = 0.0, 0.0
    for ours, theirs, weigh in ((one.classes, other.classes, _weigh_class), (one.words, other.words, _weigh_word)):
        shared += sum(map(weigh, ours & theirs))
        all_of_it += sum(map(weigh, ours | theirs))
    shared += _RUN_WEIGHT * len(one.pairs & other.pairs)
    all_of_it += _RUN_WEIGHT * len(one.pairs | other.pairs)
    return shared / all_of_it if all_of_it else 0.0


def _weigh_class(name: str) -> float:
    return 1.0 if name in _GENERIC_CLASSES else _CLASS_WEIGHT


def _weigh_word(word: str) -> float:
    return _COMMON_WEIGHT if word in _COMMON else 1.0


def holds_all_words(asked: ErrorFeatures, text: str) -> bool:
    """Return whether a lesson's text contains all the telling words that a person typed, which must be three or more."""
    words = asked.words - _COMMON
    return len(words) >= _FEWEST_SEARCHED and words <= set(map(str.lower, re.findall(_WORD, text)))


def choose_query(features: Iterable[ErrorFeatures], most: int) -> str:
    """Return the words of a search for errors like these."""
    found: dict[str, None] = {}
    for one in features:
        found.update(dict.fromkeys(sorted(one.classes)))
        found.update(dict.fromkeys(sorted((one.words - _COMMON), key=len, reverse=True)))
    return " ".join(list(found)[:most])


class LessonKeys(NamedTuple):
    """The digests of a lesson: `same` finds equal lessons, `about` finds those that may contradict it."""

    errors: tuple[str, ...]
    same: tuple[str, ...]
    about: tuple[str, ...]


def normalise(text: str) -> str:
    """Return the words of a text, without case and punctuation."""
    return " ".join(re.findall(_TOKEN, text.casefold()))


def list_errors(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of errors in a lesson's evidence: `error` first, then those of `errors`."""
    more = evidence.get("errors")
    texts = [evidence.get("error"), *(more if isinstance(more, (list, tuple)) else ())]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str) and text.strip()))[:MOST_ERRORS]


def project_of(skill: SkillMemory) -> str | None:
    """Return the golden project that a lesson was learned in."""
    project = skill.evidence.get("project")
    return storable(project) if isinstance(project, str) and project.strip() else None


def find_keys(skill: SkillMemory) -> LessonKeys:
    """Return the digests of a lesson."""
    signatures = [
        signature
        for text in list_errors(skill.evidence)
        if (signature := errors.error_signature(errors.cause_of(text)))
    ]
    failed, worked = normalise(skill.what_failed), normalise(skill.what_worked)
    same = [_digest("lesson", normalise(skill.lesson))]
    advice = _list_advice(skill.lesson)
    about = [_digest("advice", " ".join(sorted(advice)))] if advice else []
    owner = (skill.tool_name or "", project_of(skill) or "")
    if failed and worked:
        same += [_digest("pair", skill.kind, *owner, failed, worked, signature) for signature in signatures or [""]]
    if worked:
        about += [_digest("error", *owner, signature) for signature in signatures]
        about += [_digest("failed", *owner, failed)] if failed else []
    return LessonKeys(tuple(dict.fromkeys(map(digest_signature, signatures))), tuple(same), tuple(about))


def list_digests(skill: SkillMemory) -> tuple[str, ...]:
    """Return the digests that find a lesson; a superseded or rejected one contradicts nothing."""
    keys = find_keys(skill)
    stands = skill.superseded_by is None and not skill.rejected
    return tuple(dict.fromkeys((*keys.errors, *keys.same, *(keys.about if stands else ()))))


def contradicts(one: SkillMemory, other: SkillMemory) -> bool:
    """Return whether two lessons that share a digest of `about` contradict each other."""
    advice, others = _list_advice(one.lesson), _list_advice(other.lesson)
    if sorted(advice) == sorted(others):
        is_turned = advice != others and not _TURNING.isdisjoint(advice)
        return is_turned != (is_negative(one.lesson) != is_negative(other.lesson))
    ours, theirs = find_keys(one).errors, find_keys(other).errors
    if ours and theirs and not set(ours) & set(theirs):
        # The same tool failed for a different reason.
        return False
    return normalise(one.what_worked) != normalise(other.what_worked)


def is_negative(text: str) -> bool:
    """Return whether advice says what not to do."""
    return sum(word in _NEGATIONS or word in _OPPOSITES for word in normalise(text).split()) % 2 == 1


def _list_advice(text: str) -> list[str]:
    """Return the words of advice, the same for and against."""
    return [_OPPOSITES.get(word, word) for word in normalise(text).split() if word not in _FILLERS]


def _digest(what: str, *parts: Any) -> str:
    # An error's signature has no line break, so these digests never equal one of an error.
    return digest_signature("\n".join((what, *map(str, parts))))


def learn_again(known: SkillMemory, again: SkillMemory) -> SkillMemory:
    """Return a known lesson with the support and the facts that the same lesson, learned again, adds to it.

    An approved lesson stands in for the same one that waits: all its words are shown. No proposer adds a word to what another
    proposed.
    """
    grown = known.replace(support=known.support + again.support, created_at=min(known.created_at, again.created_at))
    if again.approved and not known.approved:
        return grown.replace(**{name: getattr(again, name) for name in _OWN_WORDS})
    if known.proposed_by != again.proposed_by:
        return grown
    return grown.replace(
        **{name: getattr(known, name) or getattr(again, name) for name in JOINED_TEXTS},
        confidence=max(known.confidence, again.confidence),
        evidence=join_evidence((known.evidence, again.evidence)),
    )


def join_evidence(evidences: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return joint evidence: the first error as `error`, the others as `errors`, and the first value of every other field."""
    joined: dict[str, Any] = {}
    errors: dict[str, None] = {}
    for evidence in evidences:
        joined = {**evidence, **joined}
        errors |= dict.fromkeys(list_errors(evidence))
    if errors:
        joined["error"], *more = list(errors)[:MOST_ERRORS]
        if more:
            joined["errors"] = more
    return joined
