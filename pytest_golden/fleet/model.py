"""What travels between a gate and the workers of its fleet: values only; both ends have the same version of this package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.model import PipelineOutcome, RunnerCommand
    from pytest_golden.history.trends import SlowdownJudge
    from pytest_golden.manifest.model import GoldenProjectConfig


@dataclass(frozen=True, slots=True)
class FleetSession:
    """What all runs of a gate on a fleet have in common.

    `root` is the gate's workspace; a worker that reads the `token` in `token_file` sees the same workspace. `baselines` is
    the baselines' folder, and `baselines_inside` its path below the root, None if it lies elsewhere. `keep` is the value
    of `--golden-keep`.
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
    """One attempt of one project. `environment` holds the gate's variables that `pass_env` names; `command` is a hook's answer.

    `name` is unique in the session. `shipped_project` is the project as it is in a shipped workspace.
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
    """The answer to an attempt on a worker.

    `outcome` is None if it was not run again: `lost_on` names the workers that were lost with it. `log` is the whole log,
    compressed with zlib.
    """

    outcome: PipelineOutcome | None = None
    log: bytes = b""
    was_examined: bool = False
    lost_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that must be the same at both ends; None for a package that is not installed."""

    python: str
    packages: Mapping[str, str | None] = field(default_factory=dict)

    def describe(self) -> str:
        """Return them as text for people."""
        packages = (f"{name} {version or '(missing)'}" for name, version in self.packages.items())
        return ", ".join([f"Python {self.python}", *packages])

    def describe_difference(self, other: Versions) -> str:
        """Return how `other` differs, as text; empty if it does not."""
        told = [] if self.python == other.python else [f"Python {other.python}"]
        for name, version in self.packages.items():
            found = other.packages.get(name)
            if found != version or found is None:
                told.append(f"no {name}" if found is None else f"{name} {found}")
        return ", ".join(told)
