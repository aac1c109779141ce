"""What several attempts at one project tell together: the result is the last one's, and what any of them read counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.regression.model import GoldenProjectResult

_READS = "reads"


def join_reads(earlier: GoldenProjectResult, last: GoldenProjectResult) -> GoldenProjectResult:
    """Give the last result with the reads of both, where reads are recorded; not known of one is not known at all."""
    if last.trajectory is None or _READS not in _get_metadata(last):
        return last
    before, now = (_get_metadata(result).get(_READS) for result in (earlier, last))
    reads = None if before is None or now is None else sorted({*before, *now})
    metadata = {**_get_metadata(last), _READS: reads}
    return replace(last, trajectory={**last.trajectory, "metadata": metadata})


def _get_metadata(result: GoldenProjectResult) -> Mapping[str, Any]:
    return (result.trajectory or {}).get("metadata") or {}
