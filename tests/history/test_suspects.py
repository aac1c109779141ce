from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.history import suspects
from pytest_golden.history.suspects import (
    Suspect,
    count_words,
    find_suspects,
    is_source,
    list_changes,
    rank_suspects,
    read_failure,
    split_pieces,
)
from tests.repository import git

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

FAILING = """
tests/test_orders.py::test_a_price_has_two_digits FAILED
    def test_a_price_has_two_digits():
>       assert round_price(parse_price("3.456")) == 3.46
E       AssertionError: assert 3.456 == 3.46
tests/test_orders.py:5: AssertionError
"""
ORDERS = """
def parse_price(text):
    return float(text.strip("$"))


def round_price(price):
    return price
"""
TEST = """
from shop.orders import parse_price, round_price


def test_a_price_has_two_digits():
    assert round_price(parse_price("3.456")) == 3.46


def test_customers():
    assert customers_of_the_year
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A program of ten files, and a test that always changed together with one of them."""
    git(tmp_path, "init", "-q", "-b", "main")
    files = {f"shop/{name}.py": f"def load_{name}(path):\n    return read(path)\n" for name in "abcdefghi"}
    for name, text in {**files, "shop/orders.py": "", "tests/test_orders.py": "", "README.md": "round_price"}.items():
        write(tmp_path, name, text)
    commit(tmp_path, "first")
    for number in range(3):
        write(tmp_path, "shop/orders.py", f"{ORDERS}# {number}\n")
        write(tmp_path, "tests/test_orders.py", f"{TEST}# {number}\n")
        commit(tmp_path, f"change {number}")
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def commit(folder: Path, subject: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)


def test_the_file_that_a_failing_test_is_about_comes_first(shop: Path) -> None:
    first, *others = find_suspects(shop, FAILING)
    assert first.path == "shop/orders.py"
    assert first.why == (
        "its words are the closest to the failure's",
        "4 of 4 changes of tests/test_orders.py changed it too",
        "the test imports it",
    )
    assert str(first) == f"shop/orders.py ({first.score:.2f}): {'; '.join(first.why)}"
    assert all(other.why and 2 * other.score < first.score <= 1 for other in others)


def test_the_earlier_fix_with_most_of_the_failures_words_is_told(shop: Path) -> None:
    for number, subject in enumerate(
        ["Fix all", "Fix the digits of a price\x1b[31m password=hunter2hunter2", "Fix imports", "A price"]
    ):
        write(shop, "shop/orders.py", f"{ORDERS}# again {number}\n")
        commit(shop, subject)
    said = find_suspects(shop, FAILING)[0].why[-1]
    assert re.fullmatch(r"an earlier change, on \d{4}-\d\d-\d\d by [0-9a-f]{7,}: 'Fix the digits of a price.*'", said)
    assert "hunter2" not in said
    assert "\x1b" not in said


def test_names_of_files_may_have_any_sign(shop: Path) -> None:
    for name in ("a\x01b.py", "a\x02b.py", "a\nb.py", "\x1b[31m.py"):
        write(shop, f"odd/{name}", "")
    commit(shop, "odd\x01names\x02")
    assert len(list_changes(shop)) >= 5
    assert find_suspects(shop, FAILING)[0].path == "shop/orders.py"


def test_nothing_is_said_where_all_files_are_as_likely(shop: Path) -> None:
    assert find_suspects(shop, "load_x of something failed: read(path)") == ()
    assert find_suspects(shop, "") == ()


def test_a_few_words_are_not_enough(shop: Path) -> None:
    assert find_suspects(shop, "strip") == ()


def test_the_text_of_a_named_test_counts_as_the_failures_own(shop: Path) -> None:
    tracked = ["tests/test_orders.py", "shop/orders.py"]
    named = read_failure("tests/test_orders.py::test_customers failed", tracked, lambda path: (shop / path).read_text())
    assert named.tests == ("tests/test_orders.py",)
    assert named.named == {"tests/test_orders.py"}
    assert "customers_of_the_year" in named.words
    assert "parse_price" not in named.words
    assert named.imports == {"shop.orders", "shop.orders.parse_price", "shop.orders.round_price"}


def test_files_of_a_traceback_are_named(shop: Path) -> None:
    text = f'File "{shop}/shop/a.py", line 3, in load_a\nFile "/usr/lib/python3/json/__init__.py", line 2\nshop/b.py:7: boom'
    tracked = [f"shop/{name}.py" for name in "abc"]
    failure = read_failure(text, tracked, lambda _: "")
    assert failure.named == {"shop/a.py", "shop/b.py"}
    ranked = rank_suspects(failure, {path: split_pieces((shop / path).read_text()) for path in tracked}, [])
    assert {one.path for one in ranked.suspects[:2]} == {"shop/a.py", "shop/b.py"}
    assert all("the failure names it" in one.why for one in ranked.suspects[:2])


def test_a_folder_that_git_does_not_know_has_no_suspects(tmp_path: Path) -> None:
    write(tmp_path, "a.py", ORDERS)
    assert find_suspects(tmp_path, FAILING) == ()


def test_a_repository_without_a_commit_is_ranked_by_words(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in "abcde":
        write(tmp_path, f"{name}.py", f"{name} = 1\n")
    write(tmp_path, "orders.py", ORDERS)
    git(tmp_path, "add", "-A")
    assert list_changes(tmp_path) == ()
    text = "parse_price round_price price strip float\n" * 3
    assert [one.path for one in find_suspects(tmp_path, text)][:1] == ["orders.py"]


def test_without_git_it_says_so(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(shop))
    with pytest.raises(GoldenError, match="there is no git on PATH"):
        find_suspects(shop, FAILING)


def test_paths_below_a_folder_are_relative_to_it(shop: Path) -> None:
    assert {path for change in list_changes(shop / "shop") for path in change.paths} == {
        *(f"{name}.py" for name in "abcdefghi"),
        "orders.py",
    }
    write(shop, "shop/tests/test_orders.py", TEST)
    commit(shop, "a test inside")
    assert find_suspects(shop / "shop", FAILING)[0].path == "orders.py"


def test_of_a_large_repository_only_files_with_the_failures_words_are_read(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspects, "_MOST_SOURCES", 5)
    read: list[str] = []

    def split(text: str) -> tuple[Counter[str], ...]:
        read.append(text)
        return split_pieces(text)

    monkeypatch.setattr(suspects, "split_pieces", split)
    write(shop, "shop/z.py", "price = 1\nround_price = 2\n")
    commit(shop, "one more")
    assert find_suspects(shop, FAILING)[0].path == "shop/orders.py"
    assert 0 < len(read) <= 5
    assert all("price" in text for text in read)


def test_what_is_no_regular_file_is_empty(shop: Path) -> None:
    (shop / "shop" / "a.py").unlink()
    (shop / "shop" / "a.py").symlink_to("/dev/zero")
    (shop / "shop" / "b.py").unlink()
    os.mkfifo(shop / "shop" / "b.py")
    (shop / "shop" / "c.py").write_bytes(b"\x00\xff" * 1000)
    (shop / "shop" / "d.py").unlink()
    (shop / "shop" / "e.py").write_text("x" * 2_000_000)
    (shop / "shop" / "f.py").write_text("\n" * 300_000)
    (shop / "tests" / "test_orders.py").unlink()
    assert find_suspects(shop, FAILING)[0].path == "shop/orders.py"


@pytest.mark.parametrize(
    "text",
    ["a/" * 500_000, "a." * 500_000, "(" * 1_000_000, "\x00" * 1000, "\ud83d" * 1000, "/" * 9999],
    # pytest gives the id to programs too, and a system takes so much for no variable.
    ids=["slashes between", "dots between", "brackets", "nulls", "half a pair", "slashes"],
)
def test_odd_texts_name_nothing(shop: Path, text: str) -> None:
    assert find_suspects(shop, text) == ()


def test_a_change_of_very_many_files_says_nothing(shop: Path) -> None:
    for number in range(60):
        write(shop, f"more/m{number}.py", "")
    commit(shop, "all at once")
    assert list_changes(shop)[0].paths == frozenset()
    assert list_changes(shop)[1].paths == {"shop/orders.py", "tests/test_orders.py"}


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("shop/orders.py", True),
        ("models/orders.sql", True),
        ("workflow/Snakefile", True),
        ("R/load.R", True),
        ("tests/test_orders.py", False),
        ("shop/test_orders.py", False),
        ("integration_tests/models/orders.sql", False),
        ("docs/conf.py", False),
        (".github/run.py", False),
        ("orders.csv", False),
        ("README.md", False),
    ],
)
def test_sources_are_files_of_programs(path: str, told: bool) -> None:
    assert is_source(path) is told


def test_words_are_names_and_their_parts() -> None:
    assert count_words("readOrders read_orders HTTPError x1 ab") == {
        "readorders": 1,
        "read_orders": 1,
        "read": 2,
        "orders": 2,
        "httperror": 1,
        "http": 1,
        "error": 1,
    }


def test_functions_classes_and_macros_are_pieces() -> None:
    text = "import a_module\n@wrap\ndef first():\n    pass\nasync def second(): pass\nclass Third:\n    def fourth(self): pass\n"
    assert [set(piece) & {"first", "second", "third", "fourth", "a_module"} for piece in split_pieces(text)] == [
        {"a_module"},
        set(),
        {"first"},
        {"second"},
        {"third"},
        {"fourth"},
    ]
    macros = "{% macro one_thing() %}\n1\n{% endmacro %}\n{%- macro other() -%}\n{%- endmacro %}\n"
    assert len(split_pieces(macros)) == 2


def test_a_program_of_few_files_can_be_ranked() -> None:
    failure = read_failure("nothing", [], lambda _: "")
    assert rank_suspects(failure, {}, []).shown == ()
    ranked = rank_suspects(failure, {"a.py": split_pieces("a = 1")}, [])
    assert ranked.suspects == (Suspect("a.py", 0.0, ()),)
    assert ranked.shown == ()
