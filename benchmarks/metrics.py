"""What collecting metrics costs: adding one by one beside a bare list, and the figures over many values.

Run: python benchmarks/metrics.py
"""

from __future__ import annotations

from functools import partial

from side_by_side import in_turns, seconds

from pytest_golden import MetricsCollector


def fill_list(count: int) -> None:
    values: list[float] = []
    for number in range(count):
        values.append(float(number))  # noqa: PERF401 - one by one is what is measured


def fill_collector(count: int) -> MetricsCollector:
    collector = MetricsCollector.new()
    for number in range(count):
        collector = collector.add("latency", number, task_id=f"task-{number % 10}")
    return collector


def main() -> None:
    for count in (1_000, 10_000, 100_000):
        bare, ours, _ = in_turns(partial(fill_list, count), partial(fill_collector, count), 5)
        print(f"{count:7,} values added: {ours / count * 1e6:.1f} us each ({bare / count * 1e6:.2f} us in a list)")
    collector = fill_collector(10_000)
    figures = {
        "stats": partial(collector.stats, "latency"),
        "confidence_interval": partial(collector.confidence_interval, "latency"),
        "across_tasks": partial(collector.across_tasks, "latency"),
        "merge with itself": partial(MetricsCollector.merge, [collector, collector]),
    }
    for name, action in figures.items():
        print(f"{name} of 10,000 values: {min(seconds(action) for _ in range(5)) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
