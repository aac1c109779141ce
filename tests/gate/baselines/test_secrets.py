from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.baselines.matching import ExpectedFile
from pytest_golden.gate.baselines.secrets import find_secret
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def find(file: Path, **keys: Any) -> str | None:
    entry = DeclaredOutput(file.name, **keys)
    return find_secret(file, ExpectedFile(file.name, (entry,), is_written=True), redact)


def test_file_that_is_gone_cannot_be_searched(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is gone"):
        find(tmp_path / "a.txt")


def test_rows_are_read_also_where_a_table_is_compared_byte_by_byte(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "a.parquet"
    duckdb.sql(f"COPY (SELECT 'x' AS id, 'see {TOKEN}' AS note) TO '{file}' (COMPRESSION zstd)")
    assert find(file, compare="bytes") == "redaction finds a secret in row 1"
    duckdb.sql(f"COPY (SELECT 1 AS id, current_date AS day) TO '{file}'")
    assert find(file, compare="bytes") is None
    file.write_bytes(b"PAR1 and nothing behind it")
    assert find(file, compare="bytes") is None


def test_secret_far_behind_in_many_rows_is_found(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "a.parquet"
    rows = f"SELECT CASE WHEN i = 20000 THEN '{TOKEN}' ELSE 'row ' || i END AS note FROM range(20001) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{file}'")
    assert find(file) == "redaction finds a secret in row 20001"


def test_very_long_line_is_searched_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("first\n" + "word " * 40_000 + f"{TOKEN} " + "word " * 40_000)
    assert find(file) == "redaction finds a secret in line 2"
    file.write_text("first\n" + "word " * 80_000)
    assert find(file) is None


@pytest.mark.parametrize("noise", [b"\0\n" * 100, b"\xff\xfe\xfd\n" * 100, b"\x80\n"])
def test_no_line_is_told_of_what_has_none(tmp_path: Path, noise: bytes) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(noise + TOKEN.encode())
    assert find(file) == "redaction finds a secret in it, which is no text"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-16"])
def test_secret_in_utf_16_is_found_without_a_mark_and_at_any_place(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(f"one\ntwo\n{TOKEN}\n".encode(encoding))
    assert find(file) == "redaction finds a secret in line 3"
    file.write_bytes(b"\x01\x02\x03" + f" {TOKEN} ".encode(encoding) + b"\xff")
    assert str(find(file)).startswith("redaction finds a secret in ")
    file.write_bytes(f"one\ntwo\n{TOKEN[:9]}\n".encode(encoding))
    assert find(file) is None
