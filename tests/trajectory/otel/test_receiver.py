from __future__ import annotations

import gzip
import json
import select
import socket
import subprocess
import sys
import textwrap
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden import OtlpReceiver
from pytest_golden.trajectory.otel import receiver as server
from pytest_golden.trajectory.otel import receiver as spool
from pytest_golden.trajectory.otel.posts import MAX_BODY_BYTES
from pytest_golden.trajectory.otel.receiver import BadRequestError, HttpReader
from tests.patience import PATIENCE_SECONDS, without_hanging
from tests.trajectory.otel.bodies import proto_request, proto_span, request, span

JSON = "application/json"


def connect(receiver: OtlpReceiver) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(receiver.endpoint).port or 0), timeout=PATIENCE_SECONDS)


def post(receiver: OtlpReceiver, body: bytes, path: str = "/v1/traces", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(receiver.endpoint + path, body, {"Content-Type": JSON, **named})
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def head(length: int, *more: str) -> bytes:
    lines = ["POST /v1/traces HTTP/1.1", "Host: x", f"Content-Type: {JSON}", f"Content-Length: {length}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def test_the_receiver_names_its_endpoint_and_the_variables_that_lead_to_it() -> None:
    receiver = OtlpReceiver(service_name="sales")
    with pytest.raises(RuntimeError):
        _ = receiver.endpoint
    with pytest.raises(RuntimeError):
        receiver.read_steps()
    with receiver:
        assert receiver.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == receiver.endpoint
        assert receiver.environment["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
        assert receiver.environment["OTEL_SERVICE_NAME"] == "sales"


def test_posts_are_read_inside_the_block_and_after_it() -> None:
    with OtlpReceiver() as receiver:
        assert post(receiver, request(span("a", 1))) == 200
        assert [step.content for step in receiver.read_steps().steps] == ["a"]
        assert post(receiver, proto_request(proto_span("b", 2)), Content_Type="application/x-protobuf") == 200
        assert post(receiver, gzip.compress(request(span("c", 3))), Content_Encoding="gzip") == 200
    assert [step.content for step in receiver.read_steps().steps] == ["a", "b", "c"]
    assert receiver.read_steps().lost_count == 0
    receiver.discard()


def test_other_paths_are_refused_and_other_signals_ignored() -> None:
    with OtlpReceiver() as receiver:
        assert post(receiver, b"{}", "/v1/metrics") == post(receiver, b"{}", "/v1/logs") == 200
        assert post(receiver, b"{}", "/") == post(receiver, b"{}", "/v1/traces/x") == 404
        with pytest.raises(urllib.error.HTTPError, match="405") as caught:
            urllib.request.urlopen(receiver.endpoint + "/v1/traces")
        caught.value.close()
        assert post(receiver, b"", "/v1/traces") == 200
        assert receiver.read_steps().lost_count == 0
        assert post(receiver, b"x", Content_Type="text/plain") == post(receiver, b"x", Content_Encoding="br") == 415
    assert receiver.read_steps().lost_count == 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"[]", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b"5", "not a JSON object"),
        (b'{"foo": 1}', "no resourceSpans"),
        (b'{"resourceSpans": "x"}', "resourceSpans is not a list"),
        (b'{"resourceSpans": [1]}', "resourceSpans holds something that is not an object"),
        (b'{"resourceSpans": [{"scopeSpans": {}}]}', "scopeSpans is not a list"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": 1}]}]}', "spans is not a list"),
        (b'{"resourceSpans": [', "it is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe", "it is not JSON"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_json_without_spans_is_answered_with_400_and_counted(body: bytes, why: str, packed: bool) -> None:
    encoding = {"Content_Encoding": "gzip"} if packed else {}
    with OtlpReceiver() as receiver:
        assert post(receiver, gzip.compress(body) if packed else body, **encoding) == 400
        assert post(receiver, request(span("a", 1))) == 200
    reading = receiver.read_steps()
    assert ([step.content for step in reading.steps], reading.lost_count) == (["a"], 1)
    assert why in reading.warnings[0]


def test_protobuf_without_its_library_is_refused_once_a_post_and_json_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto", None)
    for name in [name for name in sys.modules if name.startswith("opentelemetry.proto.")]:
        monkeypatch.delitem(sys.modules, name)
    with OtlpReceiver() as receiver:
        assert post(receiver, proto_request(proto_span("a")), Content_Type="application/x-protobuf") == 415
        assert post(receiver, request(span("b"))) == 200
    reading = receiver.read_steps()
    assert ([step.content for step in reading.steps], reading.lost_count) == (["b"], 1)
    assert "pytest-golden-projects[otel]" in reading.warnings[0]


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans": []}', b'{"resourceSpans": null}'])
def test_request_with_nothing_in_it_is_accepted(body: bytes) -> None:
    with OtlpReceiver() as receiver:
        assert post(receiver, body) == 200
    assert receiver.read_steps().lost_count == 0


def test_curl_posts_large_bodies_and_in_chunks() -> None:
    many = request(*(span("s" * 200, number) for number in range(1, 8_000)))
    with OtlpReceiver() as receiver:
        for more in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"], ["--http1.0"]):
            command = ["curl", "-sS", "-f", *more, "-H", f"Content-Type: {JSON}", "--data-binary", "@-"]
            done = subprocess.run(
                [*command, receiver.endpoint + "/v1/traces"], input=many, check=True, capture_output=True
            )
            assert json.loads(done.stdout) == {}
    assert len(receiver.read_steps().steps) == 7_999


def test_what_was_sent_without_waiting_for_an_answer_is_not_lost() -> None:
    body = request(span("last words"))
    with OtlpReceiver() as receiver, connect(receiver) as client:
        client.sendall(head(len(body)) + body)
    assert [step.content for step in receiver.read_steps().steps] == ["last words"]


def test_a_post_that_stops_in_the_middle_is_counted() -> None:
    with OtlpReceiver() as receiver, connect(receiver) as client:
        client.sendall(head(1000) + b"{")
    reading = receiver.read_steps()
    assert (reading.steps, reading.lost_count) == ((), 1)
    assert "ended too early" in reading.warnings[0]


def test_a_gibibyte_is_refused_and_costs_no_memory() -> None:
    piece = bytes(1 << 20)
    process = psutil.Process()
    with OtlpReceiver() as receiver, connect(receiver) as client:
        before = process.memory_info().rss
        client.sendall(head(1 << 30))
        for _ in range(1 << 10):
            client.sendall(piece)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
        assert process.memory_info().rss - before < 64 << 20
        assert post(receiver, request(span("good"))) == 200
    reading = receiver.read_steps()
    assert [step.content for step in reading.steps] == ["good"]
    assert reading.lost_count == 1


def test_silent_clients_neither_keep_others_out_nor_delay_the_end() -> None:
    with ExitStack() as stack:
        receiver = stack.enter_context(OtlpReceiver())
        for number in range(2 * server.MAX_CONNECTIONS):
            client = stack.enter_context(connect(receiver))
            with suppress(OSError):
                client.sendall(head(1000)[: 10 + number % 90])
            if number % 100 == 0:
                assert post(receiver, request(span("good", number + 1))) == 200
        with without_hanging():
            receiver.stop()
    assert len(receiver.read_steps().steps) == 6


def test_a_client_that_never_stops_does_not_keep_it_from_ending() -> None:
    with OtlpReceiver() as receiver, connect(receiver) as client:
        client.sendall(head(1 << 40))

        def pour() -> None:
            with suppress(OSError):
                while True:
                    client.sendall(bytes(1 << 16))

        pouring = threading.Thread(target=pour, daemon=True)
        pouring.start()
        ending = threading.Thread(target=receiver.stop, daemon=True)
        ending.start()
        ending.join(PATIENCE_SECONDS)
        assert not ending.is_alive()
        pouring.join(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01 a TLS client says hello\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"x" * 20_000,
        head(0).replace(b"Content-Length: 0", b"Content-Length: -1"),
        head(0, "Transfer-Encoding: chunked") + b"z\r\n",
        head(0, "Transfer-Encoding: chunked") + b"1\r\nabc\r\n",
        head(0, "Transfer-Encoding: chunked") + b"1" * 2_000,
    ],
)
def test_what_is_no_http_is_refused(garbage: bytes) -> None:
    with OtlpReceiver() as receiver:
        with connect(receiver) as client:
            client.sendall(garbage)
            assert client.recv(100).startswith(b"HTTP/1.1 400 ")
        assert post(receiver, request(span("good"))) == 200
    assert len(receiver.read_steps().steps) == 1


def test_more_than_the_spool_holds_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    body = request(span("a"))
    monkeypatch.setattr(spool, "MAX_SPOOL_BYTES", len(body) + 100)
    with OtlpReceiver() as receiver:
        assert post(receiver, body) == post(receiver, body) == 200
    assert (len(receiver.read_steps().steps), receiver.read_steps().lost_count) == (1, 1)


def test_bytes_that_wait_for_their_end_are_bounded_and_keep_no_other_client_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_MAX_HELD_BYTES", 1 << 20)
    body = request(span("patient", 1))
    with ExitStack() as stack:
        receiver = stack.enter_context(OtlpReceiver())
        patient = stack.enter_context(connect(receiver))
        greedy = [stack.enter_context(connect(receiver)) for _ in range(8)]
        for client in greedy:
            with suppress(OSError):
                client.sendall(head(MAX_BODY_BYTES) + bytes(300_000))
        given_up, _, _ = select.select(greedy, [], [], PATIENCE_SECONDS)
        assert given_up
        patient.sendall(head(len(body)) + body)
        assert patient.recv(100).startswith(b"HTTP/1.1 200 ")
        assert post(receiver, request(span("good", 2))) == 200
    assert [step.content for step in receiver.read_steps().steps] == ["patient", "good"]


def test_a_receiver_that_breaks_down_costs_steps_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(server.SpanServer, "_answer", broken)
    with OtlpReceiver() as receiver, connect(receiver) as client:
        client.sendall(head(0))
        with suppress(ConnectionError):
            client.recv(10)
    assert any("broke down" in warning for warning in receiver.read_steps().warnings)


@given(st.lists(st.integers(1, 40), max_size=30), st.booleans())
def test_requests_are_the_same_in_whatever_pieces_they_come(sizes: list[int], chunked: bool) -> None:
    first = (
        b"POST /a?b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    )
    plain = b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde"
    whole = (first if chunked else plain) + b"\r\nPUT /c HTTP/1.0\r\n\r\n"
    reader, requests, position = HttpReader(100), [], 0
    for size in [*sizes, len(whole)]:
        requests += reader.feed(whole[position : position + size])
        position += size
    assert [(one.method, one.path, one.body, one.is_last) for one in requests] == [
        ("POST", "/a", b"abcde", False),
        ("PUT", "/c", b"", True),
    ]
    assert not reader.is_within_request


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for start in (b"", head(0, "Transfer-Encoding: chunked"), b"POST / HTTP/1.1\r\n"):
        with suppress(BadRequestError):
            HttpReader(100).feed(start + data)


def test_a_disk_that_is_full_costs_posts_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with OtlpReceiver() as receiver:
        assert post(receiver, request(span("a", 1))) == 200
        with monkeypatch.context() as patched:
            patched.setattr(spool.Spool, "_write", full)
            assert post(receiver, request(span("b", 2))) == 200
        assert post(receiver, request(span("c", 3))) == 200
    reading = receiver.read_steps()
    assert [step.content for step in reading.steps] == ["a", "c"]
    assert reading.warnings[0].endswith("they could not be kept: No space left on device")


def test_a_socket_handed_to_a_receiver_that_has_ended_is_closed() -> None:
    receiver = OtlpReceiver(endpoint="http://127.0.0.1:4318")
    listener = socket.create_server(("127.0.0.1", 0))
    receiver.adopt(listener)
    assert listener.fileno() == -1


def test_a_process_without_files_left_gives_up_who_was_silent_longest() -> None:
    code = """
        import resource
        from pytest_golden import OtlpReceiver
        with OtlpReceiver() as receiver:
            receiver.read_steps()
            resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
            print(receiver.endpoint, flush=True)
            input()
        print(len(receiver.read_steps().steps))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with (
        subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
        ExitStack() as stack,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        receiver = OtlpReceiver(endpoint=child.stdout.readline().strip())
        for _ in range(100):
            stack.enter_context(connect(receiver))
        assert post(receiver, request(span("good"))) == 200
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "1\n"
