"""A recorder around a piece of work: as a with-block or a decorator. It ends the trajectory; what is in it the work says."""

from __future__ import annotations

import functools
import inspect
import logging
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from pytest_golden.errors import GoldenError
from pytest_golden.trajectory.recorder import TrajectoryRecorder
from pytest_golden.trajectory.step import error_text
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Mapping
    from contextvars import Context, Token
    from types import TracebackType

    from pytest_golden.trajectory.model import Trajectory

_LOG = logging.getLogger(__name__)
_CURRENT: ContextVar[Use | None] = ContextVar("current_trajectory_recording", default=None)

Arguments = ParamSpec("Arguments")
Given = TypeVar("Given")


def current_recorder() -> TrajectoryRecorder | None:
    """Return the recorder of the innermost recording that this thread or task is in, or None."""
    use = _CURRENT.get()
    return None if use is None else use.recorder


@overload
def recording(path: Callable[Arguments, Given]) -> Callable[Arguments, Given]: ...
@overload
def recording(
    path: str | os.PathLike[str] | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    on_complete: Callable[[Trajectory], object] | None = None,
) -> Recording: ...
def recording(
    path: Any = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    on_complete: Callable[[Trajectory], object] | None = None,
) -> Any:
    """Record a piece of work: a with-block that gives the recorder, or a decorator that makes one for each call.

    The end of the block completes the trajectory with success, unless the block has completed it. An exception leaves
    a critical observation, completes it with error (timeout for a `TimeoutError`, partial for what is no error, such
    as an interrupt) and goes on. `on_complete` is then called with the trajectory; what it raises goes on too, unless
    the work has raised. A decorated function, coroutine or generator finds its recorder by `current_recorder()`.

    With a path each call replaces the file of the last one; in a folder each has a file of its own.
    """
    if callable(path):
        return Recording(None, metadata, on_complete)(path)
    return Recording(path, metadata, on_complete)


class Recording:
    """What `recording` gives. It may be used again and again, also inside itself: each use has a recorder of its own."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None,
        on_complete: Callable[[Trajectory], object] | None,
    ) -> None:
        self._path = path
        self._metadata = metadata
        self._on_complete = on_complete
        self._last: Use | None = None

    def make_use(self) -> Use:
        """Make a recorder for one piece of work."""
        return Use(self, TrajectoryRecorder(self._path, metadata=self._metadata), self._on_complete)

    def __enter__(self) -> TrajectoryRecorder:
        self._last = self.make_use()
        return self._last.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        use = _CURRENT.get()
        while use is not None and use.whole is not self:
            use = use.outer
        # A generator may end in another context than it began.
        use = use or self._last
        if use is not None:
            use.__exit__(kind, error, traceback)

    def __call__(self, work: Callable[Arguments, Given]) -> Callable[Arguments, Given]:
        """Decorate a function, a coroutine function or a generator function.

        Raises:
            TypeError: it is an asynchronous generator function.
        """
        if inspect.isasyncgenfunction(work):
            raise TypeError("an asynchronous generator cannot be recorded as a whole: use a with-block inside it")
        wrap = _wrap_function
        if inspect.iscoroutinefunction(work):
            wrap = _wrap_coroutine
        elif inspect.isgeneratorfunction(work):
            wrap = _wrap_generator
        wrapped: Callable[Arguments, Given] = functools.wraps(work)(wrap(self, work))
        return wrapped


class Use:
    """One recorder on its way through one piece of work, as a with-block."""

    def __init__(
        self, whole: Recording, recorder: TrajectoryRecorder, on_complete: Callable[[Trajectory], object] | None
    ) -> None:
        self.whole = whole
        self.recorder = recorder
        self.outer: Use | None = None
        self._on_complete = on_complete
        self._token: Token[Use | None] | None = None

    def __enter__(self) -> TrajectoryRecorder:
        self.outer = _CURRENT.get()
        self._token = _CURRENT.set(self)
        return self.recorder

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            with suppress(ValueError):  # ended in another context than it began
                _CURRENT.reset(self._token)
        if not self.recorder.is_completed:
            self._complete(error)
        # What a fork has is a copy of what its parent will give.
        if self._on_complete is not None and not self.recorder.is_forked:
            self._deliver(self._on_complete, error)

    def _complete(self, error: BaseException | None) -> None:
        outcome = _outcome_of(error)
        told = None if error is None or outcome is TrajectoryOutcome.SUCCESS else error_text(error)
        if told is not None and not isinstance(error, GeneratorExit):
            self.recorder.step(StepType.OBSERVATION, told, importance=Importance.CRITICAL, metadata={"error": told})
        self.recorder.complete(outcome, told)

    def _deliver(self, on_complete: Callable[[Trajectory], object], error: BaseException | None) -> None:
        try:
            recorded = self.recorder.trajectory
        except (OSError, GoldenError) as lost:  # the file is gone, or another call has replaced it
            _LOG.warning("trajectory %s cannot be given to on_complete: %s", self.recorder.id, lost)
            return
        try:
            on_complete(recorded)
        except Exception as refusal:
            if error is None:
                raise
            # The work's own error is the news.
            _LOG.warning("on_complete of trajectory %s failed: %s", self.recorder.id, error_text(refusal))


def _outcome_of(error: BaseException | None) -> TrajectoryOutcome:
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return TrajectoryOutcome.SUCCESS
    if isinstance(error, TimeoutError):
        return TrajectoryOutcome.TIMEOUT
    return TrajectoryOutcome.ERROR if isinstance(error, Exception) else TrajectoryOutcome.PARTIAL


def _wrap_function(whole: Recording, work: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with whole.make_use():
            return work(*args, **kwargs)

    return call


def _wrap_coroutine(whole: Recording, work: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with whole.make_use():
            return await work(*args, **kwargs)

    return call


def _wrap_generator(whole: Recording, work: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        # In a context of its own, or whoever reads it would find its recorder and its open spans.
        context = copy_context()
        use = whole.make_use()
        context.run(use.__enter__)
        try:
            result = yield from _resume_in(context, work(*args, **kwargs))
        except BaseException as error:
            context.run(use.__exit__, type(error), error, error.__traceback__)
            raise
        context.run(use.__exit__, None, None, None)
        return result

    return call


def _resume_in(context: Context, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Hand everything on between a generator and its reader, as `yield from` does."""
    resume: Callable[[Any], Any] = generator.send
    given: Any = None
    while True:
        try:
            item = context.run(resume, given)
        except StopIteration as end:
            return end.value
        try:
            resume, given = generator.send, (yield item)
        except GeneratorExit:
            context.run(generator.close)
            raise
        except BaseException as error:
            resume, given = generator.throw, error
