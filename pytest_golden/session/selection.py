"""Which of the declared projects are of this session's shard (`--golden-shard`)."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.history.run_environment import MANIFEST_DIGEST, SHARD
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.session.item import GoldenItem
from pytest_golden.verify.shard_plan import PLAN_NAME, Shard, ShardPlan, complete_plan, read_plan, total_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.session.declared import Declared
    from pytest_golden.settings import GoldenSettings

_LEFT_OUT = "golden_left_to_other_shards"


@dataclass(frozen=True, slots=True)
class SessionShard:
    """Which part of what is declared this session runs.

    `plan` is completed, `source` its file, None where there is none. `facts` are kept with the gate run, for who joins the shards.
    """

    shard: Shard
    plan: ShardPlan
    source: Path | None
    facts: Mapping[str, str]

    def has(self, name: str) -> bool:
        """Tell whether a declared project is of this shard."""
        return self.plan.shards[name] == self.shard.index

    def describe(self) -> str:
        """Describe how much this shard runs, and by which plan."""
        mine = sum(map(self.has, self.plan.shards))
        told = f"golden: shard {self.shard}, {mine} of {len(self.plan.shards)} projects"
        if self.source is None:
            return f"{told}, distributed by number: there is no shard plan"
        seconds = total_seconds(self.plan)
        times = f"about {format_elapsed(seconds[self.shard.index - 1])} of {format_elapsed(sum(seconds))}"
        return f"{told}, {times} by {os.path.relpath(self.source)}"


class GoldenSharding:
    """Deselects what other shards run. A session that has no project left then is not a failure."""

    def __init__(self, mine: SessionShard) -> None:
        self._mine = mine
        self._left_out = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave the other shards' projects out, of those that nothing else has deselected."""
        others = [item for item in items if isinstance(item, GoldenItem) and not self._mine.has(item.name)]
        if others:
            self._left_out += len(others)
            left_out = set(others)
            items[:] = [item for item in items if item not in left_out]
            config.hook.pytest_deselected(items=others)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from an xdist worker what it left out."""
        self._left_out += getattr(node, "workeroutput", {}).get(_LEFT_OUT, 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let an empty shard pass."""
        workeroutput = getattr(session.config, "workeroutput", None)
        if workeroutput is not None:
            workeroutput[_LEFT_OUT] = self._left_out
        elif self._left_out and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


def find_shard(settings: GoldenSettings, declared: Declared) -> SessionShard | None:
    """Find which part of the declared projects this session runs; None means all, whatever the plan.

    Raises:
        SettingsError: the shard or its plan cannot be used.
    """
    if settings.shard is None:
        return None
    shard = Shard.parse(settings.shard, "--golden-shard")
    source = find_plan_file(settings, declared)
    plan = ShardPlan(shard.count) if source is None else read_plan(source)
    if plan.count != shard.count:
        raise SettingsError(
            f"{source} is a plan for {plan.count} shards, but --golden-shard is {shard}: use I/{plan.count}, "
            f"or make a new plan with `golden shards plan --shards {shard.count}`."
        )
    projects = tuple(declared.projects.values())
    facts = {SHARD: str(shard), MANIFEST_DIGEST: _digest(projects)}
    return SessionShard(shard, complete_plan(projects, plan), source, facts)


def find_plan_file(settings: GoldenSettings, declared: Declared) -> Path | None:
    """Return the named plan, or the one beside the manifest if that exists."""
    if settings.shard_plan is not None:
        return settings.shard_plan
    folder = declared.manifest.workspace_root if declared.manifest_path is None else declared.manifest_path.parent
    plan = folder / PLAN_NAME
    return plan if plan.exists() else None


def _digest(projects: Iterable[GoldenProjectConfig]) -> str:
    told = json.dumps([project.to_dict() for project in projects], sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
