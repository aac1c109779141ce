"""`CycleRunner` begins cycles, walks them through their steps, and resumes interrupted ones.

What each step returns becomes the next state, which is stored before the next step begins.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.cycle import model, rules
from pytest_golden.cycle.cycle_record import CycleFile, CycleRecord, Walk, check_projects, read_check
from pytest_golden.cycle.model import CYCLE_ORDER, CycleEventType, CycleState, CycleStep, StepStatus
from pytest_golden.errors import GoldenError, StorageError
from pytest_golden.gate.state_folder import find_store_place, prepare_state_folder
from pytest_golden.redaction.redactor import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_golden.cycle.model import CycleConfig
    from pytest_golden.gateway.model import Gateway

    StepCallable = Callable[[CycleState], Any]

_LOG = logging.getLogger(__name__)
_NOT_GIVEN = "No such step is given"
_NO_REVIEW = "No review is given, so that the proposal is rejected"
_CONVERGED = "Converged: the same proposal again"
_NO_PROPOSAL = "No proposal"


class CycleRunner:
    """Walks cycles of one configuration.

    `steps` are callables that receive the `CycleState` and return a mapping or None. Each may return `reason`, which says how
    it went, `warnings`, and `cost_usd`, what it cost. The improvement returns `proposal`, which becomes `state.proposal`, the
    review `approved`, and a step that replaces our regression checks `regression_check`, or that `RegressionCheckResult` alone.
    A step that raises is an error of the step, and the cycle is a FAILURE. A step that is None is missing.

    Args:
        config: what to do.
        steps: the callables.
        on_event: receives every `CycleEvent`; an exception of it is logged and changes nothing.
        gateway: what runs the golden projects; by default an `ExecutionGateway` of the project root.
        clock: returns seconds, or aware datetimes, that never go back.
        store: the store's file or URL, or "none"; by default the one in the project root.
        notes: stored with the state for a later `resume`, without secrets.

    Raises:
        ValueError: a step is unknown, or cannot be called.
    """

    def __init__(
        self,
        config: CycleConfig,
        *,
        steps: Mapping[CycleStep | str, StepCallable | None] | None = None,
        on_event: Callable[[model.CycleEvent], object] | None = None,
        gateway: Gateway | None = None,
        clock: Callable[[], Any] | None = None,
        store: str | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._steps = _read_steps(steps or {})
        self._on_event = on_event
        self._gateway = gateway
        self._clock = clock or monotonic_seconds
        self._store = store
        self._notes = dict(notes or {})
        # Of the present cycle, from when it begins.
        self._file: CycleFile
        self._record: CycleRecord
        self._walk = Walk(CycleState())
        self._before = 0.0
        self._began: float | None = None
        self._step_began: float | None = None
        self._is_kept = True

    @property
    def seconds_left(self) -> float:
        """The seconds that are left for the present cycle; 0 when its time limit has passed."""
        return max(0.0, self._config.max_runtime_seconds - self._elapsed())

    def run(self) -> CycleState:
        """Walk a new cycle to its end.

        After a Ctrl-C, return the interrupted state; `resume` then continues with the step that was running.

        Raises:
            GoldenError: the cycle's state cannot be kept.
        """
        state = CycleState()
        file = CycleFile(self._config.project_root, state.cycle_id, makes=True)
        with file.hold():
            return self._go(file, Walk(state, notes=self._notes))

    def resume(self, cycle_id: str) -> CycleState:
        """Continue a cycle that was interrupted or killed, with the step that was running then.

        Raises:
            GoldenError: there is no such cycle, it has ended, it is being walked, or its state cannot be used.
        """
        file = CycleFile(self._config.project_root, cycle_id)
        file.read()
        with file.hold():
            walk = file.read()
            if walk.position is None:
                raise GoldenError(f"{cycle_id} has ended: there is nothing to resume")
            return self._go(file, replace(walk, state=replace(walk.state, interrupted=False)))

    def _find_location(self) -> str | None:
        try:
            place = find_store_place(self._store, prepare_state_folder(self._config.project_root))
        except OSError:
            return None
        return None if place is None else str(place.location)

    def _go(self, file: CycleFile, walk: Walk) -> CycleState:
        """Walk one cycle from where it stands to its end, or to an interrupt."""
        self._file, self._walk, self._record = file, walk, CycleRecord(self._find_location())
        self._before, self._began = walk.elapsed_seconds, self._read_seconds()
        self._is_kept = True
        file.write(walk)
        try:
            self._begin()
            while self._walk.position is not None:
                self._take(self._walk.position)
                self._save()
        except KeyboardInterrupt:
            self._change(interrupted=True)
            self._emit(CycleEventType.WARNING, self._position(), "interrupted", is_error=True)
            self._save()
        told = rules.get_final_status(self._walk.state)
        self._emit(CycleEventType.FINISHED, CYCLE_ORDER[-1], told, is_error=told == rules.FAILURE)
        return self._walk.state

    def _begin(self) -> None:
        is_new = self._walk.state.started_at is None
        self._emit(CycleEventType.STARTED, self._position(), self._config.task_description)
        if not is_new:
            return
        self._change(started_at=self._read_utc())
        warnings = self._config.validate_golden_projects_for_mode()
        self._warn(warnings)
        if warnings and self._config.require_golden_projects:
            for step in CYCLE_ORDER:
                self._note(step, StepStatus.SKIPPED, warnings[0])
            self._change(exit_status=rules.ERROR, finished_at=self._read_utc())
            self._walk = replace(self._walk, position=None, failure=warnings[0])
        else:
            self._begin_record()
        self._save()

    def _begin_record(self) -> None:
        try:
            entry_id = self._record.begin(self._walk.state.cycle_id, self._config.task_description)
        except (GoldenError, OSError) as error:
            self._warn([f"this cycle is not in the journal yet: {error}"])
        else:
            self._walk = replace(self._walk, entry_id=entry_id)

    def _take(self, step: CycleStep) -> None:
        given: Any = None
        self._step_began = self._read_seconds()
        if step is CycleStep.MEMORY_PERSISTENCE:
            # The later steps only report.
            self._change(completed=True)
        reason = self._find_skip(step)
        if reason is not None:
            self._note(step, StepStatus.SKIPPED, reason)
        else:
            self._emit(CycleEventType.STEP_STARTED, step, f"{step} begins")
            try:
                given = self._run(step)
                told = self._take_in(step, given)
            except _NotRun as nothing:
                self._note(step, StepStatus.SKIPPED, str(nothing))
            except (Exception, SystemExit) as error:
                # A step that leaves the interpreter, perhaps by 0, would end a cycle as if all were well.
                given = None
                self._fail(step, error)
            else:
                self._note(step, StepStatus.DONE, told, given)
        self._settle(step, given)
        self._advance(step)

    def _find_skip(self, step: CycleStep) -> str | None:
        walk = self._walk
        failed = None if walk.failure is None else f"Not begun, since an earlier step went wrong: {walk.failure}"
        reason = rules.find_skip(step, self._config, walk.present, failed=failed)
        if reason is None and step not in rules.ALWAYS_RUN and self._is_time_up():
            self._change(exit_status=rules.ERROR)
            self._walk = replace(self._walk, failure=walk.failure or rules.TIME_IS_UP)
            self._warn([f"{rules.TIME_IS_UP}: {step} is not begun"])
            return rules.TIME_IS_UP
        return reason

    def _run(self, step: CycleStep) -> Any:
        given = self._steps.get(step)
        if given is not None:
            # A copy: by `object.__setattr__` a step could give itself another state than it was walked to.
            return given(replace(self._walk.state))
        if step is CycleStep.REGRESSION_CHECKS and step in self._steps:
            raise StepError("there is no regression guard, so that nothing can be verified")
        own: Mapping[CycleStep, Callable[[], Any]] = {
            CycleStep.ENV_VALIDATION: self._require_root,
            CycleStep.REVIEW: self._miss_review,
            CycleStep.REGRESSION_CHECKS: lambda: check_projects(self._config, self._gateway, self._store),
            CycleStep.MEMORY_PERSISTENCE: self._persist,
            CycleStep.SUMMARY: self._sum_up,
            CycleStep.EXIT: lambda: None,
        }
        if step not in own:
            raise _NotRun(_NOT_GIVEN)
        return own[step]()

    def _require_root(self) -> None:
        if not self._config.project_root.is_dir():
            raise StepError(f"{self._config.project_root} is not a folder: give the project's root")

    def _miss_review(self) -> None:
        self._warn([_NO_REVIEW])
        raise _NotRun(_NO_REVIEW)

    def _sum_up(self) -> Mapping[str, Any]:
        state = self._walk.state
        return {"reason": f"{rules.get_final_status(state)}, verdict {state.verdict}"}

    def _persist(self) -> None:
        if CycleStep.MEMORY_PERSISTENCE in self._steps:
            raise _NotRun(_NOT_GIVEN)
        if not self._record.is_kept:
            raise _NotRun("Nothing is recorded: there is no store")
        try:
            walk = self._walk
            self._record.end(walk.state, self._config.task_description, walk.entry_id, self._elapsed(), walk.notes)
        except (StorageError, OSError) as error:
            # As for a gate: a store's trouble changes no verdict.
            self._warn([f"this cycle is not recorded: {error}"])
            raise _NotRun(f"Nothing is kept: {error}") from None

    def _take_in(self, step: CycleStep, given: Any) -> str:
        """Take what a step returned into the state, and return how the step went."""
        if step is CycleStep.REGRESSION_CHECKS:
            found = read_check(given, self._config)
            count = found.check.failed_count
            self._change(regression_check=found.check, regressions_detected=count, weakened_floor=found.weakened_floor)
            self._warn(found.warnings)
            passed = f"{found.check.passed_count} of {found.check.total_count} golden projects passed"
            return f"{passed}, the floor is weakened" if found.weakened_floor else passed
        if given is not None and not isinstance(given, Mapping):
            raise StepError(f"the step returned {given!r:.100}; it must return a mapping or None")
        told = given or {}
        self._warn(map(str, told.get("warnings") or ()))
        reason = str(told.get("reason") or "")
        if step is CycleStep.IMPROVEMENT:
            return self._take_proposal(told.get("proposal")) or reason
        if step is CycleStep.REVIEW:
            return reason or ("approved" if told.get("approved") is True else "rejected")
        return reason

    def _take_proposal(self, proposal: Any) -> str:
        walk = self._walk
        if not proposal:
            return _NO_PROPOSAL
        fingerprint = rules.make_fingerprint(proposal)
        if fingerprint in walk.seen and self._config.stop_on_convergence:
            return _CONVERGED
        self._change(proposal=proposal)
        present = walk.present._replace(has_proposal=True)
        self._walk = replace(self._walk, present=present, seen=(*walk.seen, fingerprint))
        return ""

    def _settle(self, step: CycleStep, given: Any) -> None:
        """Count the review and judge the check, whether they ran or not. A proposal that is not approved is rejected."""
        walk = self._walk
        if not walk.present.has_proposal:
            return
        if step is CycleStep.REVIEW:
            is_approved = not self._config.gated_improvements or (given or {}).get("approved") is True
            name = "improvements_approved" if is_approved else "improvements_rejected"
            self._change(**{name: getattr(walk.state, name) + 1})
            self._walk = replace(self._walk, present=walk.present._replace(approved=is_approved))
        elif step is CycleStep.REGRESSION_CHECKS:
            check = None if given is None else walk.state.regression_check
            is_weaker = bool(walk.state.weakened_floor)
            approved = walk.present.approved is True
            latest = rules.judge_proposal(check, approved=approved, is_floor_weaker=is_weaker)
            self._change(verdict=rules.join_verdicts(walk.state, latest))
            self._warn(rules.list_unverified(check) if approved else ())

    def _advance(self, step: CycleStep) -> None:
        walk = self._walk
        is_stopped = walk.failure is not None or self._is_time_up()
        following = rules.find_next(step, self._config, walk.present, is_stopped=is_stopped)
        if following is CycleStep.IMPROVEMENT and step is CycleStep.REGRESSION_CHECKS:
            self._change(proposal=None)
            walk = replace(self._walk, present=rules.Round(walk.present.number + 1))
        if following is None:
            self._change(finished_at=self._read_utc(), proposal=None)
            walk = self._walk
        self._walk = replace(walk, position=following)

    def _fail(self, step: CycleStep, error: BaseException) -> None:
        told = str(error) if isinstance(error, GoldenError) else f"{type(error).__name__}: {error}"
        _LOG.debug("a step of the cycle failed", extra={"step": str(step)}, exc_info=error)
        self._change(exit_status=rules.ERROR)
        self._warn(error.warnings if isinstance(error, StepError) else ())
        self._walk = replace(self._walk, failure=self._walk.failure or redact(f"{step}: {told}"))
        self._note(step, StepStatus.ERROR, told, error.facts if isinstance(error, StepError) else None)

    def _note(self, step: CycleStep, status: StepStatus, reason: str, given: Any = None) -> None:
        reason = redact(reason)
        seconds = None if self._step_began is None else self._read_seconds() - self._step_began
        self._change(
            steps=(*self._walk.state.steps, model.StepRecord(step, status, reason, seconds, _pick_facts(given)))
        )
        told = f"{step}: {status}{f': {reason}' if reason else ''}"
        self._emit(CycleEventType(f"step_{status}"), step, told, is_error=status is StepStatus.ERROR)

    def _warn(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            told = redact(warning)
            if told not in self._walk.state.warnings:
                self._change(warnings=(*self._walk.state.warnings, told))
                self._emit(CycleEventType.WARNING, self._position(), told)

    def _emit(self, event_type: CycleEventType, step: CycleStep, message: str, *, is_error: bool = False) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(model.CycleEvent(event_type, step, model.STEP_ROLES[step], redact(message), is_error))
        except Exception:
            _LOG.warning("a listener to a cycle's events failed", exc_info=True)

    def _change(self, **values: Any) -> None:
        self._walk = replace(self._walk, state=replace(self._walk.state, **values))

    def _save(self) -> None:
        self._walk = replace(self._walk, elapsed_seconds=self._elapsed())
        try:
            self._file.write(self._walk)
        except GoldenError as error:
            if self._is_kept:
                self._is_kept = False
                self._warn([f"{error}; a cycle that is killed from now on cannot be resumed where it was"])

    def _read_seconds(self) -> float:
        """Return the time in seconds; only differences are meaningful."""
        told = self._clock()
        return told.timestamp() if isinstance(told, datetime) else float(told)

    def _read_utc(self) -> datetime:
        """Return the current timestamp: the clock's own if it returns datetimes."""
        told = self._clock()
        return told.astimezone(UTC) if isinstance(told, datetime) else utc_now()

    def _elapsed(self) -> float:
        return self._before + (0.0 if self._began is None else max(0.0, self._read_seconds() - self._began))

    def _is_time_up(self) -> bool:
        return self.seconds_left <= 0

    def _position(self) -> CycleStep:
        return self._walk.position or CYCLE_ORDER[-1]


def _read_steps(given: Mapping[CycleStep | str, StepCallable | None]) -> dict[CycleStep, StepCallable | None]:
    steps: dict[CycleStep, StepCallable | None] = {}
    for name, step in given.items():
        try:
            known = CycleStep(name)
        except ValueError:
            raise ValueError(f"there is no step {name!r}; the steps are {', '.join(CycleStep)}") from None
        if step is not None and not callable(step):
            raise ValueError(f"the step {known} must be a callable, not {step!r:.100}")
        steps[known] = step
    return steps


def _pick_facts(given: Any) -> Mapping[str, Any]:
    told = given if isinstance(given, Mapping) else {}
    cost = told.get("cost_usd")
    names = {name: told[name] for name in ("run_id", "commit") if isinstance(told.get(name), str)}
    return {"cost_usd": float(cost), **names} if isinstance(cost, int | float) and math.isfinite(cost) else names


class StepError(GoldenError):
    """A step could not do its work; `warnings` are shown besides, and `facts` are kept."""

    def __init__(self, message: str, warnings: Iterable[str] = (), facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.warnings = tuple(warnings)
        self.facts = facts


class _NotRun(GoldenError):  # noqa: N818 - no failure: a step raises it when it has nothing to do
    """A step has nothing to do; the message says why."""
