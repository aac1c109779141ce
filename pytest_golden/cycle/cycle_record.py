"""What is kept of a cycle: its state in a file, and its end in the journal and the learning store; and its regression checks.

The state is a file and not in the store: the cycle is its only writer, it must be written while the store is locked or
damaged, and a state that every step overwrites is not history. It is replaced whole after every step, so that a killed
cycle can be resumed.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock, Timeout

from pytest_golden.clock import iso_utc, new_id, utc_now
from pytest_golden.cycle.model import CycleState, CycleStep, CycleVerdict
from pytest_golden.cycle.rules import ERROR, FAILURE, SUCCESS, Round, get_final_status, make_fingerprint
from pytest_golden.cycle.worktree import name_branch
from pytest_golden.errors import GoldenError
from pytest_golden.gate.events import GATE_AGENT
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gate.state_folder import (
    choose_log_folder,
    find_state_folder,
    find_store_place,
    hold_gate_lock,
    list_store_files,
    prepare_state_folder,
)
from pytest_golden.gate.store import CYCLE_TYPE
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.journal.model import ImmediateResult, SignalType
from pytest_golden.journal.service import Journal
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcomes import Report, make_outcome, write_outcome
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult
from pytest_golden.storage.folder import flush, replace_file
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.cycle.model import CycleConfig
    from pytest_golden.gateway.model import Gateway


_VERSION = 1
_FOLDER = "cycles"
_ID_FORM = re.compile(r"cycle_[0-9A-HJKMNP-TV-Z]{26}")
_MOST_BYTES = 256 * 1024 * 1024
_PATIENCE_SECONDS = 5.0
_MERGE_DAYS = 14
_FLOOR, _DECISION = "floor", "decision"
_IMMEDIATE = {SUCCESS: ImmediateResult.SUCCESS, FAILURE: ImmediateResult.FAILURE}
_LOG = logging.getLogger(__name__)


class CycleRecord:
    """Records a cycle in the store at `location`; None records nothing."""

    def __init__(self, location: str | Path | None) -> None:
        self._location = location

    @property
    def is_kept(self) -> bool:
        """Tell whether anything is recorded."""
        return self._location is not None

    def begin(self, cycle_id: str, task: str) -> str | None:
        """Begin the cycle's entry and return its id.

        Raises:
            GoldenError: the store does not accept it.
        """
        if self._location is None:
            return None
        with Store.open(self._location, busy_seconds=_PATIENCE_SECONDS) as store:
            entry = Journal(store).log_intent(redact(task), CYCLE_TYPE, agent_id=GATE_AGENT, session_key=cycle_id)
        return entry.id

    def end(
        self,
        state: CycleState,
        task: str,
        entry_id: str | None,
        elapsed_seconds: float,
        notes: Mapping[str, Any] = MappingProxyType({}),
    ) -> str | None:
        """Record how the cycle ended: its entry's outcome, a signal for each expectation, and an outcome to learn from.

        Return the entry's id. What was recorded already is not recorded again. `notes` may have `base`, the commit that the work
        began from, and `github`, the repository: a verified branch is then expected to be merged there.

        Raises:
            GoldenError: the store does not accept it.
        """
        if self._location is None:
            return None
        entry_id = entry_id or self.begin(state.cycle_id, task)
        with Store.open(self._location, busy_seconds=_PATIENCE_SECONDS) as store:
            self._tell_journal(Journal(store), state, str(entry_id), notes)
            self._tell_learning(store, state, task, elapsed_seconds)
        return entry_id

    def _tell_journal(self, journal: Journal, state: CycleState, entry_id: str, notes: Mapping[str, Any]) -> None:
        entry = journal.get(entry_id)
        if entry.closed_at is not None or entry.actions:
            return
        news = list(_list_news(state))
        told = {"base": notes.get("base"), "steps": _list_steps(state), "ended_at": iso_utc(utc_now())}
        awaits_merge = notes.get("github") and state.verdict is CycleVerdict.VERIFIED
        journal.log_outcome(
            entry_id,
            _IMMEDIATE.get(_final(state), ImmediateResult.PARTIAL),
            f"{_final(state)}, verdict {state.verdict}",
            actions=[redact({**_note(state), **told})],
            expectations=[
                *({"description": said, "match_hint": {"source": GATE_AGENT, **hint}} for said, hint, _, _ in news),
                *([_expect_merge(state.cycle_id)] if awaits_merge else []),
            ],
            agent_id=GATE_AGENT,
        )
        for _, hint, is_good, summary in news:
            journal.add_signal(
                GATE_AGENT,
                SignalType.POSITIVE if is_good else SignalType.NEGATIVE,
                redact(summary),
                data=hint,
                external_id=":".join(hint.values()),
                agent_id=GATE_AGENT,
                entry_id=entry_id,
            )

    def _tell_learning(self, store: Store, state: CycleState, task: str, elapsed_seconds: float) -> None:
        final = _final(state)
        errors = [record.reason for record in state.steps if record.status == ERROR]
        report = Report(
            task=redact(task),
            result=redact({"final_status": final, **_note(state)}),
            success=final == SUCCESS,
            execution_path=[str(record.step) for record in state.steps if record.status == "done"],
            agent_name=GATE_AGENT,
            execution_time=elapsed_seconds,
            error_message=redact("; ".join(errors)) or None,
            context={"cycle_id": state.cycle_id},
        )
        # The id is derived from the cycle's, so that an outcome recorded twice is stored once.
        outcome = replace(make_outcome(report), outcome_id=state.cycle_id.replace(CYCLE_TYPE, "outcome", 1))
        MemoryStore(store).save_memories(write_outcome(outcome))


def _final(state: CycleState) -> str:
    """Return the final status of a cycle of which only the last steps remain."""
    return get_final_status(replace(state, completed=True))


def _note(state: CycleState) -> dict[str, Any]:
    return {
        "cycle_id": state.cycle_id,
        "branch": name_branch(state.cycle_id),
        "verdict": str(state.verdict),
        "improvements_approved": state.improvements_approved,
        "improvements_rejected": state.improvements_rejected,
        "regressions_detected": state.regressions_detected,
        "weakened_floor": [dict(one) for one in state.weakened_floor],
        "warnings": list(state.warnings),
    }


def _list_steps(state: CycleState) -> list[dict[str, Any]]:
    """Return the steps so far, with the seconds that each took and the facts of each."""
    return [
        {**record.to_dict(), "seconds": None if record.seconds is None else round(record.seconds, 3), **record.facts}
        for record in state.steps
    ]


def _expect_merge(cycle_id: str) -> dict[str, Any]:
    """Return the expectation that GitHub answers, by a webhook or when it is asked, or git, once the branch is merged here."""
    # No other repository has this branch.
    hint = {"event": "pull_request", "branch": name_branch(cycle_id)}
    return {
        "description": "the branch is merged",
        "match_hint": hint,
        "expires_minutes": _MERGE_DAYS * 24 * 60,
    }


def _list_news(state: CycleState) -> Iterator[tuple[str, Mapping[str, str], bool, str]]:
    """Yield each expectation: its description, its match hint, whether it is met, and the signal's summary."""
    if state.exit_status == ERROR or not (state.improvements_approved or state.improvements_rejected):
        return
    hint = {"cycle": state.cycle_id}
    is_approved = state.improvements_approved > 0
    told = f"{state.improvements_approved} approved, {state.improvements_rejected} rejected"
    yield "an improvement is approved", {**hint, "check": _DECISION}, is_approved, told
    is_lower = bool(state.weakened_floor)
    if state.regression_check is not None:
        shown = "; ".join(str(one.get("message", one)) for one in state.weakened_floor) or "nothing of it was loosened"
        yield "the floor holds", {**hint, "check": _FLOOR}, not is_lower, shown
        for result in state.regression_check.results:
            if result.is_regression or result.status is ResultStatus.PASSED:
                why = f": {result.reasons[0].headline}" if result.is_regression and result.reasons else ""
                summary = f"{result.name}: {result.status}{why}"
                yield f"{result.name} passes", {**hint, "project": result.name}, not result.is_regression, summary


class CheckedFloor(NamedTuple):
    """What the regression checks found: all results, how the floor is weakened, and warnings."""

    check: RegressionCheckResult
    weakened_floor: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


def check_projects(config: CycleConfig, gateway: Gateway | None, store: str | None) -> RegressionCheckResult:
    """Run and judge the cycle's golden projects, through `gateway` or a new one for the project root, which hides the store."""
    root = config.project_root
    with hold_gate_lock(root, _LOG.info):
        if gateway is not None:
            return RegressionGuard(gateway).check(config.golden_projects)
        state_folder = prepare_state_folder(root)
        logs = choose_log_folder(state_folder, new_id("gate"))
        hidden = list_store_files(find_store_place(store, state_folder))
        with ExecutionGateway(root, log_folder=logs, hidden=hidden) as own:
            return RegressionGuard(own).check(config.golden_projects)


def read_check(given: Any, config: CycleConfig) -> CheckedFloor:
    """Read what a step of regression checks returned.

    Raises:
        GoldenError: it is not a check, or it has no result for a configured project.
    """
    weakened: Any = ()
    warnings: Any = ()
    check = given
    if isinstance(given, Mapping):
        check, weakened = given.get("regression_check"), given.get("weakened_floor") or ()
        warnings = given.get("warnings") or ()
    if not isinstance(check, RegressionCheckResult):
        raise GoldenError(f"the regression checks returned {check!r:.100} instead of a RegressionCheckResult")
    told = {result.name for result in check.results}
    untold = [project.name for project in config.golden_projects if project.name not in told]
    if untold:
        raise GoldenError(f"the regression checks returned no result for {', '.join(untold)}")
    return CheckedFloor(check, tuple(dict(one) for one in weakened), tuple(map(str, warnings)))


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a cycle has come: its state, the step that is next or running, and what the rules must remember.

    `failure` says what went wrong. `seen` are fingerprints of earlier proposals. `notes` are those of whoever runs the
    cycle, handed back when it is resumed.
    """

    state: CycleState
    position: CycleStep | None = CycleStep.ENV_VALIDATION
    present: Round = field(default_factory=Round)
    failure: str | None = None
    seen: tuple[str, ...] = ()
    elapsed_seconds: float = 0.0
    entry_id: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


class CycleFile:
    """The file of one cycle."""

    def __init__(self, project_root: Path, cycle_id: str, *, makes: bool = False) -> None:
        if _ID_FORM.fullmatch(cycle_id) is None:
            raise GoldenError(f"{cycle_id!r:.100} is not a cycle's id: it is `cycle_` and 26 letters and digits")
        folder = _find_folder(project_root, makes=makes)
        self.path = folder / f"{cycle_id}.json"
        self.cycle_id = cycle_id
        self._lock_path = folder / f"{cycle_id}.lock"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the cycle in a with-block, so that no other process walks it.

        Raises:
            GoldenError: another process holds it.
        """
        lock = FileLock(self._lock_path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise GoldenError(f"{self.cycle_id} is being run by another process: wait until it ends") from None
        except OSError as error:
            raise GoldenError(f"{self._lock_path} cannot be written: {error.strerror or error}") from None
        try:
            yield
        finally:
            with suppress(OSError):
                self._lock_path.unlink()
            lock.release()

    def write(self, walk: Walk) -> None:
        """Write the walk, redacted; when this returns, it is on the disk.

        Raises:
            GoldenError: it cannot be written.
        """
        body = _write_walk(walk)
        text = json.dumps(
            {"version": _VERSION, "digest": make_fingerprint(body), "cycle": body}, ensure_ascii=False, indent=1
        )
        try:
            with replace_file(self.path) as stream:
                stream.write(text)
            flush(self.path.parent)
        except OSError as error:
            raise GoldenError(f"{self.path} cannot be written: {error.strerror or error}") from None

    def read(self) -> Walk:
        """Read the walk.

        Raises:
            GoldenError: there is no such cycle, or its file is of another version, damaged or edited by hand.
        """
        try:
            if self.path.stat().st_size > _MOST_BYTES:
                raise GoldenError(f"{self.path} is too large to be a cycle's state")
            plain = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            raise GoldenError(f"there is no cycle {self.cycle_id} in {self.path.parent}") from None
        except OSError as error:
            raise GoldenError(f"{self.path} cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            raise GoldenError(_damaged(self.path)) from None
        if not isinstance(plain, dict) or plain.get("version") != _VERSION:
            shown = plain.get("version") if isinstance(plain, dict) else None
            raise GoldenError(
                f"{self.path} is of version {shown!r:.40}, and this program reads {_VERSION}: begin a new cycle"
            )
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            walk = _read_walk(plain["cycle"])
            if plain["digest"] == make_fingerprint(plain["cycle"]) and walk.state.cycle_id == self.cycle_id:
                return walk
        raise GoldenError(_damaged(self.path))


def find_unfinished(project_root: Path) -> str:
    """Return the id of the newest cycle that has not ended.

    Raises:
        GoldenError: there is none.
    """
    folder = _find_folder(project_root, makes=False)
    found = (path.stem for path in folder.glob("cycle_*.json") if _ID_FORM.fullmatch(path.stem))
    for cycle_id in sorted(found, reverse=True):
        try:
            walk = CycleFile(project_root, cycle_id).read()
        except GoldenError:
            continue
        if walk.position is not None:
            return cycle_id
    raise GoldenError(f"there is no cycle in {folder} that could be resumed")


def _find_folder(project_root: Path, *, makes: bool) -> Path:
    if not makes:
        return find_state_folder(project_root) / _FOLDER
    try:
        folder = prepare_state_folder(project_root) / _FOLDER
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise GoldenError(f"the cycle's state cannot be kept: {error}") from None
    return folder


def _damaged(path: Path) -> str:
    return f"{path} is damaged or was edited: it is not a state that a cycle has left; begin a new cycle"


def _write_walk(walk: Walk) -> Any:
    """Return JSON-safe values without secrets. A proposal that these do not say in full has to be made again."""
    proposal = _plain(walk.state.proposal)
    is_whole = proposal == walk.state.proposal
    return {
        "state": _plain(walk.state.to_dict()),
        "measured": _plain([[one.seconds, dict(one.facts)] for one in walk.state.steps]),
        "weakened_floor": _plain([dict(one) for one in walk.state.weakened_floor]),
        "position": walk.position,
        "round": dict(walk.present._asdict()),
        "proposal": proposal if is_whole else None,
        "has_whole_proposal": is_whole,
        "failure": walk.failure,
        "seen": list(walk.seen),
        "elapsed_seconds": walk.elapsed_seconds,
        "entry_id": walk.entry_id,
        "notes": _plain(dict(walk.notes)),
    }


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(redact(value), default=repr, ensure_ascii=False))


def _read_walk(plain: Mapping[str, Any]) -> Walk:
    state = CycleState.from_dict(plain["state"])
    measured = zip(state.steps, plain["measured"], strict=True)
    state = replace(
        state, steps=tuple(replace(one, seconds=seconds, facts=dict(facts)) for one, (seconds, facts) in measured)
    )
    position = None if plain["position"] is None else CycleStep(plain["position"])
    present = Round(**plain["round"])
    seen = tuple(map(str, plain["seen"]))
    if present.has_proposal and not plain["has_whole_proposal"] and position is CycleStep.REVIEW:
        # A proposal that was not stored whole cannot be reviewed: it is made again, which is not a repetition.
        position, present, seen = CycleStep.IMPROVEMENT, Round(present.number), seen[:-1]
    return Walk(
        state=replace(state, proposal=plain["proposal"], weakened_floor=tuple(plain["weakened_floor"])),
        position=position,
        present=present,
        failure=plain["failure"],
        seen=seen,
        elapsed_seconds=float(plain["elapsed_seconds"]),
        entry_id=plain["entry_id"],
        notes=plain["notes"],
    )
