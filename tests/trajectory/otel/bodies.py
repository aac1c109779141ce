"""Export requests for tests: in JSON as people write them, in protobuf by the real library's exporter or by hand."""

from __future__ import annotations

import json
from typing import Any

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(name: str, number: int = 1, *, parent: int | None = None, start: int = 1_700_000_000, **more: Any) -> Any:
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent is not None else {}),
        "name": name,
        "startTimeUnixNano": str(start * 10**9),
        "endTimeUnixNano": str(start * 10**9 + 2_500_000),
        **more,
    }


def request(*spans: Any, service: str = "") -> bytes:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scope_spans = [{"scope": {"name": "lib"}, "spans": list(spans)}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scope_spans}]}).encode()


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def proto_span(name: str, number: int = 1, *, start: int = 1_700_000_000, extra: bytes = b"") -> bytes:
    ids = message(1, bytes.fromhex(TRACE)) + message(2, number.to_bytes(8, "big"))
    times = fixed(7, start * 10**9) + fixed(8, start * 10**9 + 2_500_000)
    return ids + message(5, name.encode()) + times + extra


def proto_request(*spans: bytes) -> bytes:
    return message(1, message(2, b"".join(message(2, one) for one in spans)))
