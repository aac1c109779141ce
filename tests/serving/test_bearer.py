from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from pytest_golden.web.access import BearerCheck, Refusal


def say(authorization: bytes) -> Headers:
    return Headers(raw=[(b"authorization", authorization)])


@pytest.mark.parametrize("token", ["simple", "schl\u00fcssel", "voil\u00e0", "a\udcff", "\N{SNOWMAN}"])
def test_a_token_of_any_letters_opens_as_clients_send_it(token: str) -> None:
    check = BearerCheck(token)
    sent = token.encode("utf-8", "surrogateescape")
    for scheme in (b"Bearer ", b"bearer  ", b"BEARER \t"):
        assert check.is_right(say(scheme + sent + b" "), "10.0.0.5")
    for wrong in (sent[:-1], sent + b"x", b"", b"?" * len(sent)):
        with pytest.raises(Refusal, match="The token is wrong"):
            check.is_right(say(b"Bearer " + wrong), "10.0.0.5")


def test_who_says_no_token_is_not_counted() -> None:
    check = BearerCheck("right")
    for _ in range(100):
        assert not check.is_right(Headers(), "10.0.0.5")
        assert not check.is_right(say(b"Basic right"), "10.0.0.5")


def test_who_is_wrong_often_is_slowed_down_and_who_is_right_never() -> None:
    check, statuses = BearerCheck("right"), []
    for _ in range(61):
        with pytest.raises(Refusal) as refused:
            check.is_right(say(b"Bearer wrong"), "10.0.0.5")
        statuses.append(int(refused.value.status))
    assert statuses == [401] * 60 + [429]
    assert check.is_right(say(b"Bearer right"), "10.0.0.5")
