from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from starlette.testclient import TestClient

from pytest_golden.storage.store import Store
from pytest_golden.web.access import PublicPlace
from pytest_golden.web.app import make_app
from pytest_golden.web.services import ServeOptions, Services

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "the-token-that-opens-the-door"
BASE = "http://127.0.0.1:8765"
_FORM_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')


class Visit(Protocol):
    def __call__(self, *, public_url: str | None = None, host: str = "127.0.0.1", **options: Any) -> TestClient: ...


def form_token(page: str) -> str:
    found = _FORM_TOKEN.search(page)
    assert found is not None
    return found[1]


def sign_in(client: TestClient) -> TestClient:
    """Sign in with the link that the server prints."""
    assert client.get("/sign-in", params={"token": TOKEN}).status_code == 303
    return client


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return tmp_path / "golden_projects.yaml"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "golden.db", busy_seconds=0.2, follows=True) as opened:
        yield opened


@pytest.fixture
def services(store: Store, manifest: Path) -> Services:
    return Services.on(store, manifest)


@pytest.fixture
def visit(services: Services, manifest: Path) -> Visit:
    """Make a client of a site that is served with these options."""

    def make(*, public_url: str | None = None, host: str = "127.0.0.1", **options: Any) -> TestClient:
        told = ServeOptions(manifest, PublicPlace.parse(public_url, host), **{"token": TOKEN, **options})
        return TestClient(make_app(told, services), BASE, follow_redirects=False, raise_server_exceptions=False)

    return make


@pytest.fixture
def client(visit: Visit) -> TestClient:
    """A client of a site on this machine, where a person has signed in."""
    return sign_in(visit())
