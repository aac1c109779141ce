"""The gateway of a fleet: has each attempt made by a worker of the cluster, in place of the execution gateway.

Independent projects are sent ahead; all others are sent in their turn. Results come in the gate's order.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.fleet import worker as on_worker
from pytest_golden.fleet.cluster import explain_unlike, find_versions
from pytest_golden.fleet.shipping import (
    FleetSession,
    FleetTask,
    open_kept,
    pack_workspace,
    read_answer,
    read_log,
    relocate,
)
from pytest_golden.gateway.execution import next_log_file
from pytest_golden.gateway.model import Ending, GatewayAbilities, Problem, require_execution
from pytest_golden.gateway.outcome import outcome_not_started
from pytest_golden.redaction.redactor import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_golden.compare.examination import Examination
    from pytest_golden.fleet.cluster import Cluster, Errand
    from pytest_golden.fleet.shipping import FleetAnswer
    from pytest_golden.gateway.model import AgentRole, Permissions, PipelineOutcome, RunnerCommand
    from pytest_golden.gateway.service import ExecutionGateway
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.slowdown import SlowdownJudge

VIEW = "fleet"
#: How often an attempt is sent when workers are lost before they begin it, or have no workspace.
_MOST_SENDINGS = 8
# How long an answer about what runs is reused: one second, and another for each 1,000 attempts that it lists.
_TOLD_SECONDS, _TOLD_COUNT = 1.0, 1_000


class FleetGateway:
    """Executes golden projects on the workers of a cluster. `local` knows paths and secrets, and executes nothing."""

    def __init__(self, cluster: Cluster, plan: FleetPlan, local: ExecutionGateway) -> None:
        self.workspace_root = local.workspace_root
        self._cluster = cluster
        self._plan = plan
        self._local = local
        self._environ: Mapping[str, str] = dict(os.environ)
        self._ahead: dict[str, _Sent] = {}
        self._begun: dict[str, float] = {}
        self._told: tuple[float, dict[str, float]] = 0.0, {}
        self._count = 0
        self._archive: tuple[str, bytes] | None = None
        self._trouble: GatewayError | None = None
        self._is_begun = False
        self._is_closed = False

    def describe(self) -> GatewayAbilities:
        """Return who runs the pipelines; view and seal are each worker's own."""
        return GatewayAbilities(view=VIEW, seal=VIEW, limits=(), view_reason=self._cluster.describe())

    def redact(self, project: GoldenProjectConfig, text: str) -> str:
        """Redact a text as the workers do."""
        return self._local.redact(project, text)

    def freeze(self, projects: Iterable[GoldenProjectConfig]) -> None:
        """Keep the current environment for all runs."""
        self._local.freeze(projects)
        self._environ = dict(os.environ)

    def start_ahead(self, projects: Iterable[GoldenProjectConfig]) -> None:
        """Send the first attempts of projects that may run side by side; `run_pipeline` returns their outcomes."""
        with suppress(GatewayError):
            for project in projects:
                self._ahead[project.name] = self._send(project)

    def list_elsewhere(self) -> dict[str, float]:
        """Return the projects sent ahead that run now, each with its start in seconds since the epoch."""
        told_at, told = self._told
        if monotonic_seconds() - told_at < _TOLD_SECONDS or not self._is_begun:
            return told
        begun = self._cluster.peek_metadata([on_worker.METADATA, self._plan.session.id])
        if begun is not None:
            now = utc_now().timestamp()
            running = {name: sent.name for name, sent in self._ahead.copy().items() if not sent.errand.has_ended}
            told = {name: self._begun.setdefault(own, now) for name, own in running.items() if own in begun}
        # The longer the list, the less often it is asked for.
        rest = len(begun or ()) // _TOLD_COUNT
        self._told = monotonic_seconds() + rest, told
        return told

    def run_pipeline(
        self,
        project: GoldenProjectConfig,
        *,
        role: AgentRole,
        permissions: Permissions,
        examine: Examination | None = None,
    ) -> PipelineOutcome:
        """Have one golden project executed and return the facts; never raises for what the project or the fleet does.

        The worker examines the outputs against the same baselines; `examine` then notes that it was asked.

        Raises:
            PermissionDeniedError: the role may not have these permissions.
        """
        require_execution(role, permissions)
        sent: _Sent | None = None
        try:
            sent = self._ahead.pop(project.name, None) or self._send(project)
            answer = self._follow(sent)
        except GoldenError as error:
            told = self.redact(project, str(error))
            return outcome_not_started(Problem.HARNESS, told, Redactor())
        except KeyboardInterrupt:
            stopped = outcome_not_started(Problem.HARNESS, "interrupted while a worker ran it", Redactor())
            return replace(stopped, ending=Ending.INTERRUPTED, problem=None)
        finally:
            if sent is not None:
                sent.errand.cancel()
        outcome = self._receive(project, answer)
        if examine is not None and answer.was_examined:
            examine.was_asked = True
            outcome = _take_kept(outcome, answer, examine)
        return outcome

    def close(self) -> None:
        """End what still runs on workers, end the session there, and disconnect; safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        for sent in self._ahead.values():
            sent.errand.cancel()
        if self._is_begun:
            with suppress(GatewayError):
                self._cluster.call(on_worker.end_session, self._plan.session.id)
                self._cluster.forget_metadata([on_worker.METADATA, self._plan.session.id])
            with suppress(OSError):
                Path(self._plan.session.token_file).unlink()
        self._cluster.close()
        self._local.close()

    def _send(self, project: GoldenProjectConfig) -> _Sent:
        self._begin()
        self._count += 1
        name = f"{project.name}-{self._count}"
        task = pickle.dumps(self._make_task(project, name))
        return _Sent(name, task, -self._count, self._submit(name, task, -self._count, 1))

    def _submit(self, name: str, task: bytes, priority: int, sending: int) -> Errand:
        return self._cluster.submit(
            on_worker.run_attempt,
            find_versions(),
            task,
            read=read_answer,
            key=f"golden-{self._plan.session.id}-{name}-{sending}",
            priority=priority,
        )

    def _make_task(self, project: GoldenProjectConfig, name: str) -> FleetTask:
        session = self._plan.session
        slowdowns = None
        if session.keep == "failed":
            known = self._plan.slowdowns()
            trends = {key: trend for key, trend in known.trends.items() if key == project.name}
            slowdowns = replace(known, trends=trends)
        return FleetTask(
            session,
            name,
            project,
            relocate(project, Path(session.root)),
            self._plan.find_command(project),
            {passed: self._environ[passed] for passed in project.pass_env if passed in self._environ},
            slowdowns,
        )

    def _begin(self) -> None:
        """Make the workspace known to the workers, once; a failure is raised again for every project."""
        if self._trouble is not None:
            raise self._trouble
        if self._is_begun:
            return
        self._is_begun = True
        session = self._plan.session
        try:
            if session.token_file:
                Path(session.token_file).write_text(session.token, encoding="ascii")
            self._cluster.attend(self._welcome, self._send_refused_again)
            self._welcome(None)
            self._cluster.require_fit()
        except GatewayError as error:
            self._trouble = error
            raise

    def _welcome(self, workers: tuple[str, ...] | None) -> None:
        """Send the workspace to workers that do not see it, once per host; None stands for all workers."""
        session = pickle.dumps(self._plan.session)
        told = self._cluster.call(on_worker.describe_host, session, workers=workers)
        without = {
            worker: found[0]
            for worker, found in told.items()
            if _sees_nothing(found) and not self._cluster.is_left_out(worker)
        }
        if not without:
            return
        failed = self._ship({host: worker for worker, host in without.items()}.values())
        # Two containers may have the same host name and no folder in common.
        told = self._cluster.call(on_worker.describe_host, session, workers=without.keys() - failed)
        failed |= self._ship(worker for worker, found in told.items() if _sees_nothing(found))
        self._leave_out(failed)

    def _ship(self, workers: Iterable[str]) -> dict[str, str]:
        """Send the workspace to these workers; return those that cannot have it, and why."""
        chosen = tuple(workers)
        if not chosen:
            return {}
        session = self._plan.session
        if self._archive is None:
            baselines = None if session.baselines_inside is not None else Path(session.baselines)
            packed = pack_workspace(Path(session.root), baselines, left_out=self._plan.left_out)
            self._archive = hashlib.sha256(packed).hexdigest(), packed
        told = self._cluster.call(on_worker.receive_workspace, session.id, *self._archive, workers=chosen)
        return {worker: reason for worker, reason in told.items() if isinstance(reason, str)}

    def _leave_out(self, failed: Mapping[str, str]) -> None:
        """Leave out workers that cannot have the workspace."""
        if not failed:
            return
        for worker, reason in failed.items():
            self._cluster.leave_out(worker, f"the workspace cannot be unpacked there: {reason}")
        self._cluster.call(on_worker.refuse_session, self._plan.session.id, workers=failed)

    def _follow(self, sent: _Sent) -> FleetAnswer:
        while True:
            self._cluster.wait(sent.errand)
            answer = self._read(sent)
            if answer is not None:
                return answer
            if sent.sendings - sent.refusals >= _MOST_SENDINGS:
                message = f"no worker could begin it, and it was sent {sent.sendings} times: look at the workers' logs"
                raise GatewayError(message)
            self._cluster.wait_for_worker()
            self._send_again(sent)

    def _send_again(self, sent: _Sent) -> None:
        sent.sendings += 1
        sent.errand = self._submit(sent.name, sent.task, sent.priority, sent.sendings)

    def _send_refused_again(self) -> None:
        """Send attempts again that a left-out worker returned, without waiting for their turn."""
        for sent in self._ahead.values():
            answer: FleetAnswer | None = sent.errand.answer
            if answer is not None and answer.lacks_workspace and self._cluster.is_left_out(answer.worker):
                sent.refusals += 1
                self._send_again(sent)

    def _read(self, sent: _Sent) -> FleetAnswer | None:
        """Return the answer of an attempt that ran; None for one that must be sent again."""
        if sent.errand.error is not None:
            self._read_error(sent)
            return None
        answer: FleetAnswer = sent.errand.answer
        if answer.lacks_workspace:
            self._welcome((answer.worker,))
            sent.refusals += self._cluster.is_left_out(answer.worker)
            return None
        if answer.unlike:
            raise GatewayError(explain_unlike({answer.worker: answer.unlike}))
        if answer.lost_on:
            raise _lost(answer.lost_on)
        return answer

    def _read_error(self, sent: _Sent) -> None:
        errand = sent.errand
        if errand.was_cancelled:
            message = "its task was cancelled on the cluster by someone else, or the cluster was restarted: run the gate again"
            raise GatewayError(message)
        if not errand.was_killed:
            raise GatewayError(errand.explain())
        begun = self._cluster.find_metadata([on_worker.METADATA, self._plan.session.id, sent.name]) or ()
        if len(begun) >= on_worker.MOST_WORKERS:
            raise _lost(begun)

    def _receive(self, project: GoldenProjectConfig, answer: FleetAnswer) -> PipelineOutcome:
        # A path that a worker names is none of this machine.
        outcome = replace(cast("PipelineOutcome", answer.outcome), log_path=None)
        if not answer.log:
            return outcome
        file = next_log_file(self._plan.log_folder, project.name)
        with suppress(OSError, ValueError, zlib.error):
            log = read_log(answer)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(log)
            return replace(outcome, log_path=str(file))
        return outcome


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What a gate gives its fleet besides projects.

    `left_out` are files of the workspace that no worker needs. `find_command` and `slowdowns` are called here, and their
    answers are sent.
    """

    session: FleetSession
    left_out: tuple[Path, ...]
    log_folder: Path
    find_command: Callable[[GoldenProjectConfig], RunnerCommand | None]
    slowdowns: Callable[[], SlowdownJudge]


@dataclass(slots=True)
class _Sent:
    """An attempt that was sent. `name` stays the same when it is sent again."""

    name: str
    task: bytes
    priority: int
    errand: Errand
    sendings: int = 1
    refusals: int = 0


def _take_kept(outcome: PipelineOutcome, answer: FleetAnswer, examine: Examination) -> PipelineOutcome:
    """Give the outputs that a worker kept to the gate's examination; a warning if that cannot be done."""
    if not answer.kept:
        return outcome
    try:
        with open_kept(answer) as folder:
            examine.receive(folder)
    except (GoldenError, ValueError, OSError) as error:
        told = f"the outputs that the worker sent are not kept for `golden accept`: {error}"
        return replace(outcome, warnings=(*outcome.warnings, told))
    return outcome


def _sees_nothing(told: object) -> bool:
    """Tell whether a worker that described its host has no workspace there."""
    match told:
        case (str(), None):
            return True
    return False


def _lost(workers: Iterable[str]) -> GatewayError:
    names = " and then ".join(workers)
    return GatewayError(f"its worker was lost twice, {names}: look at their logs, and whether they had memory enough")
