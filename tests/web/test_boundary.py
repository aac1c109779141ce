from __future__ import annotations

import asyncio
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from pytest_golden.storage.store import Store
from pytest_golden.web import boundary as bodies
from pytest_golden.web.access import PublicPlace, Refusal
from pytest_golden.web.app import make_app
from pytest_golden.web.boundary import Bodies, pass_over, replay, until_end
from pytest_golden.web.services import ServeOptions, Services
from tests.web.conftest import BASE, TOKEN, form_token
from tests.web.seeded import seed

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import Receive

    from tests.web.conftest import Visit

_PATH = re.compile(r'([\w-]+)="(/[^"]*)"')
CALLBACK = "/webhooks/callback"
MIB = 1024 * 1024


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "localhost:1", "[::1]:8765", "LOCALHOST:8765"])
def test_names_of_this_machine_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8765",
        "127.0.0.1:x",
        "",
        ":8765",
        "127.0.0.1.",
        "localhost.",
        "[::ffff:127.0.0.1]",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "user@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1, evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1/x",
    ],
)
def test_names_of_others_that_point_here_are_not_answered(client: TestClient, host: str) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == 421


def test_public_name_is_answered_with_and_without_the_prefix(visit: Visit) -> None:
    client = visit(public_url="https://ci.example.org/golden/")
    for host in ("ci.example.org", "ci.example.org:443", "127.0.0.1:8765"):
        for path in ("/healthz", "/golden/healthz"):
            assert client.get(path, headers={"Host": host}).text == "ok\n"
    assert client.get("/healthz", headers={"Host": "ci.example.org:444"}).status_code == 421
    for path in ("/goldenhealthz", "/goldenX/healthz", "/golden/golden/healthz", "/GOLDEN/healthz", "/golden//healthz"):
        assert client.get(path).status_code == 404
    assert client.get("/golden").status_code == client.get("/golden/").status_code == 200


def test_links_and_cookies_behind_a_proxy_have_its_prefix_and_are_secure(visit: Visit) -> None:
    client = visit(public_url="https://ci.example.org/golden", demands_token=True)
    answer = client.get("/golden/sign-in")
    assert 'action="/golden/sign-in"' in answer.text
    assert 'href="/golden/static/style.css?v=' in answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("path=/golden", "secure", "httponly", "samesite=strict"))
    assert "max-age" in answer.headers["strict-transport-security"]


def test_every_link_and_form_of_the_whole_site_has_the_prefix(tmp_path: Path) -> None:
    seed(tmp_path)
    manifest = tmp_path / "golden_projects.yaml"
    options = ServeOptions(manifest, PublicPlace.parse("https://ci.example.org/golden", "127.0.0.1"), token=TOKEN)
    with Store.open(tmp_path / ".golden" / "golden.db", follows=True) as store:
        client = TestClient(make_app(options, Services.on(store, manifest)), BASE)
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        waiting, seen = ["/golden/"], {"/golden/"}
        while waiting:
            answer = client.get(waiting.pop())
            assert answer.status_code == 200, answer.url
            if answer.headers["content-type"].startswith("text/html"):
                # Of what scripts are told too; a link to a place on the same page or to another search has no path.
                paths = _PATH.findall(answer.text)
                assert [path for _, path in paths if not path.startswith("/golden/")] == [], answer.url
                new = {unescape(path).partition("#")[0] for name, path in paths if name == "href"} - seen
                seen |= new
                waiting += new
    assert any(path.startswith("/golden/results/") for path in seen)
    assert any(path.startswith("/golden/plans/") for path in seen)


def test_every_answer_forbids_what_a_page_does_not_need(client: TestClient) -> None:
    for path in ("/healthz", "/nowhere", "/sign-in", "/api/v1/nowhere", "/static/style.css"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": BASE, "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_others_change_nothing(client: TestClient, headers: dict[str, str]) -> None:
    page = client.get("/sign-in")
    fields = {"csrf_token": form_token(page.text), "token": TOKEN}
    assert client.post("/sign-in", data=fields, headers=headers).status_code == 403
    own = {"Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/sign-in", data=fields, headers=own).status_code == 303


def test_form_of_another_visit_is_refused(visit: Visit) -> None:
    client, other = visit(), visit()
    token = form_token(other.get("/sign-in").text)
    for told in (token, "", "x" * 100_000, "\N{SNOWMAN}"):
        client.get("/sign-in")
        assert client.post("/sign-in", data={"csrf_token": told, "token": TOKEN}).status_code == 403


@pytest.mark.parametrize("kind", ["application/json", "text/plain", ""])
def test_what_is_no_form_is_refused(client: TestClient, kind: str) -> None:
    assert client.post("/sign-in", content=b"{}", headers={"Content-Type": kind}).status_code == 415


def test_file_in_a_form_is_refused(client: TestClient) -> None:
    token = form_token(client.get("/sign-in").text)
    answer = client.post("/sign-in", data={"csrf_token": token}, files={"token": b"x"})
    assert answer.status_code == 400


def test_large_bodies_are_refused_whether_or_not_they_say_so(visit: Visit) -> None:
    client = visit(webhook_secret="secret")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/sign-in", content=b"x" * (MIB + 1), headers=form).status_code == 413
    assert client.post("/sign-in", content=(b"x" * MIB for _ in range(20)), headers=form).status_code == 413
    assert client.post(CALLBACK, content=b"x" * (2 * MIB + 1)).status_code == 413
    # As large as it may be, it is read, and then is not signed.
    assert client.post(CALLBACK, content=b"x" * (2 * MIB)).status_code == 401


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_whose_length_is_told_in_two_ways_is_refused_and_the_connection_closed(
    client: TestClient, method: str
) -> None:
    lengths = {"Content-Length": "1", "Transfer-Encoding": "chunked"}
    answer = client.request(method, "/sign-in", content=b"0", headers=lengths)
    assert answer.status_code == 400
    assert answer.headers["connection"] == "close"


def test_read_only_server_writes_nothing(visit: Visit) -> None:
    client = visit(is_read_only=True, webhook_secret="secret")
    assert client.post(CALLBACK, content=b"{}").status_code == 403
    assert client.post("/journal/entry_x/assess").status_code == 403
    assert client.get("/healthz").status_code == 200


def test_errors_are_problems_to_programs_and_pages_to_people(client: TestClient) -> None:
    told = client.get("/api/v1/nowhere")
    assert told.headers["content-type"] == "application/problem+json"
    assert {key: told.json()[key] for key in ("type", "title", "status")} == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
    }
    shown = client.get("/nowhere")
    assert shown.status_code == 404
    assert shown.headers["content-type"].startswith("text/html")
    assert "<h1>Not Found</h1>" in shown.text


def test_slash_too_many_leads_nowhere_else(client: TestClient) -> None:
    for path in ("/journal/", "/api/v1/runs/", "//evil.example/", "/events/"):
        answer = client.get(f"{BASE}{path}")
        assert answer.status_code == 404
        assert "location" not in answer.headers


def test_method_that_a_path_does_not_have_is_refused(client: TestClient) -> None:
    assert client.delete("/sign-in").status_code == 405
    assert client.get("/webhooks/callback").status_code == 405


def test_static_files_may_be_kept_and_nothing_else_is_found_there(client: TestClient) -> None:
    assert "immutable" in client.get("/static/style.css").headers["cache-control"]
    assert client.get("/healthz").headers["cache-control"] == "no-store"
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/",
    ):
        assert client.get(path).status_code == 404


KIB = 1024
MOST = 200 * KIB
LARGE, SMALL = b"x" * (164 * KIB), b"x" * (64 * KIB)


def send(*parts: bytes, has_more: bool = False) -> Receive:
    """Return what says these parts, and then that the sender has gone."""
    left: list[Any] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    left[-1]["more_body"] = has_more
    left.append({"type": "http.disconnect"})

    async def receive() -> Any:
        return left.pop(0)

    return receive


async def never() -> Any:
    await asyncio.Event().wait()


def status_of(bodies: Bodies, receive: Receive, declared: str | None = None) -> int:
    with pytest.raises(Refusal) as refused:
        asyncio.run(bodies.read(receive, declared, MOST))
    return int(refused.value.status)


def test_a_body_is_read_to_its_end_and_told_again_once() -> None:
    async def go() -> None:
        receive = send(b"a", b"", b"b")
        body = await Bodies().read(receive, "2", MOST)
        again = replay(body, receive)
        assert await again() == {"type": "http.request", "body": b"ab", "more_body": False}
        assert (await again())["type"] == "http.disconnect"

    asyncio.run(go())


@pytest.mark.parametrize("declared", [str(MOST + 1), "-1", "1e3", "\u00b2", "", "9" * 5000])
def test_what_says_that_it_is_too_large_is_not_read(declared: str) -> None:
    assert status_of(Bodies(), send(b"a"), declared) == 413


def test_what_is_too_large_without_saying_so_is_refused() -> None:
    assert status_of(Bodies(), send(LARGE, SMALL)) == 413


def test_who_goes_or_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert status_of(Bodies(), send(b"a", has_more=True)) == 400
    monkeypatch.setattr(bodies, "_MOST_BODY_SECONDS", 0.01)
    assert status_of(Bodies(), never) == 408


def test_large_bodies_wait_for_room_and_small_ones_never() -> None:
    async def go() -> None:
        room, may_end = Bodies(most_together_bytes=150 * KIB), asyncio.Event()
        rest = send(LARGE, b"end")
        is_begun = asyncio.Event()

        async def slowly() -> Any:
            if is_begun.is_set():
                await may_end.wait()
            is_begun.set()
            return await rest()

        slow = asyncio.create_task(room.read(slowly, None, MOST))
        await is_begun.wait()
        with pytest.raises(Refusal) as refused:
            await room.read(send(SMALL, LARGE[: 100 * KIB]), None, MOST)
        assert (int(refused.value.status), refused.value.headers) == (503, {"Retry-After": "30"})
        for _ in range(3):
            assert await room.read(send(SMALL), None, MOST) == SMALL
        may_end.set()
        assert await slow == LARGE + b"end"

    asyncio.run(go())


def test_room_is_given_back_however_a_body_ends() -> None:
    room = Bodies(most_together_bytes=100 * KIB)
    for _ in range(3):
        assert status_of(room, send(LARGE, has_more=True)) == 400
        assert status_of(room, send(LARGE, b"x" * (20 * KIB))) == 503
        assert status_of(room, send(LARGE, SMALL)) == 413
        assert asyncio.run(room.read(send(LARGE), None, MOST)) == LARGE


def test_what_is_left_of_a_refused_body_is_passed_over_and_nobody_waited_for() -> None:
    async def go() -> None:
        body = until_end(send(SMALL, LARGE, b"end"))
        with pytest.raises(Refusal):
            await Bodies().read(body, None, 100 * KIB)
        assert not await pass_over(body, Headers())
        assert (await body())["type"] == "http.disconnect"

        asked = send(b"a")
        assert await pass_over(asked, Headers({"Expect": "100-continue"}))
        assert (await asked())["body"] == b"a"

    asyncio.run(go())


def test_who_goes_on_sending_what_nobody_wants_is_not_listened_to_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_MOST_PASSED_BYTES", 100 * KIB)
    assert asyncio.run(pass_over(send(SMALL, SMALL, SMALL), Headers()))
    monkeypatch.setattr(bodies, "_MOST_PASSING_SECONDS", 0.01)
    assert asyncio.run(pass_over(never, Headers()))
