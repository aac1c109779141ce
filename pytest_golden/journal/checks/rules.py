"""Checks, as expectations hold them: when one is due, what its outcome or reply means, and which an agent's rules allow. Pure.

A check is stored as a mapping in one canonical form, whose `after` has a unit; `read_check` turns it into a `Check`. A check
that could not be run decides nothing: its signal is neutral, never negative.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem
from pytest_golden.journal.hints import write_text
from pytest_golden.journal.model import Expectation, SignalType
from pytest_golden.manifest.kinds import (
    COMMAND,
    FLAG,
    TEXT,
    Kind,
    as_key,
    check_each,
    check_text,
    declared,
    record_of,
    table_of,
    wrong,
)
from pytest_golden.manifest.units import parse_duration, show
from pytest_golden.redaction.redactor import redact
from pytest_golden.redaction.rule import MARK
from pytest_golden.regression.wording import find_sealed_signal
from pytest_golden.storage.columns import storable
from pytest_golden.values.checking import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.journal.rules import Rules


_MOST_MINUTES = 366 * 24 * 60
_LONGEST_URL = 8192
# Brackets, as the mark has them, mean an address there.
_ACCOUNT = MARK.strip("[]")
_SCHEMES = ("http", "https")
# No shell reads the words of a command.
_SHELL_SIGNS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"})
_OF_A_PAGE = ("status", "path", "equals")
_GITHUB = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}[#@])[A-Za-z0-9._-]{1,100}(#[1-9][0-9]{0,8}|@[A-Za-z0-9._/-]{1,200})"
)
# What programs say when a name is not found or nothing can be reached.
_WANTS_NETWORK = re.compile(
    "(?i)could not resolve|failed to resolve|name resolution|name or service not known|nodename nor servname"
    "|network is unreachable|no route to host|connection refused|getaddrinfo"
)
# Where clouds keep a machine's credentials beside the addresses of the link: Alibaba, Azure, Oracle, Google and Amazon.
_CLOUD_ADDRESSES = tuple(
    map(ip_network, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254", "fd00:ec2::/32"))
)
# "This network", of which parts reach the machine itself, and the reserved addresses with the broadcast.
_NEVER_ASKED = (ip_network("0.0.0.0/8"), ip_network("240.0.0.0/4"))
# Behind these lies an IPv4 address, its last four bytes (RFC 6052 and 8215 for NAT64, RFC 4291 for the compatible form,
# RFC 2765 for the translated one).
_WRAPPING_IPV4 = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))


def _check_after(value: Any) -> str:
    if isinstance(value, str):
        text = check_text(value).strip()
        if text[-1].isdigit():
            raise wrong(f"{show(text)} has no unit; write 90s, 10m or 2h, or a number of minutes without quotes")
        return _write_ms(round(parse_duration(text) * 1000))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_MINUTES:
        raise wrong(
            f"{show(value)} is not above 0 and at most 366 days; write a number of minutes, or a text such as 90s, 10m or 2h"
        )
    return _write_ms(round(value * 60_000))


def _write_ms(milliseconds: int) -> str:
    milliseconds = max(1, milliseconds)
    for unit, size in (("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _check_command(value: Any) -> tuple[str, ...]:
    words: tuple[str, ...] = COMMAND.check(value)
    signs = sorted(_SHELL_SIGNS.intersection(words)) if isinstance(value, str) else []
    if signs:
        raise wrong(f"runs a program without a shell, so {signs[0]!r} has no meaning; write: sh -c '...'")
    for word in words:
        if storable(word) != word:
            raise wrong(f"{show(word)} holds half a character; remove it")
    return words


def _check_url(value: Any) -> str:
    text = check_text(value).strip()
    if len(text) > _LONGEST_URL:
        raise wrong(f"has {len(text):,} characters, and at most {_LONGEST_URL:,} are allowed; shorten it")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise wrong("holds characters that no URL has; write them percent-encoded, a host's as xn--...")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise wrong(f"is not a URL: {error}; write one such as https://example.org/health") from None
    if parts.scheme not in _SCHEMES or not host or port == 0:
        raise wrong("is not a URL of a page; write one such as https://example.org/health, by http or https")
    if is_refused_literal(host):
        raise wrong(
            f"{show(host)} is never requested: it is a link-local, multicast or reserved address; give another host"
        )
    # The user name is dropped with the password: a token is often given as the name.
    _, at, place = parts.netloc.rpartition("@")
    netloc = f"{_ACCOUNT}@{place}" if at else place
    return parts._replace(netloc=netloc, fragment="").geturl()


def _check_status(value: Any) -> tuple[int, ...]:
    def check_one(one: Any) -> int:
        if isinstance(one, bool) or not isinstance(one, int) or not 100 <= one <= 599:
            raise wrong(f"{show(one)} is not a status; write a number from 100 to 599")
        return one

    if not isinstance(value, list | tuple):
        return (check_one(value),)
    if not value:
        raise wrong("is empty; write the good ones, or leave it out for all from 200 to 299")
    return check_each(value, check_one)


def _check_pending(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        return (_check_scalar(value),)
    if not value:
        raise wrong("is empty; write what means not yet, or leave it out")
    return check_each(value, _check_scalar)


def _check_github(value: Any) -> str:
    text = check_text(value).strip()
    if not _GITHUB.fullmatch(text):
        raise wrong(f"{show(text)} names no pull request or commit; write OWNER/NAME#42 or OWNER/NAME@COMMIT")
    return text


def _check_scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, str | bool | int | float):
        raise wrong("must be a text, a number, true, false or null, since it is compared as text")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check: a command, a page, or GitHub. `after` counts from the expectation's creation.

    A page answers by its `status` (empty: any from 200 to 299). With `path`, the value at that dotted path of its JSON decides: it
    must equal `equals`, compared as text, or without `equals` exist and be neither null nor false. GitHub answers by what became
    of a pull request, or by the check with this `name`. `pending` are the exit codes, statuses or values that mean "not yet".
    `until` limits the wait for them, counted like `after` (empty: until the expectation expires).
    """

    after: str = field(metadata=as_key(Kind(_check_after), "How long to wait: a number of minutes, or 90s, 10m, 2h."))
    command: tuple[str, ...] = declared((), Kind(_check_command), "What to run then: exit code 0 is a positive answer.")
    url: str = declared("", Kind(_check_url), "The page to request then.")
    status: tuple[int, ...] = declared(
        (), Kind(_check_status), "Its good status, or a list of them; default: 200 to 299."
    )
    path: str = declared("", TEXT, "A dotted path into its JSON: the value there decides.")
    equals: Any = declared(Missing.MISSING, Kind(_check_scalar), "What the value at the path must be.")
    github: str = declared(
        "", Kind(_check_github), "Which pull request (OWNER/NAME#42) or commit (OWNER/NAME@COMMIT) to ask GitHub about."
    )
    name: str = declared("", TEXT, "Which of its checks decides; default: what became of the pull request.")
    pending: tuple[Any, ...] = declared(
        (), Kind(_check_pending), "Which exit codes, statuses, or values at the path mean not yet."
    )
    until: str = declared(
        "", Kind(_check_after), "How long to wait while the answer is not yet; default: until the expectation expires."
    )
    network: bool = declared(False, FLAG, "Whether the command has the network.")

    @property
    def after_ms(self) -> int:
        """Return how long to wait, in milliseconds."""
        return round(parse_duration(self.after) * 1000)

    @property
    def is_page(self) -> bool:
        """Tell whether a page is requested, and no command run."""
        return bool(self.url)

    @property
    def until_ms(self) -> int | None:
        """Return how long to wait while the answer is "not yet", in milliseconds; None: until the expectation expires."""
        return round(parse_duration(self.until) * 1000) if self.until else None

    def is_pending(self, found: Any) -> bool:
        """Tell whether an exit code, a status or a value means "not yet"."""
        return any(_equals(found, one) for one in self.pending)

    @property
    def host(self) -> str:
        """Return the host of the page, in lower case."""
        if self.github:
            return "api.github.com"
        return (urlsplit(self.url).hostname or "").rstrip(".")

    @property
    def has_lost_a_secret(self) -> bool:
        """Tell whether it held a secret: secrets are not stored, so it cannot be run as it was meant."""
        texts = (*self.command, self.url, self.path, self.equals, self.name, *self.pending)
        return "@" in urlsplit(self.url).netloc or any(MARK in text for text in texts if isinstance(text, str))

    def accepts(self, status: int) -> bool:
        """Tell whether a status is a good one."""
        return status in self.status if self.status else 200 <= status <= 299


_check_keys = record_of(table_of(Check)).check


def check_mapping(value: Any) -> dict[str, Any]:
    """Check a mapping that a caller gives, and return its canonical form; that form stays as it is.

    Raises:
        ValueError: what is wrong with it and where, all at once.
    """
    clean: dict[str, Any] = _check_keys(value)
    if sum(name in clean for name in ("command", "url", "github")) != 1:
        raise wrong("either command or url is required, or github; give one of them")
    _check_belongings(clean)
    if "equals" in clean and "path" not in clean:
        raise wrong("equals is about the value at a path; give path with it")
    if "until" in clean and parse_duration(clean["until"]) <= parse_duration(clean["after"]):
        raise wrong("until is not later than after; both count from the expectation's creation")
    if "until" in clean and "pending" not in clean and "github" not in clean:
        raise wrong("until is how long not yet is waited for; give pending with it")
    return clean


def _check_belongings(clean: Mapping[str, Any]) -> None:
    alone = [name for name in _OF_A_PAGE if name in clean]
    if alone and "url" not in clean:
        raise wrong(f"{alone[0]} is about a page; give url with it, or leave it out")
    if "network" in clean and "command" not in clean:
        raise wrong("network is about a command; give command with it, or leave it out")
    if "name" in clean and "github" not in clean:
        raise wrong("name is that of a check on GitHub; give github with it, or leave it out")
    if "github" in clean and ("pending" in clean or ("@" in clean["github"] and "name" not in clean)):
        raise wrong(
            "a commit is asked for a check by its name, and what is pending on GitHub is known; give name, and no pending"
        )


CHECK = Kind(check_mapping, {"type": "object"})


def read_check(kept: Mapping[str, Any]) -> Check:
    """Read a check as it is stored.

    Raises:
        ValueError: it is not a check.
    """
    return Check(**check_mapping(kept))


def is_refused(text: str) -> bool:
    """Tell whether an address is link-local, multicast, unspecified or reserved, or where a cloud keeps credentials.

    Such an address is never requested, whatever name stands for it: where clouds hand out a machine's credentials, anybody who
    logs an expectation would get them. A machine's own address and a private one are allowed: checks are often about them.

    Raises:
        ValueError: it is not an address.
    """
    return any(_is_refused_address(address) for address in _unwrap(ip_address(text.partition("%")[0])))


def is_refused_literal(host: str) -> bool:
    """Tell whether a host is written as a refused address; a name is not."""
    try:
        return is_refused(host)
    except ValueError:
        return False


def _unwrap(address: IPv4Address | IPv6Address) -> tuple[IPv4Address | IPv6Address, ...]:
    if isinstance(address, IPv4Address):
        return (address,)
    inner = [address.ipv4_mapped, address.sixtofour]
    # ::1 and :: are the machine itself and nothing, no IPv4 addresses.
    if int(address) > 1 and any(address in network for network in _WRAPPING_IPV4):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return (address, *(one for one in inner if one is not None))


def _is_refused_address(address: IPv4Address | IPv6Address) -> bool:
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return True
    return any(address in network for network in (*_CLOUD_ADDRESSES, *_NEVER_ASKED))


_MINUTE_MS = 60_000
_LONGEST_WAIT = 60
_LONGEST_SAID = 500
_LONGEST_SHOWN = 200
# A shell's exit codes for a program that does not exist or may not be executed (POSIX, 2.8.2).
_NOT_RUN = {126: "permission denied", 127: "not found"}
# Other programs may change the folder while a check reads it.
_VOUCHED = (None, Problem.PROJECT_CHANGED)
_ENDINGS = {
    Ending.SIGNALLED: "a signal ended it",
    Ending.TIMEOUT: "it took too long",
    Ending.MEMORY_LIMIT: "it took too much memory",
    Ending.CPU_LIMIT: "it took too much processor time",
    Ending.PROCESS_LIMIT: "it ran too many processes",
    Ending.DISK_LIMIT: "it wrote too much to the disk",
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
    is_pending: bool = False

    @property
    def is_final(self) -> bool:
        """Tell whether the check need not be run again."""
        return self.signal_type is not SignalType.NEUTRAL


def unable(reason: str, **data: Any) -> Answer:
    """Return the answer of a check that could not be run."""
    return Answer(SignalType.NEUTRAL, f"the check could not be run: {reason}", data)


def not_yet(found: str, **data: Any) -> Answer:
    """Return the answer of a check that is to be asked again."""
    return Answer(SignalType.NEUTRAL, f"not yet: {found}", data, is_pending=True)


def end_waiting(answer: Answer) -> Answer:
    """Return the answer when the waiting is over: "not yet" becomes a no."""
    if not answer.is_pending:
        return answer
    return Answer(SignalType.NEGATIVE, f"still {answer.summary}", answer.data)


def judge_command(outcome: PipelineOutcome, check: Check | None = None) -> Answer:
    """Judge the outcome of a command."""
    code = outcome.exit_code
    if outcome.ending is not Ending.EXITED or outcome.problem not in _VOUCHED or code is None:
        return unable(_explain_ending(outcome))
    data = {"exit_code": code}
    if check is not None and check.is_pending(code):
        return not_yet(f"the check's command ended with exit code {code}{_quote_end(outcome)}", **data)
    if code in _NOT_RUN:
        return unable(f"a program was {_NOT_RUN[code]} (exit code {code}){_quote_end(outcome)}", **data)
    if outcome.sealed and (number := find_sealed_signal(code)) is not None:
        return unable(f"signal {number} ended it (exit code {code})", **data)
    if code == 0:
        return Answer(SignalType.POSITIVE, "the check's command succeeded", data)
    has_network = check is not None and check.network
    if not has_network and any(_WANTS_NETWORK.search(text) for text in (outcome.stdout, outcome.stderr)):
        told = "its command asked for the network, which it has only with network: true"
        return unable(f"{told} (exit code {code}){_quote_end(outcome)}", **data)
    return Answer(SignalType.NEGATIVE, f"the check's command failed (exit code {code}){_quote_end(outcome)}", data)


def judge_reply(check: Check, reply: Reply) -> Answer:
    """Judge the reply of a page."""
    data = {"status": reply.status}
    if not check.path and check.is_pending(reply.status):
        return not_yet(f"the page answered with status {reply.status}", **data)
    if not check.accepts(reply.status):
        if reply.status in _REDIRECTS:
            # Half a secret is not recognised, so it is hidden before it is cut.
            where = f" to {_cut(redact(reply.location), _LONGEST_SHOWN)}" if reply.location else ""
            return unable(f"the page redirects{where} (status {reply.status}), and that is not followed", **data)
        wanted = " or ".join(map(str, check.status)) or "200 to 299"
        return Answer(SignalType.NEGATIVE, f"the page answered with status {reply.status}, not {wanted}", data)
    if not check.path:
        return Answer(SignalType.POSITIVE, f"the page answered with status {reply.status}", data)
    if reply.body is None:
        return unable("the page's reply is too large", **data)
    try:
        document = json.loads(reply.body)
    except (ValueError, RecursionError):
        return unable("the page's reply is not JSON", **data)
    return _judge_value(check, document, data)


def back_off_ms(tries: int) -> int:
    """Return how long to wait after so many tries that could not be run, in milliseconds: 1, 2, 4 ... 60 minutes."""
    return min(_LONGEST_WAIT, 1 << min(tries - 1, _LONGEST_WAIT)) * _MINUTE_MS


def find_next(
    answer: Answer, tries: int, timestamp: int, expires_at: int | None, until: int | None = None
) -> int | None:
    """Return when to run a check again, in milliseconds since the epoch; None: it is done, or its time ends before.

    The last try for what is pending is at `until`.
    """
    after = timestamp + back_off_ms(tries)
    if until is not None and timestamp < until:
        after = min(after, until)
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
    if check.command:
        if check.network and not rules.check_network:
            return "its rule check_network does not allow a command the network"
        return "" if rules.check_commands else "its rule check_commands forbids commands"
    if rules.check_hosts is None or any(_is_host_allowed(check.host, allowed) for allowed in rules.check_hosts):
        return ""
    allowed = ", ".join(rules.check_hosts) or "none"
    return f"its rule check_hosts does not name {show(check.host)} (it names {allowed})"


def _explain_ending(outcome: PipelineOutcome) -> str:
    if outcome.problem is Problem.COMMAND_NOT_FOUND:
        # The gateway's advice is for those who write a manifest.
        return "its program was not found here"
    return outcome.message or _ENDINGS.get(outcome.ending, "it did not finish")


def _judge_value(check: Check, document: Any, data: dict[str, Any]) -> Answer:
    values, path = _find_values(check.path, document), _cut(check.path, _LONGEST_SHOWN)
    if not values:
        return Answer(SignalType.NEGATIVE, f"the page has no {path}", data)
    found = values[0]
    shown = f"{path} is {_cut(redact(write_text(found)), _LONGEST_SHOWN)!r}"
    if check.is_pending(found):
        return not_yet(f"the page says: {shown}", **data)
    if check.equals is Missing.MISSING:
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
