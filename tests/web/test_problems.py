"""What visitors are told when what the server stands on breaks while it serves: that it does, and nothing of this machine."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pytest

from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from pytest_golden.web.services import Services

API = "/api/v1"
ENTRY = {"intent": "x", "agent_id": "a"}


def test_store_that_was_moved_takes_nothing_until_it_is_back(
    client: TestClient, services: Services, tmp_path: Path
) -> None:
    path = services.store.path
    assert path is not None
    assert client.post(f"{API}/entries", json=ENTRY).status_code == 201
    elsewhere = path.rename(tmp_path / "elsewhere.db")
    answer = client.post(f"{API}/entries", json=ENTRY)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert str(tmp_path) not in answer.text
    elsewhere.rename(path)
    assert client.post(f"{API}/entries", json=ENTRY).status_code == 201


def test_file_that_takes_the_place_of_the_store_is_shown_from_then_on(
    client: TestClient, services: Services, tmp_path: Path
) -> None:
    path = services.store.path
    assert path is not None
    assert client.post(f"{API}/entries", json=ENTRY).status_code == 201
    with Store.open(tmp_path / "other.db") as other:
        Journal(other).log_intent("Of the other file", agent_id="b")
    (tmp_path / "other.db").replace(path)
    assert "Of the other file" in client.get("/journal").text
    assert client.post(f"{API}/entries", json=ENTRY).status_code == 201
    assert [entry["intent"] for entry in client.get(f"{API}/entries").json()["items"]] == ["x", "Of the other file"]


@pytest.mark.parametrize("address", ["/", "/journal", f"{API}/entries"])
def test_store_that_is_gone_is_told_with_what_to_do(client: TestClient, services: Services, address: str) -> None:
    path = services.store.path
    assert path is not None
    path.unlink()
    answer = client.get(address)
    assert answer.status_code == 503
    assert "moved or removed while this server ran" in html.unescape(answer.text)
    assert not path.exists()


def test_store_that_a_newer_version_brought_up_to_date_is_told_with_what_to_do(
    client: TestClient, services: Services
) -> None:
    with services.store.write() as connection:
        connection.exec_driver_sql("UPDATE golden_version SET version_num = '9999'")
    for answer in (client.get("/journal"), client.post(f"{API}/entries", json=ENTRY)):
        assert answer.status_code == 503
        assert "by a newer pytest-golden-projects: restart this server" in answer.text


def test_store_that_cannot_be_read_is_told_of_without_its_path(
    client: TestClient, services: Services, tmp_path: Path
) -> None:
    assert client.post(f"{API}/entries", json=ENTRY).status_code == 201
    path = services.store.path
    assert path is not None
    services.store.close()
    for address in ("/journal", f"{API}/entries", "/", "/projects"):
        answer = client.get(address)
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("content", [b"golden_projects: [\n : secret", b"\xff\xfe\x00", b"- a"])
def test_manifest_that_cannot_be_used_closes_the_projects_alone(
    client: TestClient, manifest: Path, content: bytes
) -> None:
    manifest.write_bytes(content)
    for path in ("/projects", "/projects/orders", f"{API}/projects", f"{API}/projects/orders"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert str(manifest.parent) not in answer.text
        assert "secret" not in answer.text
    for path in ("/", "/journal", f"{API}/runs"):
        assert client.get(path).status_code == 200
