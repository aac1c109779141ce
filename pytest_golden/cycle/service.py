"""A cycle whose improvement and review are commands: the worktree, the commands, the check and the runner together."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import new_id
from pytest_golden.cycle import worktree
from pytest_golden.cycle.cycle_commands import clear_leftovers, describe_ending, run_command
from pytest_golden.cycle.cycle_record import CycleFile, find_unfinished
from pytest_golden.cycle.cycle_runner import CycleRunner, StepError
from pytest_golden.cycle.model import DEFAULT_TASK, CycleConfig, CycleStep, CycleVerdict
from pytest_golden.cycle.past_cycles import sum_costs
from pytest_golden.cycle.proposal_floor import ProposalGuard, read_base_floor
from pytest_golden.cycle.rules import ERROR, NO_PROJECTS, get_final_status
from pytest_golden.cycle.worktree import CycleWorktree
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.state_folder import find_state_folder, find_store_place
from pytest_golden.gateway.git import find_commit, find_github_repository, run_git
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.runners.runner import read_regular
from pytest_golden.history.base_files import find_checkout
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import count_of, name_some
from pytest_golden.settings import NO_STORE
from pytest_golden.verify.base_worktree import PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_golden.cycle.model import CycleEvent, CycleState
    from pytest_golden.cycle.proposal_floor import BaseFloor
    from pytest_golden.gateway.process import Exit

_REJECTED = 1
_MOST_NAMED = 3
_HOOK_SECONDS = 600.0
_LONGEST_WORDS = 300
_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """How the cycle ended. `branch` and `commit` are None if nothing was proposed."""

    state: CycleState
    branch: str | None
    commit: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the command's JSON."""
        plain, cost = self.state.to_dict(), sum_costs(one.facts for one in self.state.steps)
        return {
            "cycle_id": plain["cycle_id"],
            "final_status": get_final_status(self.state),
            "verdict": plain["verdict"],
            "branch": self.branch,
            "commit": self.commit,
            **{name: plain[name] for name in _COUNTED},
            "steps": plain["steps"],
            "regression_check": plain["regression_check"],
            "weakened_floor": [dict(one) for one in self.state.weakened_floor],
            **({} if cost is None else {"cost_usd": cost}),
        }


_COUNTED = ("regressions_detected", "improvements_approved", "improvements_rejected")


@dataclass(slots=True)
class CommandCycle:
    """Runs or resumes a cycle of commands. `say` receives messages, `show` the lines that the commands print.

    A resumed cycle uses its own `improve` and `review` if none are given. `hooks` are commands that are started with the outcome if the cycle
    has their verdict. `limits` are the given arguments of `CycleConfig`; `store` is the given store, or None.
    """

    manifest: Path
    improve: str | None
    review: str | None
    limits: Mapping[str, Any]
    store: str | None
    environment: Mapping[str, str]
    say: Callable[[str], None]
    show: Callable[[str], None]
    on_event: Callable[[CycleEvent], object] | None = None
    hooks: Mapping[CycleVerdict, str] = field(default_factory=dict)

    def run(self) -> CycleOutcome:
        """Run a new cycle.

        Raises:
            GoldenError: there is no git checkout or no commit, the base's manifest or the given store cannot be used, or the
                state cannot be written.
        """
        if not self.improve or not self.review:
            raise SettingsError("a new cycle needs both --improve CMD and --review CMD")
        base = find_commit(self.manifest.parent, "HEAD")
        checkout = find_checkout(self.manifest.parent)
        if run_git(checkout, "status", "--porcelain").stdout:
            self.say(f"there are edits that are not committed: the cycle works on {base[:12]}, without them")
        floor = read_base_floor(checkout, base, self.manifest)
        if floor.manifest is None and floor.file.exists():
            raise SettingsError(f"{floor.file.name} is not committed: the cycle goes by what is, so commit it first")
        clear_leftovers(checkout, floor.root, self.say)
        given = [self.improve, self.review, *self.hooks.values()]
        notes = {
            "base": base,
            "github": find_github_repository(checkout),
            "improve": self.improve,
            "review": self.review,
            "hooks": dict(self.hooks),
            "has_secrets": redact(given) != given,
            "limits": dict(self.limits),
            "git_settings": worktree.read_git_settings(checkout),
        }
        return self._walk(floor, notes, None)

    def resume(self, cycle_id: str | None) -> CycleOutcome:
        """Resume the cycle with this id, or the newest one that has not ended.

        Raises:
            GoldenError: no such cycle exists, it has ended, or its commands hold secrets, which are not stored, and must be given again.
        """
        checkout = find_checkout(self.manifest.parent)
        present = read_base_floor(checkout, find_commit(checkout, "HEAD"), self.manifest)
        cycle_id = cycle_id or find_unfinished(present.root)
        notes = dict(CycleFile(present.root, cycle_id).read().notes)
        if "base" not in notes:
            raise SettingsError(f"{cycle_id} is not a cycle of commands: resume it with `CycleRunner.resume`")
        if notes["has_secrets"] and not (self.improve and self.review):
            raise SettingsError(
                "the cycle's commands hold secrets, which are not kept: give --improve and --review again"
            )
        notes |= {"improve": self.improve or notes["improve"], "review": self.review or notes["review"]}
        # Commands that were stored without their secrets are not run.
        notes["hooks"] = {**({} if notes["has_secrets"] else notes.get("hooks", {})), **self.hooks}
        notes["limits"] = {**notes["limits"], **self.limits}
        return self._walk(read_base_floor(checkout, notes["base"], self.manifest), notes, cycle_id)

    def _walk(self, floor: BaseFloor, notes: Mapping[str, Any], cycle_id: str | None) -> CycleOutcome:
        config = _make_config(floor, notes["limits"])
        store = find_store_place(self.store, find_state_folder(floor.root))
        if store is not None:
            # Checked first: otherwise every command would run before the gate refuses the file of another program, and the cycle fails.
            store.parse()
        with PrivateFolder(outside=floor.checkout) as scratch:
            steps = CommandSteps(
                *(floor, notes, scratch.path),
                store=NO_STORE if store is None else str(store.location),
                environment=self.environment,
                show=self.show,
                # The runner is made of these steps, and asked for the time only when it walks them.
                seconds_left=lambda: runner.seconds_left,
            )
            given: dict[CycleStep | str, Callable[[CycleState], Any] | None] = {
                CycleStep.PROJECT_SELECTION: steps.select,
                CycleStep.USER_EXECUTION: steps.look,
                CycleStep.OBSERVATION: steps.observe,
                CycleStep.IMPROVEMENT: steps.improve,
                CycleStep.REVIEW: steps.review,
                CycleStep.REGRESSION_CHECKS: steps.check,
            }
            runner = CycleRunner(config, steps=given, on_event=self.on_event, store=self.store, notes=notes)
            try:
                state = runner.run() if cycle_id is None else runner.resume(cycle_id)
                if cycle_id is not None:
                    # Only now: before, another process may have been walking it.
                    steps.take_up(cycle_id)
            finally:
                commit = steps.close()
                if steps.tree is not None and steps.tree.root.exists():
                    told = f"git cannot add everything that the commands left, so that {steps.tree.root} is not removed"
                    self.say(f"WARNING: {told}")
            unchecked = steps.find_unchecked(state, commit) if state.completed else None
            if unchecked is not None:
                self.say(f"WARNING: {unchecked}")
                warnings = (*state.warnings, unchecked)
                state = replace(state, exit_status=ERROR, verdict=CycleVerdict.NONE, warnings=warnings)
            found = CycleOutcome(state, None if commit is None else steps.branch, commit)
            if state.completed and (command := notes.get("hooks", {}).get(state.verdict)):
                self._tell(command, found, floor, scratch.path)
            return found

    def _tell(self, command: str, found: CycleOutcome, floor: BaseFloor, scratch: Path) -> None:
        """Run the command for this verdict in the checkout. Whatever the command does, the cycle's outcome stays the same."""
        name, path = f"on-{found.state.verdict}", scratch / "outcome.json"
        path.write_text(json.dumps(redact(found.to_dict()), ensure_ascii=False, default=str), encoding="utf-8")
        told = {
            "GOLDEN_CYCLE_ID": found.state.cycle_id,
            "GOLDEN_CYCLE_VERDICT": str(found.state.verdict),
            "GOLDEN_CYCLE_BRANCH": found.branch or "",
            "GOLDEN_CYCLE_STATE": str(path),
        }
        try:
            ended = run_command(
                *(name, command, floor.checkout),
                seconds=_HOOK_SECONDS,
                environment={**self.environment, **told},
                passed=floor.manifest.list_passed() if floor.manifest else (),
                scratch=scratch,
                log=CycleFile(floor.root, found.state.cycle_id, makes=True).path.with_suffix(".log"),
                show=self.show,
            )
        except GoldenError as error:
            self.say(f"WARNING: the command of --{name} was not run: {error}")
        else:
            if ended.ending is not Ending.EXITED or ended.exit_code != 0:
                self.say(f"WARNING: the command of --{name} {describe_ending(ended)}")


def _make_config(floor: BaseFloor, limits: Mapping[str, Any]) -> CycleConfig:
    """Return the configuration of a cycle that checks the base's golden projects."""
    manifest, given = floor.manifest, dict(limits)
    is_required = given.pop("require_golden_projects", False) or bool(manifest and manifest.require_golden_projects)
    try:
        return CycleConfig(
            floor.root,
            **given,
            golden_projects=() if manifest is None else manifest.projects,
            require_golden_projects=is_required,
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None


@dataclass(slots=True)
class CommandSteps:
    """The steps of a cycle of commands. The first step that needs the worktree makes it."""

    floor: BaseFloor
    notes: Mapping[str, Any]
    scratch: Path
    store: str
    environment: Mapping[str, str]
    show: Callable[[str], None]
    seconds_left: Callable[[], float]
    guard: ProposalGuard = field(init=False)
    tree: CycleWorktree | None = field(default=None, init=False)
    branch: str | None = field(default=None, init=False)
    last_line: str = field(default="", init=False)
    cost: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.guard = ProposalGuard(
            self.floor,
            store=self.store,
            environment=self.environment,
            seconds_left=self.seconds_left,
            show=self.show,
        )

    def select(self, _state: CycleState) -> Mapping[str, Any]:
        """Name the golden projects that the base declares: all of them are the floor."""
        names = [] if self.floor.manifest is None else [project.name for project in self.floor.manifest.projects]
        return {
            "reason": f"{count_of(len(names), 'golden project')}{f': {name_some(names, _MOST_NAMED)}' if names else ''}"
        }

    def look(self, _state: CycleState) -> Mapping[str, Any]:
        """Check the golden projects before the work begins. If that fails, the cycle goes on without it."""
        try:
            self.guard.look()
        except GoldenError as error:
            return {"warnings": [f"the results on the base are not known: {error}"], "reason": "not known"}
        statuses = [one.status for one in self.guard.before.values()]
        told = (
            f"{statuses.count(ResultStatus.PASSED)} of {count_of(len(statuses), 'golden project')} passed on the base"
        )
        return {"reason": told if statuses else NO_PROJECTS}

    def observe(self, _state: CycleState) -> Mapping[str, Any]:
        """Say what is red before the work, and why. A proposal is not blamed for it."""
        before = self.guard.before
        red = [f"{name}: {one.result.error_message}" for name, one in before.items() if one.failed and one.result]
        calm = "nothing is red before the work" if before else "nothing is known"
        return {"reason": f"red before the work: {name_some(red, _MOST_NAMED)}" if red else calm}

    def improve(self, state: CycleState) -> Mapping[str, Any]:
        """Run the improvement command and propose its changes. If the command failed, only keep the changes on the branch."""
        tree = self._open(state)
        checked = self._read_checked(state.cycle_id)
        before = checked or tree.name_tree(tree.base)
        ended, warnings = self._run("improve", self.notes["improve"], state)
        try:
            return self._take_improvement(tree, state, ended, before, warnings)
        except GoldenError as error:
            raise StepError(str(error), warnings, {"cost_usd": self.cost}) from None

    def _take_improvement(
        self, tree: CycleWorktree, state: CycleState, ended: Exit, before: str, warnings: list[str]
    ) -> Mapping[str, Any]:
        commit = tree.take_work(f"Improvement of {state.cycle_id}")
        if ended.ending is not Ending.EXITED or ended.exit_code != 0:
            is_kept = tree.name_tree(commit) != tree.name_tree(tree.base)
            left = f"what it left is on the branch {tree.branch}" if is_kept else "it left nothing"
            raise GoldenError(f"the improvement {describe_ending(ended)}; {left}")
        now = tree.name_tree(commit)
        changed = tree.list_changes(commit)
        if not tree.builds_on_base(commit):
            warnings.append(
                f"{commit[:12]} is not built upon {tree.base[:12]}, where the cycle began: look at its history"
            )
        warnings += [
            f"{path} is a repository of its own: the branch has the name of its commit, and none of its files"
            for path in tree.list_repositories(commit)[:_MOST_NAMED]
        ]
        told = {"warnings": warnings, "reason": f"{count_of(len(changed), 'file')} changed", "cost_usd": self.cost}
        # By its commit: what was there once before and comes back upon something else is to be checked again.
        return {**told, "proposal": {"branch": tree.branch, "commit": commit}} if now != before else told

    def review(self, state: CycleState) -> Mapping[str, Any]:
        """Run the review command on the proposal, and undo its changes to the worktree."""
        tree = self._open(state)
        is_whole = isinstance(state.proposal, dict)
        commit = str(state.proposal["commit"]) if is_whole else self._find_commit(tree)
        # A review that was killed may have left something.
        tree.put_back(commit)
        try:
            ended, warnings = self._run("review", self.notes["review"], state)
        finally:
            tree.put_back(commit)
        if ended.ending is not Ending.EXITED or ended.exit_code not in {0, _REJECTED}:
            told = f"the review {describe_ending(ended)}, which neither approves (0) nor rejects (1)"
            raise StepError(told, warnings, {"cost_usd": self.cost})
        is_approved = ended.exit_code == 0
        if not is_approved and state.improvements_approved:
            warnings.append(f"the branch also holds, from {commit[:12]} on, what the review rejected")
        # A reviewer's last line is what it has to say.
        told = f"{'approved' if is_approved else 'rejected'}{f': {self.last_line}' if self.last_line else ''}"
        return {"approved": is_approved, "warnings": warnings, "reason": told, "cost_usd": self.cost}

    def check(self, state: CycleState) -> Mapping[str, Any]:
        """Verify the proposal against the base's floor."""
        tree = self._open(state)
        commit = self._find_commit(tree)
        found = self.guard.check(commit, tree.list_changes(commit))
        settings = worktree.list_changed_settings(
            self.notes.get("git_settings", {}), worktree.read_git_settings(tree.checkout)
        )
        self._name_beside_state(state.cycle_id, ".checked").write_text(tree.name_tree(commit), encoding="utf-8")
        return {**found, "weakened_floor": (*found["weakened_floor"], *settings)}

    def find_unchecked(self, state: CycleState, commit: str | None) -> str | None:
        """Say that a commit differs from what was checked last; return None if it is the same, or if nothing was checked."""
        checked = self._read_checked(state.cycle_id)
        if self.tree is None or checked is None or self.tree.name_tree(commit or self.tree.base) == checked:
            return None
        return f"what {self.tree.branch} holds at the end is not what was checked: something changed it later"

    def close(self) -> str | None:
        """Remove the worktree and return the branch's commit; None if nothing was proposed."""
        return None if self.tree is None else self.tree.close()

    def take_up(self, cycle_id: str) -> CycleWorktree:
        """Return the worktree of a cycle, and remember its branch even if no step needed the worktree."""
        if self.tree is None:
            self.branch = worktree.name_branch(cycle_id)
            self.tree = CycleWorktree(self.floor.checkout, cycle_id, self.floor.commit, self.branch)
        return self.tree

    def _open(self, state: CycleState) -> CycleWorktree:
        tree = self.take_up(state.cycle_id)
        tree.open()
        return tree

    def _name_beside_state(self, cycle_id: str, ending: str) -> Path:
        return CycleFile(self.floor.root, cycle_id, makes=True).path.with_suffix(ending)

    def _read_checked(self, cycle_id: str) -> str | None:
        """Return git's object id of the content that was checked last, also after a kill."""
        with suppress(FileNotFoundError):
            return self._name_beside_state(cycle_id, ".checked").read_text(encoding="utf-8")
        return None

    def _find_commit(self, tree: CycleWorktree) -> str:
        return find_commit(tree.checkout, f"refs/heads/{tree.branch}")

    def _run(self, name: str, command: str, state: CycleState) -> tuple[Exit, list[str]]:
        tree = self._open(state)
        difference, told = self.scratch / "proposal.diff", self.scratch / "cycle.json"
        tree.write_difference(difference)
        stood = [one.result for one in self.guard.before.values() if one.result is not None]
        before = [{"name": one.name, "status": one.status, "message": one.error_message} for one in stood]
        facts = {**state.to_dict(), "before": before}
        told.write_text(json.dumps(redact(facts), ensure_ascii=False, default=str), encoding="utf-8")
        cost = self.scratch / new_id("cost")
        environment = {name: value for name, value in self.environment.items() if not name.startswith("GIT_")}
        environment |= {
            "GOLDEN_CYCLE_ID": state.cycle_id,
            "GOLDEN_CYCLE_TASK": str(self.notes["limits"].get("task_description") or DEFAULT_TASK),
            "GOLDEN_CYCLE_ROUND": str(state.improvements_approved + state.improvements_rejected + 1),
            "GOLDEN_CYCLE_BASE": self.floor.commit,
            "GOLDEN_CYCLE_DIFF": str(difference),
            "GOLDEN_CYCLE_STATE": str(told),
            "GOLDEN_CYCLE_COST": str(cost),
            "PWD": str(tree.root),
        }
        checkout = _look(tree.checkout)
        self.last_line, self.cost = "", None
        ended = run_command(
            *(name, command, tree.root),
            seconds=self.seconds_left(),
            environment=environment,
            passed=self.floor.manifest.list_passed() if self.floor.manifest else (),
            scratch=self.scratch,
            log=self._name_beside_state(state.cycle_id, ".log"),
            show=partial(self._show, f"{name} | "),
        )
        self.cost, odd = _read_cost(name, cost)
        return ended, [*_compare(name, checkout, _look(tree.checkout)), *odd]

    def _show(self, prefix: str, line: str) -> None:
        self.show(line)
        self.last_line = line.removeprefix(prefix).strip()[:_LONGEST_WORDS] or self.last_line


def _read_cost(name: str, file: Path) -> tuple[float | None, list[str]]:
    """Return the sum of the amounts that a command wrote, one per line, and a warning about lines that are not amounts."""
    text = (read_regular(file) or b"").decode("utf-8", "replace")
    lines = [line.strip().removeprefix("$") for line in text.splitlines() if line.strip()]
    if not lines:
        return None, []
    if all(_AMOUNT.fullmatch(line) for line in lines):
        return math.fsum(map(float, lines)), []
    odd = next(line for line in lines if not _AMOUNT.fullmatch(line))
    return None, [
        f"{name} wrote {odd!r:.60} into GOLDEN_CYCLE_COST: write amounts in US dollars such as 0.42, one on each line"
    ]


def _look(checkout: Path) -> dict[str, str]:
    """Return the state of the checkout itself: its commit, edits, git settings and hooks. It is empty if git cannot tell."""
    with suppress(GoldenError):
        told = run_git(checkout, "status", "--porcelain", "-z", "--no-renames").stdout.split("\0")
        edits = {one[3:]: one[:2] for one in told if one}
        return {"HEAD": run_git(checkout, "rev-parse", "HEAD").stdout, **edits, **worktree.read_own_files(checkout)}
    return {}


def _compare(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    changed = sorted(one for one in {*before, *now} if before.get(one) != now.get(one))
    return [f"the checkout itself changed while {name} ran: {name_some(changed, _MOST_NAMED)}"] if changed else []
