from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from pytest_golden.cli.screen import print_listing

ID = "entry_01M80Y16FSXV3WQEJNHJ67JCD1"


def lines_of(width: int, told: str, name: str = ID) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    print_listing(console, ("n", "told", "id"), [("1", told, name)], whole=("id",), right=("n",))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_what_is_whole_is_not_folded() -> None:
    assert lines_of(57, "a text that needs two lines") == [
        "n  told                id",
        f"1  a text that needs   {ID}",
        "   two lines",
    ]


def test_nothing_is_lost_where_there_is_no_room() -> None:
    assert lines_of(30, "a text that needs two lines") == [
        "n  told         id",
        "1  a text that  entry_01M80Y16",
        "   needs two    FSXV3WQEJNHJ67",
        "   lines        JCD1",
    ]


def test_ids_of_any_length_are_folded() -> None:
    assert max(map(len, lines_of(80, "x", "i" * 500))) <= 80


def test_markup_and_control_characters_are_shown_as_they_are() -> None:
    stream = io.StringIO()
    print_listing(Console(file=stream, width=80), ("a", "b"), [("[bold]\x1b[2J", Text("b", style="red"))])
    assert "[bold]" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
