"""Run the present floor over past commits: what would have been red, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway import git
from pytest_golden.regression.model import ResultStatus
from pytest_golden.values.shape import Shape, VersionedShape, in_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.verify.bisection import PastCommits

_SHORT, _MOST_REASON, _MOST_COMMITS = 12, 500, 100_000
#: The status of a project at a commit that could not be run.
NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class PastStatus(Shape):
    """How a project stands at a commit: a status of a result, or `not_run`. `reason` is why it does not pass."""

    project: str
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReplayedCommit(Shape):
    """One commit, its day as `2026-03-01`, its first line, and how the projects stand."""

    commit: str
    day: str
    subject: str
    results: tuple[PastStatus, ...]


@dataclass(frozen=True, slots=True)
class Replay(VersionedShape):
    """The present floor over a range of commits, oldest first, by first parents."""

    base: str
    head: str
    projects: tuple[str, ...]
    commits: tuple[ReplayedCommit, ...]

    @property
    @in_form()
    def red(self) -> dict[str, int]:
        """Count, for each project, the commits at which it would have been red."""
        failing = {ResultStatus.FAILED.value, ResultStatus.ERROR.value}
        counts = Counter(one.project for commit in self.commits for one in commit.results if one.status in failing)
        return {name: counts[name] for name in self.projects}


class _Commit(NamedTuple):
    commit: str
    day: str
    subject: str


class Replayer:
    """Runs projects at one commit after another.

    `known` are commits that an earlier replay has run, by their ids; it grows. `keep` is called after each commit.
    """

    def __init__(
        self,
        past: PastCommits,
        known: dict[str, ReplayedCommit],
        *,
        keep: Callable[[Iterable[ReplayedCommit]], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._past = past
        self._known = known
        self._keep = keep
        self._say = say

    def run(self, base: str, head: str, names: Sequence[str]) -> Replay:
        """Run the projects at each commit after `base` up to `head`.

        Raises:
            GoldenError: `base` is no ancestor of `head`, or git cannot list the commits.
        """
        commits = list_range(self._past.manifest.parent, base, head)
        replayed = []
        for number, one in enumerate(commits, 1):
            known = self._known.get(one.commit)
            if known is None or {result.project for result in known.results} < set(names):
                known = self._run(one, names)
                # What could not be run for a moment may run tomorrow.
                if all(result.status != NOT_RUN for result in known.results):
                    self._known[one.commit] = known
                    self._keep(self._known.values())
            replayed.append(known)
            self._say(f"{number} of {len(commits)}: {one.commit[:_SHORT]} {one.subject}{_tell(known, names)}")
        return Replay(base, head, tuple(names), tuple(_choose(one, names) for one in replayed))

    def _run(self, one: _Commit, names: Sequence[str]) -> ReplayedCommit:
        try:
            results = self._past.run_all(one.commit, names)
        except GoldenError as error:
            reason = str(error)[:_MOST_REASON]
            return ReplayedCommit(*one, tuple(PastStatus(name, NOT_RUN, reason) for name in names))
        return ReplayedCommit(*one, tuple(_make_status(results[name]) for name in names))


def list_range(folder: Path, base: str, head: str) -> tuple[_Commit, ...]:
    """List the commits after a base up to a head by first parents, oldest first.

    Raises:
        GoldenError: the base is no ancestor of the head, or git cannot list them.
    """
    if git.run_git(folder, "merge-base", "--is-ancestor", base, head).returncode:
        raise GoldenError(f"{base[:_SHORT]} is no ancestor of {head[:_SHORT]}: give a commit that came before it")
    how = ("--first-parent", "--reverse", f"--max-count={_MOST_COMMITS}", "-z", "--format=%H%x01%cs%x01%s")
    told = git.ask_git(folder, "log", *how, f"{base}..{head}", failing="git cannot list commits")
    lines = filter(None, told.decode("utf-8", "replace").split("\0"))
    return tuple(_Commit(*line.split("\x01", 2)) for line in lines)


def _make_status(result: GoldenProjectResult) -> PastStatus:
    told = "" if result.status is ResultStatus.PASSED else (result.error_message or "")[:_MOST_REASON]
    return PastStatus(result.name, str(result.status), told)


def _choose(one: ReplayedCommit, names: Sequence[str]) -> ReplayedCommit:
    found = {result.project: result for result in one.results}
    return ReplayedCommit(one.commit, one.day, one.subject, tuple(found[name] for name in names))


def _tell(one: ReplayedCommit, names: Sequence[str]) -> str:
    others = [
        result for result in one.results if result.project in names and result.status != ResultStatus.PASSED.value
    ]
    return f": {', '.join(f'{result.project} {result.status}' for result in others)}" if others else ""
