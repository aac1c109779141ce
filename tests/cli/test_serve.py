from __future__ import annotations

import signal
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from pytest_golden.storage.store import Store
from tests.running import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden


def read(address: str, token: str | None = None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(address, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_server_says_its_address_when_it_answers_keeps_its_port_and_ends_by_ctrl_c(
    folder: Path, golden: Golden
) -> None:
    with running(folder, "serve") as (process, address):
        assert read(f"{address}/healthz") == (200, "ok\n")
        port = address.rpartition(":")[2]
        ran = golden("serve", "--port", port)
        assert (ran.code, ran.out) == (2, "")
        assert f"cannot listen on 127.0.0.1 port {port}" in ran.err
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) in {0, 130}
        assert process.stderr is not None
        (told,) = process.stderr.read().splitlines()
        assert "sign in once by" in told or "the token is in" in told


def test_first_start_prints_a_link_to_sign_in_by_and_later_ones_where_the_token_is(folder: Path) -> None:
    settings = {"XDG_CONFIG_HOME": str(folder / "settings")}
    kept = folder / "settings" / "pytest-golden" / "serve-token"
    with running(folder, "serve", environment=settings) as (process, address):
        assert process.stderr is not None
        link = process.stderr.readline().strip().removeprefix("golden: sign in once by ")
        token = kept.read_text()
        assert link == f"{address}/sign-in?token={token}"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert read(f"{address}/api/v1/runs")[0] == 401
        assert read(f"{address}/api/v1/runs", token)[0] == 200
        opener = build_opener(HTTPCookieProcessor())
        with opener.open(link, timeout=10) as page:
            assert (page.url, page.status) == (f"{address}/", 200)
        with opener.open(f"{address}/api/v1/runs", timeout=10) as answer:
            assert answer.status == 200
        assert read(f"{address}/sign-in?token=wrong")[0] == 401
    with running(folder, "serve", environment=settings) as (process, address):
        assert process.stderr is not None
        assert process.stderr.readline() == f"golden: the token is in {kept}\n"
        assert read(f"{address}/api/v1/runs", token)[0] == 200


def test_no_token_is_refused_where_a_pipeline_could_come_in(folder: Path, golden: Golden) -> None:
    (folder / "golden_projects.yaml").write_text("golden_projects: [{name: a, path: a.sh}]\n")
    refused = golden("serve", "--no-token", "--store", "golden.db")
    assert (refused.code, refused.out) == (2, "")
    assert "--no-token: a could reach the page and speak as a person" in refused.err
    assert golden("serve", "--no-token", "--host", "0.0.0.0", "--store", "golden.db").code == 2
    (folder / "golden_projects.yaml").write_text("golden_projects: [{name: a, path: a.sh, network: false}]\n")
    with running(folder, "serve", "--no-token") as (_, address):
        assert read(f"{address}/api/v1/runs")[0] == 200


def test_given_token_opens_the_door_and_is_not_printed(folder: Path) -> None:
    given = {"GOLDEN_SERVE_TOKEN": "a-token-of-the-team-0123"}
    with running(folder, "serve", environment=given) as (process, address):
        assert read(f"{address}/api/v1/runs")[0] == 401
        assert read(f"{address}/nowhere", "a-token-of-the-team-0123")[0] == 404
        process.terminate()
        process.wait(timeout=10)
        assert process.stderr is not None
        assert "a-token" not in process.stderr.read()


def test_other_host_is_warned_of_and_demands_the_token_that_is_made(folder: Path) -> None:
    settings = {"XDG_CONFIG_HOME": str(folder / "settings")}
    with running(folder, "serve", "--host", "0.0.0.0", environment=settings) as (process, address):
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        assert any("reached from other machines" in line for line in lines)
        (token,) = (line.strip().rpartition("?token=")[2] for line in lines if "?token=" in line)
        assert read(f"{address}/api/v1/runs")[0] == 401
        assert read(f"{address}/nowhere", token)[0] == 404


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--port", "70000"), "--port 70000: give a number from 0 to 65535"),
        (("--port", "x"), "invalid int value"),
        (("--host", " "), "--host is empty"),
        (("--host", "a" * 64 + ".example"), "cannot listen on aaa"),
        (("--heartbeat-seconds", "0"), "--heartbeat-seconds"),
        (("--heartbeat-seconds", "nan"), "--heartbeat-seconds"),
        (("--public-url", "ci.example.org"), "--public-url 'ci.example.org'"),
        (("--public-url", "https://user@ci.example.org"), "--public-url"),
        (("--host", "no.such.host.example"), "cannot listen on no.such.host.example"),
        (("--store", "none"), "recording is off"),
        (("--read-only",), "nothing is recorded yet"),
        (("--token", "secret"), "--token"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(golden: Golden, words: tuple[str, ...], told: str) -> None:
    ran = golden("serve", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


def test_newer_store_is_refused_before_anything_is_served(folder: Path, golden: Golden) -> None:
    with Store.open(folder / "golden.db") as store, store.write() as connection:
        connection.exec_driver_sql("UPDATE golden_version SET version_num = '9999'")
    ran = golden("serve", "--store", "golden.db")
    assert (ran.code, ran.out) == (2, "")
    assert "newer" in ran.err


def test_older_store_is_not_changed_by_a_server_that_only_shows(folder: Path, golden: Golden) -> None:
    with Store.open(folder / "golden.db") as store, store.write() as connection:
        connection.exec_driver_sql("UPDATE golden_version SET version_num = '0000'")
    before = (folder / "golden.db").read_bytes()
    ran = golden("serve", "--read-only", "--store", "golden.db")
    assert (ran.code, ran.out) == (2, "")
    assert "run `golden store upgrade" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert (folder / "golden.db").read_bytes() == before
