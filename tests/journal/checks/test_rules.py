from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem
from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.checks.model import read_check
from pytest_golden.journal.checks.rules import (
    Reply,
    back_off_ms,
    find_next,
    find_objection,
    judge_command,
    judge_reply,
    name_signal,
    unable,
)
from pytest_golden.journal.service import Journal
from tests.journal.checks.conftest import expect

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

MINUTE = 60_000


def ended(code: int | None, ending: Ending = Ending.EXITED, **facts: Any) -> PipelineOutcome:
    return PipelineOutcome(ending, code, **facts)


def replied(body: Any = None, status: int = 200, location: str | None = None, **wanted: Any) -> tuple[str, str]:
    check = read_check({"after": 1, "url": "http://localhost/", **wanted})
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    answer = judge_reply(check, Reply(status, location, raw))
    assert answer.data == {"status": status}
    return answer.signal_type, answer.summary


def test_a_command_answers_by_its_exit_code() -> None:
    assert judge_command(ended(0))[:2] == ("positive", "the check's command succeeded")
    said = judge_command(ended(3, stdout="all\n", stderr="first\nno such row \n\n"))
    assert said == ("negative", "the check's command failed (exit code 3): no such row", {"exit_code": 3})
    assert judge_command(ended(1, stdout="x" * 1000)).summary.endswith("xxx ...")


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ended(-9, Ending.SIGNALLED), "a signal ended it"),
        (ended(None, Ending.TIMEOUT), "it took too long"),
        (ended(0, Ending.TIMEOUT), "it took too long"),
        (ended(-9, Ending.MEMORY_LIMIT), "it took too much memory"),
        (ended(-9, Ending.CPU_LIMIT), "it took too much processor time"),
        (ended(None, Ending.INTERRUPTED), "it was interrupted"),
        (ended(None, Ending.NOT_STARTED), "it could not be started"),
        (ended(None), "it did not come to its end"),
        (ended(None, Ending.NOT_STARTED, problem=Problem.COMMAND_NOT_FOUND, message="x"), "its program was not found"),
        (ended(None, Ending.NOT_STARTED, problem=Problem.SCRATCH_FULL, message="no space left"), "no space left"),
        (ended(1, problem=Problem.HARNESS, message="files were not read"), "files were not read"),
        (ended(126, stderr="sh: x: no"), "a program was permission denied"),
        (ended(127), "a program was not found"),
        (ended(137, sealed=True), "signal 9 ended it"),
    ],
)
def test_a_command_that_could_not_be_run_says_nothing(outcome: PipelineOutcome, reason: str) -> None:
    answer = judge_command(outcome)
    assert answer.signal_type == "neutral"
    assert reason in answer.summary


def test_a_neighbour_who_works_in_the_folder_takes_no_answer_away() -> None:
    assert judge_command(ended(0, problem=Problem.PROJECT_CHANGED)).signal_type == "positive"
    assert judge_command(ended(4, problem=Problem.PROJECT_CHANGED)).signal_type == "negative"
    assert judge_command(ended(137, sealed=False)).signal_type == "negative"


@given(
    st.sampled_from(Ending),
    st.one_of(st.none(), st.integers(-64, 255)),
    st.one_of(st.none(), st.sampled_from(Problem)),
    st.booleans(),
)
def test_only_a_command_that_came_to_its_end_is_negative(
    ending: Ending, code: int | None, problem: Problem | None, sealed: bool
) -> None:
    answer = judge_command(PipelineOutcome(ending, code, problem=problem, sealed=sealed))
    if answer.is_final:
        assert ending is Ending.EXITED
        assert problem in {None, Problem.PROJECT_CHANGED}
        assert (answer.signal_type == "positive") == (code == 0)


def test_a_page_answers_by_its_status() -> None:
    assert replied() == ("positive", "the page answered with status 200")
    assert replied(status=503) == ("negative", "the page answered with status 503, not 200 to 299")
    check = {"status": [404, 410]}
    answer = judge_reply(read_check({"after": 1, "url": "http://localhost/", **check}), Reply(200))
    assert answer[:2] == ("negative", "the page answered with status 200, not 404 or 410")
    answer = judge_reply(read_check({"after": 1, "url": "http://localhost/", "status": 302}), Reply(302))
    assert answer.signal_type == "positive"


def test_a_redirect_is_not_followed_and_says_nothing() -> None:
    kind, told = replied(status=302, location="https://elsewhere/")
    assert (kind, told) == (
        "neutral",
        "the check could not be run: the page redirects to https://elsewhere/ (status 302), and that is not followed",
    )
    assert replied(status=304)[0] == "neutral"


@pytest.mark.parametrize(
    ("body", "path", "kind", "told"),
    [
        ({"ok": True}, "ok", "positive", "ok is 'true'"),
        ({"ok": 0}, "ok", "positive", "ok is '0'"),
        ({"ok": False}, "ok", "negative", "ok is 'false'"),
        ({"ok": None}, "ok", "negative", "ok is 'null'"),
        ({"a": {"b": ["x", {"c": 1}]}}, "a.b.1.c", "positive", "a.b.1.c is '1'"),
        ({"a.b": "whole"}, "a.b", "positive", "a.b is 'whole'"),
        ({"a": ["x"]}, "a.1", "negative", "the page has no a.1"),
        ({"a": ["x"]}, "a.-1", "negative", "the page has no a.-1"),
        ({"a": "text"}, "a.b", "negative", "the page has no a.b"),
        (["x"], "0", "positive", "0 is 'x'"),
        (3, "a", "negative", "the page has no a"),
        ({"a": "x" * 300}, "a", "positive", "xxx ..."),
        (b"<html>", "a", "neutral", "is no JSON"),
        (b"", "a", "neutral", "is no JSON"),
        (b"\xff\xfe\x00", "a", "neutral", "is no JSON"),
        (b"[" * 200_000, "a", "neutral", "is no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a", "neutral", "is no JSON"),
        (None, "a", "neutral", "too large"),
    ],
)
def test_the_value_at_a_path_decides(body: Any, path: str, kind: str, told: str) -> None:
    found = replied(body, path=path)
    assert found[0] == kind
    assert told in found[1]


@pytest.mark.parametrize(
    ("value", "wanted", "is_equal"),
    [
        ("done", "done", True),
        ("done", "failed", False),
        (42, "42", True),
        ("42", 42, True),
        (1.0, 1, True),
        (True, "true", True),
        (True, 1, False),
        (1, True, False),
        (None, None, True),
        (None, "null", True),
        ({}, "{}", False),
        ([1], "[1]", False),
    ],
)
def test_values_are_compared_as_text(value: Any, wanted: Any, is_equal: bool) -> None:
    kind, told = replied({"state": value}, path="state", equals=wanted)
    assert kind == ("positive" if is_equal else "negative")
    assert ("not" in told) is not is_equal


def test_a_secret_in_a_reply_is_not_told() -> None:
    kind, told = replied({"token": "ghp_" + "a1B2" * 9}, path="token")
    assert kind == "positive"
    assert "REDACTED" in told


def test_a_check_waits_longer_after_each_try_that_could_not_be_run() -> None:
    waits = [back_off_ms(tries) // MINUTE for tries in (*range(1, 9), 1000)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert find_next(unable("x"), 1, 1000, None) == 1000 + MINUTE
    assert find_next(unable("x"), 1, 1000, 1000 + MINUTE + 1) == 1000 + MINUTE
    assert find_next(unable("x"), 1, 1000, 1000 + MINUTE) is None
    assert find_next(judge_command(ended(0)), 1, 1000, None) is None


def test_an_answer_has_one_name_and_each_failed_try_its_own() -> None:
    assert name_signal("e", judge_command(ended(0)), 1) == name_signal("e", judge_command(ended(2)), 7) == "e:answer"
    assert name_signal("e", unable("x"), 2) == "e:try-2"


def test_a_secret_that_would_be_cut_apart_is_hidden() -> None:
    token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0T"
    _, told = replied(status=302, location=f"https://h/{'a' * 150}/{token}")
    assert token[:12] not in told


def object_to(check: dict[str, Any], **rules: Any) -> str:
    return find_objection(read_check({"after": 1, **check}), parse_rules({"builder": rules})["builder"])


@pytest.mark.parametrize(
    ("host", "allowed", "is_allowed"),
    [
        ("ci.example.org", ["ci.example.org"], True),
        ("CI.example.org.", ["ci.EXAMPLE.org"], True),
        ("ci.example.org", ["example.org"], False),
        ("ci.example.org", ["*.example.org"], True),
        ("example.org", ["*.example.org"], False),
        ("evilexample.org", ["*.example.org"], False),
        ("[::1]:8080", ["[::1]"], True),
        ("[::1]:8080", ["::1"], True),
        ("localhost", [], False),
        ("localhost", None, True),
    ],
)
def test_hosts_are_those_that_are_named(host: str, allowed: list[str] | None, is_allowed: bool) -> None:
    told = object_to({"url": f"http://{host}/"}, check_hosts=allowed)
    assert (told == "") is is_allowed


def test_commands_may_be_forbidden() -> None:
    assert "check_commands" in object_to({"command": "true"}, check_commands=False)
    assert not object_to({"command": "true"}, check_commands=None)
    assert not object_to({"command": "true"}, check_hosts=[])


def test_what_an_agent_may_not_check_is_refused_when_it_is_logged(store: Store) -> None:
    rules = {"builder": {"check_hosts": ["ci.example.org"], "check_commands": False}}
    journal = Journal(store, rules=rules)
    with pytest.raises(
        ValueError, match=r"expectations\[1\].check: agent 'builder' may not have it: .*'localhost' \(it"
    ):
        expect(journal, {"url": "http://ci.example.org/"}, {"url": "http://localhost/"})
    with pytest.raises(ValueError, match="its rule check_commands forbids commands"):
        expect(journal, {"command": "true"})
    assert not [entry for entry in journal.review_journal() if entry.expectations]
    assert expect(journal, {"url": "http://ci.example.org/"}).expectations
    assert expect(journal, {"command": "true"}, agent_id="another").expectations
