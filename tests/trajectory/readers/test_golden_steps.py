from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pytest_golden.trajectory.readers.golden_steps import read_golden_steps
from pytest_golden.trajectory.readers.model import StepReading

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024


def _read(tmp_path: Path, content: bytes | str) -> StepReading:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_golden_steps(path)


def test_known_keys_have_their_meaning_and_others_are_metadata(tmp_path: Path) -> None:
    line = (
        '{"name": "load", "type": "tool_call", "importance": "high", "duration_ms": 5, "id": "a", "parent": "b",'
        ' "timestamp": "2026-01-01T12:00:00Z", "rows": 3, "metadata": {"x": 1}}\n'
    )
    (step,) = _read(tmp_path, line).steps
    assert (step.content, step.type, step.importance, step.duration_ms) == ("load", "tool_call", "high", 5.0)
    assert (step.id, step.parent_step_id, step.timestamp) == ("a", "b", datetime(2026, 1, 1, 12, tzinfo=UTC))
    assert step.metadata == {"rows": 3, "metadata": {"x": 1}}


def test_a_bare_name_is_an_action_of_medium_importance(tmp_path: Path) -> None:
    reading = _read(tmp_path, '{"name":"a"}\r\n\n\ufeff{"name":"b"}\n{"name":"c"}')
    assert [(step.content, step.type, step.importance) for step in reading.steps] == [
        (name, "action", "medium") for name in "abc"
    ]
    assert (reading.lost_count, reading.warnings) == (0, ())


def test_a_line_with_an_error_is_critical(tmp_path: Path) -> None:
    failed, fine = _read(
        tmp_path, '{"name":"a","importance":"low","error":"boom"}\n{"name":"b","error":null,"importance":null}'
    ).steps
    assert (failed.importance, failed.metadata) == ("critical", {"error": "boom"})
    assert (fine.importance, fine.metadata) == ("medium", {})


def test_a_later_line_with_the_same_id_adds_to_the_first(tmp_path: Path) -> None:
    lines = [
        '{"name":"a","id":1,"timestamp":"2026-01-01T12:00:00+00:00","rows":1}',
        '{"name":"b","parent":1}',
        '{"name":"a again","id":1,"timestamp":"2026-01-01T13:00:00Z","duration_ms":7,"error":"boom","rows":2}',
    ]
    first, second = _read(tmp_path, "\n".join(lines)).steps
    assert (first.content, first.id, first.duration_ms, first.importance) == ("a", "1", 7.0, "critical")
    assert first.timestamp == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert first.metadata == {"rows": 2, "error": "boom"}
    assert second.parent_step_id == "1"


@pytest.mark.parametrize(
    "bad",
    [
        b"hello",
        b"[1]",
        b"5",
        b"{}",
        b'{"name": null}',
        b'{"name": " "}',
        b'{"name": 5}',
        b"\xff\xfe\x00",
        b"\x00" * 100,
        b"[" * 100_000,
        b'{"name": "a", "n": ' + b"9" * 5000 + b"}",
        b'{"name": "torn',
    ],
)
def test_a_line_that_is_no_step_is_counted_and_costs_no_other(tmp_path: Path, bad: bytes) -> None:
    reading = _read(tmp_path, b'{"name":"a"}\n' + bad + b'\n{"name":"b"}\n' + bad)
    assert [step.content for step in reading.steps] == ["a", "b"]
    assert reading.lost_count == 2
    assert reading.warnings[0].startswith("2 lines of the steps file skipped: a step must be")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ('"type": "load"', "type 'load' is unknown: give one of reasoning"),
        ('"type": []', "type [] is unknown"),
        ('"importance": "urgent"', "importance 'urgent'"),
        ('"duration_ms": NaN', "duration_ms"),
        ('"duration_ms": -1', "duration_ms"),
        ('"duration_ms": 1e999', "duration_ms"),
        ('"timestamp": "soon"', "timestamp 'soon'"),
        ('"timestamp": 1e99', "timestamp 1e+99"),
        ('"timestamp": true', "timestamp True"),
    ],
)
def test_a_field_that_cannot_be_used_stays_as_metadata_with_a_warning(tmp_path: Path, field: str, words: str) -> None:
    reading = _read(tmp_path, f'{{"name": "a", {field}}}\n' * 2)
    assert len(reading.steps) == 2
    assert list(reading.steps[0].metadata) == [field.split('"')[1]]
    assert reading.lost_count == 0
    assert words in reading.warnings[0]
    assert reading.warnings[0].endswith("(2 times)")


def test_warnings_do_not_grow_with_the_file(tmp_path: Path) -> None:
    reading = _read(tmp_path, "".join(f'{{"name":"a","type":"t{number}"}}\n' for number in range(500)))
    assert len(reading.warnings) == 21
    assert reading.warnings[-1].startswith("480 more")


def test_times_may_be_seconds_or_without_zone_and_ids_odd(tmp_path: Path) -> None:
    reading = _read(
        tmp_path, '{"name":"a","timestamp":0,"id":true}\n{"name":"b","timestamp":"2026-01-01T12:00:00","id":""}'
    )
    assert reading.steps[0].timestamp == datetime(1970, 1, 1, tzinfo=UTC)
    assert reading.steps[1].timestamp == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert [step.id for step in reading.steps] == [None, None]


def test_text_that_is_not_utf8_is_kept_with_marks(tmp_path: Path) -> None:
    (step,) = _read(tmp_path, b'{"name": "caf\xe9"}\n').steps
    assert step.content == "caf\ufffd"


def test_large_content_is_cut(tmp_path: Path) -> None:
    (step,) = _read(tmp_path, f'{{"name": "{"x" * 3 * MIB}"}}\n').steps
    assert (len(step.content), step.metadata) == (MIB, {"truncated_bytes": 2 * MIB})


def test_lines_of_more_than_8_mib_are_left_out_and_cost_no_other(tmp_path: Path) -> None:
    widest, too_wide = _padded("widest", 8 * MIB - 1), _padded("too wide", 8 * MIB)
    reading = _read(tmp_path, b"\n".join([too_wide, _padded("a", 100), widest, too_wide * 2, _padded("b", 100)]))
    assert [step.content for step in reading.steps] == ["a", "widest", "b"]
    assert reading.lost_count == 2
    assert reading.warnings == (f"2 lines of the steps file are longer than {8 * MIB} bytes",)


def test_of_too_many_bytes_the_first_12_and_the_last_8_mib_are_kept(tmp_path: Path) -> None:
    reading = _read(tmp_path, b"\n".join(_padded(str(number), MIB) for number in range(40)))
    assert [int(step.content) for step in reading.steps] == [*range(12), *range(32, 40)]
    assert reading.lost_count == 20
    assert reading.warnings == ("20 lines in the middle of the steps file were left out: it has too many",)


def test_no_more_than_the_limit_of_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_bytes(b"\n".join([_padded("a", 100), _padded("b", 9 * MIB), _padded("c", 100)]))
    reading = read_golden_steps(path, limit_bytes=9 * MIB)
    assert [step.content for step in reading.steps] == ["a"]
    assert reading.lost_count == 1
    assert reading.warnings[-1] == f"the steps file is longer than {9 * MIB} bytes; the rest was not read"


def _padded(name: str, length: int) -> bytes:
    """Make a line of exactly that many bytes, its end not counted."""
    line = f'{{"name": "{name}", "padding": ""}}'
    return (line[:-2] + "x" * (length - len(line)) + line[-2:]).encode()


def test_of_too_many_lines_the_first_and_the_last_are_kept(tmp_path: Path) -> None:
    reading = _read(tmp_path, "".join(f'{{"name":"{number}"}}\n' for number in range(150_000)))
    names = [int(step.content) for step in reading.steps]
    assert names == [*range(90_000), *range(140_000, 150_000)]
    assert reading.lost_count == 50_000
    assert reading.warnings[0].startswith("50000 lines in the middle")


def test_a_file_that_is_absent_or_no_file_gives_no_steps(tmp_path: Path) -> None:
    assert read_golden_steps(tmp_path / "absent") == StepReading()
    reading = read_golden_steps(tmp_path)
    assert (reading.steps, reading.lost_count) == ((), 0)
    assert "cannot be read" in reading.warnings[0]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")
def test_links_and_fifos_that_a_pipeline_put_there_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"name": "secret"}\n')
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        reading = read_golden_steps(tmp_path / name)
        assert reading.steps == ()
        assert "cannot be read" in reading.warnings[0]
