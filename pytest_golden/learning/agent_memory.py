"""What an agent uses: hints before a task and after a failure, and a record of the task when it is done.

Nothing here raises into an agent or blocks its event loop. One thread reads and one writes. If a store does not answer in time, there are
no hints. What cannot be written waits in a file beside the store, and is tried again with the next task.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import monotonic_seconds, utc_now
from pytest_golden.errors import GoldenError, SettingsError, StorageError
from pytest_golden.journal.store import find_default_store
from pytest_golden.learning import outcomes
from pytest_golden.learning.agent_hints import Hint, find_hints
from pytest_golden.learning.lessons.edits import check_language
from pytest_golden.learning.lessons.model import Attempt
from pytest_golden.learning.memories import MOST_TASK_CHARACTERS
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.outcome_writer import is_in_loop
from pytest_golden.learning.signature import cause_of, error_signature
from pytest_golden.learning.task_record import ShownLesson, Spool, TaskRecord, write_task
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.step import error_text
from pytest_golden.values.checking import check_any_text, check_flag, check_text
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_log = logging.getLogger(__name__)
# How long an agent waits for hints, and how long an event loop waits.
_SECONDS, _SECONDS_IN_LOOP = 2.0, 0.2
_MOST_WAITING = 1_000
_CLOSED = "this memory is closed; make another one"
# The most that is kept of a tool's arguments and result, in bytes of JSON, and of its name and an error, in characters.
_MOST_KEPT, _MOST_OF_NAME, _MOST_OF_ERROR = 128 << 10, 200, 20_000
# The most files and tools that are kept of a task.
_MOST_NAMES, _MOST_OF_PATH = 100, 500


class AgentMemory:
    """What agents learned from earlier tasks, for one agent. Safe between threads and event loops.

    Args:
        agent: the agent's name.
        store: a store or its memories (the caller closes them), or the file or URL of a store; None is the store that the gate uses in
            this folder.
        project: the golden project that the agent works on: lessons from it come first among those that fit equally well.
        language: leave out lessons that come only from files of other languages, such as `python` or `sql`; None is every language.
        root: the folder that the agent works in; default: the current one. A lesson whose edited lines are gone from there, or that was
            learned with another version of a package, is marked as stale and comes last.
        lessons_wait: show lessons only after a person has approved them, for agents that are not trusted.
        enable_lesson_extraction: False for an agent whose work teaches nothing: it gets hints, and its tasks are kept, without lessons.
        spool: what the store's file cannot take now waits beside it (`golden.db.tasks`, redacted), also for another process. False for
            a caller that tries again itself.

    Raises:
        ValueError: the agent's name is blank or too long, or the language is unknown.
    """

    def __init__(
        self,
        agent: str,
        store: MemoryStore | Store | str | Path | None = None,
        *,
        project: str | None = None,
        language: str | None = None,
        root: str | Path | None = None,
        lessons_wait: bool = False,
        enable_lesson_extraction: bool = True,
        spool: bool = True,
    ) -> None:
        self.root = Path.cwd() if root is None else Path(root).absolute()
        check_language(language)
        self.language = language
        self.lessons_wait = lessons_wait
        self.enable_lesson_extraction = check_flag("enable_lesson_extraction", enable_lesson_extraction)
        self.agent = outcomes.check_agent_name(agent)
        self.project = project
        self._spools = spool
        self._location = None if isinstance(store, MemoryStore | Store) else store
        self._memories = store if isinstance(store, MemoryStore) else None
        self._store = store if isinstance(store, Store) else None
        self._owns_store = self._memories is None and self._store is None
        self._is_closed = False
        self._opening = threading.Lock()
        self._reader = ThreadPoolExecutor(1, "golden-hints")
        self._writer = ThreadPoolExecutor(1, "golden-lessons")
        # Used by the writing thread alone.
        self._waiting: list[TaskRecord] = []

    def task(self, description: str, *, files: Iterable[str] = (), tools: Iterable[str] = ()) -> AgentTask:
        """Begin a task. Use the result as a `with` or `async with` block, which returns the task.

        Args:
            description: what is to be done.
            files: the files that the task is about.
            tools: the tools that the agent has.

        Raises:
            GoldenError: the memory is closed.
            ValueError: the description is not a string, or is blank, or the files or tools are a single string.
        """
        if self._is_closed:
            raise GoldenError(_CLOSED)
        words = check_text("description", description)[:MOST_TASK_CHARACTERS]
        return AgentTask(self, words, _check_names("files", files), _check_names("tools", tools))

    def recall(
        self,
        *,
        task: str | None = None,
        error: str | None = None,
        files: Iterable[str] = (),
        tool: str | None = None,
    ) -> Future[tuple[Hint, ...]]:
        """Ask for hints. The future's result is at most three hints; it never fails.

        Raises:
            GoldenError: the memory is closed.
        """

        def find() -> tuple[Hint, ...]:
            try:
                return find_hints(
                    self._open(),
                    task=task,
                    error=error,
                    files=files,
                    tool=tool,
                    agent=self.agent,
                    project=self.project,
                    language=self.language,
                    root=self.root,
                )
            except Exception as problem:  # nothing may stop the agent
                _log.warning("no hints: %s", redact(error_text(problem)))
                return ()

        return self._submit(self._reader, find)

    def keep(self, record: TaskRecord | None) -> Future[bool]:
        """Write a task, after the tasks that wait. The future's result tells whether the store has it.

        Raises:
            GoldenError: the memory is closed.
        """

        def write() -> bool:
            self._waiting += () if record is None else (record,)
            is_kept = record is None
            try:
                store = self._open().store
                self._take_in(store)
                while self._waiting:
                    is_kept = self._write(store, self._waiting[0])
                    del self._waiting[0]
            except (SettingsError, StorageError, OSError) as problem:
                _log.warning(
                    "what an agent did is not kept yet, and tried again with the next task: %s", redact(str(problem))
                )
                self._put_aside()
                is_kept = False
            except Exception as problem:  # nothing may stop the agent
                _log.warning("what an agent did cannot be kept: %s", redact(error_text(problem)))
            return is_kept

        return self._submit(self._writer, write)

    def _take_in(self, store: Store) -> None:
        try:
            if store.path is not None:
                Spool(store.path).take_in(store)
        except OSError as problem:
            # Another user's, maybe: what is new is kept all the same.
            _log.warning("what waits beside the store cannot be taken in: %s", redact(str(problem)))

    def _write(self, store: Store, record: TaskRecord) -> bool:
        """Write a task, and tell whether it is kept. A task that no store would take is dropped."""
        try:
            with store.write() as connection:
                write_task(connection, record)
        except (SettingsError, StorageError):
            raise
        except Exception as problem:  # nothing may stop the agent, or what comes after it
            _log.warning("what an agent did cannot be kept: %s", redact(error_text(problem)))
            return False
        return True

    def _put_aside(self) -> None:
        """Write what waits to a file beside the store, so that it survives this process. What cannot be written there stays in memory."""
        try:
            path = self._find_path() if self._spools else None
            if path is not None:
                Spool(path).put(self._waiting)
                self._waiting.clear()
        except (GoldenError, OSError) as problem:
            _log.warning("nor can it wait beside the store: %s", redact(str(problem)))
        del self._waiting[:-_MOST_WAITING]

    def _find_path(self) -> Path | None:
        """Return the store's file; None if the store is not a file."""
        given = self._store if self._memories is None else self._memories.store
        if given is not None:
            return given.path
        return parse_location(find_default_store() if self._location is None else self._location).path

    async def flush(self) -> None:
        """Wait until all tasks so far are written, or could not be written."""
        await asyncio.wrap_future(self.keep(None))

    def close(self) -> None:
        """Wait as `flush` does, and close the store if it was opened here."""
        self._is_closed = True
        self._reader.shutdown()
        self._writer.shutdown()
        if self._waiting:
            _log.warning("what an agent did in %d tasks was not kept", len(self._waiting))
        with self._opening:
            if self._owns_store and self._store is not None:
                self._store.close()

    async def aclose(self) -> None:
        """Do what `close` does without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _open(self) -> MemoryStore:
        with self._opening:
            if self._memories is None:
                if self._store is None:
                    self._store = Store.open(find_default_store() if self._location is None else self._location)
                self._memories = MemoryStore.from_env(self._store, os.environ)
            return self._memories

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[[], Any]) -> Future[Any]:
        try:
            return pool.submit(work)
        except RuntimeError:
            raise GoldenError(_CLOSED) from None


class AgentTask:
    """One task of an agent; `AgentMemory.task` makes it.

    A block that ends with an exception is a failed task. Without a call of `done`, the last attempt decides.
    """

    def __init__(self, memory: AgentMemory, description: str, files: tuple[str, ...], tools: tuple[str, ...]) -> None:
        self.description = description
        self._memory = memory
        self._files, self._tools = files, tools
        self._attempts: list[Attempt] = []
        self._corrections: list[str] = []
        self._shown: list[_Shown] = []
        self._started = monotonic_seconds()
        self._kept: Future[bool] | None = None
        self._hints: tuple[Hint, ...] | None = None

    @property
    def hints(self) -> tuple[Hint, ...]:
        """What earlier work says about the task: at most three hints, best first; none if nothing fits, or if the store is late."""
        if self._hints is None:
            self._hints = self._show(_wait(self._ask()), None, None)
        return self._hints

    def _ask(self) -> Future[tuple[Hint, ...]]:
        return self._memory.recall(task=self.description, files=self._files)

    def attempt(self, tool: str, arguments: Any = None, result: Any = None, error: object = None) -> None:
        """Record a call of a tool. It failed if there is an error, or if the result says so.

        Args:
            tool: its name.
            arguments: a mapping, or a value of any kind.
            result: what it returned, of any kind; an exception counts as an error.
            error: an exception or a string.
        """
        if isinstance(result, BaseException) and error is None:
            result, error = None, result
        said = outcomes.cut_json(result, _MOST_KEPT).kept
        failed = error is not None or outcomes.says_failure(said)
        message = (
            _write_error(error) if error is not None else _write_error(said.get("error") or said) if failed else None
        )
        given = outcomes.cut_json({} if arguments is None else arguments, _MOST_KEPT).kept
        given = given if isinstance(given, dict) else {"input": given}
        name = str(json_form(tool)).strip()[:_MOST_OF_NAME] or "tool"
        made = Attempt(name, given, not failed, message)
        self._attempts.append(made)
        for shown in self._shown:
            shown.settle_by(made)

    def correction(self, words: str) -> None:
        """Record what a person said against the work so far. It becomes a lesson that waits for approval.

        Raises:
            ValueError: it is not a string, or is blank.
        """
        self._corrections.append(check_text("words", words)[:_MOST_OF_ERROR])

    def hints_for(self, error: object, tool: str | None = None) -> tuple[Hint, ...]:
        """Return what earlier work says about an error (an exception or a string): at most three hints, best first."""
        text = _write_error(error)
        return self._show(_wait(self._memory.recall(error=text, tool=tool)), text, tool)

    async def ahints_for(self, error: object, tool: str | None = None) -> tuple[Hint, ...]:
        """Do what `hints_for` does without blocking the event loop."""
        text = _write_error(error)
        return self._show(await _await(self._memory.recall(error=text, tool=tool)), text, tool)

    def done(self, success: bool = True, note: str = "") -> None:
        """End the task: its outcome, plan and lessons are kept, and the shown hints are credited or charged. Only the first call counts.

        Raises:
            ValueError: `success` is not True or False, or the note is not a string.
        """
        check_flag("success", success)
        check_any_text("note", note)
        if self._kept is None:
            self._kept = self._memory.keep(self._make_record(success, note))

    def wait(self, seconds: float = _SECONDS) -> bool:
        """Wait up to `seconds` until the finished task is kept; tell whether it is."""
        return self._kept is not None and bool(_wait(self._kept, seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._end(error)
        if not is_in_loop():
            self.wait()

    async def __aenter__(self) -> Self:
        self._hints = self._show(await _await(self._ask()), None, None)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if error is not None:
            self.done(False, error_text(error))
        else:
            self.done(not self._attempts or self._attempts[-1].success)

    def _show(self, hints: tuple[Hint, ...] | None, error: str | None, tool: str | None) -> tuple[Hint, ...]:
        signature = None if error is None else _sign(error)
        self._shown += (_Shown(hint, signature, tool) for hint in hints or () if hint.lesson is not None)
        return hints or ()

    def _make_record(self, success: bool, note: str) -> TaskRecord:
        memory = self._memory
        return TaskRecord(
            agent=memory.agent,
            description=self.description,
            files=self._files,
            tools=self._tools,
            attempts=tuple(self._attempts),
            corrections=tuple(self._corrections),
            shown=self._list_settled(success),
            success=success,
            note=note,
            seconds=monotonic_seconds() - self._started,
            at=utc_now(),
            root=str(memory.root),
            project=memory.project,
            lessons_wait=memory.lessons_wait,
            teaches=memory.enable_lesson_extraction,
        )

    def _list_settled(self, success: bool) -> tuple[ShownLesson, ...]:
        """Return each shown lesson once: what came next after an error counts more than how the task ended."""
        settled: dict[str, _Shown] = {}
        for shown in self._shown:
            if shown.signature is None:
                shown.passed = success
            if shown.signature is not None and shown.passed is not None:
                settled[shown.hint.id] = shown
            else:
                settled.setdefault(shown.hint.id, shown)
        return tuple(ShownLesson(key, one.hint.score, one.signature, one.passed) for key, one in settled.items())


class _Shown:
    """A lesson that was shown, for an error of a tool or for the task; `passed` is what came next, or None."""

    def __init__(self, hint: Hint, signature: str | None, tool: str | None) -> None:
        self.hint = hint
        self.signature = signature
        self.passed: bool | None = None
        self._tool = tool

    def settle_by(self, attempt: Attempt) -> None:
        """Let a later call decide: the tool worked, or it failed with the same error again."""
        if self.passed is not None or self.signature is None or self._tool not in {None, attempt.tool}:
            return
        if attempt.success:
            self.passed = True if self._tool is not None else None
        elif _sign(attempt.error_message or "") == self.signature:
            self.passed = False


def _sign(error: str) -> str:
    return error_signature(cause_of(error))


def _check_names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"{what} must be a sequence of texts, not {names!r:.100}: put it into a list")  # noqa: TRY004 - one kind of refusal
    return tuple(str(json_form(name))[:_MOST_OF_PATH] for name in islice(names, _MOST_NAMES))


def _write_error(error: object) -> str:
    if isinstance(error, BaseException):
        return error_text(error)
    written = error if isinstance(error, str) else str(json_form(error))
    return written[:_MOST_OF_ERROR]


def _wait(future: Future[Any], seconds: float = _SECONDS) -> Any:
    try:
        return future.result(_SECONDS_IN_LOOP if is_in_loop() else seconds)
    except FutureTimeoutError:
        _log.warning("the store of lessons does not answer in time")
        return None


async def _await(future: Future[Any]) -> Any:
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), _SECONDS)
    except TimeoutError:
        _log.warning("the store of lessons does not answer in time")
        return None
