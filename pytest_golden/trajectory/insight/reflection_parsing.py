"""Read a language model's reply into a `Reflection`. Pure. Every reply gives one, unless the caller is strict.

Three steps: find the answer in the reply, read its fields, and, for a reply in prose, read its sentences. What cannot be used is left out
and reported as a problem.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.insight import reflection
from pytest_golden.trajectory.insight.reflection import Priority, Reflection, Suggestion
from pytest_golden.trajectory.insight.reply_json import MOST_READ, find_json
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import StrEnum

MOST_SUGGESTIONS, MOST_CAUSES = 100, 50
LONGEST_ANALYSIS, LONGEST_TEXT, LONGEST_SPECIFIC = 20_000, 4_000, 20_000
_MOST_PROBLEMS = 5


def parse_reflection(reply: object, *, strict: bool = False, min_suggestions: int = 1) -> Reflection:
    """Read a model's reply: JSON, fenced JSON, JSON in prose, the APIs' wrappings of it, values, or plain prose.

    What cannot be used is left out: fields of wrong types, suggestions of an unknown type or category. Suggestions without
    these words get them from their wording, and prose has a confidence of 0.3 at most. Too few suggestions, a confidence
    below 0.5 and a missing analysis set `needs_clarification`.

    Raises:
        ValueError: only when `strict`: the reply is not JSON (one fence is allowed), or something in it is missing or
            wrong; the message says what.
    """
    found = _read_reply(reply)
    if strict:
        _refuse_what_is_no_json(reply, found.value, is_whole=found.is_whole)
    answer = {"suggestions": found.value} if isinstance(found.value, list) else found.value
    if not isinstance(answer, dict):
        return _read_prose(found.text)
    reader = _FieldReader(answer)
    read = _read_fields(reader, min_suggestions)
    if strict:
        _refuse_problems(reader.problems, len(read.suggestions), min_suggestions)
    return read


def _read_fields(reader: _FieldReader, min_suggestions: int) -> Reflection:
    analysis, causes, suggestions = reader.analysis(), reader.root_causes(), reader.suggestions()
    stated = reader.confidence()
    confidence = _rate(analysis, causes, suggestions) if stated is None else stated
    is_thin = not analysis or confidence < 0.5 or len(suggestions) < min_suggestions
    return Reflection(
        analysis=analysis,
        root_causes=causes,
        suggestions=suggestions,
        expected_improvement=reader.expected_improvement(),
        confidence=confidence,
        needs_clarification=is_thin or reader.needs_clarification(),
    )


def _read_prose(text: str) -> Reflection:
    suggestions = list_suggestions(text)
    return Reflection(
        analysis=first_paragraph(text),
        root_causes=list_causes(text),
        suggestions=suggestions,
        expected_improvement=find_hope(text),
        confidence=reflection.CONFIDENCE_WORDS["low"] if suggestions else 0.0,
        needs_clarification=True,
    )


def _rate(analysis: str, causes: tuple[str, ...], suggestions: tuple[Suggestion, ...]) -> float:
    """Rate an answer that states no confidence by how complete it is, from 0 to 0.8."""
    if not suggestions:
        return 0.1 if analysis else 0.0
    specific = sum(suggestion.specific_text is not None for suggestion in suggestions) / len(suggestions)
    reasoned = sum(bool(suggestion.rationale) for suggestion in suggestions) / len(suggestions)
    is_ranked = any(suggestion.priority is not Priority.MEDIUM for suggestion in suggestions)
    parts = (0.3, 0.1 * bool(analysis), 0.1 * bool(causes), 0.15 * specific, 0.1 * reasoned, 0.05 * is_ranked)
    return round(sum(parts), 3)


def _refuse_what_is_no_json(reply: object, value: Any, *, is_whole: bool) -> None:
    if isinstance(reply, (str, bytes, bytearray)) and len(reply) > MOST_READ:
        raise ValueError(f"the reply has {len(reply):,} characters: at most {MOST_READ:,} are read")
    if not isinstance(value, dict) or not is_whole:
        raise ValueError("the reply is not one JSON object: answer with the object alone, or in one fence")


def _refuse_problems(problems: list[str], count: int, min_suggestions: int) -> None:
    if count < min_suggestions:
        problems = [*problems, f"there are {count} usable suggestions: at least {min_suggestions} are wanted"]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        told = "; ".join(problems[:_MOST_PROBLEMS])
        raise ValueError(f"the reply cannot be used: {told}{f'; and {more} more' if more > 0 else ''}")


_MOST_WRAPPINGS = 6
_TOLD_KEYS = frozenset({"analysis", "suggestions", "rootcauses", "recommendations", "improvements"})
# Keys under which APIs and models wrap the answer.
_WRAPPER_KEYS = (
    "reflection",
    "result",
    "response",
    "output",
    "answer",
    "data",
    "choices",
    "message",
    "content",
    "text",
)


class _Found(NamedTuple):
    """What a reply holds: the values of its JSON when it is an object or a list, its text, and whether all was JSON."""

    value: Any
    text: str
    is_whole: bool


def _read_reply(reply: object) -> _Found:
    """Find the answer in a reply of any type."""
    value: Any = reply
    for _wrapping in range(_MOST_WRAPPINGS):
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = bytes(value[:MOST_READ]).decode("utf-8", "replace")
        if isinstance(value, str):
            return _read_text(value)
        value = _plain(value)
        inner = _unwrap(value)
        if inner is None:
            return _Found(value if isinstance(value, (dict, list)) else None, "", is_whole=True)
        value = inner
    return _Found(None, "", is_whole=False)


def _read_text(text: str) -> _Found:
    said, values = find_json(text)
    for one in values:
        found = _read_reply(one.value)
        if one.end - one.start == len(said):
            return found._replace(is_whole=found.is_whole and not isinstance(one.value, str))
        if _tells(found.value):
            return found._replace(is_whole=found.is_whole and not one.is_in_prose)
    return _Found(None, said, is_whole=False)


def _plain(value: Any) -> Any:
    """Return JSON-safe values for any object; one of pydantic's by its fields, one that carries a text by its text."""
    if isinstance(value, (dict, list)):
        return json_form(value)
    try:
        if hasattr(value, "model_dump"):
            value = value.model_dump()
        elif isinstance(getattr(value, "text", None), str):
            value = value.text
    except Exception:  # a foreign class may raise anything
        return None
    return json_form(value)


def _unwrap(value: Any) -> Any:
    """Return what is inside a wrapper; None when the value is not a wrapper."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _unwrap_list(value)
    if isinstance(value, dict) and not _is_answer(value):
        return next((value[key] for key in _WRAPPER_KEYS if isinstance(value.get(key), (dict, list, str))), None)
    return None


def _unwrap_list(value: list[Any]) -> Any:
    """Return the only choice of a list of choices, or the joined text of a message in several blocks."""
    blocks = [item for item in value if isinstance(item, dict)]
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    if texts:
        return "\n".join(texts)
    is_wrapper = len(blocks) == len(value) == 1 and "description" not in value[0] and not _is_answer(value[0])
    return value[0] if is_wrapper and any(key in value[0] for key in _WRAPPER_KEYS) else None


def _is_answer(value: dict[Any, Any]) -> bool:
    return any(_key_form(key) in _TOLD_KEYS for key in value)


def _tells(value: Any) -> bool:
    """Tell whether JSON in the middle of something else is the answer, not an example of something."""
    if isinstance(value, list):
        return any(isinstance(item, dict) and "description" in item for item in value)
    return isinstance(value, dict) and _is_answer(value)


_NAMES = {
    "analysis": ("analysis", "summary", "diagnosis"),
    "root_causes": ("rootcauses", "rootcause", "causes"),
    "suggestions": ("suggestions", "suggestion", "recommendations", "improvements", "changes"),
    "expected_improvement": ("expectedimprovement", "expectedimprovements", "expectedimpact"),
    "confidence": ("confidence", "confidencescore", "confidencelevel"),
    "needs_clarification": ("needsclarification", "clarificationneeded"),
    "description": ("description", "suggestion", "change", "text", "title"),
    "specific_text": ("specifictext", "newtext", "exacttext"),
    "target_section": ("targetsection", "section", "target"),
    "rationale": ("rationale", "reason", "why", "justification"),
}
_TYPE_SYNONYMS = {
    **dict.fromkeys(("addition", "insert", "include", "append"), "add"),
    **dict.fromkeys(("change", "modification", "edit", "update", "replace", "rewrite", "rephrase"), "modify"),
    **dict.fromkeys(("delete", "removal", "drop"), "remove"),
    **dict.fromkeys(("reorganize", "reorganise", "reorder"), "restructure"),
}
_CATEGORY_SYNONYMS = {
    "clarification": "clarity",
    "constraints": "constraint",
    "examples": "example",
    "format": "structure",
    "formatting": "structure",
    "logic": "reasoning",
}
_PRIORITY_SYNONYMS = {"critical": "high", "urgent": "high", "normal": "medium", "moderate": "medium", "minor": "low"}


class _FieldReader:
    """Reads one answer; `problems` are sentences about what was left out or mended."""

    def __init__(self, answer: Mapping[Any, Any]) -> None:
        self._answer = _by_form(answer)
        self.problems: list[str] = []

    def analysis(self) -> str:
        """Return the analysis; empty when there is none."""
        text = _as_text(_pick(self._answer, "analysis"), LONGEST_ANALYSIS)
        if not text:
            self.problems.append("analysis is missing: text is wanted")
        return text

    def root_causes(self) -> tuple[str, ...]:
        """Return the causes, each once, in order."""
        given = _pick(self._answer, "root_causes")
        listed = given if isinstance(given, list) else [given]
        texts = (_as_text(cause, LONGEST_TEXT) for cause in listed[:MOST_CAUSES])
        return tuple(dict.fromkeys(text for text in texts if text))

    def expected_improvement(self) -> str:
        """Return what is hoped for; empty when nothing is said."""
        return _as_text(_pick(self._answer, "expected_improvement"), LONGEST_TEXT)

    def confidence(self) -> float | None:
        """Return the confidence that is stated; None when it is not, or makes no sense."""
        given = _pick(self._answer, "confidence")
        confidence = reflection.read_confidence(given)
        if confidence is None and isinstance(given, str):
            confidence = _read_number(given)
        if confidence is None and given is not None:
            self.problems.append(f"confidence {_show(given)} is no number from 0 to 1 and none of high, medium, low")
        return confidence

    def needs_clarification(self) -> bool:
        """Tell whether the model says that it knows too little."""
        given = _pick(self._answer, "needs_clarification")
        return given is True or (isinstance(given, str) and given.strip().lower() in {"true", "yes"})

    def suggestions(self) -> tuple[Suggestion, ...]:
        """Return the suggestions that can be used, in order."""
        given = _pick(self._answer, "suggestions")
        if not isinstance(given, list):
            self.problems.append("suggestions is missing: a list is wanted")
            given = [] if given is None else [given]
        read = (self._suggestion(number, item) for number, item in enumerate(given[:MOST_SUGGESTIONS], 1))
        return tuple(suggestion for suggestion in read if suggestion is not None)

    def _suggestion(self, number: int, given: Any) -> Suggestion | None:
        place = f"suggestion {number}"
        if isinstance(given, str) and given.strip():
            self.problems.append(f"{place} is text: an object is wanted")
            given = {"description": given}
        if not isinstance(given, dict):
            self.problems.append(f"{place} is {_show(given)}: an object is wanted")
            return None
        fields = _by_form(given)
        specific = _as_text(_pick(fields, "specific_text"), LONGEST_SPECIFIC)
        description = _as_text(_pick(fields, "description"), LONGEST_TEXT) or specific[:LONGEST_TEXT]
        if not description:
            self.problems.append(f"{place} has no description")
            return None
        kind = self._word(place, "type", fields.get("type"), reflection.SuggestionType, _TYPE_SYNONYMS)
        category = self._word(
            place, "category", fields.get("category"), reflection.SuggestionCategory, _CATEGORY_SYNONYMS
        )
        if kind == "" or category == "":
            return None
        priority = self._word(place, "priority", fields.get("priority"), Priority, _PRIORITY_SYNONYMS)
        return Suggestion(
            type=reflection.SuggestionType(kind or infer_type(description)),
            category=reflection.SuggestionCategory(category or infer_category(description)),
            description=description,
            rationale=_as_text(_pick(fields, "rationale"), LONGEST_TEXT),
            priority=Priority(priority or "medium"),
            specific_text=specific or None,
            target_section=_as_text(_pick(fields, "target_section"), LONGEST_TEXT) or None,
        )

    def _word(
        self, place: str, field: str, given: Any, words: type[StrEnum], synonyms: Mapping[str, str]
    ) -> str | None:
        """Return the word, None when there is none, and empty text for an unknown one."""
        allowed = ", ".join(words)
        if given is None:
            self.problems.append(f"{place} has no {field}: give one of {allowed}")
            return None
        word = given.strip().lower() if isinstance(given, str) else ""
        word = synonyms.get(word, word)
        if word in list(words):
            return word
        self.problems.append(f"{place} has the {field} {_show(given)}: give one of {allowed}")
        return ""


def _as_text(given: Any, limit: int) -> str:
    """Return text for text, numbers, lists of them, and objects that hold a description; empty for all else."""
    if isinstance(given, str):
        return settle_text(given, limit)
    if isinstance(given, bool) or given is None:
        return ""
    if isinstance(given, (int, float)):
        return str(given)[:limit]
    if isinstance(given, list):
        return settle_text(
            "\n".join(text for text in (_item_text(item) for item in given[:MOST_CAUSES]) if text), limit
        )
    return _item_text(given)[:limit]


def _item_text(given: Any) -> str:
    if isinstance(given, dict):
        fields = _by_form(given)
        said = _pick(fields, "description") or fields.get("cause") or fields.get("summary")
        return settle_text(said, LONGEST_TEXT) if isinstance(said, str) else ""
    return settle_text(given, LONGEST_TEXT) if isinstance(given, str) else ""


def _by_form(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in mapping.items():
        fields.setdefault(_key_form(key), value)
    return fields


def _key_form(key: object) -> str:
    """Return a key without case and marks, so that rootCauses, root_causes and "Root causes" are one."""
    return re.sub(r"[^a-z0-9]", "", str(key)[:100].lower())


def _pick(fields: Mapping[str, Any], name: str) -> Any:
    return next((fields[form] for form in _NAMES[name] if fields.get(form) is not None), None)


def _read_number(text: str) -> float | None:
    """Read 0.8, 80% and 80 %."""
    stripped = text.strip()
    is_percent = stripped.endswith("%")
    try:
        number = float(stripped.rstrip("% ")) / (100 if is_percent else 1)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None


def _show(value: Any) -> str:
    shown = repr(value) if isinstance(value, (str, float, bool)) else f"of type {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


_MOST_LINES, _MOST_SUGGESTIONS, _MOST_CAUSES = 2_000, 20, 20
_LONGEST = 1_000
_BULLET = re.compile(r"^\s*(?:[-*\u2022+]|\(?\d{1,3}[.)])\s+")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_VERBS = (
    "add|adding|include|including|insert|provide|specify|state|define|require|clarify|modify|modifying|change|changing|update|"
    "rewrite|rephrase|replace|remove|removing|delete|drop|restructure|restructuring|reorganize|reorganise|reorder|split|"
    "separate|ask|instruct|tell|explain|limit|mention|describe|use"
)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


# An order, or that something should be done.
_ORDER = re.compile(rf"^(?:please\s+|consider\s+|try\s+|also\s+)*(?:{_VERBS})\b", re.IGNORECASE)
_OUGHT = _words(
    rf"(?:should|must|ought to|needs? to|could|consider|recommend|suggest)\b(?:\s+\w+){{0,3}}?\s+(?:{_VERBS})"
)
_CAUSE = _words(r"because|caused by|root causes?|due to|the reason")
_HOPE = _words(r"(?:will|would|should)\b.*\b(?:improve|reduce|prevent|avoid|better|fewer)")
_TYPES = {
    reflection.SuggestionType.REMOVE: _words(r"remov\w+|delet\w+|drop"),
    reflection.SuggestionType.RESTRUCTURE: _words(r"restructur\w+|reorgani[sz]\w+|reorder\w*|split|separate"),
    reflection.SuggestionType.ADD: _words(r"add|adding|includ\w+|insert|provide|specify|state|define|mention"),
}
_CATEGORIES = {
    reflection.SuggestionCategory.EXAMPLE: _words(r"examples?|samples?|few-shot"),
    reflection.SuggestionCategory.CONSTRAINT: _words(r"constrain\w*|limits?|must|never|require\w*|forbid\w*|only"),
    reflection.SuggestionCategory.REASONING: _words(r"reason\w*|logic\w*|think\w*|step by step|verif\w+"),
    reflection.SuggestionCategory.STRUCTURE: _words(
        r"(?:re)?structur\w*|sections?|order|format\w*|layout|reorgani[sz]\w+"
    ),
}


def settle_text(text: str, limit: int) -> str:
    """Return the text without control and half characters, cut to a length."""
    settled = "".join(
        character if character.isprintable() or character in "\n\t" else " " for character in text[: limit * 2]
    ).strip()
    return settled[:limit].rstrip()


def infer_type(text: str) -> reflection.SuggestionType:
    """Tell from its verb what a suggestion does; modify when it does not say."""
    return next((kind for kind, pattern in _TYPES.items() if pattern.search(text)), reflection.SuggestionType.MODIFY)


def infer_category(text: str) -> reflection.SuggestionCategory:
    """Tell from its words what a suggestion concerns; clarity when it does not say."""
    return next(
        (category for category, pattern in _CATEGORIES.items() if pattern.search(text)),
        reflection.SuggestionCategory.CLARITY,
    )


def first_paragraph(text: str) -> str:
    """Return the first paragraph that is not a heading or a fence."""
    for paragraph in re.split(r"\n\s*\n", text[:100_000]):
        lines = [line for line in paragraph.splitlines() if not line.lstrip().startswith(("#", "```", "~~~"))]
        if any(line.strip() for line in lines):
            return settle_text("\n".join(lines), _LONGEST * 2)
    return ""


def list_suggestions(text: str) -> tuple[Suggestion, ...]:
    """Return the sentences that order or recommend a change, each once."""
    wanted = (sentence for sentence in _sentences(text) if _ORDER.match(sentence) or _OUGHT.search(sentence))
    return tuple(
        Suggestion(infer_type(one), infer_category(one), one, "read out of a reply in prose")
        for one in list(dict.fromkeys(wanted))[:_MOST_SUGGESTIONS]
    )


def list_causes(text: str) -> tuple[str, ...]:
    """Return the sentences that name a cause, each once."""
    return tuple(dict.fromkeys(filter(_CAUSE.search, _sentences(text))))[:_MOST_CAUSES]


def find_hope(text: str) -> str:
    """Return the last sentence that says what would be better."""
    return next((sentence for sentence in reversed(list(_sentences(text))) if _HOPE.search(sentence)), "")


def _sentences(text: str) -> Iterator[str]:
    for line in text[:100_000].splitlines()[:_MOST_LINES]:
        bare = _BULLET.sub("", line.replace("**", "").replace("__", ""))
        for sentence in _SENTENCE_ENDS.split(bare):
            settled = settle_text(sentence[:_LONGEST], _LONGEST)
            if settled and not settled.startswith("#"):
                yield settled
