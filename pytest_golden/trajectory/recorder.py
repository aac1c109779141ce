"""Record what happens, in memory or line by line in a file, as a `Trajectory`. Made for hot paths.

With a file, memory holds only counts: a million steps need no more memory than one. Each line is with the kernel when `step` returns, so a crash of the
process loses nothing. `recording` puts a recorder around a piece of work, as a with-block or a decorator.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import threading
from collections import deque
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.errors import GoldenError
from pytest_golden.trajectory import vocabulary
from pytest_golden.trajectory.jsonlines import StepFields
from pytest_golden.trajectory.keeping import KeptInFile, KeptInMemory, StepIds
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import Span, error_text, find_present_step
from pytest_golden.trajectory.vocabulary import Importance, StepType, TrajectoryOutcome, freeze_mapping
from pytest_golden.values.checking import Missing, check_time, check_word

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextvars import Context, Token
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.trajectory.step import StateSnapshot

    OnComplete = Callable[[Trajectory], object] | None

_LOG = logging.getLogger(__name__)
_MISSING = Missing.MISSING
_SHORT = 10_000
# A fast path for each step; `check_word` explains what is wrong with other words.
_TYPES = {word.value: word for word in StepType}
_IMPORTANCES = {word.value: word for word in Importance}


class TrajectoryRecorder:
    """Records steps, snapshots and an outcome; safe from several threads.

    With a path each step is a line of that file before `step` returns. The file replaces what was there; in a folder
    it gets a name of its own, `<id>.jsonl`. What cannot be written is lost with a warning, and `lost_count` counts it.
    A process forked from the one that made the recorder writes nothing into its file.

    Content, metadata, context and states over 1 MiB are cut, and `metadata["truncated_bytes"]` says by how much.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - the public name
    ) -> None:
        self._start = Trajectory.new(metadata, id)
        self._ids = StepIds()
        # A signal handler may record while a step is being recorded.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_forked = self._is_busy = self._has_steps = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._last_step_at = self._last_snapshot_at = self._start.started_at
        self._ended: Trajectory | None = None
        self._kept = KeptInMemory() if path is None else KeptInFile(path, self._start)

    @property
    def id(self) -> str:
        """Return the trajectory's id."""
        return self._start.id

    @property
    def path(self) -> Path | None:
        """Return the file that steps are written to; None in memory."""
        return self._kept.path

    @property
    def lost_count(self) -> int:
        """Return how many steps and snapshots could not be written."""
        return self._kept.lost_count

    @property
    def is_completed(self) -> bool:
        """Tell whether `complete` was called."""
        return self._ended is not None

    @property
    def is_forked(self) -> bool:
        """Tell whether this process was forked from the one that made the recorder."""
        self._see_forks()
        return self._is_forked

    @property
    def trajectory(self) -> Trajectory:
        """Return what was recorded so far; with a path, read the whole file.

        Raises:
            OSError: the file cannot be read.
            GoldenError: another recorder has replaced it.
        """
        self._see_forks()
        with self._lock:
            return self._kept.read(self._start, self._ended)

    def step(
        self,
        type: StepType | str | Missing = _MISSING,  # noqa: A002 - the public name
        content: Any = _MISSING,
        *,
        importance: Importance | str = Importance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        context: Any = None,
        duration_ms: float | None = None,
        parent_step_id: str | None = None,
        timestamp: datetime | None = None,
    ) -> str:
        """Record a step and return its id; the present span is its default parent.

        Raises:
            ValueError: a field has a value that is not allowed, the parent is not a step of this recorder, the time is
                before the last step's, or the trajectory is completed.
        """
        fields = _settle(type, content, importance, metadata, context, duration_ms)
        return self._keep(fields, parent_step_id, timestamp)

    def span(
        self,
        type: StepType | str | Missing = _MISSING,  # noqa: A002 - the public name
        content: Any = _MISSING,
        *,
        importance: Importance | str = Importance.MEDIUM,
        metadata: Mapping[str, Any] | None = None,
        context: Any = None,
        parent_step_id: str | None = None,
    ) -> Span:
        """Return a with-block whose step begins with it; its end adds the duration, and the error when it raised.

        What is recorded inside, in the same thread or in tasks begun there, is its child. A failed span is critical.

        Raises:
            ValueError: as `step`.
        """
        fields = _settle(type, content, importance, metadata, context, None)
        return Span(self, lambda: self._keep(fields, parent_step_id, None, has_end=True), self._end_span)

    def snapshot(
        self,
        state: Any = _MISSING,
        *,
        reason: str = "checkpoint",
        step_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Record the state now and return the snapshot's id.

        Raises:
            ValueError: the state is missing or None, the step is none of this recorder, or the trajectory is completed.
        """
        made = self._start.add_snapshot(state, reason=reason, metadata=metadata).state_snapshots[0]
        kept, left_out = vocabulary.cut_content(made.state)
        told, cut = vocabulary.cut_mapping(made.metadata)
        if left_out + cut:
            made = replace(made, state=kept, metadata={**told, "truncated_bytes": left_out + cut})
        self._see_forks()
        with self._lock:
            self._refuse_when_completed("add a snapshot")
            if step_id is not None:
                self._refuse_unknown("step_id", step_id)
            self._do(lambda: self._add_snapshot(replace(made, step_id=step_id)))
        return made.id

    def complete(self, outcome: TrajectoryOutcome | str = TrajectoryOutcome.SUCCESS, error: object = None) -> None:
        """End the trajectory now; nothing can be recorded afterwards. `error` is kept as by `Trajectory.complete`.

        Raises:
            ValueError: already completed, or an unknown outcome.
        """
        self._see_forks()
        with self._lock:
            self._refuse_when_completed("complete it")
            ended = self._start.complete(outcome, error)
            self._do(lambda: self._end(ended))

    def _keep(
        self, fields: StepFields, parent_step_id: str | None, timestamp: datetime | None, *, has_end: bool = False
    ) -> str:
        # This runs for each step, so full checks follow only if a cheap one fails.
        parent = find_present_step(self) if parent_step_id is None else parent_step_id
        if self._process != os.getpid():
            self._see_forks()
        with self._lock:
            if self._ended is not None:
                self._refuse_when_completed("add a step")
            if parent_step_id is not None:
                self._refuse_unknown("parent_step_id", parent_step_id)
            whole = StepFields(self._ids.make(), *fields[1:-1], parent)
            self._do(lambda: self._add_step(whole, timestamp, has_end=has_end))
        return whole.id

    def _do(self, action: Callable[[], None]) -> None:
        """Run the action, or queue it: a signal handler may interrupt another action of its own thread."""
        if self._is_busy:
            self._waiting.append(action)
            return
        self._is_busy = True
        try:
            action()
            while self._waiting:
                with suppress(ValueError):  # its caller has returned already
                    self._waiting.popleft()()
        finally:
            self._is_busy = False

    def _add_step(self, fields: StepFields, timestamp: datetime | None, *, has_end: bool) -> None:
        moment = max(utc_now(), self._last_step_at) if timestamp is None else check_time("timestamp", timestamp)
        if self._has_steps and moment < self._last_step_at:
            last = iso_utc(self._last_step_at)
            raise ValueError(f"timestamp {iso_utc(moment)} is before the last step's, {last}: times never go back")
        self._last_step_at = moment
        self._has_steps = True
        self._kept.add_step(fields, moment, has_end=has_end)

    def _add_snapshot(self, snapshot: StateSnapshot) -> None:
        moment = self._last_snapshot_at = max(utc_now(), self._last_snapshot_at)
        self._kept.add_snapshot(replace(snapshot, timestamp=moment))

    def _end(self, ended: Trajectory) -> None:
        if ended.completed_at is not None and ended.completed_at < self._last_step_at:
            late = self._last_step_at
            ended = ended.reopen().complete(ended.outcome or TrajectoryOutcome.SUCCESS, ended.error, late)
        self._ended = ended
        self._kept.end(ended)
        if self.lost_count:
            _LOG.warning("%d steps of trajectory %s could not be written and are lost", self.lost_count, self.id)

    def _end_span(self, step_id: str, duration_ms: float, metadata: dict[str, Any], failed: bool) -> None:
        told = freeze_mapping("metadata", metadata)
        self._see_forks()
        weight = Importance.CRITICAL if failed else None
        with self._lock:
            if self._ended is None:
                self._do(lambda: self._kept.end_step(step_id, duration_ms, told, weight))

    def _refuse_when_completed(self, wish: str) -> None:
        if self._ended is not None:
            raise ValueError(f"trajectory {self.id} is completed: a recorder that is completed cannot {wish}")

    def _refuse_unknown(self, field: str, step_id: str) -> None:
        if not self._ids.knows(step_id):
            raise ValueError(f"{field} {step_id!r} is not a step of this trajectory: give an id that `step` returned")

    def _see_forks(self) -> None:
        if self._process == os.getpid():
            return
        # Another thread of the parent may have held the lock at the fork; it would never be released here.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_busy = False
        self._is_forked = True
        self._ids.renew()
        self._kept.leave_to_parent()


def _settle(type_: Any, content: Any, importance: Any, metadata: Any, context: Any, duration_ms: Any) -> StepFields:
    """Check, cut and freeze the fields of a step; its id, time and parent come later."""
    kind = (_TYPES.get(type_) if isinstance(type_, str) else None) or check_word("type", type_, StepType)
    weight = _IMPORTANCES.get(importance) if isinstance(importance, str) else None
    if content is _MISSING:
        raise ValueError("content is missing: give what happened; None is content too")
    told = freeze_mapping("metadata", metadata)
    kept, left_out = vocabulary.cut_mapping(told) if told else (told, 0)
    # Most content is a short text, which needs no cut and is frozen already.
    if type(content) is not str or len(content) > _SHORT:
        content, cut = vocabulary.cut_content(content)
        content = vocabulary.freeze("content", content)
        left_out += cut
    if context is not None:
        context, cut = vocabulary.cut_content(context)
        context = vocabulary.freeze("context", context)
        left_out += cut
    if left_out:
        told = freeze_mapping("metadata", {**kept, "truncated_bytes": left_out})
    return StepFields(
        "",
        kind,
        content,
        None if duration_ms is None else vocabulary.check_duration("duration_ms", duration_ms),
        told,
        context,
        weight or check_word("importance", importance, Importance),
        None,
    )


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
    on_complete: OnComplete = None,
) -> Recording: ...


def recording(path: Any = None, *, metadata: Mapping[str, Any] | None = None, on_complete: OnComplete = None) -> Any:
    """Record a piece of work: a with-block that gives the recorder, or a decorator that makes one for each call.

    The end of the block completes the trajectory with success, unless the block has completed it. An exception leaves
    a critical observation, completes it with error (timeout for a `TimeoutError`, partial for what is not an error, such
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
        self, path: str | os.PathLike[str] | None, metadata: Mapping[str, Any] | None, on_complete: OnComplete
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

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
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
        do: Callable[..., Any] = work

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.make_use():
                return do(*args, **kwargs)

        async def wait(*args: Any, **kwargs: Any) -> Any:
            with self.make_use():
                return await do(*args, **kwargs)

        def give(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            # In a context of its own, so that the reader of the generator does not see its recorder and open spans.
            context = copy_context()
            use = self.make_use()
            context.run(use.__enter__)
            try:
                result = yield from _resume_in(context, do(*args, **kwargs))
            except BaseException as error:
                context.run(use.__exit__, type(error), error, error.__traceback__)
                raise
            context.run(use.__exit__, None, None, None)
            return result

        wrap = wait if inspect.iscoroutinefunction(work) else give if inspect.isgeneratorfunction(work) else call
        wrapped: Callable[Arguments, Given] = functools.wraps(work)(wrap)
        return wrapped


class Use:
    """One recorder on its way through one piece of work, as a with-block."""

    def __init__(self, whole: Recording, recorder: TrajectoryRecorder, on_complete: OnComplete) -> None:
        self.whole = whole
        self.recorder = recorder
        self.outer: Use | None = None
        self._on_complete = on_complete
        self._token: Token[Use | None] | None = None

    def __enter__(self) -> TrajectoryRecorder:
        self.outer = _CURRENT.get()
        self._token = _CURRENT.set(self)
        return self.recorder

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
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


def _resume_in(context: Context, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Pass everything between a generator and its reader, as `yield from` does."""
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
