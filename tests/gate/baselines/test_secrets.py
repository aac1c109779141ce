from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gate.baselines.matching import ExpectedFile
from pytest_golden.gate.baselines.secrets import find_secret
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction import redact
from pytest_golden.regression.baselines import opening

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


def test_archive_that_unfolds_beyond_all_bounds_is_not_searched_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_MOST_UNFOLDED_BYTES", 1 << 20)
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"\0" * (8 << 20) + TOKEN.encode()))
    with pytest.raises(OSError, match=r"it is a \.gz archive that unfolds to more than"):
        find(file)


def test_what_repeats_itself_is_searched_once_and_what_follows_too(tmp_path: Path) -> None:
    searched: list[str] = []

    def count(text: str) -> str:
        searched.append(text)
        return redact(text)

    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * (2 << 20) + b"\n" + TOKEN.encode())
    expected = ExpectedFile(file.name, (DeclaredOutput(file.name),), is_written=True)
    assert find_secret(file, expected, count) == "redaction finds a secret in line 2"
    assert len(searched) < 6


@pytest.mark.parametrize("noise", [b"\0\n" * 100, b"\xff\xfe\xfd\n" * 100, b"\x80\n"])
def test_no_line_is_told_of_what_has_none(tmp_path: Path, noise: bytes) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(noise + TOKEN.encode())
    assert find(file) == "redaction finds a secret in it, which is no text"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16"])
def test_secret_in_utf_16_is_found_without_a_mark_and_at_any_place(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(f"one\ntwo\n{TOKEN}\n".encode(encoding))
    assert find(file) == "redaction finds a secret in line 3"
    file.write_bytes(b"\x01\x02\x03" + f" {TOKEN} ".encode(encoding) + b"\xff")
    assert str(find(file)).startswith("redaction finds a secret in ")
    file.write_bytes(f"one\ntwo\n{TOKEN[:9]}\n".encode(encoding))
    assert find(file) is None
