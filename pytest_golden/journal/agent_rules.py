"""What agents may have otherwise, as it is configured: a mapping of agents to a few known keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_golden.journal.model import Assessment
from pytest_golden.journal.rules import Retention, Rules
from pytest_golden.manifest.findings import WrongValueError, findings_below, wrong
from pytest_golden.manifest.kinds import FLAG, TEXT, Kind, list_of, one_of
from pytest_golden.manifest.records import Key, Table, record_of
from pytest_golden.manifest.unquoted import bare, show


def _check_limit(value: Any) -> int:
    plain = bare(value)
    if not isinstance(plain, int) or isinstance(plain, bool) or plain < 1:
        raise wrong(f"{show(value)} is not a whole number from 1 up")
    return plain


_LIMIT = Kind(_check_limit, {"type": "integer", "minimum": 1})
_RETENTION_KEYS = Table.of(
    (
        Key("days", _LIMIT, "Closed entries are kept for so many days.", nullable=True),
        Key("entries", _LIMIT, "So many closed entries are kept, the newest.", nullable=True),
    )
)
#: What can be said of an agent.
RULE_KEYS = Table.of(
    (
        Key(
            "all_expired",
            one_of(*(word for word in Assessment if word is not Assessment.OPEN)),
            "What an entry is whose expectations all went without news.",
            nullable=True,
        ),
        Key("intent_types", list_of(TEXT), "The intent types that the agent may log.", nullable=True),
        Key("retention", record_of(_RETENTION_KEYS), "What pruning leaves: {days, entries}.", nullable=True),
        Key("check_hosts", list_of(TEXT), "The hosts whose pages its checks may ask.", nullable=True),
        Key("check_commands", FLAG, "Whether its checks may run commands.", nullable=True),
    )
)
_check_record = record_of(RULE_KEYS).check


def parse_rules(given: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Rules]:
    """Read rules by agent, as `{"builder": {"all_expired": "success"}}`.

    Raises:
        ValueError: what is wrong with them and where, all at once; for an unknown key, what may be meant.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"rules: a mapping of agents is wanted, not {show(given)}")  # noqa: TRY004 - one kind of refusal
    rules: dict[str, Rules] = {}
    findings = []
    for agent_id, record in given.items():
        try:
            rules[agent_id] = _read(_check_record(record))
        except ValueError as error:
            findings += findings_below(str(agent_id), error)
    if findings:
        raise WrongValueError(findings_below("rules", WrongValueError(findings)))
    return rules


def _read(record: Mapping[str, Any]) -> Rules:
    types = record.get("intent_types")
    hosts, commands = record.get("check_hosts"), record.get("check_commands")
    retention = record.get("retention") or {}
    return Rules(
        Assessment(record.get("all_expired") or Assessment.EXPIRED),
        None if types is None else tuple(types),
        Retention(retention.get("days"), retention.get("entries")),
        None if hosts is None else tuple(hosts),
        commands is not False,
    )
