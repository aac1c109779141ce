"""When two lessons are the same, and when one contradicts the other: by digests, so that the others need not be read. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.signature import cause_of, digest_signature, error_signature
from pytest_golden.storage.text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.learning.lessons.model import SkillMemory

# Comparisons, signs and the names of languages tell advice apart; other punctuation does not.
_TOKEN = re.compile(r"[^\W_]+|[<>=!]=|[<>]|(?<![^\s(=,])-(?=\d)|\+\+|#")
_NEGATIONS = frozenset({"not", "never", "avoid", "without", "dont", "don", "cannot", "stop"})
# A word that negates another one is that one, negated.
_OPPOSITES = {
    "disable": "enable",
    "decrease": "increase",
    "reduce": "increase",
    "exclude": "include",
    "remove": "add",
    "false": "true",
    "disallow": "allow",
}
# Around these the order of words is what is advised.
_TURNING = frozenset({"instead", "rather", "than", "over", "before", "after", "from", "to"})
_FILLERS = _NEGATIONS | {"t", "do", "always", "should", "must", "please", "using", "use", "the", "a", "an"}
MOST_ERRORS = 10


@dataclass(frozen=True, slots=True)
class LessonKeys:
    """The digests of a lesson. Those of `same` find it again, those of `about` find what may contradict it."""

    errors: tuple[str, ...]
    same: tuple[str, ...]
    about: tuple[str, ...]


def normalise(text: str) -> str:
    """Give the words of a text, without case and punctuation."""
    return " ".join(_TOKEN.findall(text.casefold()))


def list_errors(skill: SkillMemory) -> tuple[str, ...]:
    """Give the texts of the errors that a lesson is about: `evidence["error"]` first, then those of `evidence["errors"]`."""
    return errors_in(skill.evidence)


def errors_in(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the texts of the errors in evidence."""
    more = evidence.get("errors")
    texts = [evidence.get("error"), *(more if isinstance(more, (list, tuple)) else ())]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str) and text.strip()))[:MOST_ERRORS]


def project_of(skill: SkillMemory) -> str | None:
    """Give the golden project that a lesson was learned in."""
    project = skill.evidence.get("project")
    return storable(project) if isinstance(project, str) and project.strip() else None


def find_keys(skill: SkillMemory) -> LessonKeys:
    """Give the digests of a lesson."""
    signatures = [signature for text in list_errors(skill) if (signature := error_signature(cause_of(text)))]
    failed, worked = normalise(skill.what_failed), normalise(skill.what_worked)
    same = [_digest("lesson", normalise(skill.lesson))]
    advice = _list_advice(skill.lesson)
    about = [_digest("advice", " ".join(sorted(advice)))] if advice else []
    place = (skill.tool_name or "", project_of(skill) or "")
    if failed and worked:
        same += [_digest("pair", skill.kind, *place, failed, worked, signature) for signature in signatures or [""]]
    if worked:
        about += [_digest("error", *place, signature) for signature in signatures]
        about += [_digest("failed", *place, failed)] if failed else []
    return LessonKeys(tuple(dict.fromkeys(map(digest_signature, signatures))), tuple(same), tuple(about))


def list_digests(skill: SkillMemory) -> tuple[str, ...]:
    """Give the digests under which a lesson is found; one that does not stand contradicts nothing."""
    keys = find_keys(skill)
    stands = skill.superseded_by is None and not skill.rejected
    return tuple(dict.fromkeys((*keys.errors, *keys.same, *(keys.about if stands else ()))))


def contradicts(one: SkillMemory, other: SkillMemory) -> bool:
    """Tell whether two lessons that share a digest of `about` say different things."""
    advice, others = _list_advice(one.lesson), _list_advice(other.lesson)
    if sorted(advice) == sorted(others):
        is_turned = advice != others and not _TURNING.isdisjoint(advice)
        return is_turned != (is_negative(one.lesson) != is_negative(other.lesson))
    ours, theirs = find_keys(one).errors, find_keys(other).errors
    if ours and theirs and not set(ours) & set(theirs):
        # The same tool failed, and for another reason.
        return False
    return normalise(one.what_worked) != normalise(other.what_worked)


def is_negative(text: str) -> bool:
    """Tell whether advice says what not to do."""
    return sum(word in _NEGATIONS or word in _OPPOSITES for word in normalise(text).split()) % 2 == 1


def _list_advice(text: str) -> list[str]:
    """List the words of advice, whether it is for or against."""
    return [_OPPOSITES.get(word, word) for word in normalise(text).split() if word not in _FILLERS]


def _digest(what: str, *parts: Any) -> str:
    # No signature has a line break, so that none of an error's is ever met.
    return digest_signature("\n".join((what, *map(str, parts))))
