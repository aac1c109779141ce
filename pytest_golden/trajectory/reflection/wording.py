"""Reads suggestions out of plain English, for models that answer in prose. By whole words; shy rather than bold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.trajectory.reflection.model import Suggestion, SuggestionCategory, SuggestionType

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINES, _MOST_SUGGESTIONS, _MOST_CAUSES = 2_000, 20, 20
_LONGEST = 1_000
_BULLET = re.compile(r"^\s*(?:[-*\u2022+]|\(?\d{1,3}[.)])\s+")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_VERBS = (
    "add|adding|include|including|insert|provide|specify|state|define|require|clarify|modify|modifying|change|changing|update|"
    "rewrite|rephrase|replace|remove|removing|delete|drop|restructure|restructuring|reorganize|reorganise|reorder|split|"
    "separate|ask|instruct|tell|explain|limit|mention|describe|use"
)
# An order, or that something should be done.
_ORDER = re.compile(rf"^(?:please\s+|consider\s+|try\s+|also\s+)*(?:{_VERBS})\b", re.IGNORECASE)
_OUGHT = re.compile(
    rf"\b(?:should|must|ought to|needs? to|could|consider|recommend|suggest)\b(?:\s+\w+){{0,3}}?\s+(?:{_VERBS})\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"\b(?:because|caused by|root causes?|due to|the reason)\b", re.IGNORECASE)
_HOPE = re.compile(r"\b(?:will|would|should)\b.*\b(?:improve|reduce|prevent|avoid|better|fewer)\b", re.IGNORECASE)
_TYPES = (
    (SuggestionType.REMOVE, re.compile(r"\b(?:remov\w+|delet\w+|drop)\b", re.IGNORECASE)),
    (
        SuggestionType.RESTRUCTURE,
        re.compile(r"\b(?:restructur\w+|reorgani[sz]\w+|reorder\w*|split|separate)\b", re.IGNORECASE),
    ),
    (
        SuggestionType.ADD,
        re.compile(r"\b(?:add|adding|includ\w+|insert|provide|specify|state|define|mention)\b", re.IGNORECASE),
    ),
)
_CATEGORIES = (
    (SuggestionCategory.EXAMPLE, re.compile(r"\b(?:examples?|samples?|few-shot)\b", re.IGNORECASE)),
    (
        SuggestionCategory.CONSTRAINT,
        re.compile(r"\b(?:constrain\w*|limits?|must|never|require\w*|forbid\w*|only)\b", re.IGNORECASE),
    ),
    (
        SuggestionCategory.REASONING,
        re.compile(r"\b(?:reason\w*|logic\w*|think\w*|step by step|verif\w+)\b", re.IGNORECASE),
    ),
    (
        SuggestionCategory.STRUCTURE,
        re.compile(r"\b(?:(?:re)?structur\w*|sections?|order|format\w*|layout|reorgani[sz]\w+)\b", re.IGNORECASE),
    ),
)


def settle_text(text: str, limit: int) -> str:
    """Give the text without control and half characters, cut to a length."""
    settled = "".join(
        character if character.isprintable() or character in "\n\t" else " " for character in text[: limit * 2]
    ).strip()
    return settled[:limit].rstrip()


def infer_type(text: str) -> SuggestionType:
    """Tell from its verb what a suggestion does; modify when it does not say."""
    return next((kind for kind, pattern in _TYPES if pattern.search(text)), SuggestionType.MODIFY)


def infer_category(text: str) -> SuggestionCategory:
    """Tell from its words what a suggestion concerns; clarity when it does not say."""
    return next((category for category, pattern in _CATEGORIES if pattern.search(text)), SuggestionCategory.CLARITY)


def first_paragraph(text: str) -> str:
    """Give the first paragraph that is not a heading or a fence."""
    for paragraph in re.split(r"\n\s*\n", text[:100_000]):
        lines = [line for line in paragraph.splitlines() if not line.lstrip().startswith(("#", "```", "~~~"))]
        if any(line.strip() for line in lines):
            return settle_text("\n".join(lines), _LONGEST * 2)
    return ""


def list_suggestions(text: str) -> tuple[Suggestion, ...]:
    """Give the sentences that order or recommend a change, each once."""
    found = dict.fromkeys(
        sentence for sentence in _sentences(text) if _ORDER.match(sentence) or _OUGHT.search(sentence)
    )
    return tuple(
        Suggestion(
            type=infer_type(sentence),
            category=infer_category(sentence),
            description=sentence,
            rationale="read out of a reply in prose",
        )
        for sentence in list(found)[:_MOST_SUGGESTIONS]
    )


def list_causes(text: str) -> tuple[str, ...]:
    """Give the sentences that name a cause, each once."""
    found = dict.fromkeys(sentence for sentence in _sentences(text) if _CAUSE.search(sentence))
    return tuple(found)[:_MOST_CAUSES]


def find_hope(text: str) -> str:
    """Give the last sentence that says what would be better."""
    return next((sentence for sentence in reversed(list(_sentences(text))) if _HOPE.search(sentence)), "")


def _sentences(text: str) -> Iterator[str]:
    for line in text[:100_000].splitlines()[:_MOST_LINES]:
        bare = _BULLET.sub("", line.replace("**", "").replace("__", ""))
        for sentence in _SENTENCE_ENDS.split(bare):
            settled = settle_text(sentence[:_LONGEST], _LONGEST)
            if settled and not settled.startswith("#"):
                yield settled
