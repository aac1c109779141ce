"""Whether the last gates of several stores are together one gate over the whole manifest. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST_NAMED = 10
_SHORT = 12


@dataclass(frozen=True, slots=True)
class LastGate:
    """The last gate run of one store: what was declared, how the projects that ran ended, and of which checkout it was."""

    where: str
    commit: str | None
    manifest_digest: str | None
    shard: str | None
    declared: tuple[str, ...]
    statuses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateUnion:
    """Several gates looked at as one. `problems` say why they are none, or not a whole one, each in a sentence."""

    declared: tuple[str, ...]
    statuses: Mapping[str, str]
    problems: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Tell whether every declared project has a result, of the same manifest and commit."""
        return not self.problems

    @property
    def counts(self) -> dict[str, int]:
        """How many projects ended how, and how many have no result."""
        counted = Counter(self.statuses.values())
        return {**dict(sorted(counted.items())), "missing": len(self.missing)}

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the declared projects without a result, in declaration order."""
        return tuple(name for name in self.declared if name not in self.statuses)

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        return {
            "is_whole": self.is_whole,
            "declared": len(self.declared),
            "statuses": dict(sorted(Counter(self.statuses.values()).items())),
            "missing": list(self.missing),
            "problems": list(self.problems),
        }


def unite(gates: Sequence[LastGate]) -> GateUnion | None:
    """Look at the last gates of several stores as one; None where there is none."""
    if not gates:
        return None
    declared = tuple(dict.fromkeys(name for gate in gates for name in gate.declared))
    statuses = {name: status for gate in gates for name, status in gate.statuses.items()}
    problems = [
        *_tell_apart("commits", [(gate, gate.commit and gate.commit[:_SHORT]) for gate in gates]),
        *_tell_apart("manifests", [(gate, gate.manifest_digest and gate.manifest_digest[:_SHORT]) for gate in gates]),
    ]
    missing = [name for name in declared if name not in statuses]
    if missing:
        named = ", ".join(missing[:_MOST_NAMED]) + (", ..." if len(missing) > _MOST_NAMED else "")
        problems.append(
            f"{len(missing)} of {len(declared)} projects have no result: {named}{_name_missing_shards(gates)}"
        )
    return GateUnion(declared, statuses, tuple(problems))


def _tell_apart(what: str, gates: Iterable[tuple[LastGate, str | None]]) -> list[str]:
    first: dict[str, LastGate] = {}
    for gate, value in gates:
        if value is not None:
            first.setdefault(value, gate)
    if len(first) < 2:
        return []
    told = ", ".join(f"{gate.where} of {value}" for value, gate in first.items())
    return [f"these gates are of different {what}, and so not one gate: {told}"]


def _name_missing_shards(gates: Sequence[LastGate]) -> str:
    shards = [gate.shard for gate in gates if gate.shard is not None]
    counts = {shard.partition("/")[2] for shard in shards}
    if len(counts) != 1 or not (count := counts.pop()).isdecimal():
        return ""
    absent = [f"{index}/{count}" for index in range(1, int(count) + 1) if f"{index}/{count}" not in shards]
    return f" (no store of shard {', '.join(absent[:_MOST_NAMED])} is here)" if absent else ""
