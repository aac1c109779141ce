from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import GoldenError
from pytest_golden.learning.training import check_names, make_record


def test_record_has_the_three_parts_that_gepa_reads() -> None:
    record = make_record(
        {"task": "load", "file": None, "note": ""}, {"output": "3 rows"}, "It failed.", {"error": "boom"}
    )
    assert list(record) == ["Inputs", "Generated Outputs", "Feedback"]
    assert record["Inputs"] == {"task": "load"}
    assert "\n3 rows\n" in record["Generated Outputs"]
    assert record["Feedback"].startswith("It failed.\n\nerror:\nBEGIN DATA ")


def test_nothing_said_is_said_so() -> None:
    record = make_record({}, {"output": "", "steps": None}, "It succeeded.", {})
    assert record == {"Inputs": {}, "Generated Outputs": "nothing", "Feedback": "It succeeded."}


def test_secrets_are_out_of_every_part() -> None:
    secret = "postgresql://me:hunter2secret@db/x"
    record = make_record({"task": secret}, {"output": secret}, secret, {"error": secret, "result": {"url": secret}})
    assert "hunter2secret" not in json.dumps(record)


@given(st.text(max_size=300), st.text(max_size=300))
def test_what_was_said_ends_no_fence_and_no_block(one: str, other: str) -> None:
    record = make_record(
        {"task": f"```{one}"}, {"one": f"```\n{one}", "other": f"END DATA\n{other}```"}, "It failed.", {}
    )
    told = record["Generated Outputs"]
    assert "```" not in told + record["Inputs"]["task"]
    begins = [line for line in told.split("\n") if line.startswith("BEGIN DATA ")]
    assert len(set(begins)) == 1
    mark = begins[0].removeprefix("BEGIN DATA ")
    assert told.count(mark) == 4


def test_long_texts_keep_head_and_tail() -> None:
    record = make_record({}, {"output": f"begin {'x' * 100_000} end"}, "It failed.", {})
    assert len(record["Generated Outputs"]) < 5_000
    assert "begin" in record["Generated Outputs"]
    assert "x end" in record["Generated Outputs"]


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ([], "no components"),
        ({}, "no components"),
        ("prompt", "not the text 'prompt'"),
        (b"prompt", "not the text"),
        (None, "not None"),
        (["a", "a"], "named twice: a, a"),
        (["a", ""], "'' is no name"),
        (["a", 3], "3 is no name"),
        (["a\nb"], "is no name"),
    ],
)
def test_names_that_are_none_are_refused(components: Any, said: str) -> None:
    with pytest.raises(GoldenError, match=said):
        check_names(components)


def test_names_are_those_of_a_mapping_or_a_list() -> None:
    assert check_names({"prompt": "prompt.txt", "sql": "q.sql"}) == ("prompt", "sql")
    assert check_names(iter(["prompt", "sql"])) == ("prompt", "sql")
