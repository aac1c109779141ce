"""`steps: otel`: a receiver of spans during a run, wherever the pipeline's network is."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.process import PORT, Handover
from pytest_golden.trajectory.otel.receiver import LOOPBACK, OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gateway.preparation import Prepared
    from pytest_golden.trajectory.readers.model import StepReading, ViewFiles


class SpanReader:
    """Reads what a run's receiver has received, which then receives no more."""

    name = "otel"

    def __init__(self, receiver: OtlpReceiver, handover: Handover | None) -> None:
        self._receiver = receiver
        self._handover = handover

    def read(self, view: ViewFiles, outcome: Any) -> StepReading:  # noqa: ARG002 - the protocol's arguments
        """Stop the receiver, and return the steps that it received."""
        self._receiver.stop()
        reading = self._receiver.read_steps()
        if self._handover is None or not self._handover.trouble:
            return reading
        warning = f"no OpenTelemetry spans could be received in the pipeline's network: {self._handover.trouble}"
        return replace(reading, warnings=(*reading.warnings, warning))


@contextmanager
def receive_spans(prepared: Prepared) -> Iterator[tuple[Prepared, tuple[SpanReader, ...], tuple[str, ...]]]:
    """Run a receiver; yield what to launch, the reader, and a warning where there can be no receiver.

    The variables that lead exporters to it are those that the project does not set itself.
    """
    with ExitStack() as stack:
        try:
            receiver, handover = _open(prepared, stack)
        except OSError as error:
            yield prepared, (), (f"no OpenTelemetry spans can be received: {error.strerror or error}",)
            return
        environment = {**receiver.environment, **prepared.environment}
        yield replace(prepared, environment=environment, handover=handover), (SpanReader(receiver, handover),), ()


def _open(prepared: Prepared, stack: ExitStack) -> tuple[OtlpReceiver, Handover | None]:
    config = prepared.project.config
    endpoint = f"http://{LOOPBACK}:{PORT}" if prepared.own_loopback else None
    receiver = OtlpReceiver(service_name=config.name, folder=prepared.folder, endpoint=endpoint)
    stack.callback(receiver.discard)
    receiver.__enter__()
    if not prepared.own_loopback:
        return receiver, None
    handover = Handover(receiver.adopt)
    stack.callback(handover.close)
    return receiver, handover
