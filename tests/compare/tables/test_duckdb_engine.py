"""DuckDB as it is opened: in bounds, without a network, and gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.opening import Content, Side, UnreadableError
from pytest_golden.compare.tables.duckdb_engine import QueryError, describe_trouble, find_bad_line, open_engine
from pytest_golden.compare.tables.model import Format
from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compare.files import Files


def test_nothing_is_fetched_and_memory_and_threads_are_bounded() -> None:
    with open_engine() as engine:
        names = "'autoinstall_known_extensions', 'autoload_known_extensions', 'memory_limit', 'threads'"
        settings = dict(engine.query(f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})"))
    assert settings["autoinstall_known_extensions"] == settings["autoload_known_extensions"] == "false"
    assert settings["memory_limit"].endswith("MiB")
    assert 1 <= int(settings["threads"]) <= 4


def test_what_is_spilled_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_engine() as engine:
        engine.query("SET memory_limit = '30MB'")
        engine.query(
            "CREATE TEMP TABLE t AS SELECT range AS a, hash(range) AS b, hash(range + 1) AS c FROM range(3000000)"
        )
        assert any(path.is_file() for path in tmp_path.rglob("*"))
    assert list(tmp_path.iterdir()) == []


def test_what_duckdb_cannot_answer_is_an_error_of_ours() -> None:
    with open_engine() as engine:
        with pytest.raises(QueryError):
            engine.query("SELECT nothing")
        with pytest.raises(QueryError):
            engine.describe("SELECT nothing")


def test_too_little_memory_is_told() -> None:
    trouble = QueryError("Out of Memory Error: failed to pin block")
    assert describe_trouble(trouble, Format.PARQUET, None).startswith("cannot be compared within the memory")


@pytest.mark.parametrize(
    ("said", "form", "told"),
    [
        (
            "Invalid Input Error: CSV Error on Line: 7\nInvalid unicode detected",
            Format.DELIMITED,
            "is not UTF-8 in line 7",
        ),
        ("Invalid Input Error: odd\n\nPossible fixes", Format.DELIMITED, "is not a valid CSV file: odd"),
        (
            'Invalid Input Error: Malformed JSON in file "/x/output.data", here',
            Format.JSON_LINES,
            "is not a valid JSON Lines file: ",
        ),
    ],
)
def test_what_duckdb_says_becomes_a_sentence(said: str, form: Format, told: str) -> None:
    message = describe_trouble(QueryError(said), form, None)
    assert message.startswith(told)
    assert ".data" not in message


def test_a_file_that_only_duckdb_minds_has_no_bad_line(tmp_path: Path) -> None:
    place = tmp_path / "t.jsonl"
    place.write_text('{"a": NaN}\n' + "[" * 100_000 + "]" * 100_000 + "\n")
    assert find_bad_line(place) is None


def test_an_archive_that_finds_no_room_is_told(tmp_path: Path) -> None:
    place = tmp_path / "t.csv.gz"
    place.write_bytes(b"")
    with open_engine() as engine, pytest.raises(UnreadableError):
        engine.lay_out(Content(place, Side.OUTPUT))


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        (
            "duckdb.OutOfMemoryException",
            "Out of Memory Error: failed\n to allocate",
            "Out of Memory Error: failed to allocate",
        ),
        ("builtins.RuntimeError", "Resource temporarily unavailable", "Resource temporarily unavailable"),
        ("builtins.RuntimeError", "", "RuntimeError"),
    ],
)
def test_duckdb_that_cannot_be_opened_is_one_sentence(
    files: Files, monkeypatch: pytest.MonkeyPatch, kind: str, said: str, told: str
) -> None:
    refusal: type[Exception] = resolve_name(kind)

    def refuse(_: str) -> None:
        raise refusal(said)

    monkeypatch.setattr("duckdb.connect", refuse)
    with pytest.raises(GoldenError) as raised:
        files.compare("t.csv", "a\n1\n", "a\n1\n")
    assert str(raised.value) == (
        f"out/t.csv cannot be compared as a table: DuckDB cannot be opened here: {told};"
        " it needs some hundred MB of memory and a few threads"
    )


def test_without_a_folder_for_what_duckdb_spills_it_is_said_what_to_do(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(
        GoldenError, match=r"^out/t\.csv .* DuckDB has no folder for what it spills: .*; .* set TMPDIR$"
    ):
        files.compare("t.csv", "a\n1\n", "a\n1\n")


def test_without_duckdb_it_is_said_what_to_install(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    place.write_text("a\n1\n")
    script = (
        "import sys; from pathlib import Path; sys.modules['duckdb'] = None\n"
        "from pytest_golden.manifest.model import DeclaredOutput\n"
        "from pytest_golden.compare.comparing import compare_files\n"
        "place = Path(sys.argv[1])\n"
        "try: compare_files(DeclaredOutput(path='t.csv'), place, place, shown_as='t.csv')\n"
        "except Exception as error: print(type(error).__mro__[1].__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(place)], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "GoldenError t.csv cannot be compared as a table: DuckDB is not installed here:"
        " pip install 'pytest-golden-projects[tables]'\n"
    )
