"""Why a signal went where it went, as it was kept with the signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.journal.model import RoutedBy
from pytest_golden.journal.routing.rules import MOST_COUNTED, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RoutingExplanation:
    """The rule that routed a signal, and the verdict on each candidate: the one that was taken first, then those it beat.

    `others` counts further expectations that were open then; with the candidates up to 100.
    """

    signal_id: str
    rule: RoutedBy
    candidates: tuple[Verdict, ...] = ()
    others: int = 0

    @property
    def is_count_cut(self) -> bool:
        """Tell whether there may have been more others than were counted."""
        return len(self.candidates) + self.others >= MOST_COUNTED

    def to_dict(self) -> dict[str, Any]:
        """Give all fields under their own names, JSON-safe."""
        candidates = [candidate.to_dict() for candidate in self.candidates]
        return {"signal_id": self.signal_id, "rule": self.rule.value, "candidates": candidates, "others": self.others}


def read_explanation(
    signal_id: str, rule: RoutedBy, expectation_id: str | None, kept: Mapping[str, Any] | None
) -> RoutingExplanation:
    """Make an explanation of what was kept; whoever knew the expectation has kept nothing."""
    if kept is not None:
        candidates = tuple(
            Verdict(one["expectation_id"], RoutedBy(one["rule"]), one["taken"], one["reason"])
            for one in kept["candidates"]
        )
        return RoutingExplanation(signal_id, rule, candidates, kept["others"])
    if expectation_id is None:
        return RoutingExplanation(signal_id, rule)
    known = Verdict(expectation_id, rule, taken=True, reason="it was named by who recorded the signal")
    return RoutingExplanation(signal_id, rule, (known,))
