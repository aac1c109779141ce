from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.gate.spool import find_spool_folder, find_store_place, list_store_files

if TYPE_CHECKING:
    from pathlib import Path


def test_each_store_has_a_spool_of_its_own(tmp_path: Path) -> None:
    places = [find_store_place(said, tmp_path) for said in (None, "/a.db", "/b.db", "sqlite:////a.db")]
    own, first, second, again = (find_spool_folder(place, tmp_path) for place in places if place is not None)
    assert own == tmp_path / "spool"
    assert first == again
    assert first.parent == second.parent == own
    assert first != second
    assert len(first.name) == 16


def test_store_that_was_named_by_its_own_path_is_the_own_one(tmp_path: Path) -> None:
    place = find_store_place(str(tmp_path / "golden.db"), tmp_path)
    assert place is not None
    assert place.is_own
    assert find_store_place("none", tmp_path) is None


def test_files_that_are_written_while_a_gate_runs_are_those_of_sqlite(tmp_path: Path) -> None:
    written = list_store_files(find_store_place(str(tmp_path / "shard.db"), tmp_path))
    assert [file.name for file in written] == ["shard.db", "shard.db-wal", "shard.db-shm", "shard.db-journal"]
    assert {file.parent for file in written} == {tmp_path}
    assert list_store_files(find_store_place("none", tmp_path)) == ()
