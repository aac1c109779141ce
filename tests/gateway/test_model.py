from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.model import Ending, GatewayAbilities, PipelineOutcome, WriteSet, WrittenFile

paths = st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=5).map(tuple)


@given(paths, paths, paths)
def test_write_set_survives_json(created: tuple[str, ...], changed: tuple[str, ...], removed: tuple[str, ...]) -> None:
    files = {path: WrittenFile(path, "file", len(path), "00") for path in (*created, *changed)}
    write_set = WriteSet(created, changed, removed, files)
    assert WriteSet.from_dict(json.loads(json.dumps(write_set.to_dict()))) == write_set


def test_empty_write_set_is_read_from_nothing() -> None:
    assert WriteSet.from_dict({}) == WriteSet()


def test_abilities_are_json_safe() -> None:
    abilities = GatewayAbilities("overlay", "namespaces", ("timeout",), scratch="/tmp", advice="sleep")
    assert json.loads(json.dumps(abilities.to_dict())) == {
        "view": "overlay",
        "seal": "namespaces",
        "limits": ["timeout"],
        "reasons": ["scratch in /tmp", "to get better: sleep"],
    }


def test_words_equal_their_plain_text() -> None:
    assert [str(ending) for ending in Ending if ending == "memory_limit"] == ["memory_limit"]
    assert PipelineOutcome(Ending.EXITED).started_at.tzinfo is not None
