"""The cycle whose improvement and review are commands: composes worktree, commands, guard and the runner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.cycle.command_steps import CommandSteps
from pytest_golden.cycle.config import CycleConfig
from pytest_golden.cycle.cycle_commands import clear_leftovers
from pytest_golden.cycle.model import CycleVerdict
from pytest_golden.cycle.proposal_floor import read_base_floor
from pytest_golden.cycle.rules import ERROR, get_final_status
from pytest_golden.cycle.runner import CycleRunner, read_notes
from pytest_golden.cycle.state_file import find_unfinished
from pytest_golden.cycle.worktree import read_git_settings
from pytest_golden.errors import SettingsError
from pytest_golden.gate.lock import find_state_folder
from pytest_golden.gate.spool import find_store_place
from pytest_golden.history.git import find_commit, run_git
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.files import refuse_foreign
from pytest_golden.storage.location import parse_location
from pytest_golden.verify.base_commit import find_checkout
from pytest_golden.verify.base_worktree import PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_golden.cycle.model import CycleEvent, CycleState
    from pytest_golden.cycle.proposal_floor import BaseFloor


@dataclass(frozen=True, slots=True)
class CycleRequest:
    """What was asked for. Without `improve` and `review` they are those of the cycle that is taken up again.

    `limits` are arguments of `CycleConfig` that were given; `store` is what was said of it, None where nothing was.
    """

    manifest: Path
    improve: str | None
    review: str | None
    limits: Mapping[str, Any]
    store: str | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """How the cycle ended. `branch` and `commit` are None where nothing was proposed."""

    state: CycleState
    branch: str | None
    commit: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the command's JSON."""
        plain = self.state.to_dict()
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
        }


_COUNTED = ("regressions_detected", "improvements_approved", "improvements_rejected")


class CommandCycle:
    """Walks a cycle of commands, or takes one up again. `say` gets news, `show` lines that commands printed."""

    def __init__(
        self,
        request: CycleRequest,
        *,
        say: Callable[[str], None],
        show: Callable[[str], None],
        on_event: Callable[[CycleEvent], object] | None = None,
    ) -> None:
        self._request = request
        self._say = say
        self._show = show
        self._on_event = on_event

    def run(self) -> CycleOutcome:
        """Walk a new cycle.

        Raises:
            GoldenError: there is no git checkout or no commit, the base's manifest cannot be used, what was said to be the
                store is none, or nothing can be kept.
        """
        request = self._request
        if not request.improve or not request.review:
            raise SettingsError("a new cycle wants both --improve CMD and --review CMD")
        checkout = find_checkout(request.manifest.parent)
        base = find_commit(checkout, "HEAD")
        if run_git(checkout, "status", "--porcelain").stdout:
            self._say(f"there are edits that are not committed: the cycle works on {base[:12]}, without them")
        floor = read_base_floor(checkout, base, request.manifest)
        if floor.manifest is None and floor.file.exists():
            raise SettingsError(f"{floor.file.name} is not committed: the cycle goes by what is, so commit it first")
        clear_leftovers(checkout, floor.root, self._say)
        notes = {
            "base": base,
            "improve": request.improve,
            "review": request.review,
            "has_secrets": redact([request.improve, request.review]) != [request.improve, request.review],
            "limits": dict(request.limits),
            "git_settings": read_git_settings(checkout),
        }
        return self._walk(floor, notes, None)

    def resume(self, cycle_id: str | None) -> CycleOutcome:
        """Take a cycle up again: the one with this id, or the newest that has not ended.

        Raises:
            GoldenError: there is none, it has ended, or a command of it was kept without its secrets and must be given.
        """
        request = self._request
        checkout = find_checkout(request.manifest.parent)
        present = read_base_floor(checkout, find_commit(checkout, "HEAD"), request.manifest)
        cycle_id = cycle_id or find_unfinished(present.root)
        notes = dict(read_notes(present.root, cycle_id))
        if "base" not in notes:
            raise SettingsError(f"{cycle_id} is no cycle of commands: take it up with `CycleRunner.resume`")
        if notes["has_secrets"] and not (request.improve and request.review):
            raise SettingsError(
                "the cycle's commands hold secrets, which are not kept: give --improve and --review again"
            )
        notes |= {"improve": request.improve or notes["improve"], "review": request.review or notes["review"]}
        notes["limits"] = {**notes["limits"], **request.limits}
        return self._walk(read_base_floor(checkout, notes["base"], request.manifest), notes, cycle_id)

    def _walk(self, floor: BaseFloor, notes: Mapping[str, Any], cycle_id: str | None) -> CycleOutcome:
        config = _make_config(floor, notes["limits"])
        _refuse_foreign_store(self._request.store, floor.root)
        with PrivateFolder(outside=floor.checkout) as scratch:
            steps = CommandSteps(
                *(floor, notes, scratch.path),
                store=self._request.store,
                environment=self._request.environment,
                show=self._show,
            )
            runner = CycleRunner(
                config,
                steps=steps.as_steps(),
                on_event=self._on_event,
                store=self._request.store,
                notes=notes,
            )
            steps.seconds_left = lambda: runner.seconds_left
            try:
                state = runner.run() if cycle_id is None else runner.resume(cycle_id)
                if cycle_id is not None:
                    # Not before: until then another process may be walking it.
                    steps.take_up(cycle_id)
            finally:
                commit = steps.close()
                left = steps.find_left()
                if left is not None:
                    self._say(f"WARNING: git does not take all that the commands left, so that {left} is not removed")
        unchecked = steps.find_unchecked(state, commit) if state.completed else None
        if unchecked is not None:
            self._say(f"WARNING: {unchecked}")
            warnings = (*state.warnings, unchecked)
            state = replace(state, exit_status=ERROR, verdict=CycleVerdict.NONE, warnings=warnings)
        return CycleOutcome(state, None if commit is None else steps.branch, commit)


def _refuse_foreign_store(said: str | None, root: Path) -> None:
    # Else every command is run before the gate, which refuses it, makes a failure of the cycle.
    place = find_store_place(said, find_state_folder(root))
    file = None if place is None or place.is_own else parse_location(place.location).path
    if file is not None:
        refuse_foreign(file)


def _make_config(floor: BaseFloor, limits: Mapping[str, Any]) -> CycleConfig:
    """Make the configuration of a cycle whose golden projects are those that the base declares."""
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
