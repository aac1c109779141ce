"""Part projects into shards that take about the same time. Pure: the same input gives the same shards on every machine."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.gate.sharding.model import ShardPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig

_UNKNOWN_SECONDS = 1.0


class _Unit(NamedTuple):
    """Projects that stay together, since one needs the other, and the seconds that they take."""

    names: tuple[str, ...]
    seconds: float


def complete_plan(projects: Sequence[GoldenProjectConfig], plan: ShardPlan) -> ShardPlan:
    """Put every declared project that a plan does not name into a shard, so that all take about the same time.

    The longest first, each into what is the shortest shard by then: with many projects a shard that comes out about even.
    Projects of which one needs the other stay together, where the first of them is. What is not known of a duration is
    taken to be the median of the others. Names that are not declared are left out.
    """
    unknown = _guess_unknown(plan.seconds)
    shares: list[list[str]] = [[] for _ in range(plan.count)]
    totals = [0.0] * plan.count
    new: list[_Unit] = []
    for names in form_groups(projects):
        unit = _Unit(names, sum(plan.seconds.get(name, unknown) for name in names))
        planned = next((plan.shards[name] for name in names if name in plan.shards), None)
        if planned is None:
            new.append(unit)
        else:
            shares[planned - 1].extend(names)
            totals[planned - 1] += unit.seconds
    # Sorting is stable: of equally long ones the first declared comes first.
    for unit in sorted(new, key=lambda one: -one.seconds):
        shortest = totals.index(min(totals))
        shares[shortest].extend(unit.names)
        totals[shortest] += unit.seconds
    shards = {name: number for number, share in enumerate(shares, 1) for name in share}
    known = {name: plan.seconds[name] for name in shards if name in plan.seconds}
    return ShardPlan(plan.count, {project.name: shards[project.name] for project in projects}, known)


def total_seconds(plan: ShardPlan) -> tuple[float, ...]:
    """Give the seconds that each shard is expected to take, the first shard first."""
    unknown = _guess_unknown(plan.seconds)
    totals = [0.0] * plan.count
    for name, shard in plan.shards.items():
        totals[shard - 1] += plan.seconds.get(name, unknown)
    return tuple(totals)


def form_groups(projects: Iterable[GoldenProjectConfig]) -> list[tuple[str, ...]]:
    """Group the names of projects of which one needs the other, also through a third; all in declaration order."""
    groups: dict[str, list[str]] = {}
    for project in projects:
        mine = groups[project.name] = [project.name]
        for need in project.needs:
            other = groups.get(need, mine)
            if other is not mine:
                other.extend(mine)
                groups.update(dict.fromkeys(mine, other))
                mine = other
    order = {name: place for place, name in enumerate(groups)}
    apart = {id(group): group for group in groups.values()}
    return sorted(
        (tuple(sorted(group, key=order.__getitem__)) for group in apart.values()), key=lambda one: order[one[0]]
    )


def _guess_unknown(seconds: Mapping[str, float]) -> float:
    return median(seconds.values()) if seconds else _UNKNOWN_SECONDS
