"""Rules of agents as they are configured: a mapping of agents to their rules, also in a shared YAML or JSON file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pytest_golden.errors import SettingsError
from pytest_golden.journal.model import Assessment
from pytest_golden.journal.rules import EVERYBODY, Retention, Rules
from pytest_golden.manifest import kinds
from pytest_golden.manifest.units import bare, show

VARIABLE = "GOLDEN_JOURNAL_RULES"
_ALL = "*"


def _check_limit(value: Any) -> int:
    plain = bare(value)
    if not isinstance(plain, int) or isinstance(plain, bool) or plain < 1:
        raise kinds.wrong(f"{show(value)} is not a whole number from 1 up")
    return plain


_LIMIT = kinds.Kind(_check_limit, {"type": "integer", "minimum": 1})
_RETENTION_KEYS = kinds.Table.of(
    (
        kinds.Key("days", _LIMIT, "How many days closed entries are kept.", nullable=True),
        kinds.Key("entries", _LIMIT, "How many closed entries are kept; the newest stay.", nullable=True),
    )
)
_ASSESSMENTS = {
    "all_expired": "The assessment if no expectation was answered in time.",
    "some_expired": "The assessment if some expectations are met and others were not answered in time.",
    "unmet": "The assessment if an expectation is unmet, or a signal speaks against the entry.",
    "critical_lost": "The assessment if a critical expectation is unmet or was not answered in time.",
}
#: The keys of an agent's rules.
RULE_KEYS = kinds.Table.of(
    (
        *(
            kinds.Key(
                name, kinds.one_of(*(word for word in Assessment if word is not Assessment.OPEN)), told, nullable=True
            )
            for name, told in _ASSESSMENTS.items()
        ),
        kinds.Key(
            "unfinished_after", kinds.DURATION, "When an intent without an outcome is closed as expired.", nullable=True
        ),
        kinds.Key("intent_types", kinds.list_of(kinds.TEXT), "The intent types that the agent may log.", nullable=True),
        kinds.Key(
            "retention", kinds.record_of(_RETENTION_KEYS), "What pruning leaves: {days, entries}.", nullable=True
        ),
        kinds.Key(
            "check_hosts", kinds.list_of(kinds.TEXT), "The hosts whose pages its checks may request.", nullable=True
        ),
        kinds.Key("check_commands", kinds.FLAG, "Whether its checks may run commands.", nullable=True),
        kinds.Key("check_network", kinds.FLAG, "Whether such a command may have the network.", nullable=True),
    )
)
_check_record = kinds.record_of(RULE_KEYS).check


def parse_rules(given: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Rules]:
    """Read rules by agent, as `{"builder": {"all_expired": "success"}}`; `default` stands for every agent that is not named but the gate's.

    Raises:
        ValueError: what is wrong with them and where, all at once; for an unknown key, what may be meant.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"rules: this must be a mapping of agents, not {show(given)}")  # noqa: TRY004 - one kind of refusal
    rules: dict[str, Rules] = {}
    findings = []
    for agent_id, record in given.items():
        if agent_id == _ALL:
            findings += kinds.findings_below(
                _ALL, kinds.wrong(f"{_ALL} is not an agent: {EVERYBODY} stands for all that are not named")
            )
            continue
        try:
            rules[agent_id] = _read(_check_record(record))
        except ValueError as error:
            findings += kinds.findings_below(str(agent_id), error)
    if findings:
        raise kinds.WrongValueError(kinds.findings_below("rules", kinds.WrongValueError(findings)))
    return rules


def _read(record: Mapping[str, Any]) -> Rules:
    told: dict[str, Any] = {name: value for name, value in record.items() if value is not None}
    told |= {name: Assessment(told[name]) for name in _ASSESSMENTS if name in told}
    if "retention" in told:
        told["retention"] = Retention(**told["retention"])
    return Rules(**told)


def find_rules() -> Mapping[str, Mapping[str, Any]]:
    """Return the rules in the file that GOLDEN_JOURNAL_RULES names; none where it is not set.

    Raises:
        SettingsError: it cannot be read, or holds something else than rules.
    """
    named = os.environ.get(VARIABLE)
    return read_rules_file(Path(named)) if named else {}


def read_rules_file(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Read a file of rules.

    Raises:
        SettingsError: it cannot be read, or holds something else than rules.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        parse_rules(given)
    except OSError as error:
        raise SettingsError(f"the journal's rules in {path} cannot be read: {error.strerror or error}") from None
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f" line {place.line + 1}" if place is not None else ""
        raise SettingsError(
            f"the journal's rules in {path}{line} are not YAML; correct their indentation and quotes"
        ) from None
    except ValueError as error:
        raise SettingsError(f"the journal's rules in {path}: {error}") from None
    rules: Mapping[str, Mapping[str, Any]] = given
    return rules
