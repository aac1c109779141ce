from __future__ import annotations

import pytest

from pytest_golden.redaction.escapes import find_coloured_lines, strip_escapes

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
