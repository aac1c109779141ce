from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.execution import read_present_step

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("raw", "step"),
    [
        (b"", None),
        (b'{"name": "load"}\n', "load"),
        (b'{"name": "load"}\n{"name": "join", "rows": 3}\n', "join"),
        (b'{"name": "load"}\n{"name": "jo', "load"),
        (b'{"name": "load"}\nnonsense\n[1]\n{}\n', "load"),
        (b"x" * 10_000 + b'\n{"name": "late"}\n', "late"),
        (b"\xff\xfe\n", None),
        (b'{"name": 3}\n', "3"),
    ],
)
def test_last_whole_line_names_the_step(tmp_path: Path, raw: bytes, step: str | None) -> None:
    (tmp_path / "steps").write_bytes(raw)
    assert read_present_step(tmp_path / "steps") == step


def test_no_file_is_no_step(tmp_path: Path) -> None:
    assert read_present_step(tmp_path / "steps") is None


def test_looking_changes_no_mode_and_follows_no_link(tmp_path: Path) -> None:
    steps, secret, link = tmp_path / "steps", tmp_path / "secret", tmp_path / "link"
    for file in (steps, secret):
        file.write_text('{"name": "load"}\n')
        file.chmod(0)
    link.symlink_to(secret)
    read_present_step(steps)
    assert read_present_step(link) is None
    assert [stat.S_IMODE(file.stat().st_mode) for file in (steps, secret)] == [0, 0]


def test_a_fifo_that_nobody_writes_to_is_no_step_and_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "steps")
    assert read_present_step(tmp_path / "steps") is None
