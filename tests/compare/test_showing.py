"""Messages are bounded, and hold nothing that a terminal would obey."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.showing import (
    MOST_BYTES,
    MOST_LINES,
    compose,
    cut,
    cut_middle,
    cut_pair,
    find_first_difference,
    show,
)


@given(st.text(max_size=2000), st.lists(st.text(max_size=500), max_size=80))
def test_a_message_has_its_bounds(headline: str, lines: list[str]) -> None:
    message = compose(show(headline), (show(line) for line in lines))
    assert len(message.split("\n")) <= MOST_LINES
    assert len(message.encode("utf-8", "surrogatepass")) <= MOST_BYTES + 400
    assert message.startswith(show(headline)[:100])


def test_no_more_lines_are_asked_for_than_are_shown() -> None:
    asked = []
    message = compose("headline", (asked.append(at) or f"line {at}" for at in range(10_000)))  # type: ignore[func-returns-value]
    assert message.endswith("[... more is not shown ...]")
    assert len(asked) <= MOST_LINES


@given(st.text(), st.booleans())
def test_what_is_shown_is_printable(text: str, show_blanks: bool) -> None:
    shown = show(text, show_blanks=show_blanks)
    assert shown.isprintable()
    assert "\n" not in shown


def test_what_is_not_printable_is_an_escape() -> None:
    assert show("a\x1b[0m\u202eb\r") == "a\\x1b[0m\\u202eb\\r"
    assert show(b"\xff".decode("utf-8", "surrogateescape")) == "\\xff"
    assert show("\ta ") == "    a "
    assert show("\ta ", show_blanks=True) == "\\ta·"


@given(st.text(alphabet="ab", max_size=30), st.text(alphabet="ab", max_size=30))
def test_the_first_difference_is_found(one: str, other: str) -> None:
    place = find_first_difference(one, other)
    assert one[:place] == other[:place]
    assert place == min(len(one), len(other)) or one[place] != other[place]


def test_texts_are_cut() -> None:
    assert (cut("abcdef", 6), cut("abcdefg", 6)) == ("abcdef", "abc...")
    assert (cut_middle("abcdefg", 7), cut_middle("abcdefghijk", 7)) == ("abcdefg", "ab...jk")
    assert cut_pair("ab", "cd") == ("ab", "cd")
    one, other = cut_pair("x" * 500 + "1", "x" * 500 + "2", 50)
    assert one != other
    assert len(one) == len(other) <= 64
