from __future__ import annotations

from typing import TYPE_CHECKING

from itsdangerous import TimestampSigner
from starlette.responses import Response

from pytest_golden.web.access import PublicPlace
from pytest_golden.web.visitor import Sessions

if TYPE_CHECKING:
    import pytest

HOUR = 60 * 60


def test_session_ends_after_half_a_day_whatever_the_browser_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: now)
    sessions, answer = Sessions("token", PublicPlace()), Response()
    sessions.open(answer)
    name, _, cookie = answer.headers["set-cookie"].partition(";")[0].partition("=")
    assert sessions.is_open({name: cookie})
    now += 12 * HOUR
    assert sessions.is_open({name: cookie})
    now += 1
    assert not sessions.is_open({name: cookie})
