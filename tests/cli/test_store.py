from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from pytest_golden.gate.state_folder import prepare_state_folder
from pytest_golden.storage.schema import HEAD
from pytest_golden.storage.shared_documents import keep_document
from pytest_golden.storage.store import Store
from tests.cli.watched import run_watched
from tests.postgres import name_database

if TYPE_CHECKING:
    from tests.cli.conftest import Golden
    from tests.postgres import PostgresServer

FORMS: tuple[tuple[str, ...], ...] = (
    ("check",),
    ("backup", "copy.db"),
    ("copy", "--to", "copy.db"),
    ("mend",),
    ("upgrade",),
)


@pytest.fixture
def recorded(folder: Path) -> Path:
    path = prepare_state_folder(folder) / "golden.db"
    with Store.open(path) as store, store.write() as connection:
        keep_document(connection, {"rows": 3})
    return path


@pytest.mark.parametrize("form", FORMS)
def test_store_that_is_not_there_is_no_store_to_make(golden: Golden, folder: Path, form: tuple[str, ...]) -> None:
    ran = golden("store", *form)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"golden: nothing is recorded yet in {folder / '.golden/golden.db'}: "
        "run `pytest --golden`, or log an intent with `golden journal log-intent`\n"
    )
    assert [file.name for file in folder.iterdir()] == [".git"]
    assert golden("store", *form, "--json").json == {"error": ran.err.removeprefix("golden: ").strip()}


def test_whole_store_is_shown(golden: Golden, recorded: Path) -> None:
    ran = golden("store", "check")
    assert ran.code == 0
    assert ran.out.startswith(f"{recorded}: whole, ")
    assert "documents" in ran.out
    told = golden("store", "check", "--json")
    assert (told.code, told.json["tables"]["documents"], told.json["problems"]) == (0, 1, [])
    assert told.json["store"] == str(recorded)


def test_damaged_store_is_exit_1(golden: Golden, recorded: Path) -> None:
    with Store.open(recorded) as store, store.write() as connection:
        connection.execute(text("INSERT INTO memory_words (rowid, words) VALUES (7, 'load')"))
    ran = golden("store", "check")
    assert ran.code == 1
    assert ": damaged, " in ran.out
    assert "the search index differs from the memories in 1 rows; `golden store upgrade` builds it again" in ran.out
    ran = golden("store", "upgrade")
    assert (ran.code, "and was rebuilt" in ran.out) == (0, True)
    assert golden("store", "check").code == 0
    assert golden("store", "upgrade", "--json").json == {"store": str(recorded), "version": HEAD, "repaired": None}
    recorded.write_bytes(b"garbage " * 1000)
    ran = golden("store", "check", "--json")
    assert (ran.code, ran.json["version"], len(ran.json["problems"])) == (1, None, 1)
    for form in FORMS[1:]:
        assert golden("store", *form).code == 2


def test_backup_is_a_store(golden: Golden, recorded: Path, folder: Path) -> None:
    ran = golden("store", "backup", "copy.db")
    assert ran.code == 0
    assert ran.out.startswith(f"copied {recorded} to copy.db, ")
    assert golden("store", "check", "--store", "copy.db", "--json").json["tables"]["documents"] == 1
    ran = golden("store", "backup", "copy.db", "--json")
    assert (ran.code, ran.json) == (2, {"error": "copy.db already exists; give the name of a new file"})
    told = golden("store", "backup", "other.db", "--json").json
    assert told == {"store": str(recorded), "file": "other.db", "size_bytes": (folder / "other.db").stat().st_size}


def test_copy_to_a_server_and_back_is_compared(golden: Golden, recorded: Path, postgres: PostgresServer) -> None:
    url = postgres.make_empty_database()
    ran = golden("store", "copy", "--to", url)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"copied {recorded} to postgresql://postgres@/")
    (line,) = [line.split() for line in lines if line.split()[0] == "documents"]
    assert line[1] == "1"
    there = golden("store", "check", "--store", url, "--json").json
    assert (there["tables"]["documents"], there["problems"], there["version"]) == (1, [], HEAD)
    back = golden("store", "copy", "--store", url, "--to", "back.db", "--json").json
    assert (back["to"], back["problems"]) == (str(Path("back.db").absolute()), [])
    assert back["tables"]["documents"]["sha256"].startswith(line[2])
    assert golden("store", "check", "--store", "back.db").code == 0


def test_copy_that_cannot_be_made_is_one_sentence(golden: Golden, recorded: Path, postgres_url: str) -> None:
    assert golden("store", "copy").code == 2
    for target, told in (
        (" ", "--to is empty"),
        (str(recorded), "cannot be copied to itself"),
        ("x://", "no store can"),
    ):
        ran = golden("store", "copy", "--to", target, "--json")
        assert (ran.code, told in ran.json["error"]) == (2, True)
    assert golden("store", "copy", "--to", postgres_url).code == 0
    ran = golden("store", "copy", "--to", postgres_url)
    assert (ran.code, "there are rows in it (documents); give an empty one" in ran.err) == (2, True)
    assert ran.err.count("\n") == 1


def test_copy_that_differs_is_exit_1(
    golden: Golden, recorded: Path, postgres: PostgresServer, postgres_url: str
) -> None:
    name = name_database(postgres_url)
    spoil = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
    postgres.execute(spoil, name)
    postgres.execute("CREATE TRIGGER spoil BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION spoil()", name)
    ran = golden("store", "copy", "--to", postgres_url)
    assert ran.code == 1
    assert ran.out.startswith(f"{recorded}: not copied to postgresql://")
    assert "documents: 0 rows instead of 1 arrived; nothing was kept" in ran.out
    ran = golden("store", "copy", "--to", postgres_url, "--json")
    assert (ran.code, len(ran.json["problems"])) == (1, 1)


def test_copying_is_shown_on_a_terminal(folder: Path, recorded: Path) -> None:
    ran = run_watched(folder, ("store", "copy", "--to", "copy.db"))
    assert ran.code == 0
    assert "comparing documents" in ran.out


def test_store_on_a_server_is_made_checked_and_not_backed_up(golden: Golden, postgres: PostgresServer) -> None:
    url = postgres.make_empty_database()
    ran = golden("store", "check", "--store", url)
    assert (ran.code, "it has no tables yet; run `golden store upgrade" in ran.err) == (2, True)
    assert golden("store", "upgrade", "--store", url, "--json").json["version"] == HEAD
    ran = golden("store", "check", "--store", url)
    assert ran.code == 0
    assert ": whole, " in ran.out
    assert "pg_amcheck" in ran.out
    ran = golden("store", "backup", "copy.db", "--store", url)
    assert (ran.code, ran.out) == (2, "")
    assert "pg_dump" in ran.err
    assert "golden store copy --to FILE" in ran.err
    postgres.execute("INSERT INTO memory_words (number, words) VALUES (7, 'load')", name_database(url))
    assert golden("store", "check", "--store", url).code == 1
    assert "was rebuilt" in golden("store", "upgrade", "--store", url).out
    assert golden("store", "check", "--store", url).code == 0


def test_store_is_found_by_option_variable_and_workspace_root(
    golden: Golden, recorded: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*words: str) -> str:
        return str(golden("store", "check", "--json", *words).json["store"])

    (folder / "deep").mkdir()
    (folder / "golden_projects.yaml").write_text("golden_projects: []\n")
    other = folder / "other.db"
    Store.open(other).close()
    monkeypatch.chdir(folder / "deep")
    assert found() == str(recorded)
    assert found("--store", "../other.db") == str(other)
    assert found("--store", f"sqlite:///{other}") == str(other)
    monkeypatch.setenv("GOLDEN_STORE_URL", "../other.db")
    assert found() == str(other)
    assert found("--store", str(recorded)) == str(recorded)
    monkeypatch.setenv("GOLDEN_STORE_URL", "none")
    assert (
        golden("store", "check").err
        == "golden: recording is off (`none` in --store or GOLDEN_STORE_URL): name a store\n"
    )


def test_manifest_tells_the_workspace_root(golden: Golden, recorded: Path, folder: Path) -> None:
    (folder / "deep").mkdir()
    manifest = folder / "deep" / "golden_projects.yaml"
    manifest.write_text("workspace_root: ..\ngolden_projects: []\n")
    assert golden("store", "check", "--manifest", str(manifest), "--json").json["store"] == str(recorded)
    manifest.write_text("workspace_root: [\n")
    ran = golden("store", "check", "--manifest", str(manifest))
    assert (ran.code, ran.out) == (2, "")
    assert golden("store", "check", "--manifest", str(manifest), "--store", str(recorded)).code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--store", "postgresql://ada:hunter2@localhost:1/x"), "its server cannot be used"),
        (("--store", "mysql://ada:hunter2@db/x"), "no store can be there"),
        (("--store", "garbage://"), "no store can be there"),
        (("--store", "."), "is a folder; give a file"),
        (("--store", "README.txt"), "is not a golden store; nothing was changed"),
        (("--store", " "), "--store is empty: give a file or none"),
        (("--nonsense",), "unrecognized arguments"),
    ],
)
def test_bad_input_is_one_sentence(golden: Golden, folder: Path, words: tuple[str, ...], told: str) -> None:
    (folder / "README.txt").write_text("this is not a database\n")
    ran = golden("store", "check", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert "hunter2" not in ran.err


def test_action_must_be_named(golden: Golden) -> None:
    assert golden("store").code == 2
    assert "ACTION" in golden("store").err
    assert "golden store --help" in golden("store").err
    assert golden("store", "backup").code == 2
    assert golden("store", "--help").code == 0


def test_newer_store_and_one_of_another_program_are_exit_2(golden: Golden, recorded: Path) -> None:
    with Store.open(recorded) as store, store.write() as connection:
        connection.execute(text("UPDATE golden_version SET version_num = '9999'"))
    ran = golden("store", "check")
    assert (ran.code, ran.out) == (2, "")
    assert "newer pytest-golden-projects" in ran.err
    recorded.unlink()
    with closing(sqlite3.connect(recorded)) as theirs:
        theirs.execute("CREATE TABLE customers (name TEXT)")
    for form in FORMS:
        ran = golden("store", *form)
        assert (ran.code, ran.out) == (2, "")
        assert "it is a database of another program" in ran.err


def test_text_that_cannot_be_read_is_named_and_repaired(golden: Golden, recorded: Path) -> None:
    ran = golden("store", "mend")
    assert (ran.code, ran.out) == (0, f"{recorded}: nothing to repair\n")
    with closing(sqlite3.connect(recorded, isolation_level=None)) as connection:
        connection.execute(r"""INSERT INTO documents VALUES ('odd', '{"error":"boom \ud83d"}'), ('bad', '[')""")
    odd = "row odd of documents: body holds text that cannot be read"
    ran = golden("store", "check")
    assert ran.code == 1
    assert f"{odd}; `golden store mend` repairs it\n" in ran.out
    ran = golden("store", "mend", "--json")
    assert ran.code == 1
    assert ran.json["mended"] == [odd]
    assert ran.json["left"] == ["row bad of documents: body is not JSON"]
    assert Path(ran.json["backup"]).parent == recorded.parent
    with closing(sqlite3.connect(recorded, isolation_level=None)) as connection:
        assert connection.execute(
            "SELECT json_extract(body, '$.error') FROM documents WHERE digest = 'odd'"
        ).fetchone() == (r"boom \ud83d",)
        connection.execute(r"""UPDATE documents SET body = '"\ud83d"' WHERE digest = 'bad'""")
    ran = golden("store", "mend")
    assert ran.code == 0
    assert f"{recorded}: 1 text repaired\nrow bad of documents: body holds text that cannot be read\n" in ran.out
    assert "copy of the store before the repair: " in ran.out
