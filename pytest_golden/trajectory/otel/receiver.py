"""A receiver of OpenTelemetry spans over OTLP/HTTP on loopback, and the variables that lead any exporter to it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Self

from pytest_golden.trajectory.otel.otlp_server import SpanServer, Spool
from pytest_golden.trajectory.otel.posts import read_posts

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pytest_golden.trajectory.readers.model import StepReading

LOOPBACK = "127.0.0.1"
_BACKLOG = 1024
# Spans that end while the queue is full are thrown away by the exporter, and a run's last ones come at its end.
_SETTINGS = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
    "OTEL_BSP_SCHEDULE_DELAY": "200",
    "OTEL_BSP_MAX_QUEUE_SIZE": "65536",
}


class OtlpReceiver:
    """Takes spans from the beginning of a with-block to its end.

    Args:
        service_name: the name that instrumented programs give themselves, unless they are told another.
        folder: where what comes is kept until it is read; a temporary one by default.
        endpoint: given by who opens the listening socket elsewhere and hands it over with `adopt`.
    """

    def __init__(
        self, *, service_name: str | None = None, folder: Path | None = None, endpoint: str | None = None
    ) -> None:
        self._service_name = service_name
        self._folder = folder
        self._given_endpoint = endpoint
        self._endpoint = endpoint
        self._spool: Spool | None = None
        self._server: SpanServer | None = None

    def __enter__(self) -> Self:
        self._spool = Spool(self._folder)
        if self._given_endpoint is None:
            listener = socket.create_server((LOOPBACK, 0), backlog=_BACKLOG)
            self._endpoint = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        self._server = SpanServer(self._spool)
        if self._given_endpoint is None:
            self._server.adopt(listener)
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """Return the base of the address, to which exporters add `/v1/traces`.

        Raises:
            RuntimeError: the with-block has not begun.
        """
        if self._endpoint is None:
            raise RuntimeError("the receiver has no endpoint before its with-block")
        return self._endpoint

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that lead an instrumented program's spans here."""
        named = {"OTEL_SERVICE_NAME": self._service_name} if self._service_name else {}
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint, **_SETTINGS, **named}

    def adopt(self, listener: socket.socket) -> None:
        """Serve a listening socket that was opened elsewhere, and close it at the end."""
        if self._server is None:
            listener.close()
        else:
            self._server.adopt(listener)

    def stop(self) -> None:
        """Take what has been sent already, for a second at most, and no more. Safe to call twice."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def read_steps(self) -> StepReading:
        """Return what has come so far; may be called inside the with-block and after it."""
        if self._spool is None:
            raise RuntimeError("the receiver has received nothing before its with-block")
        return read_posts(self._spool.posts(), self._spool.refused)

    def discard(self) -> None:
        """Stop, and remove what was received."""
        self.stop()
        if self._spool is not None:
            self._spool.close()
