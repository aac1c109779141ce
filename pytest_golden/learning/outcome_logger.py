"""The logger that agents report their outcomes to: coroutines in front of one writing thread. No status depends on it.

Callers with the same store share one logger (`get_outcome_logger`); `agent_run` logs a run as a with-block or a decorator. A
language model can read the plan of an outcome; its answer is checked against the steps that were taken.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from contextlib import suppress
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError
from pytest_golden.learning import outcomes
from pytest_golden.learning.language_model.client import ask
from pytest_golden.learning.language_model.prompting import write_prompt
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.learning.outcome_writer import (
    LOCK,
    GroupCommit,
    HandedOver,
    LoggerCounts,
    Parcel,
    is_in_loop,
    wait_for,
)
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.step import error_text
from pytest_golden.values.checking import check_any_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from contextvars import Token

    from pytest_golden.learning.language_model.client import CompletesPrompts
    from pytest_golden.learning.model import ProductionOutcome

_log = logging.getLogger(__name__)
_SHARED_NAME = "_shared_outcome_logger"
# Stands for the attributes of a store where there is none.
_NO_STORE: dict[str, Any] = {}
CHECKED_CONFIDENCE = 0.95
_TASK = """\
Read back the plan that this piece of work followed, so that it can be followed again for a task like it.
- strategy_description: one or two sentences on what was done and why it worked.
- reasoning_pattern: direct_implementation, iterative_refinement or complex_multi_step.
- tools_sequence: the steps that mattered, in order, each exactly as it is written among the steps taken.
- key_decisions, success_factors, failure_factors: short sentences, each on what the data show.
Name no step that was not taken. Where a sentence names a step, put its name in backticks, exactly as it is written."""
_MOST_OF_BLOCK = 6_000
_QUOTED = re.compile(r"`([^`\n]+)`")
_ARROW = re.compile(r"\s*(?:\u2192|->|=>)\s*")

_Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
_Sentences = Annotated[tuple[_Sentence, ...], Field(max_length=20)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
_CURRENT: ContextVar[AgentRun | None] = ContextVar("current_agent_run", default=None)

Arguments = ParamSpec("Arguments")
Given = TypeVar("Given")


class OutcomeTrajectoryLogger:
    """Store the outcomes of agents, and the plan and a training example of each success. For any event loops and threads.

    When `log_outcome` returns, the outcome is on the disk; plan and training example may follow, and `aclose` waits for them.
    A store that fails costs a warning and a count; the outcome is returned all the same. Secrets are redacted before anything
    is stored or sent.

    Args:
        memory_store: where to store it; it remains the caller's. None stores nothing and counts everything.
        llm_client: only `extract_plan(..., use_llm=True)` asks it for plans.
        enable_auto_extraction: extract a plan by rules after each success, and store it with a training example.
    """

    def __init__(
        self,
        memory_store: MemoryStore | Store | None,
        llm_client: CompletesPrompts | None = None,
        enable_auto_extraction: bool = True,
    ) -> None:
        self._llm_client = llm_client
        self._extracts = enable_auto_extraction
        self._counts = LoggerCounts()
        self._is_closed = False
        self._memories: Any = MemoryStore(memory_store) if isinstance(memory_store, Store) else memory_store
        self._commit = GroupCommit(None if memory_store is None else self._save)

    @property
    def is_closed(self) -> bool:
        """Return whether `aclose` was called."""
        return self._is_closed

    async def log_outcome(
        self,
        task: str,
        result: Any,
        success: bool,
        execution_path: Iterable[str],
        agent_name: str,
        execution_time: float | None = None,
        *,
        error_message: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> ProductionOutcome:
        """Store what an agent did. It is on the disk when this returns, unless a warning says that the store failed.

        A task of more than 10,000 characters, a path of more than 1,000 steps, and results and contexts that make it more
        than 1 MiB are cut. A mark shows each cut, and `context["cut_fields"]` names the fields. The outcome of a cancelled
        call is stored, too.

        Args:
            task: what the agent had to do.
            result: a value of any kind; anything but JSON content becomes readable text. A large one is read in another
                thread, so that the event loop is not blocked.
            success: whether it worked. A result whose `status` is a word of failure, or whose `success` is False, did not.
            execution_path: the names of the steps, in order.
            agent_name: the agent.
            execution_time: in seconds, None when unknown.
            error_message: the error, if there was one.
            context: further facts that help to understand it.

        Raises:
            GoldenError: the logger is closed.
            ValueError: an argument is of a wrong kind, or the agent's name is blank; the message names it.
        """
        report = outcomes.Report(
            task, result, success, execution_path, agent_name, execution_time, error_message, context
        )
        return await self.hand_over(report).wait()

    def hand_over(self, report: outcomes.Report) -> HandedOver:
        """Do what `log_outcome` does without waiting, from any thread.

        Raises:
            GoldenError: the logger is closed.
        """
        self.refuse_closed()

        def settle(is_kept: bool) -> None:
            outcome = handed.outcome()
            self._counts.count("outcomes", outcome.outcome_id, is_kept)
            if is_kept and outcome.success and self._extracts:
                self._follow(outcome)

        handed = HandedOver(report, settle)
        self._commit.put(handed)
        return handed

    async def extract_plan(self, outcome: ProductionOutcome, use_llm: bool = False) -> ExtractedPlan:
        """Return the plan of an outcome, a failed one as well, and store it, for its agent and for everybody.

        The model's plan is used, with a confidence of 0.95, when every step that it names is one of the outcome's. Otherwise,
        and when the model is late, the rules make the plan; a better one that is stored already stays, and is returned.

        Raises:
            GoldenError: the logger is closed.
        """
        self.refuse_closed()
        plan = await self._ask_model(outcome) if use_llm else None
        if plan is None:
            plan = outcomes.extract_plan_by_rules(outcome)
            known = await asyncio.to_thread(self._find_plan, plan, outcome)
            if known is not None and known.confidence > plan.confidence:
                return known
        count = partial(self._counts.count, "plans", plan.plan_id)
        await wait_for(self._keep_following(lambda: outcomes.write_plan(plan, outcome), count))
        return plan

    def _find_plan(self, plan: ExtractedPlan, outcome: ProductionOutcome) -> ExtractedPlan | None:
        """Return the plan that is stored under the same id; None if there is none, or the store cannot tell."""
        try:
            memory = self._memories.get((outcomes.PLANS, outcome.agent_name), plan.plan_id)
            return None if memory is None else ExtractedPlan.from_dict(memory.value)
        except Exception as error:  # there may be no store, or one of another kind
            _log.debug("no stored plan was found", exc_info=error)
            return None

    async def store_training_example(self, outcome: ProductionOutcome, plan: ExtractedPlan) -> str:
        """Store an outcome with its plan, and return the example's id; a second call changes nothing.

        Raises:
            GoldenError: the logger is closed.
        """
        self.refuse_closed()
        count = partial(self._counts.count, "training_examples", plan.plan_id)
        await wait_for(self._keep_following(lambda: outcomes.write_training_example(outcome, plan), count))
        return f"training_{plan.plan_id}"

    def get_statistics(self) -> dict[str, int]:
        """Return how many the store took and how many were lost; without a store everything counts as stored.

        `outcomes_logged, plans_extracted, training_examples_stored, outcomes_failed, plans_failed,
        training_examples_failed`.
        """
        return self._counts.read()

    async def flush(self) -> None:
        """Wait until everything handed over so far, with its plans and training examples, is stored or lost."""
        await wait_for(self._commit.flush())

    async def aclose(self) -> None:
        """Refuse further outcomes and wait as `flush` does. The store stays open."""
        self._is_closed = True
        await self.flush()

    async def __aenter__(self) -> Self:
        self.refuse_closed()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _save(self, memories: list[Mapping[str, Any]]) -> None:
        self._memories.save_memories(memories)

    def refuse_closed(self) -> None:
        """Raise a `GoldenError` after `aclose`."""
        if self._is_closed:
            raise GoldenError("this logger is closed; make another one")

    def _keep_following(
        self, make: Callable[[], Sequence[Mapping[str, Any]]], settle: Callable[[bool], None]
    ) -> Future[bool]:
        """Store it after everything that follows by itself, so that a requested plan is the newer one."""
        parcel = Parcel(make, settle)
        self._commit.put_following(parcel)
        return parcel.kept

    def _follow(self, outcome: ProductionOutcome) -> None:
        """Store plan and training example of an outcome that is on the disk."""
        plan = outcomes.extract_plan_by_rules(outcome)

        def settle(is_kept: bool) -> None:
            for kind in ("plans", "training_examples"):
                self._counts.count(kind, plan.plan_id, is_kept)

        self._keep_following(
            lambda: (*outcomes.write_plan(plan, outcome), *outcomes.write_training_example(outcome, plan)), settle
        )

    async def _ask_model(self, outcome: ProductionOutcome) -> ExtractedPlan | None:
        """Return the model's plan when it passes the checks."""
        if self._llm_client is None:
            return None
        reply = await ask(self._llm_client, write_plan_prompt(outcome), PlanReply)
        plan = check_plan_reply(outcome, reply)
        if plan is None and reply is not None:
            _log.warning("language model: its plan is ignored, since it names steps that were not taken")
        return plan


async def log_agent_outcome(  # noqa: PLR0917 - `log_outcome` and the store
    store: MemoryStore | Store | None,
    task: str,
    result: Any,
    success: bool,
    execution_path: Iterable[str],
    agent_name: str,
    execution_time: float | None = None,
    *,
    error_message: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> ProductionOutcome:
    """Store what an agent did, its plan and its training example; all of it is on the disk when this returns.

    It calls `log_outcome` of the logger that callers with this store share. There is nothing to close.
    """
    logger = get_outcome_logger(store)
    outcome = await logger.log_outcome(
        task, result, success, execution_path, agent_name, execution_time, error_message=error_message, context=context
    )
    await logger.flush()
    return outcome


def get_outcome_logger(store: MemoryStore | Store | None) -> OutcomeTrajectoryLogger:
    """Return the logger that all callers with this store share; a new one when it was closed. None stores nothing."""
    # An attribute of the store: a table of loggers would keep both alive as long as the process.
    attributes = _NO_STORE if store is None else vars(store)
    with LOCK:
        logger: OutcomeTrajectoryLogger | None = attributes.get(_SHARED_NAME)
        if logger is None or logger.is_closed:
            logger = attributes[_SHARED_NAME] = OutcomeTrajectoryLogger(store)
        return logger


class PlanReply(BaseModel):
    """The reply that a model must give."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    strategy_description: _Text
    tools_sequence: Annotated[tuple[str, ...], Field(min_length=1, max_length=1_000)]
    reasoning_pattern: str = ""
    key_decisions: _Sentences = ()
    success_factors: _Sentences = ()
    failure_factors: _Sentences = ()


def write_plan_prompt(outcome: ProductionOutcome) -> str:
    """Return the prompt that asks for the plan of an outcome; the agent's words are redacted data in it."""
    data = {
        "Task": outcome.task_description,
        "Steps taken, in order": list(outcome.execution_path),
        "Result": outcome.result,
        "Ending": _describe_ending(outcome),
        "Context": outcome.context,
    }
    return write_prompt(_TASK, data, most_of_block=_MOST_OF_BLOCK)


def check_plan_reply(outcome: ProductionOutcome, reply: PlanReply | None) -> ExtractedPlan | None:
    """Return the plan of a reply; None when it names a step, alone or in a sentence, that the outcome does not have."""
    if reply is None or not outcome.execution_path:
        return None
    by_rules = outcomes.extract_plan_by_rules(outcome)
    sentences = (reply.strategy_description, *reply.key_decisions, *reply.success_factors, *reply.failure_factors)
    named = {*reply.tools_sequence, *_find_named(sentences)}
    if not named <= set(outcome.execution_path):
        return None
    is_known = reply.reasoning_pattern in outcomes.PATTERNS
    return ExtractedPlan(
        outcome_id=outcome.outcome_id,
        strategy_description=reply.strategy_description,
        reasoning_pattern=reply.reasoning_pattern if is_known else by_rules.reasoning_pattern,
        tools_sequence=reply.tools_sequence,
        key_decisions=reply.key_decisions or by_rules.key_decisions,
        success_factors=reply.success_factors or by_rules.success_factors,
        failure_factors=reply.failure_factors or by_rules.failure_factors,
        confidence=CHECKED_CONFIDENCE,
        timestamp=outcome.timestamp,
    )


def _describe_ending(outcome: ProductionOutcome) -> str:
    ending = "success" if outcome.success else "failure"
    took = "" if outcome.execution_time is None else f" after {outcome.execution_time:g} s"
    return f"{ending}{took}{f': {outcome.error_message}' if outcome.error_message else ''}"


def _find_named(sentences: Iterable[str]) -> set[str]:
    """Return the steps that sentences name: in backticks, or between arrows (`first: a -> b`)."""
    named: set[str] = set()
    for sentence in sentences:
        named.update(_QUOTED.findall(sentence))
        parts = _ARROW.split(sentence)
        if len(parts) > 1:
            first = parts[0].rpartition(": ")[2]
            named.update(part.strip(" .`'\"") for part in (first, *parts[1:]))
    return named


def current_run() -> AgentRun | None:
    """Return the innermost run of this thread or task, or None; a decorated function names its steps through it."""
    return _CURRENT.get()


def agent_run(logger: OutcomeTrajectoryLogger, *, task: str, agent_name: str) -> AgentRun:
    """Log a piece of an agent's work when it ends: `with`, `async with`, or a decorator that logs each call.

    An exception is logged as a failure with its error, and propagates. A plain with-block ends when the outcome is on the
    disk; inside an event loop it does not wait, but `aclose` of the logger does. The result of a decorated function is its
    return value.

    Raises:
        ValueError: the task is not text, or the agent's name is blank or too long.
    """
    return AgentRun(logger, task, agent_name)


class AgentRun:
    """One run, or the template of the runs of a decorated function. `agent_run` makes it.

    Set `result` to the result of the run, `success` to False if it failed without an exception, and put further facts that help to
    understand it into `context`.
    """

    def __init__(self, logger: OutcomeTrajectoryLogger, task: str, agent_name: str) -> None:
        check_any_text("task", task)
        self.result: Any = None
        self.success = True
        self.context: dict[str, Any] = {}
        self._handed: HandedOver | None = None
        self._logger = logger
        self._task = task
        self._agent_name = outcomes.check_agent_name(agent_name)
        self._steps: list[str] = []
        self._started = monotonic_seconds()
        self._token: Token[AgentRun | None] | None = None

    @property
    def outcome(self) -> ProductionOutcome | None:
        """Return the logged outcome; None before the run ended, and when it could not be logged."""
        return None if self._handed is None else self._handed.outcome()

    def step(self, name: str) -> None:
        """Record the name of the present step."""
        self._steps.append(name if isinstance(name, str) else f"{name}")

    def keep_given(self, given: Given) -> Given:
        """Use the work's return value as the result, unless it is None and a result was set."""
        if given is not None:
            self.result = given
        return given

    def __enter__(self) -> Self:
        return self._begin()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        handed = self._end(error)
        if handed is not None and not is_in_loop():
            handed.kept.result()

    async def __aenter__(self) -> Self:
        return self._begin()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        handed = self._end(error)
        if handed is not None:
            await handed.wait()

    def __call__(self, work: Callable[Arguments, Given]) -> Callable[Arguments, Given]:
        """Decorate a function or a coroutine function.

        Raises:
            TypeError: it is a generator function, which may never end.
        """
        if inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work):
            raise TypeError("a generator cannot be logged as a whole: use a with-block inside it")
        run_work: Callable[..., Any] = work

        def call(*args: Any, **kwargs: Any) -> Any:
            with AgentRun(self._logger, self._task, self._agent_name) as run:
                return run.keep_given(run_work(*args, **kwargs))

        async def wait(*args: Any, **kwargs: Any) -> Any:
            async with AgentRun(self._logger, self._task, self._agent_name) as run:
                return run.keep_given(await run_work(*args, **kwargs))

        wrapped: Callable[Arguments, Given] = wraps(work)(wait if inspect.iscoroutinefunction(work) else call)
        return wrapped

    def _begin(self) -> Self:
        self._logger.refuse_closed()
        if self._token is not None:
            raise GoldenError("this run has not ended; call agent_run once for each run that goes on beside it")
        self.result, self.success, self._handed = None, True, None
        self.context, self._steps = {}, []
        self._started = monotonic_seconds()
        self._token = _CURRENT.set(self)
        return self

    def _end(self, error: BaseException | None) -> HandedOver | None:
        """Hand the outcome over. A failure to log must not stop the agent."""
        took = monotonic_seconds() - self._started
        if self._token is not None:
            with suppress(ValueError):  # ended in another context than it began
                _CURRENT.reset(self._token)
            self._token = None
        is_raised = error is not None and not (isinstance(error, SystemExit) and not error.code)
        message = error_text(error) if is_raised and error is not None else None
        success = bool(self.success) and not is_raised
        try:
            self._handed = self._logger.hand_over(
                outcomes.Report(
                    self._task, self.result, success, self._steps, self._agent_name, took, message, self.context
                )
            )
        except (GoldenError, ValueError) as refusal:
            _log.warning("a run of %r cannot be logged: %s", self._agent_name, redact(str(refusal)))
            return None
        return self._handed
