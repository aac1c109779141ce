from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.journal.agent_rules import parse_rules
from pytest_golden.journal.model import Assessment
from pytest_golden.journal.rules import Retention, Rules


def test_rules_are_read_by_agent() -> None:
    rules = parse_rules(
        {
            "builder": {
                "all_expired": "success",
                "intent_types": ["deploy", "etl"],
                "retention": {"days": 90, "entries": 10_000},
            },
            "critic": {"retention": {"days": 7}},
            "silent": {"all_expired": None, "intent_types": None, "retention": None},
        }
    )
    assert rules["builder"] == Rules(Assessment.SUCCESS, ("deploy", "etl"), Retention(90, 10_000))
    assert rules["critic"] == Rules(retention=Retention(days=7))
    assert rules["silent"] == Rules()
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
