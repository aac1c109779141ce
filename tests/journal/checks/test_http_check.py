from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pytest_golden.journal.checks.http_check import MOST_BYTES, UnansweredError, fetch
from tests.patience import without_hanging
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.journal.checks.conftest import Site

    Talk = Callable[[Callable[[socket.socket], object]], str]


def test_a_reply_comes_with_status_and_body(site: Site) -> None:
    site.status = 203
    site.says({"ok": True})
    assert fetch(f"{site.url}/a/b?c=d%20e", timeout_seconds=60, wants_body=True) == (203, None, b'{"ok": true}')
    assert site.asked == ["/a/b?c=d%20e"]
    assert site.seen_headers["Host"] == site.url.removeprefix("http://")
    assert not {"Authorization", "Cookie"} & set(site.seen_headers)


def test_a_body_that_nobody_wants_is_not_waited_for(talk: Talk) -> None:
    done = threading.Event()

    def speak(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        done.wait(600)

    assert fetch(talk(speak), timeout_seconds=60, wants_body=False) == (200, None, None)
    done.set()


def test_the_root_is_asked_without_a_path(site: Site) -> None:
    assert fetch(f"{site.url}?q=1", timeout_seconds=60, wants_body=False).status == 200
    assert site.asked == ["/?q=1"]


def test_a_redirect_is_not_followed(site: Site) -> None:
    site.status = 302
    site.headers = {"Location": f"{site.url}/else"}
    assert fetch(site.url, timeout_seconds=60, wants_body=True)[:2] == (302, f"{site.url}/else")
    assert site.asked == ["/"]


@pytest.mark.parametrize(("size", "is_kept"), [(MOST_BYTES, True), (MOST_BYTES + 1, False), (3 * MOST_BYTES, False)])
def test_a_huge_body_is_left(site: Site, size: int, is_kept: bool) -> None:
    site.body = b"x" * size
    assert (fetch(site.url, timeout_seconds=60, wants_body=True).body is not None) is is_kept


def drip(line: socket.socket, text: bytes) -> None:
    for byte in text:
        line.sendall(bytes([byte]))
        time.sleep(0.02)


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_who_sends_byte_after_byte_is_not_waited_for(talk: Talk, begins: bytes) -> None:
    def speak(line: socket.socket) -> None:
        line.sendall(begins)
        drip(line, b"x" * 30_000)

    with without_hanging(), pytest.raises(UnansweredError, match=r"no whole reply within 0\.4 s"):
        fetch(talk(speak), timeout_seconds=0.4, wants_body=True)


def test_who_says_nothing_is_not_waited_for(talk: Talk) -> None:
    done = threading.Event()
    with pytest.raises(UnansweredError, match="no whole reply within"):
        fetch(talk(lambda _: done.wait(600)), timeout_seconds=0.2, wants_body=True)
    done.set()


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
)
def test_a_broken_reply_is_none(talk: Talk, reply: bytes) -> None:
    with pytest.raises(UnansweredError, match=r"its reply is not HTTP|no connection|cannot be requested"):
        fetch(talk(lambda line: line.sendall(reply)), timeout_seconds=60, wants_body=True)


def test_nobody_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UnansweredError, match="no connection: Connection refused"):
        fetch(f"http://127.0.0.1:{port}/", timeout_seconds=60, wants_body=False)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", f"{'x' * 70}.example"])
def test_a_name_without_an_address_is_no_answer(host: str) -> None:
    with pytest.raises(UnansweredError, match=r"no connection|cannot be requested|no whole reply"):
        fetch(f"http://{host}/", timeout_seconds=60, wants_body=False)


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0", "[::ffff:a9fe:a9fe]"])
def test_a_name_that_means_the_link_is_never_asked(host: str) -> None:
    with pytest.raises(UnansweredError, match="is one that is never requested"):
        fetch(f"http://{host}/latest/meta-data", timeout_seconds=60, wants_body=False)


def test_an_untrusted_certificate_is_no_answer(talk: Talk) -> None:
    url = talk(lambda line: line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")).replace("http:", "https:")
    with pytest.raises(UnansweredError, match="no connection"):
        fetch(url, timeout_seconds=60, wants_body=False)


def test_a_handshake_that_never_ends_is_not_waited_for(talk: Talk) -> None:
    done = threading.Event()
    url = talk(lambda _: done.wait(600)).replace("http:", "https:")
    with pytest.raises(UnansweredError, match="no whole reply within"):
        fetch(url, timeout_seconds=0.3, wants_body=False)
    done.set()


def test_who_no_longer_wants_the_reply_is_not_kept_waiting(talk: Talk) -> None:
    stop, done = threading.Event(), threading.Event()

    def speak(_: socket.socket) -> None:
        stop.set()
        done.wait(600)

    with pytest.raises(UnansweredError, match="interrupted"):
        fetch(talk(speak), timeout_seconds=300, wants_body=True, stop=stop)
    done.set()


def test_a_page_behind_a_trusted_certificate_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openssl = shutil.which("openssl")
    require(openssl, "the command openssl, which makes a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate), *subject]
    subprocess.run([str(openssl), *made], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                line, _ = server.accept()
                with suppress(OSError), line, context.wrap_socket(line, server_side=True) as wrapped:
                    wrapped.recv(65536)
                    wrapped.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 300_000 + b"42")

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(UnansweredError, match=r"its certificate is not trusted: self.signed"):
            fetch(url, timeout_seconds=60, wants_body=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        reply = fetch(url, timeout_seconds=60, wants_body=True)
        thread.join(60)
    assert reply.body is not None
    assert reply.body.strip() == b"42"


@pytest.mark.parametrize(
    "begins",
    [
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
    ],
)
def test_a_reply_without_an_end_is_not_gathered(talk: Talk, begins: bytes) -> None:
    sent = [0]

    def speak(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n" + begins)
        part = b"T: x\r\n" * 10_000
        while sent[0] < 64 * MOST_BYTES:
            line.sendall(part)
            sent[0] += len(part)

    with pytest.raises(UnansweredError, match="its reply is larger than 8 MiB"):
        fetch(talk(speak), timeout_seconds=60, wants_body=True)
    assert sent[0] < 32 * MOST_BYTES
