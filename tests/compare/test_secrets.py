from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare import opening
from pytest_golden.compare.baselines import ExpectedFile
from pytest_golden.compare.secrets import find_secret
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.redaction.redactor import Redactor, redact

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
    assert find(file, compare="bytes") == "redaction finds a secret in row 1, column note (a GitHub token)"
    duckdb.sql(f"COPY (SELECT 1 AS id, current_date AS day) TO '{file}'")
    assert find(file, compare="bytes") is None
    file.write_bytes(b"PAR1 and nothing behind it")
    assert find(file, compare="bytes") is None


def test_secret_far_behind_in_many_rows_is_found(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "a.parquet"
    rows = f"SELECT CASE WHEN i = 20000 THEN '{TOKEN}' ELSE 'row ' || i END AS note FROM range(20001) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{file}'")
    assert find(file) == "redaction finds a secret in row 20001, column note (a GitHub token)"


def test_very_long_line_is_searched_in_pieces(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("first\n" + "word " * 40_000 + f"{TOKEN} " + "word " * 40_000)
    assert find(file) == "redaction finds a secret in line 2 (a GitHub token)"
    file.write_text("first\n" + "word " * 80_000)
    assert find(file) is None


def test_archive_that_unfolds_beyond_all_bounds_is_not_searched_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_MOST_UNFOLDED_BYTES", 1 << 20)
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"\0" * (8 << 20) + TOKEN.encode()))
    with pytest.raises(OSError, match=r"it is a \.gz archive that unpacks to more than"):
        find(file)


def test_what_repeats_itself_is_searched_once_and_what_follows_too(tmp_path: Path) -> None:
    searched: list[str] = []

    def count(text: str) -> str:
        searched.append(text)
        return redact(text)

    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * (2 << 20) + b"\n" + TOKEN.encode())
    expected = ExpectedFile(file.name, (DeclaredOutput(file.name),), is_written=True)
    assert find_secret(file, expected, count) == "redaction finds a secret in line 2 (a GitHub token)"
    assert len(searched) < 6


@pytest.mark.parametrize("noise", [b"\0\n" * 100, b"\1\2\3\n" * 100, b"\x1b]\0"])
def test_no_line_is_told_of_what_has_none(tmp_path: Path, noise: bytes) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(noise + TOKEN.encode())
    assert find(file) == "redaction finds a secret in its binary content (a GitHub token)"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16"])
def test_secret_in_utf_16_is_found_without_a_mark_and_at_any_place(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(f"one\ntwo\n{TOKEN}\n".encode(encoding))
    assert find(file) == "redaction finds a secret in line 3 (a GitHub token)"
    file.write_bytes(b"\x01\x02\x03" + f" {TOKEN} ".encode(encoding) + b"\xff")
    assert str(find(file)).startswith("redaction finds a secret in ")
    file.write_bytes(f"one\ntwo\n{TOKEN[:9]}\n".encode(encoding))
    assert find(file) is None


def test_random_binaries_hold_no_secret(tmp_path: Path) -> None:
    noise = random.Random(17)
    file = tmp_path / "a.bin"
    for _ in range(12):
        file.write_bytes(noise.randbytes(128 << 10) + b"\x1b\x1b[0m] password=x token: ")
        assert find(file) is None


@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        (TOKEN, "a GitHub token"),
        ("AK" + "IAIOSFODNN7EXAMPL2", "an AWS access key"),
        ("postgres://etl:hunter-7-Gold@db/sales", "the password of a URL"),
        ("-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEpAIBAAKCAQEA", "a private key"),
        ("opensesame123", "a value that is secret for this project"),
        ("op\xebnsesame", "a value that is secret for this project"),
    ],
)
@pytest.mark.parametrize("frame", [b" %b ", b"\x1b]0;%b\x07", b"\xc3%b\xff"])
def test_known_values_and_tokens_are_found_among_random_bytes(
    tmp_path: Path, secret: str, kind: str, frame: bytes
) -> None:
    redactor = Redactor(("opensesame123", "op\xebnsesame"), (strip_escapes,))
    noise = random.Random(secret).randbytes(200_000)
    file = tmp_path / "a.bin"
    file.write_bytes(noise[:150_000] + frame % secret.encode() + noise[150_000:])
    expected = ExpectedFile(file.name, (DeclaredOutput(file.name),), is_written=True)
    told = find_secret(file, expected, redactor.text, redactor.known)
    assert told == f"redaction finds a secret in its binary content ({kind})"


def test_named_value_is_found_in_text_of_one_byte_a_sign_and_with_a_stray_zero(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("Gr\xf6\xdfe\n".encode("cp1252") * 1000 + b"\0\ndb_password=hunter-7-Gold\n")
    assert find(file) == "redaction finds a secret in line 1002 (the value of db_password)"


def test_ignored_column_is_not_searched_and_the_others_are(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = f"SELECT 1 AS id, 'see {TOKEN}' AS note, 'x' AS password"
    for name, form in (("a.parquet", "PARQUET"), ("a.csv", "CSV"), ("a.jsonl", "JSON")):
        file = tmp_path / name
        duckdb.sql(f"COPY ({rows}) TO '{file}' (FORMAT {form})")
        assert find(file, ignore_columns=["note", "password"]) is None
        assert (
            find(file, ignore_columns=["password"]) == "redaction finds a secret in row 1, column note (a GitHub token)"
        )
        assert find(file, ignore_columns=["note", "password"], key=["note"]) is not None
        assert find(file, compare="bytes") is not None


def test_part_of_a_json_document_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"rows": [{"note": 1}, {"api_key": "hunter-7-Gold-17"}]}, indent=1))
    told = "redaction finds a secret in line 7, $.rows[1].api_key (the value of api_key)"
    assert find(file) == told
    file.write_text('{"broken": "password=hunter-7-Gold"')
    assert find(file) == "redaction finds a secret in line 1 (the value of password)"
