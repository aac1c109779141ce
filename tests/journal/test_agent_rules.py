from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.model import Assessment
from pytest_golden.journal.rules import Retention, Rules, rules_of
from pytest_golden.journal.service import Journal

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store


def test_rules_are_read_by_agent() -> None:
    rules = parse_rules(
        {
            "builder": {
                "all_expired": "success",
                "intent_types": ["deploy", "etl"],
                "retention": {"days": 90, "entries": 10_000},
            },
            "critic": {"retention": {"days": 7}},
            "strict": {
                "some_expired": "failure",
                "unmet": "partial",
                "critical_lost": "expired",
                "unfinished_after": "2h",
            },
            "silent": {"all_expired": None, "intent_types": None, "retention": None},
        }
    )
    assert rules["builder"] == Rules(
        all_expired=Assessment.SUCCESS, intent_types=("deploy", "etl"), retention=Retention(90, 10_000)
    )
    assert rules["critic"] == Rules(retention=Retention(days=7))
    assert rules["silent"] == Rules()
    assert rules["strict"] == Rules(
        some_expired=Assessment.FAILURE,
        unmet=Assessment.PARTIAL,
        critical_lost=Assessment.EXPIRED,
        unfinished_after=7200,
    )
    assert parse_rules(None) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"builder": {"all_expird": "success"}}, "rules.builder: unknown key 'all_expird'; did you mean 'all_expired'"),
        ({"builder": {"all_expired": "good"}}, "rules.builder.all_expired: 'good' is not known here; write success"),
        ({"builder": {"all_expired": "open"}}, "rules.builder.all_expired: 'open' is not known here"),
        ({"builder": {"intent_types": [3]}}, r"rules.builder.intent_types\[0\]: this must be a text"),
        ({"builder": {"retention": {"days": 0}}}, "rules.builder.retention.days: 0 is not a whole number from 1 up"),
        ({"builder": {"retention": {"day": 1}}}, "unknown key 'day'; did you mean 'days'"),
        ({"builder": "success"}, "rules.builder: this must be a mapping, not 'success'"),
        (["builder"], "rules: this must be a mapping of agents"),
    ],
)
def test_a_rule_that_there_is_not_is_refused_with_its_place(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_rules(given)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"rules.a: unknown key 'x'.*; rules.b.retention.days: '1' is not"):
        parse_rules({"a": {"x": 1}, "b": {"retention": {"days": "1"}}})


def test_default_stands_for_every_agent_that_is_not_named_but_the_gates() -> None:
    rules = parse_rules({"default": {"all_expired": "success", "intent_types": ["etl"]}, "builder": {}})
    assert rules_of("anybody", rules).all_expired == rules_of(None, rules).all_expired == "success"
    assert rules_of("builder", rules) == rules_of("golden", rules) == rules_of("x", {}) == Rules()
    assert rules_of("golden", parse_rules({"golden": {"all_expired": "failure"}})).all_expired == "failure"
    with pytest.raises(ValueError, match=r"rules\.\*: \* is not an agent: default stands for all that are not named"):
        parse_rules({"*": {"all_expired": "success"}})


def test_rules_for_all_reach_the_journal(store: Store) -> None:
    journal = Journal(store, rules={"default": {"intent_types": ["etl"]}})
    with pytest.raises(ValueError, match="intent_type 'deploy' is not one of agent 'anybody'"):
        journal.log_intent("x", "deploy", agent_id="anybody")
    assert journal.log_intent("x", "etl", agent_id="anybody").intent_type == "etl"
    assert journal.log_intent("x", "regression_check", agent_id="golden").agent_id == "golden"
