from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from httpx2 import Response
    from starlette.testclient import TestClient

    from pytest_golden.web.services import Services
    from tests.web.conftest import Visit

SECRET = "shared"
_SIGNED_BY = {
    "github": "X-Hub-Signature-256",
    "gitlab": "X-Gitlab-Token",
    "bitbucket": "X-Hub-Signature",
    "callback": "X-Golden-Signature-256",
}
NEWS = {"source": "grafana", "signal_type": "positive", "summary": "rows are back", "external_id": "1"}


@pytest.fixture
def open_door(visit: Visit) -> TestClient:
    """A client of a site that knows the secret, and demands the token for all else."""
    return visit(webhook_secret=SECRET, demands_token=True)


def send(
    client: TestClient, news: Any, secret: str = SECRET, path: str = "/webhooks/callback", **headers: str
) -> Response:
    body = news if isinstance(news, bytes) else json.dumps(news).encode()
    name = _SIGNED_BY[path.rpartition("/")[2]]
    signed = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    proof = secret if name == "X-Gitlab-Token" else f"sha256={signed}"
    return client.post(path, content=body, headers={name: proof, **headers})


def test_signed_news_is_kept_once(open_door: TestClient, services: Services) -> None:
    first, again = send(open_door, NEWS), send(open_door, NEWS)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    (orphan,) = services.journal.orphans()
    assert (orphan.id, orphan.summary) == (first.json()["signal_id"], "rows are back")


@pytest.mark.parametrize(
    ("path", "headers", "news"),
    [
        (
            "/webhooks/gitlab",
            {},
            {"object_kind": "pipeline", "object_attributes": {"id": 1, "status": "failed", "sha": "5a3b9c1"}},
        ),
        (
            "/webhooks/bitbucket",
            {"X-Event-Key": "repo:commit_status_created"},
            {"commit_status": {"key": "unit", "name": "unit", "state": "FAILED"}},
        ),
    ],
)
def test_other_forges_have_a_door_each(
    open_door: TestClient, services: Services, path: str, headers: dict[str, str], news: Any
) -> None:
    assert send(open_door, news, "wrong", path, **headers).status_code == 401
    assert send(open_door, news, path=path, **headers).status_code == 200
    (orphan,) = services.journal.orphans()
    assert (orphan.source, orphan.signal_type) == (path.rpartition("/")[2], "negative")


def test_news_from_another_site_or_proxy_comes_in_by_its_signature_alone(open_door: TestClient) -> None:
    headers = {"Origin": "https://grafana.example", "Sec-Fetch-Site": "cross-site"}
    assert send(open_door, NEWS, **headers).status_code == 200


def test_unsigned_news_is_refused_and_soon_too_often(open_door: TestClient, services: Services) -> None:
    codes = [send(open_door, NEWS, "wrong").status_code for _ in range(250)]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert services.journal.orphans() == ()
    assert send(open_door, NEWS).status_code == 200


@pytest.mark.parametrize(
    ("news", "code"),
    [
        (b"{", 400),
        (b"[]", 400),
        ({**NEWS, "source": "human"}, 400),
        ({**NEWS, "source": "golden"}, 400),
        ({**NEWS, "more": 1}, 400),
        ({key: value for key, value in NEWS.items() if key != "external_id"}, 400),
        ({**NEWS, "summary": "a\0b"}, 400),
        ({**NEWS, "entry_id": "entry_that_is_not_there"}, 422),
    ],
)
def test_news_of_the_wrong_shape_is_refused(open_door: TestClient, services: Services, news: Any, code: int) -> None:
    answer = send(open_door, news)
    assert answer.status_code == code
    assert answer.json()["detail"]
    assert services.journal.orphans() == ()


def test_without_a_secret_webhooks_are_closed(client: TestClient) -> None:
    answer = send(client, NEWS)
    assert answer.status_code == 404
    assert "GOLDEN_WEBHOOK_SECRET" in answer.json()["detail"]


def test_delivery_of_github_is_heard_or_passed_over(open_door: TestClient, services: Services) -> None:
    review = {
        "action": "submitted",
        "review": {"id": 7, "state": "approved", "author_association": "OWNER", "user": {"login": "ada"}},
        "pull_request": {"number": 3, "head": {"sha": "a" * 40}, "title": "Faster"},
        "repository": {"id": 1, "full_name": "a/b"},
    }
    heard = send(open_door, review, path="/webhooks/github", **{"X-GitHub-Event": "pull_request_review"})
    assert heard.status_code == 200
    assert [signal.source for signal in services.journal.orphans()] == ["github"]
    passed_over = send(open_door, {"zen": "x"}, path="/webhooks/github", **{"X-GitHub-Event": "ping"})
    assert passed_over.json() == {"ignored": True}
