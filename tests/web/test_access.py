from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from starlette.datastructures import Headers

from pytest_golden.web import access as attempts
from pytest_golden.web.access import (
    Attempts,
    BearerCheck,
    Refusal,
    Token,
    is_loopback,
    is_own_host,
    is_own_origin,
    tell_token,
    warn_of_host,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("bound", "host", "is_own"),
    [
        ("127.0.0.1", "127.0.0.1:8766", True),
        ("127.0.0.1", "127.0.0.1:", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "LOCALHOST:1", True),
        ("127.0.0.1", "[::1]:8766", True),
        ("127.0.0.1", "evil.example:8766", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "localhost.", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", ":8766", False),
        ("127.0.0.1", "127.0.0.1:x", False),
        ("127.0.0.1", "127.0.0.1:80:80", False),
        ("127.0.0.1", "[127.0.0.1]", False),
        ("127.0.0.1", "[localhost]", False),
        ("127.0.0.1", "::1", False),
        ("127.0.0.1", "0.0.0.0:8766", False),
        ("127.0.0.1", "10.0.0.5:8766", False),
        ("127.0.0.9", "127.0.0.9:8766", True),
        ("10.0.0.5", "10.0.0.5:8766", True),
        ("0.0.0.0", "10.0.0.5:8766", True),
        # It is the address that the command prints.
        ("0.0.0.0", "0.0.0.0:8766", True),
        ("0.0.0.0", "[10.0.0.5]:8766", False),
        ("0.0.0.0", "evil.example", False),
        ("::", "[fe80::1]:8766", True),
        ("::", "10.0.0.5:8766", True),
        ("::", "2001:db8::1:80", False),
        ("::", "[fe80::1%evil.example]", False),
        ("2001:0DB8::5", "[2001:db8::5]:8766", True),
        ("2001:db8::5", "[2001:db8::6]:8766", False),
        ("Build.example", "build.example:8766", True),
        ("build.example", "build.example.", False),
        ("build.example", "[build.example]", False),
        ("", "10.0.0.5", False),
    ],
)
def test_only_a_servers_own_names_are_answered(bound: str, host: str, is_own: bool) -> None:
    assert is_own_host(host, bound) is is_own


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("http://127.0.0.1:8766", "127.0.0.1:8766", True),
        ("HTTP://LOCALHOST:8766", "localhost:8766", True),
        # Browsers leave out the port that goes without saying; others may not.
        ("http://localhost", "localhost:80", True),
        ("http://localhost:80", "localhost", True),
        ("http://localhost:8766", "localhost:9999", False),
        ("http://localhost", "127.0.0.1", False),
        ("https://localhost:8766", "localhost:8766", False),
        ("http://localhost.", "localhost", False),
        ("null", "localhost", False),
        ("", "localhost", False),
    ],
)
def test_only_pages_of_the_same_origin_are_its_own(origin: str, host: str, is_own: bool) -> None:
    assert is_own_origin(origin, host) is is_own


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.0.0.9", True),
        ("::1", True),
        ("localhost", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("127.1", False),
        ("localhost.example.org", False),
    ],
)
def test_loopback_is_told_from_what_others_reach(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_token_that_was_given_is_never_told() -> None:
    given = Token.read(" a-token-of-the-team-0123\n")
    assert (given.text, given.is_given) == ("a-token-of-the-team-0123", True)
    assert list(tell_token(given)) == []
    assert given.text not in repr(given)


def test_a_short_token_is_warned_of() -> None:
    (told,) = tell_token(Token.read("secret"))
    assert told == "warning: GOLDEN_SERVE_TOKEN is shorter than 16 characters, and may be guessed"


def test_a_token_is_made_once_where_none_was_given_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    made, again = Token.read(" "), Token.read("")
    assert (made.is_given, made.is_new, again.is_new) == (False, True, False)
    assert len(made.text) > 30
    assert made.text == again.text
    assert list(tell_token(made)) == [f"token: {made.text}"]
    assert list(tell_token(made, "http://a/sign-in")) == [f"sign in once by http://a/sign-in?token={made.text}"]
    assert list(tell_token(again)) == [f"the token is in {tmp_path}/settings/pytest-golden/serve-token"]
    (tmp_path / "settings" / "pytest-golden" / "serve-token").write_text("")
    assert Token.read("").text
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings" / "pytest-golden" / "serve-token"))
    lost = Token.read("")
    assert (lost.is_new, lost.text != made.text) == (True, True)


def test_a_host_that_others_reach_is_warned_of() -> None:
    (told,) = warn_of_host("0.0.0.0")
    assert told.startswith("warning: 0.0.0.0 is reached from other machines")
    assert list(warn_of_host("127.0.0.1")) == []


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


now = [0.0]


def make(most: int = 2) -> Attempts:
    now[0] = 0.0
    return Attempts(most, 300.0, lambda: now[0])


def is_refused(address: str, *, by: Attempts) -> bool:
    try:
        by.count(address)
    except Refusal as refusal:
        return refusal.status == 429
    return False


def test_an_address_that_is_wrong_too_often_is_told_when_it_may_go_on() -> None:
    wrongs = make()
    assert [is_refused("10.0.0.5", by=wrongs) for _ in range(3)] == [False, False, True]
    assert not is_refused("10.0.0.6", by=wrongs)
    now[0] = 100.0
    with pytest.raises(Refusal) as refused:
        wrongs.count("10.0.0.5")
    assert refused.value.headers == {"Retry-After": "200"}
    now[0] = 300.0
    assert not is_refused("10.0.0.5", by=wrongs)


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.5", "10.0.0.5", True),
        ("::ffff:10.0.0.5", "::ffff:10.0.0.6", False),
        ("10.0.0.5", "10.0.0.6", False),
        ("10.0.0.5:1025", "10.0.0.5:1026", True),
        ("[2001:db8::1]:1025", "2001:db8::2", True),
        ("", "unknown", False),
    ],
)
def test_all_addresses_of_one_network_are_one_sender(one: str, other: str, are_same: bool) -> None:
    wrongs = make(1)
    assert not is_refused(one, by=wrongs)
    assert is_refused(other, by=wrongs) is are_same


def test_of_very_many_addresses_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_MOST_ADDRESSES", 3)
    wrongs = make(1)
    for number in range(4):
        assert not is_refused(f"10.0.0.{number}", by=wrongs)
    assert [is_refused(f"10.0.0.{number}", by=wrongs) for number in (3, 2, 1, 0)] == [True, True, True, False]


def test_who_is_wrong_in_many_threads_at_once_is_counted_each_time() -> None:
    wrongs, times = make(1_000), 3_000
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            refused = sum(pool.map(lambda _: is_refused("10.0.0.5", by=wrongs), range(times)))
    finally:
        sys.setswitchinterval(before)
    assert refused == times - 1_000
