"""How the versions that two stores have of a memory become one history. Pure.

A version is known by its content and the moment at which it was stored. What the gate's results teach is not merged but
learned again from them, since tallies are sums.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.results.turns import OWN_WORK
from pytest_golden.learning.tally import TALLIES

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEARNED = (("outcomes", "golden"), ("training", "golden"))
_CONTENT = ("value", "tags", "provenance", "updated_at")


def find_learned_entry(namespace: tuple[str, ...], key: str) -> str | None:
    """Give the entry of the gate's result that a memory was learned from; None when it is none of that kind."""
    return f"entry_{key.rpartition('_')[2]}" if namespace in _LEARNED else None


def is_tally(namespace: tuple[str, ...]) -> bool:
    """Tell whether a memory counts the gate's failures, or is work that is left to be done with its own store."""
    return namespace == TALLIES or namespace[:1] == (OWN_WORK,)


def merge_versions(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give all versions of one key, oldest first, numbered from 1 on; the newest alone has words to be found by."""
    united: dict[str, dict[str, Any]] = {}
    for row in (*one, *other):
        known = united.setdefault(_write(row), row)
        # The same version may be the newest in one store, and have its words there alone.
        if known["words"] is None and row["words"] is not None:
            united[_write(row)] = row
    rows = sorted(united.items(), key=lambda item: (item[1]["updated_at"], item[1]["words"] is not None, item[0]))
    created_at = min(row["created_at"] for row in united.values())
    last = len(rows)
    return [
        {
            **row,
            "version": version,
            "is_newest": version == last,
            "words": (row["words"] or "") if version == last else None,
            "created_at": created_at,
        }
        for version, (_, row) in enumerate(rows, 1)
    ]


def _write(row: dict[str, Any]) -> str:
    return json.dumps([row[name] for name in _CONTENT], sort_keys=True)
