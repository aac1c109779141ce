from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from pytest_golden.cli.screen import open_console, print_beside, print_json, print_list, styled

if TYPE_CHECKING:
    import pytest


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
