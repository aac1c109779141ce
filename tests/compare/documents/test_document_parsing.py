"""The parser without recursion reads what the standard library reads, and refuses what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.documents.document_parsing import _DeepParser, parse_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_both_parsers_read_the_same(document: Any, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=1 if ascii_only else None)
    assert _DeepParser(text).parse() == parse_json(text.encode("utf-8", "surrogatepass"))


@given(st.text(alphabet='[]{}:,"a1-. tn\\', max_size=14))
def test_both_parsers_refuse_the_same(text: str) -> None:
    try:
        expected = parse_json(text.encode())
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            _DeepParser(text).parse()
        return
    assert _DeepParser(text).parse() == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{",
        '{"a"',
        '{"a":',
        '{"a":}',
        '{"a":1,}',
        "[1,]",
        "[,1]",
        "{1:2}",
        "{[]:1}",
        "[1 2]",
        "[1}",
        '{"a":1]',
        "1 2",
        "]",
        ",",
        "tru",
        "[1",
        '["a',
        "01",
        "{]",
        "[}",
        "[1:2]",
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1 column"):
        parse_json(text.encode())
    with pytest.raises(ValueError, match="line 1 column"):
        _DeepParser(text).parse()


def test_repeated_keys_and_constants_are_read_alike() -> None:
    text = '{"a": [NaN, Infinity, -Infinity, 1E5], "a": {"b": 1, "b": [], "b": null}}'
    assert repr(_DeepParser(text).parse()) == repr(parse_json(text.encode()))
