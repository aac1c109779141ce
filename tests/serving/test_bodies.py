from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from starlette.datastructures import Headers

from pytest_golden.web import boundary as bodies
from pytest_golden.web.access import Refusal
from pytest_golden.web.boundary import Bodies, pass_over, replay, until_end

if TYPE_CHECKING:
    from starlette.types import Receive

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
