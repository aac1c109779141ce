"""Which step of a run tells where it failed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def find_failing_step(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Give the last step that says it failed, or None. Observations of the harness repeat the reason."""
    failed = (step for step in reversed(steps) if step.get("type") != "observation" and _says_it_failed(step))
    return next(failed, None)


def _says_it_failed(step: Mapping[str, Any]) -> bool:
    metadata = step.get("metadata") or {}
    return bool(metadata.get("error") or metadata.get("failed"))
