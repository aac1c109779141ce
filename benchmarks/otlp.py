"""What posting spans costs who posts them, beside a bare thread that answers everything with 200; and what reading costs.

The client is another process, as a pipeline is. It posts 10,000 spans one by one and 10,000 in batches of an exporter's
size, in turns to the receiver and to the bare thread, with latencies of each post. None may be lost. Then spans in protobuf are read, real ones
and a million empty ones of a hostile post.

Run: python benchmarks/otlp.py [SPANS]
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

from pytest_golden import OtlpReceiver

ROUNDS, BATCH = 3, 512
CLIENT = """
import http.client, json, sys, time
port, total, size, first = map(int, sys.argv[1:])
def span(number):
    attributes = [{"key": f"key.{n}", "value": {"stringValue": "a value of some length"}} for n in range(8)]
    start = time.time_ns()
    return {"traceId": "1" * 32, "spanId": f"{number:016x}", "name": "load", "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + 1000), "attributes": attributes}
connection = http.client.HTTPConnection("127.0.0.1", port)
took = []
for begin in range(first, first + total, size):
    spans = [span(number) for number in range(begin, min(begin + size, first + total))]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    started = time.perf_counter()
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    took.append((time.perf_counter() - started) * 1000)
    assert answer.status == 200
print(json.dumps(took))
"""


def post(port: int, total: int, size: int, first: int) -> list[float]:
    """Return the milliseconds of each post of a client process."""
    command = [sys.executable, "-c", CLIENT, *map(str, (port, total, size, first))]
    took: list[float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return took


def answer_all(listener: socket.socket) -> None:
    """Answer every request of one connection after another and keep nothing."""
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, client.makefile("rb") as stream:
                while head := stream.readline():
                    length = 0
                    while head.strip():
                        head = stream.readline()
                        if head.lower().startswith(b"content-length:"):
                            length = int(head.split(b":")[1])
                    stream.read(length)
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def read_protobuf(total: int) -> None:
    """Show what reading protobuf costs."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    from pytest_golden.trajectory.otel.posts import Post, read_posts

    posts = []
    for begin in range(0, total, BATCH):
        data = TracesData()
        spans = data.resource_spans.add().scope_spans.add().spans
        for number in range(begin, min(begin + BATCH, total)):
            span = spans.add(name="load", trace_id=b"1" * 16, span_id=number.to_bytes(8, "big"), end_time_unix_nano=1)
            for key in range(8):
                span.attributes.add(key=f"key.{key}").value.string_value = "a value of some length"
        posts.append(Post(data.SerializeToString()))
    data = TracesData()
    spans = data.resource_spans.add().scope_spans.add().spans
    for _ in range(1_000_000):
        spans.add()
    for name, given in ((f"{total:,} spans", posts), ("a million empty spans", [Post(data.SerializeToString())])):
        started = time.process_time()
        reading = read_posts(given)
        took = time.process_time() - started
        print(f"protobuf, {name}: {took:.2f} s, {len(reading.steps):,} kept, {reading.lost_count:,} lost")


def show(name: str, took: list[float]) -> None:
    p99 = statistics.quantiles(took, n=100)[98]
    print(f"  {name}: median {statistics.median(took):.2f} ms, p99 {p99:.2f} ms, of {len(took):,} posts")


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    bare = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=answer_all, args=(bare,), daemon=True).start()
    for size in (1, BATCH):
        ours, floor, lost, reading = [], [], 0, []
        for _ in range(ROUNDS):
            floor += post(bare.getsockname()[1], total, size, 1)
            with OtlpReceiver() as receiver:
                ours += post(urlsplit(receiver.endpoint).port or 0, total, size, 1)
            started = time.perf_counter()
            lost += total - len(receiver.read_steps().steps)
            reading.append((time.perf_counter() - started) * 1e6 / total)
            receiver.discard()
        print(f"{ROUNDS} times {total:,} spans, {size} a post: {lost} lost; reading {min(reading):.0f} us a span")
        show("receiver", ours)
        show("bare thread", floor)
    read_protobuf(10 * total)


if __name__ == "__main__":
    main()
