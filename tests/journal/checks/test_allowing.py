from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.checks.model import read_check
from pytest_golden.journal.checks.rules import find_objection
from pytest_golden.journal.service import Journal
from tests.journal.checks.conftest import expect

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store


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
