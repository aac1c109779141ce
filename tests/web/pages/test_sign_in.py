from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import TOKEN, form_token

if TYPE_CHECKING:
    from httpx2 import Response
    from starlette.testclient import TestClient

    from tests.web.conftest import Visit


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
