"""What an agent's rules let it check. Asked when the expectation is logged, and again before the check is run. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.journal.checks.model import read_check
from pytest_golden.manifest.unquoted import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.journal.checks.model import Check
    from pytest_golden.journal.model import Expectation
    from pytest_golden.journal.rules import Rules


def refuse_forbidden(expectations: Iterable[Expectation], rules: Rules, agent_id: str) -> None:
    """Refuse expectations with a check that the agent may not have.

    Raises:
        ValueError: there is one; the message names what is allowed.
    """
    for number, expectation in enumerate(expectations):
        reason = "" if expectation.check is None else find_objection(read_check(expectation.check), rules)
        if reason:
            raise ValueError(f"expectations[{number}].check: agent {agent_id!r} may not have it: {reason}")


def find_objection(check: Check, rules: Rules) -> str:
    """Say why the rules do not allow a check; empty when they do."""
    if not check.is_page:
        return "" if rules.check_commands else "its rule check_commands forbids commands"
    if rules.check_hosts is None or any(_fits(check.host, allowed) for allowed in rules.check_hosts):
        return ""
    allowed = ", ".join(rules.check_hosts) or "none"
    return f"its rule check_hosts does not name {show(check.host)} (it names {allowed})"


def _fits(host: str, allowed: str) -> bool:
    """Tell whether a host is the one that is allowed, or below it where that begins with `*.`."""
    name = allowed.strip().rstrip(".").strip("[]").lower()
    return host.endswith(name[1:]) if name.startswith("*.") else host == name
