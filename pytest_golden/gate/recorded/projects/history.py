"""A project's past as `golden history --json` and the project's page tell it: its runs, its streak, its durations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.history import flakiness, usual_duration
from pytest_golden.gate.store import list_results
from pytest_golden.gate.streak import ENOUGH, describe_streak
from pytest_golden.gate.trends.store import find_last_environment, read_trends
from pytest_golden.regression.trends import DurationTrend

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pytest_golden.gate.past import PastResult
    from pytest_golden.manifest.model import GoldenProjectConfig


@dataclass(frozen=True, slots=True)
class ProjectTrend:
    """What the next run's duration is judged by: passes like the last one, the declared factor, and the limit of both."""

    durations: DurationTrend | None
    max_slowdown: float | None

    @property
    def limit_seconds(self) -> float | None:
        """The limit; None where nothing is declared, or too few passes are known."""
        if self.max_slowdown is None or self.durations is None or not self.durations.is_enough:
            return None
        return self.durations.limit_seconds(self.max_slowdown)

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        durations = DurationTrend(0, 0.0, 0.0) if self.durations is None else self.durations
        told = durations.to_dict() if durations.pass_count else {**dict.fromkeys(durations.to_dict()), "pass_count": 0}
        return {**told, "max_slowdown": self.max_slowdown, "limit_seconds": self.limit_seconds}


@dataclass(frozen=True, slots=True)
class ProjectHistory:
    """A project's newest results, which stand first. `runs` are those that are shown; `recent` may have more of them.

    `trend` is None where nobody has asked for it.
    """

    name: str
    runs: tuple[PastResult, ...]
    recent: tuple[PastResult, ...]
    trend: ProjectTrend | None = None

    @property
    def streak(self) -> str:
        """How the newest result fits in with those before it; empty where it did not run to its end."""
        return describe_streak(self.recent)

    def to_dict(self) -> dict[str, Any]:
        """Give `{name, runs, streak, flakiness, median_seconds, mad_seconds, trend}`, JSON-safe."""
        usual = usual_duration(self.runs)
        return {
            "name": self.name,
            "runs": [write_past_result(result) for result in self.runs],
            "streak": self.streak,
            "flakiness": flakiness(self.runs),
            "median_seconds": usual.median_seconds,
            "mad_seconds": usual.mad_seconds,
            **({} if self.trend is None else {"trend": self.trend.to_dict()}),
        }


def read_history(connection: Connection, name: str, limit: int) -> ProjectHistory:
    """Read the last `limit` results in people's own runs, without the trend; there may be none."""
    recent = list_results(connection, name, max(limit, ENOUGH))
    return ProjectHistory(name, recent[:limit], recent)


def read_trend(connection: Connection, name: str, project: GoldenProjectConfig | None) -> ProjectTrend:
    """Read it as a gate would that ran where the project passed last; `project` is its declaration, None without one."""
    factor = None if project is None else project.max_slowdown
    facts = find_last_environment(connection, name)
    if facts is None:
        return ProjectTrend(None, factor)
    trends = read_trends(connection, {name: None if project is None else project.venv}, facts)
    return ProjectTrend(trends.get(name), factor)


def write_past_result(result: PastResult) -> dict[str, Any]:
    """Give JSON-safe values, without the project's name."""
    plain = {name: getattr(result, name) for name in result.__slots__ if name != "project"}
    return {**plain, "status": result.status.value, "created_at": iso_utc(result.created_at)}
