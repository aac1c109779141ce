"""Search past commits for the one that broke a project. Every commit is judged by the same floor (see `past_commits.py`)."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway import git
from pytest_golden.regression import comparison
from pytest_golden.regression.comparison import ProjectRuns, Side, SideRuns
from pytest_golden.regression.model import OUTPUT_KINDS, ResultStatus
from pytest_golden.values.shape import Shape, VersionedShape, in_form
from pytest_golden.verify.failures import identify_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.verify.past_commits import PastCommits

_SHORT, _MOST_REASON = 12, 2_000
_MOST_COMMITS = 100_000
_FORMAT = "%H%x00%P%x00%an%x00%aI%x00%s"


class Standing(StrEnum):
    """The status of a project at a commit: it passes, it fails as at the bad end, or the commit says nothing about that failure."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Look(Shape):
    """One commit that was examined. `reason` says why it is bad or skipped. `is_recorded`: the result is from an earlier gate run."""

    commit: str
    standing: Standing
    reason: str = ""
    is_recorded: bool = False


@dataclass(frozen=True, slots=True)
class Culprit(Shape):
    """A commit that may have broken the project. `files` are the files that it changed compared with its first parent."""

    commit: str
    author: str
    authored_at: str
    subject: str
    files: tuple[str, ...]
    is_merge: bool = False


@dataclass(frozen=True, slots=True)
class Bisection(VersionedShape):
    """The result of a search: the commits that can have broken a project; only one if it is clear which.

    `good` is the last commit known to pass, `bad` the first one known to fail. The counts say how often each passed and failed.
    `p_value` is the probability that the failure is random, None if no test is needed. `gaps` lists what was missing in the worktrees.
    """

    project: str
    good: str
    bad: str
    culprits: tuple[Culprit, ...]
    reason: str
    looks: tuple[Look, ...]
    good_passed: int = 0
    good_failed: int = 0
    bad_passed: int = 0
    bad_failed: int = 0
    p_value: float | None = None
    is_chance: bool = False
    gaps: tuple[str, ...] = ()

    @property
    @in_form()
    def is_found(self) -> bool:
        """Tell whether one commit is to blame."""
        return len(self.culprits) == 1 and not self.is_chance


class _Range(NamedTuple):
    """The commits after a good one up to a bad one, oldest first."""

    good: str
    commits: tuple[str, ...]


class Bisector:
    """Searches for the commit that broke one project.

    Args:
        past: runs the project.
        project: the broken project.
        known: the standings that an earlier search found, by commit; new ones are added.
        recorded: results of recorded runs with the same floor, by commit. They are used before anything runs.
        keep: is called after each run, so that an interrupted search can continue.
        say: receives messages about the progress.
        repeat: the maximum number of runs at each end.
    """

    def __init__(
        self,
        past: PastCommits,
        project: GoldenProjectConfig,
        known: dict[str, Look],
        *,
        recorded: Mapping[str, GoldenProjectResult] | None = None,
        keep: Callable[[Iterable[Look]], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
        repeat: int = 10,
    ) -> None:
        self._past = past
        self._project = project
        self._known = known
        self._recorded = dict(recorded or {})
        self._keep = keep
        self._say = say
        self._repeat = repeat
        self._results: dict[str, GoldenProjectResult] = {}
        self._looks: dict[str, Look] = {}
        # Of the bad end; known after its run.
        self._failure: comparison.Failure | None = None
        self._reason = ""

    def find(self, bad: str, good: str | None, *, hint: str | None = None, since: str | None = None) -> Bisection:
        """Find the commit after `good`, up to `bad`, that broke the project.

        Without `good`, try commits further and further back; `hint`, the commit of a recorded pass, first if it is one of them.

        Raises:
            GoldenError: the project does not fail at `bad`, it also fails at `good`, or no commit passes.
        """
        self._begin(bad)
        commits = list_first_parents(self._past.manifest.parent, bad, good, since)
        try:
            found = self._search(commits, good, hint)
            is_certain = self._confirm(found)
        except GoldenError:
            # Recorded results may have led to a dead end.
            if not self._forget_recorded():
                raise
            is_certain = False
        return self._describe(found if is_certain else self._search(commits, good, None))

    def _search(self, commits: Sequence[str], good: str | None, hint: str | None) -> _Range:
        if good is None:
            searched = self._reach_back(commits, hint)
        else:
            if self._look(good).standing is not Standing.GOOD:
                raise GoldenError(
                    f"{self._project.name} does not pass at {good[:_SHORT]}: {self._looks[good].reason or 'it is skipped there'}"
                )
            searched = _Range(good, tuple(commits))
        found = self._halve(searched)
        while len(found.commits) == 1 and (inner := self._open_merge(found.commits[0])) is not None:
            found = self._halve(inner)
        return found

    def _confirm(self, found: _Range) -> bool:
        """Run the two ends if their results were only recorded. If one of them now differs, discard all recorded results."""
        for commit in (found.good, found.commits[-1]):
            recorded = self._looks[commit]
            if recorded.is_recorded:
                look = self._judge(commit)
                self._note(look)
                if look.standing is not recorded.standing:
                    self._say(f"{commit[:_SHORT]} was recorded as {recorded.standing}: recorded runs tell nothing here")
                    self._forget_recorded()
                    return False
        return True

    def _forget_recorded(self) -> bool:
        """Discard all recorded results, and tell whether any of them was used."""
        used = [one.commit for one in self._looks.values() if one.is_recorded]
        self._recorded.clear()
        for looks in (self._looks, self._known):
            for commit in [one.commit for one in looks.values() if one.is_recorded]:
                del looks[commit]
        return bool(used)

    def _begin(self, bad: str) -> None:
        """Run the project at the bad end. All other failures are compared with this one."""
        result = self._results[bad] = self._past.run(bad, self._project.name)
        if result.status is ResultStatus.PASSED:
            raise GoldenError(
                f"{self._project.name} passes at {bad[:_SHORT]}, in a fresh checkout: edits that are not committed, or files that "
                "git ignores, break it in the working tree"
            )
        if not result.status.is_failure:
            raise GoldenError(f"{self._project.name} was not run at {bad[:_SHORT]}: {result.error_message}")
        self._failure, self._reason = identify_failure(result), _tell(result)
        self._note(Look(bad, Standing.BAD, self._reason))

    def _reach_back(self, commits: Sequence[str], hint: str | None) -> _Range:
        """Go back, twice as far each time, until the project passes."""
        positions = deque([commits.index(hint)] if hint in commits[:-1] else [])
        steps = 1
        while steps < len(commits):
            positions.append(len(commits) - 1 - steps)
            steps *= 2
        positions.append(0)
        first_bad = len(commits) - 1
        for position in positions:
            if position >= first_bad:
                continue
            standing = self._look(commits[position]).standing
            if standing is Standing.GOOD:
                return _Range(commits[position], tuple(commits[position + 1 : first_bad + 1]))
            if standing is Standing.BAD:
                first_bad = position
        folder = self._past.manifest.parent
        is_shallow = _ask(folder, "rev-parse", "--is-shallow-repository").strip() == "true"
        advice = (
            "this clone is shallow, `git fetch --unshallow` brings the others"
            if is_shallow
            else "name a good one by --good REF"
        )
        raise GoldenError(
            f"{self._project.name} passes at none of the commits that were tried, back to {commits[0][:_SHORT]}: {advice}"
        )

    def _halve(self, searched: _Range) -> _Range:
        """Return the range between the last good and the first bad commit; several commits if some were skipped."""
        good, commits = searched
        low, high = -1, len(commits) - 1
        while True:
            waiting = [at for at in range(low + 1, high) if not self._is_skipped(commits[at])]
            if not waiting:
                return _Range(good if low < 0 else commits[low], commits[low + 1 : high + 1])
            middle = (low + high) // 2
            at = min(waiting, key=lambda one: (commits[one] not in self._recorded, abs(one - middle)))
            standing = self._look(commits[at], left=len(waiting)).standing
            if standing is Standing.GOOD:
                low = at
            elif standing is Standing.BAD:
                high = at

    def _is_skipped(self, commit: str) -> bool:
        return commit in self._looks and self._looks[commit].standing is Standing.SKIPPED

    def _open_merge(self, commit: str) -> _Range | None:
        """Return the commits that a merge brought in, if the project passes where they began and fails at the last one of them."""
        folder = self._past.manifest.parent
        parents = _ask(folder, "rev-parse", f"{commit}^@").split()
        if len(parents) < 2 or self._look(parents[1]).standing is not Standing.BAD:
            return None
        began = _ask(folder, "merge-base", parents[0], parents[1]).strip()
        if self._look(began).standing is not Standing.GOOD:
            return None
        return _Range(began, list_first_parents(folder, parents[1], began))

    def _look(self, commit: str, *, left: int = 0) -> Look:
        if commit not in self._looks:
            look = self._known.get(commit)
            # An earlier search may have searched for another failure.
            if look is None or (look.standing is Standing.BAD and look.reason != self._reason):
                result = self._recorded.get(commit)
                look = None if result is None else self._tell_standing(commit, result, is_recorded=True)
                # A commit whose recorded failure differs may fail as expected here.
                look = self._judge(commit) if look is None or look.standing is Standing.SKIPPED else look
            self._note(look, left)
        return self._looks[commit]

    def _judge(self, commit: str) -> Look:
        try:
            result = self._past.run(commit, self._project.name)
        except GoldenError as error:
            return Look(commit, Standing.SKIPPED, f"it cannot be run: {error}"[:_MOST_REASON])
        self._results[commit] = result
        return self._tell_standing(commit, result)

    def _tell_standing(self, commit: str, result: GoldenProjectResult, *, is_recorded: bool = False) -> Look:
        if result.status is ResultStatus.PASSED:
            return Look(commit, Standing.GOOD, is_recorded=is_recorded)
        if not self._fails_alike(identify_failure(result)):
            told = f"it fails for another reason: {_tell(result)}"[:_MOST_REASON]
            return Look(commit, Standing.SKIPPED, told, is_recorded)
        return Look(commit, Standing.BAD, _tell(result), is_recorded)

    def _fails_alike(self, failure: comparison.Failure | None) -> bool:
        """Tell whether a failure shares a reason with the bad end. The same output with another difference is the same reason."""
        if failure is None or self._failure is None:
            return False
        shared = failure.reasons.keys() & self._failure.reasons.keys()
        return any(kind in OUTPUT_KINDS for kind, _ in shared) or not failure.is_other_than((self._failure,))

    def _note(self, look: Look, left: int = 0) -> None:
        self._looks[look.commit] = self._known[look.commit] = look
        self._keep(self._known.values())
        more = f" ({left} {'commit' if left == 1 else 'commits'} left)" if left else ""
        is_told = look.standing is Standing.SKIPPED or len(self._looks) == 1
        told = look.reason.partition("\n")[0] if is_told else ""
        how = ", as recorded" if look.is_recorded else ""
        self._say(f"{look.commit[:_SHORT]} is {look.standing}{how}{f': {told}' if told else ''}{more}")

    def _describe(self, found: _Range) -> Bisection:
        good, bad = found.good, found.commits[-1]
        runs = self._repeat_ends(good, bad)
        (judged,) = comparison.compare_runs({self._project.name: runs}, self._repeat)
        folder = self._past.manifest.parent
        return Bisection(
            project=self._project.name,
            good=good,
            bad=bad,
            culprits=tuple(read_culprit(folder, commit) for commit in found.commits),
            reason=self._looks[bad].reason,
            looks=tuple(self._looks.values()),
            good_passed=runs.base.tally.passed,
            good_failed=runs.base.tally.failed,
            bad_passed=runs.head.tally.passed,
            bad_failed=runs.head.tally.failed,
            p_value=runs.p_value,
            is_chance=judged.verdict is not comparison.Verdict.NEW_REGRESSION,
            gaps=tuple(sorted(self._past.gaps)),
        )

    def _repeat_ends(self, good: str, bad: str) -> ProjectRuns:
        """Run the project again at the last good and the first bad commit, until chance is ruled out or confirmed."""
        name = self._project.name
        base, head = self._get_result(good), self._get_result(bad)
        runs = ProjectRuns(
            name, SideRuns.begin(base, identify_failure(base)), SideRuns.begin(head, identify_failure(head))
        )
        while chosen := comparison.choose_repeats({name: runs}, self._repeat):
            for side in chosen:
                result = self._past.run(good if side is Side.BASE else bad, name)
                runs = runs.count(side, result.status, identify_failure(result))
        return runs

    def _get_result(self, commit: str) -> GoldenProjectResult:
        if commit not in self._results:
            self._results[commit] = self._past.run(commit, self._project.name)
        return self._results[commit]


def list_first_parents(folder: Path, bad: str, good: str | None, since: str | None = None) -> tuple[str, ...]:
    """List the commits up to a bad one by first parents, oldest first: all, or only those after a good one.

    Raises:
        GoldenError: the good commit is not an ancestor of the bad one.
    """
    if good is not None:
        fork = git.run_git(folder, "merge-base", "--is-ancestor", good, bad)
        if fork.returncode or good == bad:
            raise GoldenError(
                f"{good[:_SHORT]} is not an ancestor of {bad[:_SHORT]}: give a commit that came before it"
            )
    limits = [] if good is None else [f"^{good}"]
    limits += [] if since is None else [f"--since={since}"]
    told = _ask(folder, "rev-list", "--first-parent", "--reverse", f"--max-count={_MOST_COMMITS}", bad, *limits)
    # git's --since leaves out the bad commit if that is older.
    commits = tuple(told.split())
    return commits if commits[-1:] == (bad,) else (*commits, bad)


def read_culprit(folder: Path, commit: str) -> Culprit:
    """Read a commit's facts from git."""
    told = _ask(folder, "show", "--no-patch", f"--format={_FORMAT}", commit).rstrip("\n")
    full, parents, author, authored_at, subject = told.split("\0")
    against = f"{commit}^1" if parents else _ask(folder, "hash-object", "-t", "tree", os.devnull).strip()
    listed = git.ask_git(
        folder, "diff", "--name-only", "--no-renames", "-z", against, commit, failing="git cannot compare commits"
    )
    return Culprit(full, author, authored_at, subject, tuple(git.split_paths(listed)), " " in parents)


def _tell(result: GoldenProjectResult) -> str:
    return (result.error_message or str(result.status))[:_MOST_REASON]


def _ask(folder: Path, *arguments: str) -> str:
    return git.ask_git(folder, *arguments, failing="git cannot list commits").decode("utf-8", "replace")
