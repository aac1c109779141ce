"""What travels between a gate and the workers of its fleet. Values alone; both ends have one version of this package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gate.trends import SlowdownJudge
    from pytest_golden.gateway.model import PipelineOutcome, RunnerCommand
    from pytest_golden.manifest.model import GoldenProjectConfig


@dataclass(frozen=True, slots=True)
class FleetSession:
    """What holds for all of a gate's runs on a fleet.

    `root` is the workspace where the gate runs; a worker that finds the `token` in the file of that path, `token_file`,
    sees the same. `baselines` lies there too where `baselines_inside` gives its place below the root. `keep` is the word of
    `--golden-keep`.
    """

    id: str
    root: str
    token_file: str
    token: str
    baselines: str
    baselines_inside: str | None
    accept_command: str
    view: str
    roots: tuple[str, ...] = ()
    keep: str = "none"


@dataclass(frozen=True, slots=True)
class FleetTask:
    """One attempt of one project. `environment` is what `pass_env` lets through, as the gate has it; `command` a hook's answer.

    `name` is the attempt's own in its session. `shipped_project` is the project as it is in a shipped workspace.
    """

    session: FleetSession
    name: str
    project: GoldenProjectConfig
    shipped_project: GoldenProjectConfig
    command: RunnerCommand | None
    environment: Mapping[str, str]
    slowdowns: SlowdownJudge | None = None


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """What became of an attempt on a worker.

    `outcome` is None where it was not run again: `lost_on` names the workers that were lost with it. `log` is the whole log,
    compressed by zlib.
    """

    outcome: PipelineOutcome | None = None
    log: bytes = b""
    was_examined: bool = False
    lost_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Versions:
    """What must be the same at both ends; None for what is not installed."""

    python: str
    packages: Mapping[str, str | None] = field(default_factory=dict)

    def describe(self) -> str:
        """Name them for people."""
        packages = (f"{name} {version or '(missing)'}" for name, version in self.packages.items())
        return ", ".join([f"Python {self.python}", *packages])

    def describe_difference(self, other: Versions) -> str:
        """Name what another has that differs; empty when all is the same."""
        told = [] if self.python == other.python else [f"Python {other.python}"]
        for name, version in self.packages.items():
            found = other.packages.get(name)
            if found != version or found is None:
                told.append(f"no {name}" if found is None else f"{name} {found}")
        return ", ".join(told)
