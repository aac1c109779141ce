from __future__ import annotations

import json
import math
import re
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem
from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.checks.rules import (
    Check,
    Reply,
    back_off_ms,
    check_mapping,
    end_waiting,
    find_next,
    find_objection,
    is_refused,
    is_refused_literal,
    judge_command,
    judge_reply,
    name_signal,
    not_yet,
    read_check,
    unable,
)
from pytest_golden.journal.rules import Rules
from pytest_golden.journal.service import Journal
from pytest_golden.values.checking import Missing
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
    said = judge_command(ended(3, stdout="all\n", stderr="first\nno such row \n\n"))[:3]
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
        (ended(-9, Ending.DISK_LIMIT), "it wrote too much to the disk"),
        (ended(-9, Ending.PROCESS_LIMIT), "it ran too many processes"),
        (ended(None, Ending.INTERRUPTED), "it was interrupted"),
        (ended(None, Ending.NOT_STARTED), "it could not be started"),
        (ended(None), "it did not finish"),
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
        (b"<html>", "a", "neutral", "is not JSON"),
        (b"", "a", "neutral", "is not JSON"),
        (b"\xff\xfe\x00", "a", "neutral", "is not JSON"),
        (b"[" * 200_000, "a", "neutral", "is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a", "neutral", "is not JSON"),
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


def read(**check: Any) -> Check:
    return read_check({"after": 1, **check})


@pytest.mark.parametrize(
    ("check", "reply", "kind"),
    [
        ({"pending": 202}, Reply(202), "neutral"),
        ({"pending": [404, 202]}, Reply(404), "neutral"),
        ({"pending": 202}, Reply(200), "positive"),
        ({"pending": 202}, Reply(500), "negative"),
        ({"path": "a", "equals": "done", "pending": ["queued", None]}, Reply(200, None, b'{"a": "queued"}'), "neutral"),
        ({"path": "a", "equals": "done", "pending": ["queued", None]}, Reply(200, None, b'{"a": null}'), "neutral"),
        ({"path": "a", "equals": "done", "pending": "queued"}, Reply(200, None, b'{"a": "done"}'), "positive"),
        ({"path": "a", "equals": "done", "pending": "queued"}, Reply(200, None, b'{"a": "failed"}'), "negative"),
        ({"path": "a", "pending": 200}, Reply(200, None, b'{"a": 1}'), "positive"),
    ],
)
def test_a_page_may_say_not_yet(check: dict[str, Any], reply: Reply, kind: str) -> None:
    answer = judge_reply(read(url="http://localhost/", **check), reply)
    assert (answer.signal_type, answer.is_pending, answer.is_final) == (kind, kind == "neutral", kind != "neutral")
    assert answer.summary.startswith("not yet: ") is answer.is_pending
    ended_wait = end_waiting(answer)
    assert ended_wait == answer if kind != "neutral" else ended_wait.summary == f"still {answer.summary}"
    assert ended_wait.signal_type == ("negative" if kind == "neutral" else kind)


def test_a_command_may_say_not_yet_and_ask_for_the_network() -> None:
    check = read(command="true", pending=[75])
    assert judge_command(ended(75, stderr="still loading\n"), check)[:2] == (
        "neutral",
        "not yet: the check's command ended with exit code 75: still loading",
    )
    assert judge_command(ended(1), check).signal_type == "negative"
    for told in ("curl: (6) Could not resolve host: example.org", "connect: Connection refused"):
        said = judge_command(ended(6, stderr=told), read(command="true"))
        assert (said.signal_type, said.is_pending) == ("neutral", False)
        assert "only with network: true" in said.summary
        assert end_waiting(said) == said
        assert judge_command(ended(6, stderr=told), read(command="true", network=True)).signal_type == "negative"


def test_the_last_try_for_what_is_pending_is_when_nothing_is_waited_for_any_more() -> None:
    assert read(url="http://h/", pending=202, until="10m").until_ms == 10 * MINUTE
    assert find_next(not_yet("x"), 5, 1000, None, 1000 + 3 * MINUTE) == 1000 + 3 * MINUTE
    assert find_next(not_yet("x"), 1, 1000, None, 1000 + 3 * MINUTE) == 1000 + MINUTE
    assert find_next(not_yet("x"), 5, 1000, 500 + 3 * MINUTE, 1000 + 3 * MINUTE) is None


def test_a_command_has_the_network_only_where_the_agents_rules_allow_it() -> None:
    wants = read(command="curl https://example.org", network=True)
    assert "check_network does not allow" in find_objection(wants, Rules())
    assert find_objection(wants, Rules(check_network=True)) == ""
    assert find_objection(read(github="octo/shop#1"), Rules(check_hosts=("ci.example.org",)))
    assert find_objection(read(github="octo/shop#1"), Rules(check_hosts=("api.github.com",))) == ""


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ({"url": "http://h/", "network": True}, "network is about a command"),
        ({"url": "http://h/", "name": "x"}, "name is that of a check on GitHub"),
        ({"url": "http://h/", "until": "5m"}, "give pending with it"),
        ({"url": "http://h/", "pending": 202, "until": "30s"}, "until is not later than after"),
        ({"url": "http://h/", "pending": []}, "is empty; write what means not yet"),
        ({"url": "http://h/", "pending": [{}]}, "must be a text, a number"),
        ({"url": "http://h/", "github": "o/n#1"}, "give one of them"),
        ({"github": "o/n"}, "names no pull request or commit"),
        ({"github": "o/n#0"}, "names no pull request or commit"),
        ({"github": "o/../x#1"}, "names no pull request or commit"),
        ({"github": "o/..#1"}, "names no pull request or commit"),
        ({"github": "o/n@main"}, "a commit is asked for a check by its name"),
        ({"github": "o/n#1", "pending": "open"}, "a commit is asked for a check by its name"),
    ],
)
def test_keys_that_do_not_belong_together_are_refused(check: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        read(**check)


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


PAGE = {"after": 1, "url": "https://example.org/health"}


@pytest.mark.parametrize(
    ("after", "kept", "milliseconds"),
    [
        (10, "10m", 600_000),
        (0.5, "30s", 30_000),
        (0.001, "60ms", 60),
        (1e-9, "1ms", 1),
        ("90s", "90s", 90_000),
        (" 2h ", "120m", 7_200_000),
        ("1.5 m", "90s", 90_000),
        (366 * 24 * 60, "527040m", 366 * 24 * 3_600_000),
    ],
)
def test_after_is_minutes_or_has_its_unit(after: Any, kept: str, milliseconds: int) -> None:
    clean = check_mapping({"after": after, "command": "true"})
    assert clean == {"after": kept, "command": ("true",)}
    assert read_check(clean).after_ms == milliseconds


def test_a_page_is_kept_with_all_that_decides() -> None:
    given_one = {**PAGE, "status": 204, "path": "a.b", "equals": None}
    clean = check_mapping(given_one)
    assert clean == {**PAGE, "after": "1m", "status": (204,), "path": "a.b", "equals": None}
    check = read_check({**clean, "status": [204, 304]})
    assert (check.is_page, check.host, check.status, check.equals) == (True, "example.org", (204, 304), None)
    assert [check.accepts(status) for status in (200, 204, 304)] == [False, True, True]
    plain = read_check(PAGE)
    assert (plain.equals, plain.path) == (Missing.MISSING, "")
    assert [plain.accepts(status) for status in (199, 200, 299, 300)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"command": "x"}, "the key after is missing"),
        ({"after": 1}, "either command or url is required"),
        ({**PAGE, "command": "x"}, "either command or url is required"),
        ({**PAGE, "comand": "x"}, "unknown key 'comand'; did you mean 'command'"),
        ({"after": 0, "command": "x"}, "after: 0 is not above 0 and at most 366 days"),
        ({"after": True, "command": "x"}, "after: True is not above 0"),
        ({"after": math.nan, "command": "x"}, "after: nan is not above 0"),
        ({"after": math.inf, "command": "x"}, "after: inf is not above 0"),
        ({"after": 10**9, "command": "x"}, "after: 1000000000 is not above 0 and at most 366 days"),
        ({"after": None, "command": "x"}, "after: None is not above 0"),
        ({"after": "10", "command": "x"}, "after: '10' has no unit; write 90s, 10m or 2h"),
        ({"after": "soon", "command": "x"}, "after: 'soon' is not a duration"),
        ({"after": "-1m", "command": "x"}, "after: '-1m' is not above 0"),
        ({"after": " ", "command": "x"}, "after: is empty"),
        (
            {"after": 1, "command": "make && make test"},
            "command: runs a program without a shell, so '&&' has no meaning",
        ),
        ({"after": 1, "command": []}, "command: is empty; write the program"),
        ({"after": 1, "command": ["a\udc80"]}, "holds half a character"),
        ({"after": 1, "command": ["a\0"]}, "NUL"),
        ({"after": 1, "command": "x", "status": 200}, "status is about a page; give url with it"),
        ({"after": 1, "command": "x", "path": "a", "equals": 1}, "path is about a page"),
        ({**PAGE, "equals": 1}, "equals is about the value at a path; give path with it"),
        ({**PAGE, "path": " "}, "path: is empty"),
        ({**PAGE, "path": "a", "equals": {}}, "equals: must be a text, a number, true, false or null"),
        ({**PAGE, "status": 99}, "status: 99 is not a status; write a number from 100 to 599"),
        ({**PAGE, "status": True}, "status: True is not a status"),
        ({**PAGE, "status": "200"}, "status: '200' is not a status"),
        ({**PAGE, "status": []}, "status: is empty"),
        ({**PAGE, "status": [200, 600]}, r"status\[1\]: 600 is not a status"),
        ({**PAGE, "url": "ftp://example.org/"}, "url: is not a URL of a page"),
        ({**PAGE, "url": "file:///etc/passwd"}, "url: is not a URL of a page"),
        ({**PAGE, "url": "https:///x"}, "url: is not a URL of a page"),
        ({**PAGE, "url": "example.org"}, "url: is not a URL of a page"),
        ({**PAGE, "url": "http://example.org:0/"}, "url: is not a URL of a page"),
        ({**PAGE, "url": "http://example.org:99999/"}, "url: is not a URL: Port out of range"),
        ({**PAGE, "url": "http://[::1/"}, "url: is not a URL: Invalid IPv6 URL"),
        ({**PAGE, "url": "http://example.org/a b"}, "url: holds characters that no URL has"),
        ({**PAGE, "url": "http://example.org/\r\nX: y"}, "url: holds characters that no URL has"),
        ({**PAGE, "url": "http://exämple.org/"}, "url: holds characters that no URL has"),
        ({**PAGE, "url": "http://example.org/" + "x" * 8192}, "url: has 8,211 characters"),
        ({**PAGE, "url": "http://169.254.169.254/latest"}, "url: '169.254.169.254' is never requested"),
        ({**PAGE, "url": "http://[fe80::1]/"}, "url: 'fe80::1' is never requested"),
        ("true", "this must be a mapping, not 'true'; its keys are after, command, url"),
    ],
)
def test_a_check_that_cannot_be_kept_is_refused_with_its_place(check: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_mapping(check)


def test_a_list_may_hold_what_a_shell_would_read() -> None:
    assert check_mapping({"after": 1, "command": ["echo", "|"]})["command"] == ("echo", "|")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://user:hunter22@example.org:8443/x", "https://REDACTED@example.org:8443/x"),
        ("https://ghp_token@example.org/", "https://REDACTED@example.org/"),
        ("https://:pass@example.org/", "https://REDACTED@example.org/"),
        ("https://@example.org/", "https://REDACTED@example.org/"),
    ],
)
def test_who_signs_in_is_not_kept(url: str, kept: str) -> None:
    clean = check_mapping({**PAGE, "url": url})
    assert clean["url"] == kept
    assert read_check(clean).has_lost_a_secret


def test_a_fragment_is_for_browsers() -> None:
    assert check_mapping({**PAGE, "url": "http://EXAMPLE.org/a?b=c#d"})["url"] == "http://EXAMPLE.org/a?b=c"
    assert read_check({**PAGE, "url": "http://EXAMPLE.org./"}).host == "example.org"


def test_a_redacted_text_has_lost_a_secret() -> None:
    assert read_check({"after": 1, "command": ["curl", "-H", "[REDACTED]"]}).has_lost_a_secret
    assert read_check({**PAGE, "path": "a", "equals": "[REDACTED]"}).has_lost_a_secret
    assert not read_check({**PAGE, "path": "a", "equals": "done"}).has_lost_a_secret


AFTER = st.one_of(
    st.floats(min_value=1e-6, max_value=500_000),
    st.integers(1, 500_000),
    st.builds("{}{}".format, st.integers(1, 8000), st.sampled_from(["ms", "s", "m", "h"])),
)


@given(AFTER)
def test_what_is_kept_stays_as_it_is(after: Any) -> None:
    clean = check_mapping({"after": after, "command": ["x"]})
    assert check_mapping(clean) == clean
    if not isinstance(after, str):
        assert abs(read_check(clean).after_ms - after * 60_000) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "255.255.255.255",
        "240.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "64:ff9b::169.254.169.254",
        "::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b:1::a9fe:a9fe",
        "::ffff:0:a9fe:a9fe",
    ],
)
def test_addresses_of_the_link_and_of_clouds_are_refused_in_any_dress(text: str) -> None:
    assert is_refused(text)


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "172.16.0.9", "fd12::1", "93.184.216.34", "2606:2800::1"]
)
def test_loopback_private_and_public_addresses_are_asked(text: str) -> None:
    assert not is_refused(text)


def test_a_name_is_no_literal() -> None:
    assert not is_refused_literal("metadata.example.org")
    assert is_refused_literal("169.254.169.254")


@given(st.integers(0, 2**32 - 1))
def test_an_address_inside_another_is_judged_alike(number: int) -> None:
    plain = IPv4Address(number)
    mapped = IPv6Address(b"\0" * 10 + b"\xff\xff" + plain.packed)
    assert is_refused(str(mapped)) == is_refused(str(plain))
