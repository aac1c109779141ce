"""Shards of a gate: dividing projects by their durations, the plan file, and the union of several gates."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from pytest_golden.errors import SettingsError
from pytest_golden.regression.verdict import RunStatus, RunVerdict, judge_run
from pytest_golden.regression.wording import name_some
from pytest_golden.values.shape import Shape, form, in_form

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from pytest_golden.history.recorded_store import RecordedRun
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

#: A larger number of shards is taken for a typing error.
MOST_SHARDS = 1000
_SHARD_FORM = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)
_UNKNOWN_SECONDS = 1.0
#: Beside the manifest.
PLAN_NAME = "golden_shards.json"
_PLAN_VERSION = 1
_MOST_PLAN_BYTES = 64 * 1024 * 1024
_MOST_NAMED = 10
_NOT_WHOLE = "the gate is not whole"
_SHORT_ID = 12


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard `index` of `count`; the first is 1."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str, place: str) -> Shard:
        """Read `I/N`; `place` says where that was given.

        Raises:
            SettingsError: it is not a shard.
        """
        found = _SHARD_FORM.fullmatch(text.strip())
        index, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= index <= count <= MOST_SHARDS:
            raise SettingsError(
                f"{place}: {text!r} is not a shard: give I/N, such as 2/4, with I from 1 to N and N at most {MOST_SHARDS}."
            )
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """In which of `count` shards each project is, and how many seconds it is expected to take; unknown ones are left out."""

    count: int
    shards: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


class _Unit(NamedTuple):
    """Projects that stay together, since one needs the other, and the seconds that they take."""

    names: tuple[str, ...]
    seconds: float


def complete_plan(projects: Sequence[GoldenProjectConfig], plan: ShardPlan) -> ShardPlan:
    """Put every declared project that a plan does not name into a shard, so that all take about the same time.

    The longest go first, each into the shard that is shortest by then. Projects of which one needs the other stay
    together, in the shard that the plan names for one of them. An unknown duration counts as the median of the others.
    Names that are not declared are left out.
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
    """Return the seconds that each shard is expected to take, the first shard first."""
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


def write_plan(plan: ShardPlan) -> str:
    """Return a plan as the text of its file, a project a line, so that a person can read what changed in it."""
    known = {name: round(seconds, 3) for name, seconds in plan.seconds.items()}
    lines = [
        f"    {json.dumps(name)}: {json.dumps({'shard': shard, 'seconds': known.get(name)})}"
        for name, shard in plan.shards.items()
    ]
    told = ",\n".join(lines)
    projects = f"{{\n{told}\n  }}" if lines else "{}"
    return f'{{\n  "schema_version": {_PLAN_VERSION},\n  "shards": {plan.count},\n  "projects": {projects}\n}}\n'


def read_plan(path: Path) -> ShardPlan:
    """Read a plan from its file.

    Raises:
        SettingsError: it is not there, cannot be read, or is not a plan.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_PLAN_BYTES + 1)
        plain = json.loads(text) if len(text) <= _MOST_PLAN_BYTES else None
    except OSError as error:
        raise SettingsError(
            f"the plan of shards {path}: {error.strerror or error}; write one with `golden shards plan --shards N`."
        ) from None
    except (ValueError, RecursionError):
        plain = None
    plan = _parse_plan(plain)
    if plan is None:
        raise SettingsError(f"{path} is not a plan of shards: write a new one with `golden shards plan --shards N`.")
    return plan


def _parse_plan(plain: Any) -> ShardPlan | None:
    if not isinstance(plain, dict) or plain.get("schema_version") != _PLAN_VERSION:
        return None
    count, projects = plain.get("shards"), plain.get("projects")
    if not _is_whole(count, MOST_SHARDS) or not isinstance(projects, dict):
        return None
    shards: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name, told in projects.items():
        if not isinstance(told, dict) or not _is_whole(told.get("shard"), count):
            return None
        shards[name] = told["shard"]
        if (known := told.get("seconds")) is not None:
            if type(known) not in {int, float} or not math.isfinite(known) or known < 0:
                return None
            seconds[name] = float(known)
    return ShardPlan(count, shards, seconds)


def _is_whole(value: Any, most: int) -> TypeGuard[int]:
    return type(value) is int and 1 <= value <= most


class LastGate(NamedTuple):
    """The last gate run of one store, and the projects that it was to run."""

    where: str
    run: RecordedRun
    expected: tuple[str, ...]


def _count_statuses(statuses: Mapping[str, str]) -> dict[str, int]:
    return dict(sorted(Counter(statuses.values()).items()))


@dataclass(frozen=True, slots=True)
class GateUnion(Shape):
    """Several gates seen as one, with one verdict. `problems` say why they do not belong together or are incomplete."""

    declared: tuple[str, ...] = field(metadata=form(write=len, as_type=int))
    statuses: Mapping[str, str] = field(metadata=form(write=_count_statuses, as_type=Mapping[str, int]))
    problems: tuple[str, ...]
    verdict: RunVerdict

    @property
    @in_form()
    def is_whole(self) -> bool:
        """Tell whether every declared project has a result, of the same manifest and commit."""
        return not self.problems

    @property
    @in_form()
    def missing(self) -> tuple[str, ...]:
        """Names of the declared projects without a result, in declaration order."""
        return tuple(name for name in self.declared if name not in self.statuses)


def unite(gates: Sequence[LastGate]) -> GateUnion | None:
    """Return the last gates of several stores as one gate; None if there are none."""
    if not gates:
        return None
    results = {result.name: result for gate in gates for result in gate.run.check.results}
    selected = [name for gate in gates for name in (*gate.expected, *gate.run.gate["deselected"])]
    declared = tuple(dict.fromkeys([*selected, *results]))
    statuses = {name: str(result.status) for name, result in results.items()}
    problems = [
        *_tell_apart("commits", [(gate, gate.run.gate["commit"]) for gate in gates]),
        *_tell_apart("manifests", [(gate, gate.run.manifest_digest) for gate in gates]),
    ]
    missing = [name for name in declared if name not in statuses]
    if missing:
        named = name_some(missing, _MOST_NAMED)
        problems.append(
            f"{len(missing)} of {len(declared)} projects have no result: {named}{_name_missing_shards(gates)}"
        )
    verdict = _judge_union(gates, results.values(), missing, is_whole=not problems)
    return GateUnion(declared, statuses, tuple(problems), verdict)


def _judge_union(
    gates: Sequence[LastGate], results: Iterable[GoldenProjectResult], missing: Collection[str], *, is_whole: bool
) -> RunVerdict:
    verdicts = [gate.run.verdict for gate in gates]
    return judge_run(
        results,
        skips_fail=any(gate.run.gate["require"] for gate in gates),
        # All shards compare the same manifest with the same base.
        weakenings=len({one for gate in gates for one in gate.run.weakened_floor}),
        floor_accepted=not any(verdict.is_floor_bad for verdict in verdicts),
        not_run=missing,
        other_failures=sum(verdict.other_failures for verdict in verdicts),
        problems=dict.fromkeys(
            [*([] if is_whole else [_NOT_WHOLE]), *(told for one in verdicts for told in one.problems)]
        ),
        is_interrupted=any(verdict.status in {None, RunStatus.INTERRUPTED} for verdict in verdicts),
    )


def _tell_apart(what: str, gates: Iterable[tuple[LastGate, str | None]]) -> list[str]:
    first: dict[str, LastGate] = {}
    for gate, value in gates:
        if value:
            first.setdefault(value[:_SHORT_ID], gate)
    if len(first) < 2:
        return []
    told = ", ".join(f"{gate.where} of {value}" for value, gate in first.items())
    return [f"these gates are of different {what}, and so not one gate: {told}"]


def _name_missing_shards(gates: Sequence[LastGate]) -> str:
    shards = [gate.run.gate["shard"] for gate in gates if gate.run.gate["shard"] is not None]
    counts = {shard.partition("/")[2] for shard in shards}
    if len(counts) != 1 or not (count := counts.pop()).isdecimal():
        return ""
    absent = [f"{index}/{count}" for index in range(1, int(count) + 1) if f"{index}/{count}" not in shards]
    return f" (no store of shard {', '.join(absent[:_MOST_NAMED])} is here)" if absent else ""
