import pytest

from pytest_golden.redaction.escapes import strip_escapes


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a\x1b[1;31mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link", "link"),
        ("no escape", "no escape"),
    ],
)
def test_escape_sequences_are_taken_out(text: str, plain: str) -> None:
    assert strip_escapes(text) == plain
