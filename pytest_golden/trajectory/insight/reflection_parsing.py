"""Read a language model's reply into a `Reflection`. Pure. Every reply gives one, unless the caller is strict.

Three steps: find the answer in the reply, read its fields, and, for a reply in prose, read its sentences. What cannot be used is left out
and reported as a problem.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
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
    problems: list[str] = []
    read = _read_answer(_by_form(answer), min_suggestions, problems)
    if strict:
        _refuse_problems(problems, len(read.suggestions), min_suggestions)
    return read


def _read_answer(fields: Mapping[str, Any], min_suggestions: int, problems: list[str]) -> Reflection:
    """Read the fields of an answer; each of the `problems` is a sentence about what was left out or mended."""
    analysis = _text_at(fields, "analysis", LONGEST_ANALYSIS)
    if not analysis:
        problems.append("analysis is missing: text is expected")
    given = _pick(fields, "root_causes")
    listed = given if isinstance(given, list) else [given]
    causes = tuple(dict.fromkeys(filter(None, (_as_text(cause, LONGEST_TEXT) for cause in listed[:MOST_CAUSES]))))
    suggestions = _read_suggestions(_pick(fields, "suggestions"), problems)
    stated = _read_confidence(_pick(fields, "confidence"), problems)
    confidence = _rate(analysis, causes, suggestions) if stated is None else stated
    says_so = str(_pick(fields, "needs_clarification")).strip().lower() in {"true", "yes"}
    return Reflection(
        analysis=analysis,
        root_causes=causes,
        suggestions=suggestions,
        expected_improvement=_text_at(fields, "expected_improvement"),
        confidence=confidence,
        needs_clarification=not analysis or confidence < 0.5 or len(suggestions) < min_suggestions or says_so,
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
        problems = [*problems, f"there are {count} usable suggestions: at least {min_suggestions} are expected"]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        told = "; ".join(problems[:_MOST_PROBLEMS])
        raise ValueError(f"the reply cannot be used: {told}{f'; and {more} more' if more > 0 else ''}")


_MOST_WRAPPINGS = 6
_TOLD_KEYS = frozenset({"analysis", "suggestions", "rootcauses", "recommendations", "improvements"})
# Keys under which APIs and models wrap the answer.
_WRAPPINGS = "reflection result response output answer data choices message content text"
_WRAPPER_KEYS = tuple(_WRAPPINGS.split())


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
_WORDS: tuple[tuple[str, type[StrEnum], Mapping[str, str]], ...] = (
    ("type", reflection.SuggestionType, _TYPE_SYNONYMS),
    ("category", reflection.SuggestionCategory, _CATEGORY_SYNONYMS),
    ("priority", Priority, _PRIORITY_SYNONYMS),
)


def _read_confidence(given: Any, problems: list[str]) -> float | None:
    """Return the confidence that is stated; None when it is not, or makes no sense."""
    confidence = reflection.read_confidence(given)
    if confidence is None and isinstance(given, str):
        bare = given.strip()
        with suppress(ValueError):  # 0.8, 80% and 80 %
            confidence = reflection.read_confidence(float(bare.rstrip("% ")) / (100 if bare.endswith("%") else 1))
    if confidence is None and given is not None:
        problems.append(f"confidence {_show(given)} is not a number from 0 to 1 and none of high, medium, low")
    return confidence


def _read_suggestions(given: Any, problems: list[str]) -> tuple[Suggestion, ...]:
    """Return the suggestions that can be used, in order."""
    if not isinstance(given, list):
        problems.append("suggestions is missing: a list is expected")
        given = [] if given is None else [given]
    read = (_read_suggestion(f"suggestion {number}", one, problems) for number, one in enumerate(given, 1))
    return tuple(filter(None, islice(read, MOST_SUGGESTIONS)))


def _read_suggestion(place: str, given: Any, problems: list[str]) -> Suggestion | None:
    if isinstance(given, str) and given.strip():
        problems.append(f"{place} is text: an object is expected")
        given = {"description": given}
    if not isinstance(given, dict):
        problems.append(f"{place} is {_show(given)}: an object is expected")
        return None
    fields = _by_form(given)
    specific = _text_at(fields, "specific_text", LONGEST_SPECIFIC)
    description = _text_at(fields, "description") or specific[:LONGEST_TEXT]
    if not description:
        problems.append(f"{place} has no description")
        return None
    words = {}
    for name, kind, synonyms in _WORDS:
        words[name] = _read_word(f"{place} has", name, fields.get(name), (kind, synonyms), problems)
    if "" in (words["type"], words["category"]):
        return None
    return Suggestion(
        type=reflection.SuggestionType(words["type"] or infer_type(description)),
        category=reflection.SuggestionCategory(words["category"] or infer_category(description)),
        description=description,
        rationale=_text_at(fields, "rationale"),
        priority=Priority(words["priority"] or "medium"),
        specific_text=specific or None,
        target_section=_text_at(fields, "target_section") or None,
    )


def _read_word(
    place: str, field: str, given: Any, known: tuple[type[StrEnum], Mapping[str, str]], problems: list[str]
) -> str | None:
    """Return the word, None when there is none, and empty text for an unknown one."""
    words, synonyms = known
    word = given.strip().lower() if isinstance(given, str) else ""
    word = synonyms.get(word, word)
    if word in list(words):
        return word
    told = f"no {field}" if given is None else f"the {field} {_show(given)}"
    problems.append(f"{place} {told}: give one of {', '.join(words)}")
    return None if given is None else ""


def _text_at(fields: Mapping[str, Any], name: str, limit: int = LONGEST_TEXT) -> str:
    return _as_text(_pick(fields, name), limit)


def _as_text(given: Any, limit: int) -> str:
    """Return text for text, numbers, lists of them, and objects that hold a description; empty for all else."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = str(given)
    elif isinstance(given, list):
        given = "\n".join(filter(None, (_item_text(item) for item in given[:MOST_CAUSES])))
    elif isinstance(given, dict):
        given = _item_text(given)
    return settle_text(given, limit) if isinstance(given, str) else ""


def _item_text(given: Any) -> str:
    if isinstance(given, dict):
        fields = _by_form(given)
        given = _pick(fields, "description") or fields.get("cause") or fields.get("summary")
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
