from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.execution import LOG_SHARE_BYTES, KeptOutput, decode, keep_output, last_lines, write_log
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.redaction.redactor import Redactor

if TYPE_CHECKING:
    from pathlib import Path

SHARE = 32 << 10


def test_colours_of_the_lines_that_are_kept_are_kept_beside_them(tmp_path: Path) -> None:
    line = "\x1b[31mlost\x1b[0m 3 rows"
    filler = "x" * 79 + "\n"
    (tmp_path / "out").write_text(f"{line}\n" + filler * 2000 + "\x1b[32mlast\x1b[0m\n")
    kept = keep_output(tmp_path / "out", SHARE, strip_escapes)
    assert kept.left_out_bytes
    assert dict(kept.coloured_lines) == {"lost 3 rows": line, "last": "\x1b[32mlast\x1b[0m"}


def test_short_output_is_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"one\ntwo\n")
    kept = keep_output(tmp_path / "out", SHARE, str)
    assert (kept.text(), kept.left_out_bytes, kept.total_bytes) == ("one\ntwo\n", 0, 8)


def test_missing_output_is_empty(tmp_path: Path) -> None:
    assert keep_output(tmp_path / "out", SHARE, str) == KeptOutput("", "", 0, 0)


def test_long_output_keeps_whole_lines_of_head_and_tail(tmp_path: Path) -> None:
    lines = [f"line {number:07}\n" for number in range(20_000)]
    (tmp_path / "out").write_text("".join(lines))
    kept = keep_output(tmp_path / "out", SHARE, str)
    assert kept.total_bytes == 260_000
    assert kept.left_out_bytes == 260_000 - 2 * SHARE
    assert kept.head.startswith(lines[0])
    assert kept.head.endswith("\n")
    assert kept.tail.startswith("line ")
    assert kept.tail.endswith(lines[-1])
    assert f"\n[... {kept.left_out_bytes:,} bytes left out ...]\n" in kept.text()


@pytest.mark.parametrize("position", [-9, -8, -5, -1, 0, 1])
@pytest.mark.parametrize("filler", ["x", "ab\n", "é"])
def test_secret_across_a_cut_is_never_shown_in_part(tmp_path: Path, position: int, filler: str) -> None:
    secret = "Zq7Rk2Wv9"
    redact = Redactor(literals=(secret,)).text
    before = (filler * SHARE).encode()[: SHARE + position]
    tail = (filler * SHARE).encode()[-(SHARE + position) :]
    (tmp_path / "out").write_bytes(before + secret.encode() + b"y" * 3 * SHARE + secret.encode() + tail)
    text = keep_output(tmp_path / "out", SHARE, redact).text()
    assert not any(secret[start : start + 4] in text for start in range(len(secret) - 3))


def test_output_without_lines_is_cut_too(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * 10 * SHARE)
    kept = keep_output(tmp_path / "out", SHARE, str)
    assert 0 < len(kept.head) <= SHARE
    assert 0 < len(kept.tail) <= SHARE


@given(st.binary(max_size=300))
def test_any_bytes_become_text_that_can_be_written(raw: bytes) -> None:
    decode(raw).encode()


def test_bytes_that_are_not_text_are_shown_escaped() -> None:
    assert decode(b"caf\xe9 \x00\x1b[31m \xc3\xa9") == "caf\\xe9 \x00\x1b[31m \xe9"


def test_log_is_private_and_names_its_streams(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "sales.log"
    assert write_log(log, {"stdout": KeptOutput("hello\n", "", 0, 6), "stderr": KeptOutput("", "", 0, 0)})
    assert log.read_text() == "--- stdout: 6 bytes ---\nhello\n\n--- stderr: 0 bytes ---\n\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_nothing_printed_leaves_no_log(tmp_path: Path) -> None:
    assert not write_log(tmp_path / "sales.log", {"stdout": KeptOutput("", "", 0, 0)})
    assert not (tmp_path / "sales.log").exists()


def test_log_of_any_output_stays_within_10_mib(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x" * 12_000_000)
    (tmp_path / "err").write_bytes("line with é\n".encode() * 1_000_000)
    streams = {name: keep_output(tmp_path / name, LOG_SHARE_BYTES, str) for name in ("out", "err")}
    assert write_log(tmp_path / "log", streams)
    assert (tmp_path / "log").stat().st_size <= 10 << 20


def test_last_lines_leave_empty_ones_out() -> None:
    assert last_lines("a\n\nb\n  \nc\n\n", 2) == "b\nc"
    assert last_lines("") == ""
