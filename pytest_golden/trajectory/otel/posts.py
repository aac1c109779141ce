"""What a receiver was sent, to a reading of steps: unpacked, parsed, without doubles, and within limits.

Never raises for what is in it: what cannot be read is counted.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.trajectory.otel.drafts import draft_steps
from pytest_golden.trajectory.otel.json_body import count_json, parse_json
from pytest_golden.trajectory.otel.protobuf_body import count_protobuf, parse_protobuf
from pytest_golden.trajectory.readers.model import StepReading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.trajectory.otel.model import Span

#: One post, as it was sent and unpacked.
MAX_BODY_BYTES = 16 << 20
MAX_SPANS = 100_000
# Unpacked: what is parsed, and what is at least counted.
_MAX_PARSED_BYTES, _MAX_COUNTED_BYTES = 64 << 20, 256 << 20
_MOST_MEMBERS = 100
_GZIP = 31
_LONGEST_REASON = 200


class Post(NamedTuple):
    """The body of one post as it was sent."""

    body: bytes
    is_json: bool = False
    is_gzip: bool = False


def read_posts(posts: Iterable[Post], refused: Mapping[str, int] | None = None) -> StepReading:
    """Give the steps of all spans, in the order in which they began; a span that was sent twice counts once.

    At most 100,000 spans are kept, and nothing behind 64 MiB. `lost_count` counts the spans that are not, and one for each post that
    could not be read or was refused; `refused` has their numbers by the reason.
    """
    gathered = _Gathered(Counter(refused or {}))
    for post in posts:
        gathered.add(post)
    return StepReading(
        draft_steps(gathered.spans.values()), gathered.lost + gathered.unread.total(), tuple(gathered.warnings())
    )


def unpack(body: bytes, limit_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Unpack gzip, of a body that may be a bomb.

    Raises:
        ValueError: it is torn, no gzip, or larger than allowed.
    """
    unpacked = bytearray()
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        try:
            unpacked += member.decompress(body, limit_bytes + 1 - len(unpacked))
        except zlib.error as error:
            raise ValueError("it is no gzip") from error
        if len(unpacked) > limit_bytes:
            raise ValueError(f"it is larger than {limit_bytes} bytes when it is unpacked")
        if not member.eof:
            raise ValueError("its gzip is torn")
        body = member.unused_data
        if not body:
            return bytes(unpacked)
    raise ValueError("its gzip has too many members")


class _Gathered:
    def __init__(self, unread: Counter[str]) -> None:
        self.spans: dict[tuple[str, str], Span] = {}
        self.lost = 0
        self.unread = unread
        self._left_out = 0
        self._bytes = 0

    def add(self, post: Post) -> None:
        if self._bytes > _MAX_COUNTED_BYTES:
            self.unread["there are too many"] += 1
            return
        try:
            body = unpack(post.body) if post.is_gzip else post.body
            self._bytes += len(body)
            if self._bytes > _MAX_PARSED_BYTES or len(self.spans) >= MAX_SPANS:
                self._leave_out(count_json(body) if post.is_json else count_protobuf(body))
                return
            for span in parse_json(body) if post.is_json else parse_protobuf(body):
                self._take(span)
        except ValueError as error:
            self.unread[str(error)[:_LONGEST_REASON]] += 1

    def _take(self, span: Span | None) -> None:
        if span is None:
            self.lost += 1
            return
        key = (span.trace_id, span.span_id or f"#{len(self.spans)}")
        if key in self.spans:
            return
        if len(self.spans) >= MAX_SPANS:
            self._leave_out(1)
            return
        self.spans[key] = span

    def _leave_out(self, count: int) -> None:
        self.lost += count
        self._left_out += count

    def warnings(self) -> Iterable[str]:
        if self._left_out:
            limits = f"{MAX_SPANS:,} spans and {_MAX_PARSED_BYTES >> 20} MiB of them are kept"
            yield f"{self._left_out:,} OpenTelemetry spans were left out: no more than {limits}"
        if unreadable := self.lost - self._left_out:
            yield f"{unreadable:,} OpenTelemetry spans could not be read"
        for reason, count in self.unread.most_common(5):
            yield f"{count:,} {'post' if count == 1 else 'posts'} of OpenTelemetry spans could not be read: {reason}"
