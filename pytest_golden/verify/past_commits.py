"""Run one floor (a manifest and its baselines) on past commits, and tell what would have been red.

Everything else comes from the commit. So all commits are judged by the same rules, and a commit that changed the floor is not blamed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway import git
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.settings import NO_STORE
from pytest_golden.values.shape import Shape, VersionedShape, in_form
from pytest_golden.verify import base_worktree, gates
from pytest_golden.verify.base_worktree import BaseEnvironment, BaseWorktree, JudgedHead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.verify.gates import StartedGate

_SHORT, _MOST_TOLD = 12, 500
#: The status of a project at a commit that could not run.
NOT_RUN = "not_run"
_MOST_COMMITS = 100_000
_UV_LOCK = "uv.lock"
_RED = frozenset({ResultStatus.FAILED.value, ResultStatus.ERROR.value})


class StartedCommit(NamedTuple):
    """Projects that are running at a commit. `held` removes the files that were made for this."""

    commit: str
    names: Sequence[str]
    gate: StartedGate
    held: ExitStack

    def abandon(self) -> None:
        """Stop the projects."""
        with self.held:
            self.gate.process.end()


class PastCommits:
    """Runs projects of a manifest on earlier commits, each in its own worktree.

    Args:
        manifest: the manifest of the floor, with its baselines beside it.
        checkout: the root of the working tree.
        private: a folder for temporary files.
        environment: the variables of the gates.
        show: receives the last line of a running gate.
        floor_root: the root of the checkout that contains the manifest, if that is not the working tree.
        lock: the path of a lock file, relative to the root. Each commit gets the environment that its own lock file describes. Without
            it, the manifest's `setup:` makes the environment, or the present one is used.
    """

    def __init__(
        self,
        manifest: Path,
        checkout: Path,
        private: Path,
        environment: Mapping[str, str],
        show: Callable[[str], None] | None = None,
        *,
        floor_root: Path | None = None,
        lock: str | None = None,
    ) -> None:
        self.manifest = manifest
        self.declared: Manifest = load_manifest(manifest)
        self.gaps: set[str] = set()
        self._floor_root = floor_root or checkout
        self._lock = lock
        self._checkout = checkout
        self._private = private
        self._environment = environment
        self._show = show
        self._together: tuple[str, ...] = ()
        # By commit: results that were not requested yet, or why there are none.
        self._shared: dict[str, dict[str, GoldenProjectResult] | GoldenError] = {}

    def run(self, commit: str, name: str) -> GoldenProjectResult:
        """Run a project at a commit and return its result.

        Raises:
            GoldenError: it cannot run there; the message says why.
        """
        if name not in self._together:
            return self.run_all(commit, (name,))[name]
        if commit not in self._shared:
            try:
                self._shared[commit] = self.run_all(commit, self._together)
            except GoldenError as error:
                self._shared[commit] = error
        shared = self._shared[commit]
        if isinstance(shared, GoldenError):
            raise shared
        return shared.pop(name) if name in shared else self.run_all(commit, (name,))[name]

    def run_together(self, names: Iterable[str]) -> None:
        """From now on, run these projects together at each commit. `run` then returns the result of that shared gate first."""
        self._together = tuple(names)

    @property
    def has_environments(self) -> bool:
        """Tell whether each commit has its own environment."""
        return self._lock is not None or self.declared.setup is not None

    def run_all(self, commit: str, names: Sequence[str]) -> dict[str, GoldenProjectResult]:
        """Run projects at a commit, in one gate, and return their results by name. Raises the same errors as `run`."""
        return self.finish(self.start(commit, names))

    def start(self, commit: str, names: Sequence[str]) -> StartedCommit:
        """Start projects at a commit, in one gate. Call `finish` or `abandon` afterwards. Raises the same errors as `run`."""
        private = Path(tempfile.mkdtemp(prefix="run-", dir=self._private))
        declared, passed = self.declared, self.declared.list_passed()
        head = JudgedHead(
            self._floor_root, self.manifest, declared.workspace_root, self._environment, passed, declared.setup
        )
        with ExitStack() as held:
            held.callback(shutil.rmtree, private, ignore_errors=True)
            # Directly below: by that git's record of it is known, and forgotten, if we are killed.
            tree = BaseWorktree(self._checkout, self._private, commit, f"commit-of-{private.name}")
            held.callback(tree.close)
            self.gaps.update(tree.find_gaps())
            base_worktree.lay_declarations(tree, head, self.manifest, links=False)
            file = tree.root / os.path.relpath(os.path.realpath(self.manifest), os.path.realpath(self._floor_root))
            setup, named = declared.setup, "`setup:`"
            if self._lock is not None:
                setup, named = _make_setup(tree.root / self._lock, commit), f"`--env {self._lock}`"
            made = BaseEnvironment(self._checkout, tree.root, private, self._environment, passed, setup_name=named)
            place = made.prepare(file, setup, base_worktree.find_setup_seconds(declared.projects))
            reports = {f"GOLDEN_{kind.upper()}": str(private / f"aside.{kind}") for kind in ("junit", "html")}
            place = replace(place, environment={**place.environment, **reports}, options=("--golden-learning=off",))
            gate = gates.start_gate(gates.use_store(place, NO_STORE), private, "gate", projects=names)
            return StartedCommit(commit, names, gate, held.pop_all())

    def finish(self, started: StartedCommit) -> dict[str, GoldenProjectResult]:
        """Wait for the projects, and return their results by name. Raises the same errors as `run`."""
        with started.held:
            try:
                report = gates.finish_gate(started.gate, f"commit {started.commit[:_SHORT]}", self._show)
            except gates.BrokenDownError as error:
                raise GoldenError(str(error)) from None
            # A quarantine says what a gate makes of a failure, and a failure it is.
            return {name: replace(gates.result_of(report, name), quarantined=None) for name in started.names}


def _make_setup(lock: Path, commit: str) -> tuple[str, ...]:
    """Return the command that installs the packages of a lock file into the environment of its commit."""
    if not lock.is_file():
        raise GoldenError(f"there is no {lock.name} at {commit[:_SHORT]}")
    if lock.name == _UV_LOCK:
        # Into the environment that is active, beside what is there.
        return ("uv", "sync", "--frozen", "--active", "--inexact", "--quiet", "--project", str(lock.parent))
    return ("python", "-m", "pip", "install", "--quiet", "-r", str(lock))


@dataclass(frozen=True, slots=True)
class PastStatus(Shape):
    """The status of a project at a commit: that of a result, or `not_run`. `reason` says why it did not pass."""

    project: str
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReplayedCommit(Shape):
    """One commit, its day as `2026-03-01`, the first line of its message, and the status of each project."""

    commit: str
    day: str
    subject: str
    results: tuple[PastStatus, ...]


@dataclass(frozen=True, slots=True)
class Replay(VersionedShape):
    """A floor over a range of commits (first parents, oldest first).

    `before` are the same commits judged by the floor of the ref `against`, for the projects whose floor is different there.
    """

    base: str
    head: str
    projects: tuple[str, ...]
    commits: tuple[ReplayedCommit, ...]
    against: str | None = None
    before: tuple[ReplayedCommit, ...] = ()

    @property
    @in_form()
    def red(self) -> dict[str, int]:
        """Count, for each project, the commits at which it would have been red."""
        counts = Counter(one.project for commit in self.commits for one in commit.results if one.status in _RED)
        return {name: counts[name] for name in self.projects}

    @property
    @in_form()
    def missed(self) -> dict[str, list[str]]:
        """Return, for each project of `before`, the commits at which it was red there and passes now."""
        return self._find_turned(self.before, self.commits)

    @property
    @in_form()
    def gained(self) -> dict[str, list[str]]:
        """Return, for each project of `before`, the commits at which it passed there and is red now."""
        return self._find_turned(self.commits, self.before)

    def _find_turned(self, red: Sequence[ReplayedCommit], green: Sequence[ReplayedCommit]) -> dict[str, list[str]]:
        names = [one.project for one in self.before[0].results] if self.before else []
        found: dict[str, list[str]] = {name: [] for name in names}
        for one, other in zip(red, green, strict=False):
            passing = {result.project for result in other.results if result.status == ResultStatus.PASSED.value}
            for result in one.results:
                if result.project in found and result.status in _RED and result.project in passing:
                    found[result.project].append(one.commit)
        return found


class _Told(NamedTuple):
    """The facts that git knows about a commit."""

    commit: str
    day: str
    subject: str


class Replayer:
    """Runs projects at one commit after another.

    Args:
        past: runs them.
        known: commits at which an earlier replay has run some projects, by id; new ones are added.
        keep: is called after each run.
        say: receives messages about the progress.
        jobs: the number of commits that run in parallel.
    """

    def __init__(
        self,
        past: PastCommits,
        known: dict[str, ReplayedCommit],
        *,
        keep: Callable[[Iterable[ReplayedCommit]], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
        jobs: int = 1,
    ) -> None:
        self._past = past
        self._known = known
        self._keep = keep
        self._say = say
        self._jobs = jobs

    def run(self, base: str, head: str, names: Sequence[str]) -> Replay:
        """Run the projects at each commit after `base` up to `head`.

        Raises:
            GoldenError: `base` is not an ancestor of `head`, or git cannot list the commits.
        """
        commits = list_range(self._past.manifest.parent, base, head)
        missing = {one.commit: [name for name in names if name not in self._read_known(one.commit)] for one in commits}
        waiting = (one.commit for one in commits if missing[one.commit])
        started: dict[str, StartedCommit | GoldenError] = {}
        replayed = []
        try:
            for number, one in enumerate(commits, 1):
                while len(started) < self._jobs and (commit := next(waiting, None)) is not None:
                    started[commit] = self._start(commit, missing[commit])
                results = self._read_known(one.commit)
                if one.commit in started:
                    results |= self._finish(started.pop(one.commit), missing[one.commit])
                    # What could not be run for a moment may run tomorrow.
                    kept = tuple(result for result in results.values() if result.status != NOT_RUN)
                    self._known[one.commit] = ReplayedCommit(*one, kept)
                    self._keep(self._known.values())
                asked = ReplayedCommit(*one, tuple(results[name] for name in names))
                replayed.append(asked)
                self._say(f"{number} of {len(commits)}: {one.commit[:_SHORT]} {one.subject}{_tell_others(asked)}")
        finally:
            for begun in started.values():
                if not isinstance(begun, GoldenError):
                    begun.abandon()
        return Replay(base, head, tuple(names), tuple(replayed))

    def _read_known(self, commit: str) -> dict[str, PastStatus]:
        known = self._known.get(commit)
        return {} if known is None else {result.project: result for result in known.results}

    def _start(self, commit: str, names: Sequence[str]) -> StartedCommit | GoldenError:
        try:
            return self._past.start(commit, names)
        except GoldenError as error:
            return error

    def _finish(self, started: StartedCommit | GoldenError, names: Sequence[str]) -> dict[str, PastStatus]:
        try:
            if isinstance(started, GoldenError):
                raise started
            results = self._past.finish(started)
        except GoldenError as error:
            return {name: PastStatus(name, NOT_RUN, str(error)[:_MOST_TOLD]) for name in names}
        return {name: _make_status(results[name]) for name in names}


def list_range(folder: Path, base: str, head: str) -> tuple[_Told, ...]:
    """List the commits after a base up to a head by first parents, oldest first.

    Raises:
        GoldenError: the base is not an ancestor of the head, or git cannot list the commits.
    """
    if git.run_git(folder, "merge-base", "--is-ancestor", base, head).returncode:
        raise GoldenError(f"{base[:_SHORT]} is not an ancestor of {head[:_SHORT]}: give a commit that came before it")
    how = ("--first-parent", "--reverse", f"--max-count={_MOST_COMMITS}", "-z", "--format=%H%x01%cs%x01%s")
    told = git.ask_git(folder, "log", *how, f"{base}..{head}", failing="git cannot list commits")
    lines = filter(None, told.decode("utf-8", "replace").split("\0"))
    return tuple(_Told(*line.split("\x01", 2)) for line in lines)


def _make_status(result: GoldenProjectResult) -> PastStatus:
    told = "" if result.status is ResultStatus.PASSED else (result.error_message or "")[:_MOST_TOLD]
    return PastStatus(result.name, str(result.status), told)


def _tell_others(one: ReplayedCommit) -> str:
    others = [f"{result.project} {result.status}" for result in one.results if result.status != ResultStatus.PASSED]
    return f": {', '.join(others)}" if others else ""
