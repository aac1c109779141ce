from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.trajectory.insight.figures import is_lower_better, limits_of
from pytest_golden.trajectory.insight.metrics import Measurement

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def measure(metric: Any, value: Any, **fields: Any) -> Measurement:
    return Measurement(id="value_1", metric=metric, value=value, timestamp=NOON, **fields)


@pytest.mark.parametrize("metric", ["success_rate", "quality", "accuracy", "latency", "cost"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, np.float64("nan")])
def test_what_is_not_finite_is_refused(metric: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{metric} must be a finite number"):
        measure(metric, value)


@pytest.mark.parametrize("value", ["0.5", None, 1j, [0.5], b"1"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="quality must be a finite number"):
        measure("quality", value)


@pytest.mark.parametrize("metric", ["success_rate", "quality", "accuracy"])
@pytest.mark.parametrize("value", [-0.01, 1.0000001, 95, -1e300, -5e-324])
def test_bounded_metrics_refuse_values_outside(metric: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{metric} must be 0 to 1, not"):
        measure(metric, value)


def test_latency_refuses_what_is_negative() -> None:
    with pytest.raises(ValueError, match=r"latency must be 0 milliseconds or more, not -1\.0"):
        measure("latency", -1)
    assert measure("latency", 1e300).value == 1e300


def test_custom_metrics_take_any_finite_number() -> None:
    assert measure("cost", -1e300).value == -1e300


@pytest.mark.parametrize("value", [1, True, Fraction(1), np.float32(1), np.int64(1)])
def test_any_real_number_becomes_a_float(value: object) -> None:
    kept = measure("success_rate", value).value
    assert kept == 1.0
    assert type(kept) is float


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metric": ""}, "metric must be text"),
        ({"metric": None}, "metric must be text"),
        ({"task_id": " "}, "task_id must be text"),
        ({"task_id": 7}, "task_id must be text"),
        ({"timestamp": datetime(2026, 1, 1)}, "timestamp must be an aware datetime"),  # noqa: DTZ001 - refused
        ({"metadata": "x"}, "metadata must be a mapping"),
        ({"id": ""}, "id must be text"),
    ],
)
def test_fields_that_are_not_allowed_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Measurement(**{"id": "value_1", "metric": "cost", "value": 1.0, "timestamp": NOON, **fields})


def test_metadata_is_frozen() -> None:
    given_metadata = {"tags": ["a"]}
    measurement = measure("cost", 1.0, metadata=given_metadata)
    given_metadata["tags"].append("b")
    assert measurement.metadata == {"tags": ["a"]}
    with pytest.raises(TypeError):
        measurement.metadata["tags"].append("c")


def test_time_is_kept_in_utc() -> None:
    moment = NOON.astimezone(timezone(timedelta(hours=5)))
    assert Measurement("value_1", "cost", 1.0, moment).timestamp.tzinfo is UTC


@given(
    st.sampled_from(["latency", "cost"]),
    st.floats(0, 1e308),
    st.none() | st.just("a"),
    st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.booleans()),
)
def test_measurement_survives_its_dict_form(
    metric: str, value: float, task_id: str | None, metadata: dict[str, object]
) -> None:
    measurement = measure(metric, value, task_id=task_id, metadata=metadata)
    text = json.dumps(measurement.to_dict(), allow_nan=False)
    assert Measurement.from_dict({**json.loads(text), "unknown": 1}) == measurement


@pytest.mark.parametrize("key", ["id", "metric", "value", "timestamp"])
def test_a_missing_key_is_named(key: str) -> None:
    mapping = measure("cost", 1.0).to_dict()
    del mapping[key]
    with pytest.raises(ValueError, match="cost" if key == "value" else key):
        Measurement.from_dict(mapping)


def test_only_of_latency_less_is_better() -> None:
    assert [
        metric for metric in ("success_rate", "quality", "accuracy", "latency", "cost") if is_lower_better(metric)
    ] == ["latency"]
    assert not limits_of("latency").is_bounded
    assert limits_of("accuracy").is_bounded


def test_measurement_can_stand_in_a_set() -> None:
    assert len({measure("cost", 1.0), measure("cost", 1.0)}) == 1
