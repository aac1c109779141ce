"""What the process does with a block of lines, tried here without the process."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.pattern_child import Treatment

BLOCKS = st.lists(st.sampled_from([b"a", b"# b", b"c 12", b"\xff 3", b"", b"\r", b"d 4\r"]), max_size=8)


@given(BLOCKS, st.booleans(), st.booleans(), st.booleans())
def test_lines_keep_their_order_and_their_ends(
    lines: list[bytes], is_open: bool, ignoring: bool, masking: bool
) -> None:
    block = b"".join(line + b"\n" for line in lines)
    block = block[:-1] if is_open else block
    treated, positions = Treatment(["^#", "^$"] if ignoring else [], [r"\d+"] if masking else [], "M").treat(block)
    expected, kept = [], []
    for at, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+$", block)):
        body = re.sub(rb"\r?\n$|\r$", b"", line)
        if ignoring and (body.startswith(b"#") or not body):
            continue
        kept.append(at)
        expected.append((re.sub(rb"\d+", b"M", body) if masking else body) + line[len(body) :])
    assert treated == b"".join(expected)
    assert positions == (None if len(kept) == len(re.findall(rb"[^\n]*\n|[^\n]+$", block)) else kept)
