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
from tests.web.conftest import TOKEN, form_token

if TYPE_CHECKING:
    from pathlib import Path

    from httpx2 import Response
    from starlette.testclient import TestClient

    from tests.web.conftest import Visit


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


@pytest.fixture
def closed(visit: Visit) -> TestClient:
    """A client of a site that demands the token."""
    return visit(demands_token=True)


def sign_in(client: TestClient, token: str = TOKEN, asked: str = "/") -> Response:
    page = client.get("/sign-in")
    return client.post("/sign-in", data={"csrf_token": form_token(page.text), "token": token, "next": asked})


def test_stranger_is_asked_for_the_token_and_comes_to_where_it_wanted(closed: TestClient) -> None:
    sent = closed.get("/journal?agent=a%26b&type=x")
    assert sent.status_code == 303
    assert sent.headers["location"] == "/sign-in?next=%2Fjournal%3Fagent%3Da%2526b%26type%3Dx"
    assert 'value="/journal?agent=a%26b&amp;type=x"' in closed.get(sent.headers["location"]).text
    answer = sign_in(closed, asked="/journal?agent=a%26b&type=x")
    assert answer.headers["location"] == "/journal?agent=a%26b&type=x"
    assert closed.get("/nowhere").status_code == 404


def test_programs_are_told_how_to_come_in(closed: TestClient) -> None:
    for path in ("/api/v1/runs", "/events"):
        answer = closed.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert closed.get("/nowhere", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 404
    assert closed.get("/nowhere", headers={"Authorization": f"bearer  {TOKEN}"}).status_code == 404
    for wrong in (b"Bearer", b"Bearer x", f"Bearer {TOKEN}x".encode(), b"Bearer \xc3\xa9"):
        assert closed.get("/nowhere", headers={b"Authorization": wrong}).status_code == 401
    assert closed.get("/nowhere", headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401


def test_token_may_have_any_letters(visit: Visit) -> None:
    token = "schl\N{LATIN SMALL LETTER U WITH DIAERESIS}ssel-der-alles-\N{LATIN SMALL LETTER O WITH DIAERESIS}ffnet"
    client = visit(token=token, demands_token=True)
    assert client.get("/nowhere", headers={b"Authorization": f"Bearer {token}".encode()}).status_code == 404
    assert client.get("/nowhere", headers={b"Authorization": f"Bearer {token}x".encode()}).status_code == 401


def test_open_paths_say_nothing_to_strangers(closed: TestClient) -> None:
    assert closed.get("/healthz").text == "ok\n"
    assert closed.get("/static/style.css").status_code == 200
    assert closed.get("/healthz/x").status_code == 303
    assert closed.get("/sign-in/x").status_code == 303


def test_wrong_token_opens_nothing(closed: TestClient) -> None:
    answer = sign_in(closed, "wrong")
    assert answer.status_code == 401
    assert "golden_session" not in answer.cookies
    assert closed.get("/").status_code == 303


def test_session_is_ended_by_signing_out_also_for_who_has_copied_it(closed: TestClient) -> None:
    sign_in(closed)
    session = closed.cookies["golden_session"]
    page = closed.get("/sign-in")
    assert closed.post("/sign-out", data={"csrf_token": form_token(page.text)}).status_code == 303
    # The last two bits of a signature's last sign say nothing, and neither does what fills it up.
    siblings = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for same in (session, *(session[:-1] + sign for sign in siblings), f"{session}="):
        closed.cookies.set("golden_session", same)
        assert closed.get("/nowhere").status_code == 303


@pytest.mark.parametrize("forged", [b"", b"x", b"x.y.z", b"\xe2\x98\x83", b"a" * 5000])
def test_session_that_somebody_made_up_opens_nothing(closed: TestClient, forged: bytes) -> None:
    assert closed.get("/nowhere", headers={b"Cookie": b"golden_session=" + forged}).status_code == 303


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:x",
        "",
    ],
)
def test_after_signing_in_nobody_is_sent_elsewhere(closed: TestClient, elsewhere: str) -> None:
    assert sign_in(closed, asked=elsewhere).headers["location"] == "/"


def test_wrong_tokens_are_soon_too_many_and_the_right_one_still_opens(closed: TestClient) -> None:
    codes = [sign_in(closed, "wrong").status_code for _ in range(12)]
    assert codes[-1] == 429
    assert 401 in codes
    refused = sign_in(closed, "wrong")
    assert int(refused.headers["retry-after"]) >= 1
    assert "too many" in refused.text.lower()
    assert sign_in(closed).status_code == 303


def test_wrong_bearers_are_soon_too_many_and_the_right_one_still_opens(closed: TestClient) -> None:
    wrong = {"Authorization": "Bearer wrong"}
    codes = {closed.get("/api/v1/runs", headers=wrong).status_code for _ in range(70)}
    assert codes == {401, 429}
    assert int(closed.get("/api/v1/runs", headers=wrong).headers["retry-after"]) >= 1
    assert closed.get("/nowhere", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 404


def test_forwarded_address_is_believed_behind_a_proxy_alone(visit: Visit) -> None:
    for public_url, expected in (("https://ci.example.org", {401}), (None, {401, 429})):
        client = visit(demands_token=True, public_url=public_url)
        codes = {
            client.get(
                "/api/v1/runs",
                headers={"Authorization": "Bearer wrong", "X-Forwarded-For": f"8.8.8.8, 10.0.0.{number}"},
            ).status_code
            for number in range(70)
        }
        assert codes == expected


def test_a_proxy_that_adds_a_header_of_its_own_is_believed_rather_than_what_was_sent(visit: Visit) -> None:
    client = visit(demands_token=True, public_url="https://ci.example.org")
    codes = set()
    for number in range(70):
        forwarded = [("X-Forwarded-For", f"8.8.0.{number}"), ("X-Forwarded-For", "10.0.0.5")]
        codes.add(client.get("/api/v1/runs", headers=[("Authorization", "Bearer wrong"), *forwarded]).status_code)
    assert codes == {401, 429}


def test_who_comes_through_a_proxy_needs_the_token(visit: Visit) -> None:
    client = visit(public_url="https://ci.example.org")
    assert client.get("/nowhere").status_code == 404
    assert client.get("/nowhere", headers={"Host": "ci.example.org"}).status_code == 303
    for name in ("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", "Via", "X-Real-IP"):
        assert client.get("/nowhere", headers={name: "10.0.0.1"}).status_code == 303


def test_nobody_signs_in_on_this_machine_unless_asked(client: TestClient) -> None:
    assert client.get("/nowhere").status_code == 404


def test_cookies_of_an_earlier_visit_are_no_session_later(closed: TestClient) -> None:
    """Whoever could plant a cookie before somebody signs in has nothing of it afterwards."""
    closed.get("/sign-in")
    planted = closed.cookies["golden_visit"]
    first = sign_in(closed).cookies["golden_session"]
    second = sign_in(closed).cookies["golden_session"]
    assert len({planted, first, second}) == 3
    closed.cookies.clear()
    closed.cookies.set("golden_visit", planted)
    closed.cookies.set("golden_session", planted)
    assert closed.get("/").status_code == 303


def test_session_cookie_is_for_this_site_and_no_script(visit: Visit) -> None:
    for public_url, secure in ((None, False), ("https://ci.example.org/golden", True)):
        client = visit(demands_token=True, public_url=public_url)
        page = client.get("/sign-in")
        # By hand: a secure cookie does not go to where the client of the tests believes to be.
        visited = page.headers["set-cookie"].partition(";")[0]
        fields = {"csrf_token": form_token(page.text), "token": TOKEN}
        answer = client.post("/sign-in", data=fields, headers={"Cookie": visited})
        cookie = answer.headers["set-cookie"].lower()
        assert "golden_session=" in cookie
        assert all(part in cookie for part in ("httponly", "samesite=lax", "max-age="))
        assert ("secure" in cookie) is secure
        assert TOKEN not in cookie
        assert answer.headers["cache-control"] == "no-store"


def test_two_servers_on_one_machine_leave_each_others_cookies_alone(visit: Visit) -> None:
    one, other = visit(demands_token=True, cookie_suffix="_a"), visit(demands_token=True, cookie_suffix="_b")
    other.cookies.jar = one.cookies.jar
    token = form_token(one.get("/sign-in").text)
    sign_in(other)
    assert one.get("/").status_code == 303
    assert one.post("/sign-in", data={"csrf_token": token, "token": TOKEN}).status_code == 303
    assert one.get("/").status_code == other.get("/").status_code == 200
    assert set(one.cookies) == {"golden_visit_a", "golden_session_a", "golden_visit_b", "golden_session_b"}
