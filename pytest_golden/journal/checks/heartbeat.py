"""The heartbeat: resolve what is due, run the checks whose time has come, and route orphans again.

Any number of heartbeats may run at once, in processes and machines that share a store: a check is claimed before it is run,
and its answer is recorded only by the heartbeat that still holds the claim. No check is run inside a transaction.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_golden.clock import monotonic_seconds, new_id
from pytest_golden.errors import GoldenError, JournalError
from pytest_golden.gateway.model import AgentRole, Ending, Gateway, Permissions
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.journal.caller_input import clean_data, clean_text
from pytest_golden.journal.checks import rules as check_rules
from pytest_golden.journal.checks.http_check import UnansweredError, fetch
from pytest_golden.journal.checks.rules import read_check
from pytest_golden.journal.checks.store import Claim, claim_check, count_due, end_claim, give_back, list_due
from pytest_golden.journal.model import RoutedBy, Signal, SignalType
from pytest_golden.journal.receiving_store import LastNumbers, find_by_external_id, find_last_numbers, reroute_orphans
from pytest_golden.journal.rules import CHECK, rules_of
from pytest_golden.journal.store import Received, SweptStore, take_signal
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.storage.location import list_sqlite_files
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection


_PROJECT_NAME = "check"
_REASON = "the check belongs to this expectation"
# How much longer than its time limit a check stays claimed: to prepare a view, and to wait for the store.
_SLACK_SECONDS = 120
_MOST_PAGES_AT_ONCE = 4
# An expectation that was answered in the meantime may have hidden another one that an older orphan fits.
_BETWEEN_LOOKS_AT_ALL = timedelta(hours=1)


class _HasSweptStore(Protocol):
    @property
    def swept_store(self) -> SweptStore:
        """The journal's store, with the time and the rules of agents."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun(Shape):
    """A check that was run: its answer, recorded as the signal `signal_id`, and when it is tried again.

    `tries` counts this one. `signal_id` is None when another heartbeat has taken over the check.
    """

    expectation_id: str
    entry_id: str
    description: str
    signal_type: SignalType
    summary: str
    signal_id: str | None
    tries: int
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class HeartbeatReport(Shape):
    """What a heartbeat did: the expectations that it resolved, the checks that it ran, and the orphans that it assigned.

    `left` counts the checks that were due and not run, for lack of time or because another heartbeat has claimed them.
    """

    resolved: int = 0
    checks: tuple[CheckRun, ...] = ()
    rerouted: int = 0
    left: int = 0


class Heartbeat:
    """Runs what has come due in a journal. One object beats once at a time.

    Args:
        journal: the journal.
        gateway: what runs commands; by default one of the workspace is made when it is needed.
        workspace_root: the folder that commands see and run in, the current one by default.
        view: `auto`, `overlay` or `copy`, for the gateway that is made.
        timeout_seconds: how long one check may take.
        most_checks: how many checks one beat runs at most.
        budget_seconds: how long after its start a beat still begins checks.
    """

    def __init__(
        self,
        journal: _HasSweptStore,
        *,
        gateway: Gateway | None = None,
        workspace_root: Path | str | None = None,
        view: str = "auto",
        timeout_seconds: float = 60.0,
        most_checks: int = 200,
        budget_seconds: float = 600.0,
    ) -> None:
        self._swept = journal.swept_store
        self._gateway = gateway
        self._root = Path.cwd() if workspace_root is None else Path(workspace_root)
        self._view = view
        self._timeout_seconds = timeout_seconds
        self._most_checks = most_checks
        self._budget_seconds = budget_seconds
        self._stop = threading.Event()
        self._seen: LastNumbers | None = None
        self._seen_all_at: datetime | None = None

    def beat(self) -> HeartbeatReport:
        """Resolve what is due, run the checks that are due, route orphans again, and report what was done.

        Pages are requested several at once, commands run one after another. After a Ctrl-C, unfinished checks are due at once.

        Raises:
            StorageError: the store cannot be read or written.
            SettingsError: there is no such view.
        """
        self._stop.clear()
        resolved = self._swept.sweep()
        runs, left = self._run_due()
        return HeartbeatReport(resolved, runs, self._reroute(), left)

    def stop(self) -> None:
        """Let a beat in another thread begin nothing more; pages that are being requested are abandoned, and stay due."""
        self._stop.set()

    def _reroute(self) -> int:
        with self._swept.store.read() as connection:
            known = find_last_numbers(connection)
        # Orphans stay orphans until something new is recorded.
        if known == self._seen:
            return 0
        now = self._swept.now()
        since = self._find_since(known, now)
        rerouted = reroute_orphans(self._swept, now, since)
        self._seen = known
        if since is None:
            self._seen_all_at = now
        return rerouted

    def _find_since(self, known: LastNumbers, now: datetime) -> LastNumbers | None:
        """Return the last numbers of the previous beat; None to examine everything: once an hour, and in another store."""
        if self._seen is None or self._seen_all_at is None or now - self._seen_all_at >= _BETWEEN_LOOKS_AT_ALL:
            return None
        is_other = known.expectation < self._seen.expectation or known.signal < self._seen.signal
        return None if is_other else self._seen

    def _run_due(self) -> tuple[tuple[CheckRun, ...], int]:
        with self._swept.store.read() as connection:
            timestamp = to_ms(self._swept.now())
            due = list_due(connection, timestamp, self._most_checks)
            due_count = count_due(connection, timestamp) if len(due) == self._most_checks else len(due)
        if not due:
            return (), 0
        deadline = monotonic_seconds() + self._budget_seconds
        commands = [one for one in due if "command" in one.check]
        pages = [one for one in due if "command" not in one.check]
        with ThreadPoolExecutor(_MOST_PAGES_AT_ONCE, "golden-check") as pool, self._open_gateway(commands) as gateway:
            asked = [pool.submit(self._run_one, one.id, deadline, gateway) for one in pages]
            # In this thread alone: a gateway runs one thing at a time, and only here is a Ctrl-C received.
            runs = [self._run_one(one.id, deadline, gateway) for one in commands]
            runs = [*(one.result() for one in asked), *runs]
        taken = tuple(one for one in runs if one is not None)
        return taken, due_count - len(taken)

    @contextmanager
    def _open_gateway(self, commands: Sequence[Any]) -> Iterator[Gateway | None]:
        """Yield the gateway for these commands; None without any."""
        hidden = list_sqlite_files(self._swept.store.path)
        wanted = commands and self._gateway is None
        made = ExecutionGateway(self._root, view=self._view, hidden=hidden) if wanted else None
        try:
            yield made or self._gateway
        except BaseException:
            # The pool waits for its threads, so let them end soon.
            self._stop.set()
            raise
        finally:
            if made is not None:
                made.close()

    def _run_one(self, expectation_id: str, deadline: float, gateway: Gateway | None) -> CheckRun | None:
        if self._stop.is_set() or monotonic_seconds() >= deadline:
            return None
        now = to_ms(self._swept.now())
        until = now + round((self._timeout_seconds + _SLACK_SECONDS) * 1000)
        with self._swept.store.write() as connection:
            claim = claim_check(connection, expectation_id, now, until)
        if claim is None:
            return None
        try:
            answer = self._end_in_time(claim, self._find_answer(claim, gateway))
        except BaseException:
            self._give_back(claim)
            raise
        if self._stop.is_set() and not answer.is_final:
            self._give_back(claim)
            return None
        kept, next_at = record_answer(self._swept, claim, answer)
        return CheckRun(
            expectation_id=claim.expectation_id,
            entry_id=claim.entry_id,
            description=claim.description,
            signal_type=answer.signal_type,
            summary=redact(answer.summary) if kept is None else kept.summary,
            signal_id=None if kept is None else kept.id,
            tries=claim.tries,
            next_at=next_at,
        )

    def _end_in_time(self, claim: Claim, answer: check_rules.Answer) -> check_rules.Answer:
        until = _find_until(claim)
        is_over = until is not None and to_ms(self._swept.now()) >= until
        return check_rules.end_waiting(answer) if is_over else answer

    def _give_back(self, claim: Claim) -> None:
        with self._swept.store.write() as connection:
            give_back(connection, claim, to_ms(self._swept.now()))

    def _find_answer(self, claim: Claim, gateway: Gateway | None) -> check_rules.Answer:
        try:
            check = read_check(claim.check)
        except ValueError as error:
            return check_rules.unable(f"this version does not know such a check: {error}")
        objection = check_rules.find_objection(check, rules_of(claim.agent_id, self._swept.rules))
        if objection:
            return check_rules.unable(objection)
        if check.has_lost_a_secret:
            return check_rules.unable("it held a secret, and secrets are not kept; write a check without one")
        if check.command:
            # A check that was listed as a command is one still.
            assert gateway is not None
            return run_command(gateway, check.command, self._timeout_seconds, check)
        if check.github:
            return ask_github(check)
        wants_body = bool(check.path)
        try:
            reply = fetch(check.url, timeout_seconds=self._timeout_seconds, wants_body=wants_body, stop=self._stop)
        except UnansweredError as error:
            return check_rules.unable(str(error))
        return check_rules.judge_reply(check, reply)


def _find_until(claim: Claim) -> int | None:
    """Return until when not yet is waited for, in milliseconds since the epoch; None: until the expectation expires."""
    try:
        until = read_check(claim.check).until_ms
    except ValueError:
        return None
    return None if until is None else claim.created_at + until


def ask_github(check: check_rules.Check) -> check_rules.Answer:
    """Ask GitHub what became of a pull request, or how a check of it or of a commit ended, and judge the answer."""
    # Here, since few checks are about GitHub.
    from pytest_golden.journal.outside.github_sync import find_state

    try:
        state = find_state(check.github, check.name)
    except JournalError as error:
        return check_rules.unable(str(error))
    data = {"url": state.url} if state.url else {}
    if state.says is None:
        return check_rules.not_yet(state.told, **data)
    return check_rules.Answer(state.says, f"GitHub says: {state.told}", data)


def run_command(
    gateway: Gateway, command: Sequence[str], timeout_seconds: float, check: check_rules.Check | None = None
) -> check_rules.Answer:
    """Run a command through the gateway, in a sealed view that leaves nothing, and judge its outcome.

    It has no network, unless its check has `network`.

    Raises:
        KeyboardInterrupt: a Ctrl-C interrupted it.
    """
    try:
        project = GoldenProjectConfig(
            _PROJECT_NAME,
            ".",
            command=tuple(command),
            project_dir=".",
            timeout=timeout_seconds,
            network=check is not None and check.network,
        )
        outcome = gateway.run_pipeline(
            project, role=AgentRole.ENVIRONMENT, permissions=Permissions(can_execute_tasks=True, can_edit_source=False)
        )
    except GoldenError as error:
        return check_rules.unable(str(error))
    except ValueError as error:
        return check_rules.unable(f"its command cannot be declared: {error}")
    if outcome.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    return check_rules.judge_command(outcome, check)


def record_answer(swept: SweptStore, claim: Claim, answer: check_rules.Answer) -> tuple[Signal | None, datetime | None]:
    """Record an answer once, as a signal on the check's own expectation, with all that follows from it.

    Returns the signal, None if the claim was lost; and when the check is tried again, None for never.

    Raises:
        StorageError: it cannot be written.
    """
    timestamp = swept.now()
    next_at = check_rules.find_next(answer, claim.tries, to_ms(timestamp), claim.expires_at, _find_until(claim))
    signal = Signal(
        id=new_id("signal"),
        entry_id=claim.entry_id,
        source=CHECK,
        signal_type=answer.signal_type,
        summary=clean_text("summary", answer.summary.replace("\0", " ")),
        data=clean_data("data", {**answer.data, "try": claim.tries}),
        external_id=check_rules.name_signal(claim.expectation_id, answer, claim.tries),
        created_at=timestamp,
    )

    def keep(connection: Connection) -> tuple[Signal | None, datetime | None]:
        if not end_claim(connection, claim, next_at):
            return None, None
        known = find_by_external_id(connection, signal.source, signal.external_id or "")
        return known or _take(connection, swept, claim, signal), None if next_at is None else from_ms(next_at)

    return swept.after_sweep(timestamp, keep)


def _take(connection: Connection, swept: SweptStore, claim: Claim, signal: Signal) -> Signal:
    verdict = {"expectation_id": claim.expectation_id, "rule": RoutedBy.ENTRY.value, "taken": True, "reason": _REASON}
    received = Received(RoutedBy.ENTRY, {"candidates": [verdict], "others": 0}, claim.agent_id)
    rules = rules_of(claim.agent_id, swept.rules)
    return take_signal(connection, signal, claim.expectation_id, received, rules=rules)
