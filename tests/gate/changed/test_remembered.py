from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.gate.hiding import SecretHider
from pytest_golden.history import unchanged_tree as remembered
from pytest_golden.history.checkout import Checkout
from pytest_golden.history.unchanged_paths import PathIndex
from pytest_golden.history.unchanged_tree import IgnoredThen, describe_ignored, find_gone
from pytest_golden.redaction.rule import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def keep_all(names: Sequence[str]) -> Sequence[str]:
    return names


def gone(root: Path, *names: str, products: tuple[str, ...] = ()) -> tuple[str, ...]:
    found = find_gone(root, IgnoredThen(names), products)
    assert isinstance(found, PathIndex)
    return found.paths


def test_names_are_noted_without_what_is_nobodys_input(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "tests.xml").write_text("<testsuites>")
    ignored = ("a.csv", "data/", "x.log", "lib/__pycache__/", ".golden/", "env/", "tests.xml")
    described = describe_ignored(Checkout(root=tmp_path, ignored=ignored), keep_all)
    assert described == {"names": ["a.csv", "data/"], "is_all": True}
    assert IgnoredThen.read(described) == IgnoredThen(("a.csv", "data/"))


def test_of_no_checkout_nothing_is_noted(tmp_path: Path) -> None:
    assert describe_ignored(Checkout(), keep_all) is None
    assert describe_ignored(Checkout(root=tmp_path, ignored=()), lambda _: None) is None
    assert [IgnoredThen.read(plain) for plain in (None, {}, {"names": "a"}, ["a"])] == [None] * 4


def test_no_more_names_are_noted_than_the_store_should_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST_NAMES", 2)
    of_two, of_three = (
        describe_ignored(Checkout(root=tmp_path, ignored=names), keep_all) for names in (("a", "b"), ("a", "b", "c"))
    )
    assert of_two == {"names": ["a", "b"], "is_all": True}
    assert of_three == {"names": ["a", "b"], "is_all": False}


def test_files_folders_and_what_changed_its_kind_are_seen_to_be_gone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "a.csv").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "now-a-file").touch()
    names = ("a.csv", "data/", "dangling", "b.csv", "more/", "now-a-file/", "store.db-wal")
    found = gone(tmp_path, *names, products=(str(tmp_path / "store.db-wal"),))
    assert found == ("b.csv", "more/", "now-a-file/")


def test_hidden_or_unrecorded_names_tell_nothing(tmp_path: Path) -> None:
    assert "not recorded" in str(find_gone(tmp_path, None, ()))
    hidden = SecretHider(lambda *_: None, ()).hide_names(["a.csv", f"{TOKEN}.csv"])
    assert hidden is not None
    assert hidden[0] == "a.csv"
    assert MARK in hidden[1]
    assert "whose name is hidden" in str(find_gone(tmp_path, IgnoredThen(tuple(hidden)), ()))
