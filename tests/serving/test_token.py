from __future__ import annotations

from pytest_golden.web.access import Token, tell_token, warn_of_host


def test_a_token_that_was_given_is_never_told() -> None:
    given = Token.read(" a-token-of-the-team-0123\n")
    assert (given.text, given.is_given) == ("a-token-of-the-team-0123", True)
    assert list(tell_token(given)) == []
    assert given.text not in repr(given)


def test_a_short_token_is_warned_of() -> None:
    (told,) = tell_token(Token.read("secret"))
    assert told == "warning: GOLDEN_SERVE_TOKEN is shorter than 16 signs, and may be guessed"


def test_a_token_is_made_where_none_was_given_and_told() -> None:
    made, other = Token.read(" "), Token.read("")
    assert not made.is_given
    assert len(made.text) > 30
    assert made.text != other.text
    assert list(tell_token(made)) == [f"token: {made.text}"]


def test_a_host_that_others_reach_is_warned_of() -> None:
    (told,) = warn_of_host("0.0.0.0")
    assert told.startswith("warning: 0.0.0.0 is reached from other machines")
    assert list(warn_of_host("127.0.0.1")) == []
