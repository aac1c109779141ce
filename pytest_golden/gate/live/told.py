"""How far a watcher was told of what happens, as the id of an event that comes back after a lost connection. Pure.

It names the runs that were told to be running with the last result told of each. It lies with the watcher, so a server
that was started anew understands it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_RUNS = 20
_LONGEST = 2_000
_RUN = r"[A-Za-z0-9_]{1,64}\.\d{1,18}"
_ID = re.compile(rf"(\d{{1,18}})((?:-{_RUN})*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Told:
    """The number of the newest run that was known, and of each run that was running its last result that was told."""

    newest: int
    results: Mapping[str, int] = field(default_factory=dict)

    def to_id(self) -> str:
        """Write it as an event's id."""
        return "-".join([str(self.newest), *(f"{run}.{number}" for run, number in self.results.items())])

    @classmethod
    def parse(cls, text: str | None) -> Told | None:
        """Read an event's id; None for what is none of ours."""
        found = _ID.fullmatch(text) if text is not None and len(text) <= _LONGEST else None
        if found is None:
            return None
        parts = [part.split(".") for part in found[2].split("-")[1:]]
        return cls(int(found[1]), {run: int(number) for run, number in parts}) if len(parts) <= _MOST_RUNS else None
