"""Metrics over many runs: success, latency, quality, accuracy and custom ones, with the statistics that go with them.

Everything here is pure. Figures over the steps of one trajectory are in `trajectory/statistics.py`.
"""

from pytest_golden.trajectory.metrics.collector import MetricsCollector, compare_metrics
from pytest_golden.trajectory.metrics.intervals import ConfidenceInterval
from pytest_golden.trajectory.metrics.measurement import Measurement
from pytest_golden.trajectory.metrics.sample import MetricStatistics
from pytest_golden.trajectory.metrics.stability import flakiness, flakiness_of_groups
from pytest_golden.trajectory.metrics.tasks import MetricComparison, TaskMeans

__all__ = [
    "ConfidenceInterval",
    "Measurement",
    "MetricComparison",
    "MetricStatistics",
    "MetricsCollector",
    "TaskMeans",
    "compare_metrics",
    "flakiness",
    "flakiness_of_groups",
]
