from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.redaction.escapes import find_coloured_lines, may_hold_escape, strip_all_colours, strip_escapes
from pytest_golden.redaction.redactor import redact

PIECES = st.sampled_from(
    [
        "\x1b",
        "\x9b",
        "[",
        "]",
        "0m",
        "8;;",
        "(",
        "B",
        "\x07",
        "\x1b\\",
        "\\",
        "x1b[",
        "u001b[",
        "31m",
        "a",
        " ",
        "\n",
        "P",
    ]
)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a\x1b[1;31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link", "link"),
        ("\x1b(B\x1b[mdone", "done"),
        ("a \x1b\x1b[0m] b", "a ] b"),
        ("half \x1b", "half "),
        ("\x9b31mred\x9b", "red"),
        ("no escape", "no escape"),
    ],
)
def test_escape_sequences_are_taken_out(text: str, plain: str) -> None:
    assert strip_escapes(text) == plain


@given(st.lists(PIECES, max_size=30).map("".join) | st.binary(max_size=300).map(lambda raw: raw.decode("latin-1")))
def test_twice_is_once(text: str) -> None:
    once = strip_escapes(text)
    assert strip_escapes(once) == once
    assert "\x1b" not in once
    assert may_hold_escape(text) or strip_all_colours(text) == text


@pytest.mark.parametrize(
    "piece", ["\x1b", "\x1b]", "\x1b[", "\x1b[1;", "\x1b]8;;a", "\x9b", "\\", "\\x1b[", "\\u001b[0;"]
)
def test_time_is_linear_whatever_the_text(piece: str) -> None:
    # Quadratic time would take hours here, so whoever waits for the tests notices it.
    assert "\x1b" not in strip_all_colours(piece * 400_000)


@pytest.mark.parametrize(
    "text",
    [
        "\\u001b(B\\u001b[mpass\\033(Bword",
        "\\x1B(Bpass\\e(Bword",
        "\\u001b[36mpassword\\u001b[0m",
        "\\x1b[36mpassword\\x1b[0m",
        "\\\\033[1mpass\\e[0mword",
    ],
)
def test_spelled_colours_are_taken_out(text: str) -> None:
    assert strip_all_colours(text) == "password"
    assert may_hold_escape(text)
    assert redact(f"{text}: hunter-7-Gold-17") == "password: [REDACTED]"


def test_only_the_line_of_a_hidden_secret_loses_its_colours() -> None:
    text = "\x1b[32mok\x1b[0m\n\x1b[36mdb_password\x1b[0m=\x1b[35mhunter2hunter2\x1b[0m\n\x1b[31mred\x1b[0m"
    assert redact(text) == "\x1b[32mok\x1b[0m\ndb_password=[REDACTED]\n\x1b[31mred\x1b[0m"


def test_colours_stay_around_a_block_of_other_length() -> None:
    key = "\x1b[1m-----BEGIN\x1b[0m PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----"
    assert redact(f"\x1b[1mone\x1b[0m\n{key}\n\x1b[1mtwo\x1b[0m") == "\x1b[1mone\x1b[0m\n[REDACTED]\n\x1b[1mtwo\x1b[0m"
    assert redact("\x1b]0;a\nb\x07\n\x1b[1mto\x1b[0mken=hunter2hunter2") == "\ntoken=[REDACTED]"


RED = "\x1b[31m"
END = "\x1b[0m"


def test_line_that_is_shown_gets_its_colours_back() -> None:
    raw = f"plain\n{RED}3 rows{END} lost\r\n\x1b[1;38;5;9mbold{END}\n"
    assert find_coloured_lines(raw, strip_escapes(raw)) == {
        "3 rows lost\r": f"{RED}3 rows{END} lost\r",
        "bold": f"\x1b[1;38;5;9mbold{END}",
    }


@pytest.mark.parametrize(
    "line",
    [
        "plain",
        f"{RED}\x1b[2Kcleared{END}",
        f"{RED}\x1b]0;title\x07titled{END}",
        f"{RED}moved\x1b[3A{END}",
        f"{RED}{END}",
        f"{RED}{'x' * 3000}{END}",
        f"{RED}odd\x1b",
    ],
)
def test_line_that_does_more_than_colour_stays_plain(line: str) -> None:
    assert find_coloured_lines(line, strip_escapes(line)) == {}


def test_line_that_was_redacted_stays_without_colours() -> None:
    raw = f"token {RED}s3cr{END}{RED}et-value{END}\n{RED}fine{END}"
    assert find_coloured_lines(raw, "token [REDACTED]\nfine") == {"fine": f"{RED}fine{END}"}
