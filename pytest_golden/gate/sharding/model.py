"""A shard of a gate and the plan that says which project is in which. Values; nothing is decided or read here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Members of a run's facts: which shard it was, and the digest of what the whole manifest declared.
SHARD, MANIFEST_DIGEST = "shard", "manifest_digest"
#: More shards than anybody starts; a plan for them is a slip of the hand.
MOST_SHARDS = 1000
_FORM = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard `index` of `count`; the first is 1."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str, place: str) -> Shard:
        """Read `I/N`; `place` says where that was given.

        Raises:
            SettingsError: it is no shard.
        """
        found = _FORM.fullmatch(text.strip())
        index, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= index <= count <= MOST_SHARDS:
            raise SettingsError(
                f"{place}: {text!r} is no shard: give I/N, such as 2/4, with I from 1 to N and N at most {MOST_SHARDS}."
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
