"""For use inside a pipeline: `step("load", rows=5)` leaves one line in the file that `GOLDEN_STEPS` names.

Without that variable nothing happens. Nothing here ever fails the pipeline: what cannot be written is left out.
Safe between threads and processes. The lines are read by the gate, not here.
"""

from __future__ import annotations

import contextlib
import json
import os
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc, monotonic_seconds, new_id, utc_now

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType
    from typing import Self

ENVIRONMENT_VARIABLE = "GOLDEN_STEPS"
MAX_FIELD_BYTES = 1024 * 1024

# Opened for each line, so that forks and a changed variable need no care. A FIFO without a reader must not block.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_PRESENT: ContextVar[str | None] = ContextVar("present_golden_step", default=None)


class WrittenStep:
    """A step whose first line is written. As a with-block it adds duration and error when the block ends.

    Steps written inside the block have this one as their parent.
    """

    __slots__ = ("_fields", "_name", "_outer", "_started", "id")

    def __init__(self, name: str, step_id: str) -> None:
        self.id = step_id
        self._name = name
        self._fields: dict[str, Any] = {}
        self._started = monotonic_seconds()
        self._outer: Token[str | None] | None = None

    def note(self, **fields: Any) -> None:
        """Add fields that are known only inside the with-block, a row count say; they are written when it ends."""
        self._fields.update(fields)

    def __enter__(self) -> Self:
        self._started = monotonic_seconds()
        self._outer = _PRESENT.set(self.id)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._outer is not None:
            with contextlib.suppress(ValueError):  # ended in another context than it began, as generators may
                _PRESENT.reset(self._outer)
        fields = {"duration_ms": (monotonic_seconds() - self._started) * 1000, **self._fields}
        if error is not None:
            fields["error"] = _error_text(error)
        _write({**fields, "name": self._name, "id": self.id})


def step(name: str, **fields: Any) -> WrittenStep:
    """Write one step at once and give it back, for use as a with-block where its duration matters.

    `type`, `importance`, `duration_ms`, `timestamp`, `id`, `parent` and `error` have their own meaning; all other fields
    become the step's metadata.
    """
    text = name if isinstance(name, str) else _readable(name)
    step_id = fields.pop("id", None)
    step_id = new_id("step") if step_id is None else step_id if isinstance(step_id, str) else _readable(step_id)
    if _PRESENT.get() is not None:
        fields.setdefault("parent", _PRESENT.get())
    _write({"timestamp": iso_utc(utc_now()), **fields, "name": text, "id": step_id})
    return WrittenStep(text, step_id)


def _write(fields: dict[str, Any]) -> None:
    path = os.environ.get(ENVIRONMENT_VARIABLE)
    if not path:
        return
    with contextlib.suppress(Exception):
        line = _line(fields).encode("ascii")
        descriptor = os.open(path, _FLAGS, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def _line(fields: dict[str, Any]) -> str:
    left_out, parts = 0, []
    for key, value in fields.items():
        text = _json_text(value)
        if len(text) > MAX_FIELD_BYTES:
            whole = (value if isinstance(value, str) else text).encode("utf-8", "replace")
            kept = whole[:MAX_FIELD_BYTES].decode("utf-8", "ignore")
            left_out += len(whole) - len(kept.encode())
            text = json.dumps(kept)
        parts.append(f"{json.dumps(key)}: {text}")
    if left_out:
        parts.append(f'"truncated_bytes": {left_out}')
    return "{" + ", ".join(parts) + "}\n"


def _json_text(value: Any) -> str:
    """Return a value as JSON; one that is none as its repr, so that it costs no other field."""
    try:
        return json.dumps(value, default=_readable)
    except Exception:  # cycles, odd keys, endless nesting
        return json.dumps(_readable(value))


def _readable(value: object) -> str:
    try:
        return value.isoformat() if isinstance(value, datetime) else repr(value)
    except Exception:  # a foreign class may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


def _error_text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # a foreign class may raise anything
        return type(error).__name__
