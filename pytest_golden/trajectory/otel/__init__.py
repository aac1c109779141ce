"""OpenTelemetry: spans to steps, whether they come over OTLP/HTTP from a pipeline or from this process's own tracer."""

from pytest_golden.trajectory.otel.processor import TrajectorySpanProcessor
from pytest_golden.trajectory.otel.receiver import OtlpReceiver

__all__ = ["OtlpReceiver", "TrajectorySpanProcessor"]
