from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.storage.location import parse_location

if TYPE_CHECKING:
    from pathlib import Path


def test_paths_and_urls_name_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "a b%20?.db"
    for said in (file, str(file), "a b%20?.db", "~/a b%20?.db", "./x/../a b%20?.db"):
        assert parse_location(said).path == file
    plain = tmp_path / "golden.db"
    for said in (f"sqlite:///{plain}", "sqlite:///golden.db", "sqlite+pysqlite:///golden.db"):
        place = parse_location(said)
        assert (place.path, place.shown) == (plain, str(plain))


@pytest.mark.parametrize("said", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_store_in_memory_has_no_path(said: str) -> None:
    assert parse_location(said).path is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("postgresql+psycopg2://ada:hunter2@db/golden", r"no store can be there; give .* postgresql://"),
        ("postgresql://ada:p@hunter2@db/golden", "write each @ in its name, password or database as %40"),
        ("mysql://ada:hunter2@db/golden", "no store can be there"),
        ("https://ada:hunter2@db/golden.db", "no store can be there"),
        ("sqlite://host/golden.db", "no store can be there"),
        ("sqlite:///golden.db?mode=ro", "no store can be there"),
        ("sqlite+aiosqlite:///golden.db", "no store can be there"),
        ("://hunter2", "cannot be read"),
        ("postgresql://ada:hunter2@db:port/golden", "cannot be read"),
        ("", "cannot be the path of a store"),
        ("a\0b", "cannot be the path of a store"),
    ],
)
def test_place_without_a_store_is_refused_and_its_password_not_shown(said: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        parse_location(said)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://u:hun@ter22@h/x", "sqlite:///x?key=hunter22"])
def test_password_anywhere_in_a_refused_url_is_not_shown(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_location(url)
    assert "ter22" not in str(caught.value)


def test_home_of_an_unknown_user_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_location("~nobody-of-this-name/x.db").path == tmp_path / "~nobody-of-this-name" / "x.db"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_store_on_a_server_is_shown_without_passwords(scheme: str) -> None:
    place = parse_location(f"{scheme}://ada:hunter2@db:5433/golden?password=hunter3&sslmode=require")
    assert (place.path, place.is_on_server) == (None, True)
    assert place.shown == "postgresql://ada@db:5433/golden"
    assert place.url.drivername == "postgresql+psycopg"
    assert (place.url.password, place.url.query["sslmode"]) == ("hunter2", "require")


def test_stores_on_different_servers_or_in_different_schemas_are_shown_differently() -> None:
    said = ["", "?host=/run/a", "?host=/run/b", "?options=-csearch_path%3Done", "?options=-csearch_path%3Dother"]
    assert len({parse_location(f"postgresql:///golden{more}").shown for more in said}) == len(said)


@pytest.mark.parametrize(
    "said",
    ["options=-c%20my.word=hunter2", "dbname=host%3Ddb%20password%3Dhunter2", "dbname=postgresql://ada:hunter2@db"],
)
def test_what_sets_something_in_a_query_is_not_shown(said: str) -> None:
    assert "hunter2" not in parse_location(f"postgresql://ada@db/golden?{said}&options=-csearch_path%3Done").shown


@pytest.mark.parametrize("said", ["ada:hunter2%00x@db/golden", "ada@db/golden?password=hunter2%00x"])
def test_url_with_a_nul_is_refused(said: str) -> None:
    with pytest.raises(SettingsError, match="holds a NUL character") as caught:
        parse_location(f"postgresql://{said}")
    assert "hunter2" not in str(caught.value)


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setattr("sys.path_importer_cache", {})
    monkeypatch.delitem(sys.modules, "psycopg", raising=False)
    with pytest.raises(SettingsError, match=r"pip install 'pytest-golden-projects\[postgres\]'") as caught:
        parse_location("postgresql://ada:hunter2@db/golden")
    assert "hunter2" not in str(caught.value)
