"""Questions that a step answers with yes or no, put together with `&`, `|` and `~`. Their text form is in `query_text.py`.

Text is found wherever it stands, upper and lower case alike; it is no pattern, so that no question takes long to answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pytest_golden.trajectory.query_term import QueryTerm, make_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from pytest_golden.trajectory.step import Step
    from pytest_golden.trajectory.vocabulary import Importance, StepType

#: So many questions may stand inside each other.
MAX_DEPTH = 50

Joint = Literal["and", "or", "not"]


@dataclass(frozen=True, slots=True)
class StepQuery:
    """One question, or several that are joined; make it with `where` or `parse_query`. As text it is what is parsed.

    `parts` are questions joined by `joint`; without any, "and" is answered by every step. A single question is a `term`.

    Raises:
        ValueError: the parts stand deeper than 50 inside each other.
    """

    term: QueryTerm | None = None
    joint: Joint = "and"
    parts: tuple[StepQuery, ...] = ()
    depth: int = 1

    def __post_init__(self) -> None:
        depth = 1 + max((part.depth for part in self.parts), default=0)
        if depth > MAX_DEPTH:
            raise ValueError(f"a query may be nested {MAX_DEPTH} deep at most")
        object.__setattr__(self, "depth", depth)

    def __and__(self, other: StepQuery) -> StepQuery:
        return join("and", (self, other)) if isinstance(other, StepQuery) else NotImplemented

    def __or__(self, other: StepQuery) -> StepQuery:
        return join("or", (self, other)) if isinstance(other, StepQuery) else NotImplemented

    def __invert__(self) -> StepQuery:
        if self.joint == "not":
            return self.parts[0]
        return StepQuery(joint="not", parts=(self,))

    def __str__(self) -> str:
        if self.term is not None:
            return str(self.term)
        if self.joint == "not":
            return f"not {_in_brackets(self.parts[0])}"
        return (" " if self.joint == "and" else " or ").join(map(_in_brackets, self.parts))

    def matches(self, step: Step) -> bool:
        """Tell whether a step is one that is asked for.

        A step by itself tells only its parent: `under` is then answered by the children alone. `select` knows more.
        """
        return _answers(self, step, None)

    def select(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Give the steps that are asked for, one by one, out of steps in their order (parents before children).

        Nothing is held but, with `under`, the ids of the steps of those subtrees.
        """
        return (step for _, step in self.select_placed(steps))

    def select_placed(self, steps: Iterable[Step]) -> Iterator[tuple[int, Step]]:
        """Give what `select` gives, each with its place in the row, counted from 0."""
        subtrees: dict[str, set[str]] = {root: {root} for root in _list_roots(self)}
        for place, step in enumerate(steps):
            for ids in subtrees.values():
                if step.parent_step_id in ids:
                    ids.add(step.id)
            if _answers(self, step, subtrees):
                yield place, step


def where(
    *,
    type: StepType | str | None = None,  # noqa: A002 - the public name
    importance: Importance | str | None = None,
    min_importance: Importance | str | None = None,
    text: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    min_duration_ms: float | None = None,
    max_duration_ms: float | None = None,
    after: datetime | None = None,
    before: datetime | None = None,
    has_error: bool | None = None,
    under: str | None = None,
) -> StepQuery:
    """Ask for steps to which all of this applies; without anything, for all steps. Bounds include their ends.

    `text` stands somewhere in the content, the metadata or the context. `metadata` maps a path, keys joined by dots,
    to the value that must be there. `under` is the id of a step whose children and their children are meant.

    Raises:
        ValueError: a value that is not allowed; the message names the argument and what is.
    """
    bounds = {"min_duration_ms": min_duration_ms, "max_duration_ms": max_duration_ms}
    asked: list[tuple[str, str, str, Any]] = [
        ("type", "type", "=", type),
        ("importance", "importance", "=", importance),
        ("min_importance", "importance", ">=", min_importance),
        ("text", "text", "~", text),
        *((name, "duration_ms", ">=" if name.startswith("min") else "<=", value) for name, value in bounds.items()),
        ("after", "timestamp", ">=", after),
        ("before", "timestamp", "<=", before),
        ("has_error", "error", "=", has_error),
        ("under", "under", "=", under),
    ]
    terms = [make_term(field, operator, value, name) for name, field, operator, value in asked if value is not None]
    if has_error is not None and not isinstance(has_error, bool):
        raise ValueError(f"has_error must be True or False, not {has_error!r}")
    terms += [make_term("metadata", "=", value, "metadata", path) for path, value in (metadata or {}).items()]
    parts = tuple(StepQuery(term) for term in terms)
    return parts[0] if len(parts) == 1 else StepQuery(parts=parts)


def join(joint: Joint, parts: Iterable[StepQuery]) -> StepQuery:
    """Join questions; those that are joined in the same way already become one row."""
    flat: list[StepQuery] = []
    for part in parts:
        flat.extend(part.parts if part.term is None and part.joint == joint else (part,))
    return flat[0] if len(flat) == 1 else StepQuery(joint=joint, parts=tuple(flat))


def _in_brackets(part: StepQuery) -> str:
    is_single = part.term is not None or (part.joint == "not")
    return str(part) if is_single else f"({part})"


def _answers(query: StepQuery, step: Step, subtrees: Mapping[str, set[str]] | None) -> bool:
    if query.term is not None:
        return query.term.matches(step, subtrees)
    if query.joint == "not":
        return not _answers(query.parts[0], step, subtrees)
    is_enough = query.joint == "or"
    for part in query.parts:
        if _answers(part, step, subtrees) is is_enough:
            return is_enough
    return not is_enough


def _list_roots(query: StepQuery) -> set[str]:
    if query.term is not None:
        return {query.term.value} if query.term.field == "under" else set()
    return {root for part in query.parts for root in _list_roots(part)}
