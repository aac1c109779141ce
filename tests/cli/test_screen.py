from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console
from rich.text import Text

from pytest_golden.cli.screen import (
    open_console,
    print_beside,
    print_json,
    print_list,
    print_listing,
    show_status,
    styled,
)
from pytest_golden.regression.wording import format_elapsed


def console_of(width: int) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, width=width, highlight=False, markup=False), stream


def test_pipe_is_not_folded_unless_columns_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert open_console(io.StringIO()).width > 1000
    monkeypatch.setenv("COLUMNS", "40")
    assert open_console(io.StringIO()).width == 40


def test_list_has_columns_where_there_is_room() -> None:
    console, stream = console_of(44)
    print_list(console, [("run", "one"), ("check", "a text that has to go on in a second line")])
    assert stream.getvalue().splitlines() == [
        "  run    one",
        "  check  a text that has to go on in a",
        "         second line",
    ]


def test_list_goes_below_where_there_is_none() -> None:
    console, stream = console_of(20)
    print_list(console, [("golden check", "see what would be run")])
    assert stream.getvalue().splitlines() == ["  golden check", "    see what would", "    be run"]


def test_empty_list_prints_nothing() -> None:
    console, stream = console_of(20)
    print_list(console, [])
    assert stream.getvalue() == ""


def test_text_is_shown_as_it_is_without_control_characters() -> None:
    console, stream = console_of(80)
    print_beside(console, Text("x"), "[bold]:smile: \x1b[31mred\x07")
    assert stream.getvalue() == "x  [bold]:smile: red\\x07\n"
    assert styled(3).plain == "3"


def test_json_is_plain_ascii_where_the_stream_is(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    print_json({"name": "ü"})
    sys.stdout.flush()
    assert raw.getvalue() == b'{\n  "name": "\\u00fc"\n}\n'


ID = "entry_01M80Y16FSXV3WQEJNHJ67JCD1"


def lines_of(width: int, told: str, name: str = ID) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    print_listing(console, ("n", "told", "id"), [("1", told, name)], whole=("id",), right=("n",))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_what_is_whole_is_not_folded() -> None:
    # How far apart the columns are differs between versions of rich.
    lines = [line.split() for line in lines_of(57, "a text that needs two lines")]
    assert lines == [["n", "told", "id"], ["1", "a", "text", "that", "needs", ID], ["two", "lines"]]


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


@pytest.mark.parametrize(("seconds", "told"), [(0.04, "0.0s"), (59.9, "59.9s"), (59.96, "1m 00s"), (3725, "1h 02m")])
def test_durations_are_brief(seconds: float, told: str) -> None:
    assert format_elapsed(seconds) == told


def test_nothing_is_shown_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with show_status("x", lambda: pytest.fail("asked for a step")):
        pass
    assert capsys.readouterr() == ("", "")
