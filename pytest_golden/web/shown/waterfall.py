"""The steps of a run as bars on one line of time. Geometry alone, in per cent; a template draws it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_BARS = 200
_WHOLE = 100.0
_THINNEST = 0.4
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class StepBar:
    """A step, how deep it is nested, and where its bar begins and how long it is; `width` is None without a duration."""

    step: Mapping[str, Any]
    depth: int
    start: float
    width: float | None
    error: str | None

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        took = _duration(self.step)
        return None if took is None else took / 1000


def lay_out_steps(steps: Sequence[Mapping[str, Any]]) -> tuple[StepBar, ...]:
    """Give bars for the last steps, since a failure is at the end."""
    shown = steps[-MOST_BARS:]
    begins = [_begin_ms(step) for step in shown]
    known = [at for at in begins if at is not None]
    first = min(known, default=0.0)
    ends = [at + (_duration(step) or 0.0) for step, at in zip(shown, begins, strict=True) if at is not None]
    span = max(max(ends, default=0.0) - first, 1e-6)
    return tuple(_lay_out(shown, begins, first, span))


def _lay_out(
    shown: Sequence[Mapping[str, Any]], begins: Sequence[float | None], first: float, span: float
) -> Iterator[StepBar]:
    depths: dict[Any, int] = {}
    for step, at in zip(shown, begins, strict=True):
        depth = min(depths.get(step.get("parent_step_id"), -1) + 1, _DEEPEST)
        depths[step.get("id")] = depth
        took = _duration(step)
        start = 0.0 if at is None else min(_WHOLE - _THINNEST, (at - first) / span * _WHOLE)
        width = None if took is None else max(_THINNEST, min(_WHOLE - start, took / span * _WHOLE))
        yield StepBar(step, depth, start, width, _read_error(step))


def _read_error(step: Mapping[str, Any]) -> str | None:
    about = step.get("metadata") or {}
    error = about.get("error") or about.get("failed")
    if not error:
        return None
    return "failed" if error is True else str(error)


def _duration(step: Mapping[str, Any]) -> float | None:
    took = step.get("duration_ms")
    return float(took) if isinstance(took, int | float) else None


def _begin_ms(step: Mapping[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(step.get("timestamp"))).timestamp() * 1000
    except ValueError:
        return None
