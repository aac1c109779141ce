"""How often what was intended succeeded. Pure: it adds up counts that are given."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.journal.model import Assessment
from pytest_golden.values.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_EPOCH = date(1970, 1, 1)


class Count(NamedTuple):
    """How many entries of a type that began on a day (since the epoch, UTC) are assessed in this way."""

    day: int
    intent_type: str
    assessment: Assessment
    amount: int


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """How many of `n` entries succeeded: those that are a success, a failure or partial. No rate without any.

    What is still open, and what expired without news, is counted apart.
    """

    n: int = 0
    success_rate: float | None = None
    open: int = 0
    expired: int = 0

    @classmethod
    def of(cls, counts: Iterable[Count]) -> SuccessRate:
        """Add counts up."""
        sums: Counter[Assessment] = Counter()
        for count in counts:
            sums[count.assessment] += count.amount
        n = sums[Assessment.SUCCESS] + sums[Assessment.FAILURE] + sums[Assessment.PARTIAL]
        rate = sums[Assessment.SUCCESS] / n if n else None
        return cls(n, rate, sums[Assessment.OPEN], sums[Assessment.EXPIRED])

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe."""
        return {"n": self.n, "success_rate": self.success_rate, "open": self.open, "expired": self.expired}


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """The success rate of all entries, of each intent type (`""` for none), and of each day on which entries began.

    The days are ISO dates in UTC, the oldest first.
    """

    n: int
    success_rate: float | None
    open: int
    expired: int
    by_intent_type: Mapping[str, SuccessRate]
    by_time: Mapping[str, SuccessRate]

    def __hash__(self) -> int:
        return hash((self.n, self.success_rate, self.open, self.expired))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields under their own names, JSON-safe; `by_time` is a list with a `day` in each."""
        return {
            **SuccessRate(self.n, self.success_rate, self.open, self.expired).to_dict(),
            "by_intent_type": {kind: rate.to_dict() for kind, rate in self.by_intent_type.items()},
            "by_time": [{"day": day, **rate.to_dict()} for day, rate in self.by_time.items()],
        }


def summarize(by_day: Iterable[Count], by_kind: Iterable[Count]) -> JournalSummary:
    """Add up counts of the same entries, once by their days and once by their intent types."""
    known = tuple(by_day)
    kinds: defaultdict[str, list[Count]] = defaultdict(list)
    days: defaultdict[int, list[Count]] = defaultdict(list)
    for count in by_kind:
        kinds[count.intent_type].append(count)
    for count in known:
        days[count.day].append(count)
    whole = SuccessRate.of(known)
    return JournalSummary(
        whole.n,
        whole.success_rate,
        whole.open,
        whole.expired,
        FrozenDict({kind: SuccessRate.of(kinds[kind]) for kind in sorted(kinds)}),
        FrozenDict({_write_day(day): SuccessRate.of(days[day]) for day in sorted(days)}),
    )


def _write_day(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()
