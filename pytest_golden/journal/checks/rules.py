"""What a check's outcome or reply means, when the check is tried again, and which checks an agent's rules allow. Pure.

A check that could not be run decides nothing: its signal is neutral, never negative.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem
from pytest_golden.journal.checks.model import Check, read_check
from pytest_golden.journal.hints import write_text
from pytest_golden.journal.model import Expectation, SignalType
from pytest_golden.manifest.units import show
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.wording import find_sealed_signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.journal.rules import Rules

_MINUTE_MS = 60_000
_LONGEST_WAIT = 60
_LONGEST_SAID = 500
_LONGEST_SHOWN = 200
# A shell's own words for a program that is not there or may not be executed (POSIX, 2.8.2).
_NOT_RUN = {126: "permission denied", 127: "not found"}
# Other programs may change the folder while a check reads it.
_VOUCHED = (None, Problem.PROJECT_CHANGED)
_ENDINGS = {
    Ending.SIGNALLED: "a signal ended it",
    Ending.TIMEOUT: "it took too long",
    Ending.MEMORY_LIMIT: "it took too much memory",
    Ending.CPU_LIMIT: "it took too much processor time",
    Ending.INTERRUPTED: "it was interrupted",
    Ending.NOT_STARTED: "it could not be started",
}
_REDIRECTS = range(300, 400)


class Reply(NamedTuple):
    """A page's reply. `body` is None if it was not wanted or is too large; `location` is the target of a redirect."""

    status: int
    location: str | None = None
    body: bytes | None = None


class Answer(NamedTuple):
    """The answer of a check, as its signal reports it; neutral if the check could not be run."""

    signal_type: SignalType
    summary: str
    data: Mapping[str, Any] = {}

    @property
    def is_final(self) -> bool:
        """Tell whether the check need not be run again."""
        return self.signal_type is not SignalType.NEUTRAL


def unable(reason: str, **data: Any) -> Answer:
    """Return the answer of a check that could not be run."""
    return Answer(SignalType.NEUTRAL, f"the check could not be run: {reason}", data)


def judge_command(outcome: PipelineOutcome) -> Answer:
    """Judge the outcome of a command."""
    code = outcome.exit_code
    if outcome.ending is not Ending.EXITED or outcome.problem not in _VOUCHED or code is None:
        return unable(_explain_ending(outcome))
    data = {"exit_code": code}
    if code in _NOT_RUN:
        return unable(f"a program was {_NOT_RUN[code]} (exit code {code}){_quote_end(outcome)}", **data)
    if outcome.sealed and (number := find_sealed_signal(code)) is not None:
        return unable(f"signal {number} ended it (exit code {code})", **data)
    if code == 0:
        return Answer(SignalType.POSITIVE, "the check's command succeeded", data)
    return Answer(SignalType.NEGATIVE, f"the check's command failed (exit code {code}){_quote_end(outcome)}", data)


def judge_reply(check: Check, reply: Reply) -> Answer:
    """Judge the reply of a page."""
    data = {"status": reply.status}
    if not check.accepts(reply.status):
        if reply.status in _REDIRECTS:
            # Half a secret is not recognised, so it is hidden before it is cut.
            where = f" to {_cut(redact(reply.location), _LONGEST_SHOWN)}" if reply.location else ""
            return unable(f"the page redirects{where} (status {reply.status}), and that is not followed", **data)
        wanted = " or ".join(map(str, check.status)) or "200 to 299"
        return Answer(SignalType.NEGATIVE, f"the page answered with status {reply.status}, not {wanted}", data)
    if check.path is None:
        return Answer(SignalType.POSITIVE, f"the page answered with status {reply.status}", data)
    if reply.body is None:
        return unable("the page's reply is too large", **data)
    try:
        document = json.loads(reply.body)
    except (ValueError, RecursionError):
        return unable("the page's reply is no JSON", **data)
    return _judge_value(check, check.path, document, data)


def back_off_ms(tries: int) -> int:
    """Return how long to wait after so many tries that could not be run, in milliseconds: 1, 2, 4 ... 60 minutes."""
    return min(_LONGEST_WAIT, 1 << min(tries - 1, _LONGEST_WAIT)) * _MINUTE_MS


def find_next(answer: Answer, tries: int, timestamp: int, expires_at: int | None) -> int | None:
    """Return when to run a check again, in milliseconds since the epoch; None: it is done, or its time ends before."""
    after = timestamp + back_off_ms(tries)
    return None if answer.is_final or (expires_at is not None and after >= expires_at) else after


def name_signal(expectation_id: str, answer: Answer, tries: int) -> str:
    """Return the external id of an answer: a check has one final answer, and each failed try counts once."""
    return f"{expectation_id}:{'answer' if answer.is_final else f'try-{tries}'}"


def refuse_forbidden(expectations: Iterable[Expectation], rules: Rules, agent_id: str) -> None:
    """Refuse expectations with a check that the agent's rules forbid; called when expectations are logged.

    Raises:
        ValueError: there is one; the message names what is allowed.
    """
    for number, expectation in enumerate(expectations):
        reason = "" if expectation.check is None else find_objection(read_check(expectation.check), rules)
        if reason:
            raise ValueError(f"expectations[{number}].check: agent {agent_id!r} may not have it: {reason}")


def find_objection(check: Check, rules: Rules) -> str:
    """Return why the rules forbid a check, "" if they allow it; called again before the check is run."""
    if not check.is_page:
        return "" if rules.check_commands else "its rule check_commands forbids commands"
    if rules.check_hosts is None or any(_is_host_allowed(check.host, allowed) for allowed in rules.check_hosts):
        return ""
    allowed = ", ".join(rules.check_hosts) or "none"
    return f"its rule check_hosts does not name {show(check.host)} (it names {allowed})"


def _explain_ending(outcome: PipelineOutcome) -> str:
    if outcome.problem is Problem.COMMAND_NOT_FOUND:
        # The gateway's advice is for those who write a manifest.
        return "its program was not found here"
    return outcome.message or _ENDINGS.get(outcome.ending, "it did not come to its end")


def _judge_value(check: Check, path: str, document: Any, data: dict[str, Any]) -> Answer:
    values = _find_values(path, document)
    if not values:
        return Answer(SignalType.NEGATIVE, f"the page has no {_cut(path, _LONGEST_SHOWN)}", data)
    found = values[0]
    shown = f"{_cut(path, _LONGEST_SHOWN)} is {_cut(redact(write_text(found)), _LONGEST_SHOWN)!r}"
    if not check.has_equals:
        kind = SignalType.NEGATIVE if found is None or found is False else SignalType.POSITIVE
        return Answer(kind, f"the page says: {shown}", data)
    if _equals(found, check.equals):
        return Answer(SignalType.POSITIVE, f"the page says: {shown}", data)
    wanted = _cut(write_text(check.equals), _LONGEST_SHOWN)
    return Answer(SignalType.NEGATIVE, f"the page says: {shown}, not {wanted!r}", data)


def _find_values(path: str, document: Any) -> list[Any]:
    """Return the value at a dotted path, in a list of one; a key that has dots in it is found as a whole."""
    if isinstance(document, dict) and path in document:
        return [document[path]]
    value = document
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part[:9]) < len(value):
            value = value[int(part[:9])]
        else:
            return []
    return [value]


def _equals(found: Any, wanted: Any) -> bool:
    if isinstance(found, dict | list):
        return False
    is_number = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, wanted))
    return bool(found == wanted) if is_number else write_text(found) == write_text(wanted)


def _quote_end(outcome: PipelineOutcome) -> str:
    lines = [line.strip() for text in (outcome.stdout, outcome.stderr) for line in text.splitlines() if line.strip()]
    return f": {_cut(lines[-1], _LONGEST_SAID)}" if lines else ""


def _cut(text: str | None, length: int) -> str:
    text = text or ""
    return text if len(text) <= length else f"{text[: length - 4]} ..."


def _is_host_allowed(host: str, allowed: str) -> bool:
    """Tell whether a host is the allowed one, or a subdomain of it where that begins with `*.`."""
    name = allowed.strip().rstrip(".").strip("[]").lower()
    return host.endswith(name[1:]) if name.startswith("*.") else host == name
