from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.cli.conftest import Golden


@contextmanager
def serving(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `golden serve` on a free port, and give its process and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", "serve", "--port", "0", *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, process.stderr.read() if process.stderr else ""
            yield process, address
        finally:
            process.kill()


def read(address: str, token: str | None = None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(address, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_server_says_its_address_when_it_answers_and_ends_by_ctrl_c(folder: Path) -> None:
    with serving(folder) as (process, address):
        assert read(f"{address}/healthz") == (200, "ok\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) in {0, 130}
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_made_token_is_printed_once_and_opens_the_door(folder: Path) -> None:
    with serving(folder, "--require-token") as (process, address):
        assert process.stderr is not None
        token = process.stderr.readline().strip().removeprefix("golden: token: ")
        assert read(f"{address}/api/v1/runs")[0] == 401
        assert read(f"{address}/nowhere", token)[0] == 404


def test_given_token_is_not_printed(folder: Path) -> None:
    given = {"GOLDEN_SERVE_TOKEN": "a-token-of-the-team-0123"}
    with serving(folder, "--require-token", environment=given) as (process, address):
        assert read(f"{address}/nowhere", "a-token-of-the-team-0123")[0] == 404
        process.terminate()
        process.wait(timeout=10)
        assert process.stderr is not None
        assert "a-token" not in process.stderr.read()


def test_other_host_is_warned_of_and_demands_the_token(folder: Path) -> None:
    with serving(folder, "--host", "0.0.0.0") as (process, address):
        assert process.stderr is not None
        assert "reached from other machines" in process.stderr.readline()
        assert read(f"{address}/api/v1/runs")[0] == 401


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--port", "70000"), "--port 70000: give a number from 0 to 65535"),
        (("--port", "x"), "invalid int value"),
        (("--heartbeat-seconds", "0"), "--heartbeat-seconds"),
        (("--heartbeat-seconds", "nan"), "--heartbeat-seconds"),
        (("--public-url", "ci.example.org"), "--public-url 'ci.example.org'"),
        (("--public-url", "https://user@ci.example.org"), "--public-url"),
        (("--host", "no.such.host.example"), "cannot listen on no.such.host.example"),
        (("--store", "none"), "there is no store here"),
        (("--read-only",), "nothing is recorded yet"),
        (("--token", "secret"), "--token"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(golden: Golden, words: tuple[str, ...], told: str) -> None:
    ran = golden("serve", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1


def test_port_that_is_taken_is_said(folder: Path, golden: Golden) -> None:
    with serving(folder) as (_, address):
        port = address.rpartition(":")[2]
        ran = golden("serve", "--port", port)
        assert (ran.code, ran.out) == (2, "")
        assert f"cannot listen on 127.0.0.1 port {port}" in ran.err


def test_newer_store_is_refused_before_anything_is_served(folder: Path, golden: Golden) -> None:
    with Store.open(folder / "golden.db") as store, store.write() as connection:
        connection.exec_driver_sql("UPDATE golden_version SET version_num = '9999'")
    ran = golden("serve", "--store", "golden.db")
    assert (ran.code, ran.out) == (2, "")
    assert "newer" in ran.err
