"""Log one run of an agent of any framework when it ends: as a with-block or a decorator."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError
from pytest_golden.learning.memories import check_any_text
from pytest_golden.learning.outcomes import Report, check_agent_name
from pytest_golden.redaction.redactor import redact
from pytest_golden.trajectory.step import error_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType

    from pytest_golden.learning.model import ProductionOutcome
    from pytest_golden.learning.outcome_logger import OutcomeTrajectoryLogger
    from pytest_golden.learning.outcome_writer import HandedOver

_log = logging.getLogger(__name__)
_CURRENT: ContextVar[AgentRun | None] = ContextVar("current_agent_run", default=None)

Arguments = ParamSpec("Arguments")
Given = TypeVar("Given")


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

    Set `result` to the result of the run, and put further facts that help to understand it into `context`.
    """

    def __init__(self, logger: OutcomeTrajectoryLogger, task: str, agent_name: str) -> None:
        check_any_text("task", task)
        self.result: Any = None
        self.context: dict[str, Any] = {}
        self._handed: HandedOver | None = None
        self._logger = logger
        self._task = task
        self._agent_name = check_agent_name(agent_name)
        self._steps: list[str] = []
        self._started = monotonic_seconds()
        self._token: Token[AgentRun | None] | None = None

    @property
    def outcome(self) -> ProductionOutcome | None:
        """Return the logged outcome; None before the run ended, and when it could not be logged."""
        return None if self._handed is None else self._handed.make()

    def step(self, name: str) -> None:
        """Record the name of the present step."""
        self._steps.append(name if isinstance(name, str) else f"{name}")

    def keep_given(self, given: Given) -> Given:
        """Use the work's return value as the result, unless it is None and a result was set."""
        if given is not None:
            self.result = given
        return given

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        handed = self._end(error)
        if handed is not None and handed.kept is not None and not _is_in_loop():
            handed.kept.result()

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
        call = self._wrap_coroutine(work) if inspect.iscoroutinefunction(work) else self._wrap_function(work)
        wrapped: Callable[Arguments, Given] = functools.wraps(work)(call)
        return wrapped

    def _wrap_function(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._again() as run:
                return run.keep_given(work(*args, **kwargs))

        return call

    def _wrap_coroutine(self, work: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            async with self._again() as run:
                return run.keep_given(await work(*args, **kwargs))

        return call

    def _again(self) -> AgentRun:
        return AgentRun(self._logger, self._task, self._agent_name)

    def _begin(self) -> None:
        if self._logger.is_closed:
            raise GoldenError("this logger is closed; make another one")
        if self._token is not None:
            raise GoldenError("this run has not ended; call agent_run once for each run that goes on beside it")
        self.result, self._handed = None, None
        self.context, self._steps = {}, []
        self._started = monotonic_seconds()
        self._token = _CURRENT.set(self)

    def _end(self, error: BaseException | None) -> HandedOver | None:
        """Hand the outcome over. A failure to log must not stop the agent."""
        took = monotonic_seconds() - self._started
        if self._token is not None:
            with suppress(ValueError):  # ended in another context than it began
                _CURRENT.reset(self._token)
            self._token = None
        failed = error is not None and not (isinstance(error, SystemExit) and not error.code)
        message = error_text(error) if failed and error is not None else None
        try:
            self._handed = self._logger.hand_over(
                Report(self._task, self.result, not failed, self._steps, self._agent_name, took, message, self.context)
            )
        except (GoldenError, ValueError) as refusal:
            _log.warning("a run of %r cannot be logged: %s", self._agent_name, redact(str(refusal)))
            return None
        return self._handed


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
