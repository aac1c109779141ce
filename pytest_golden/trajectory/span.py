"""A step with a length, as a with-block: what is recorded inside it is its child. It keeps nothing; the recorder does.

Which span is the present one is known by context variable, so that each thread and each asyncio task has its own.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_golden.clock import monotonic_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType
    from typing import Self


class _Present(NamedTuple):
    """An open span, whose recorder it is of, and what was the present one when it began."""

    owner: object
    step_id: str
    outer: _Present | None


_PRESENT: ContextVar[_Present | None] = ContextVar("present_trajectory_span", default=None)


def find_present_step(owner: object) -> str | None:
    """Give the innermost open span of this recorder in this thread or task, or None."""
    present = _PRESENT.get()
    while present is not None and present.owner is not owner:
        present = present.outer
    return None if present is None else present.step_id


class EndsSpan(Protocol):
    """What keeps a span's end."""

    def __call__(self, step_id: str, duration_ms: float, metadata: dict[str, Any], *, failed: bool) -> None:
        """Add to the step what is known only at its end."""
        ...


class Span:
    """A step that begins with the with-block and gets its duration, and its error, at the end of it."""

    __slots__ = ("_begin", "_end", "_notes", "_owner", "_started", "_token", "id")

    def __init__(self, owner: object, begin: Callable[[], str], end: EndsSpan) -> None:
        #: The step's id; empty before the block begins.
        self.id = ""
        self._owner = owner
        self._begin = begin
        self._end = end
        self._notes: dict[str, Any] = {}
        self._started = 0.0
        self._token: Token[_Present | None] | None = None

    def note(self, **metadata: Any) -> None:
        """Add metadata that is known only inside the block, a row count say; it is kept when the block ends."""
        self._notes.update(metadata)

    def __enter__(self) -> Self:
        self.id = self._begin()
        self._token = _PRESENT.set(_Present(self._owner, self.id, _PRESENT.get()))
        self._started = monotonic_seconds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        took = (monotonic_seconds() - self._started) * 1000
        if self._token is not None:
            with contextlib.suppress(ValueError):  # ended in another context than it began, as generators may
                _PRESENT.reset(self._token)
        # A generator that nobody reads to its end has not failed.
        failed = error is not None and kind is not GeneratorExit
        told = {"error": error_text(error)} if error is not None and failed else {}
        self._end(self.id, took, {**self._notes, **told}, failed=failed)


def error_text(error: BaseException) -> str:
    """Give an exception's class and message, whatever its class does when asked."""
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # a foreign class may raise anything
        return type(error).__name__
