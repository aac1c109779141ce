"""How a signal settles an expectation, how an entry is assessed, and which sources are reserved. Pure.

An assessment is computed from counts, so a signal costs the same for an entry with many expectations.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, Polarity, SignalType
from pytest_golden.manifest.units import show
from pytest_golden.values.checking import check_text

if TYPE_CHECKING:
    from collections.abc import Mapping

HUMAN = "human"
GITHUB, GITLAB, BITBUCKET = "github", "gitlab", "bitbucket"
#: Sources that can correct their earlier news about the same subject.
FORGES = frozenset({GITHUB, GITLAB, BITBUCKET})
#: The source of the signals of scheduled checks.
CHECK = "check"
#: The source of this program's own signals, for example that an expectation has expired.
SYSTEM = "system"
#: Sources that only people, forges and this program may use: no agent and no callback may claim one of them.
RESERVED_SOURCES = frozenset({HUMAN, "person", *FORGES, CHECK, "golden", SYSTEM})
#: Sources of what people say: here, or with a signed comment on GitHub.
PEOPLE = frozenset({HUMAN, GITHUB})
#: The key of the corrected signal's id, in the data of a signal and in the history's record of a correction.
CORRECTS = "corrects"
#: Such a record in the history.
CORRECTION = "correction"
# The subject of a forge's event. A later event about the same subject corrects it, for example when a check runs again.
_ABOUT = {
    **dict.fromkeys(("check_run", "check_suite", "workflow_run", "status", "deployment_status"), ("name", "sha")),
    **dict.fromkeys(("pipeline", "commit_status"), ("name", "sha")),
    **dict.fromkeys(("pull_request", "merge_request"), ("pr",)),
    "pull_request_review": ("pr", "author"),
}
#: GitHub's events that hold what a person wrote.
COMMENTS = ("issue_comment", "pull_request_review_comment", "pull_request_review")
# Digits and letters that look like others, and letters of other scripts that look like those of the reserved names.
_ALIKE = str.maketrans("01l|", "oiii")
# Source: https://www.unicode.org/Public/security/latest/confusables.txt
_FOREIGN = str.maketrans(
    "\u0430\u03b1\u0431\u044c\u0441\u03f2\u0501\u0435\u04bd\u0581\u050d\u04bb\u0570\u043d\u0456\u03b9\u043a\u03ba\u04cf\u043c\u043f\u0578\u03b7"
    "\u043e\u03bf\u0585\u0440\u03c1\u0433\u0455\u0442\u03c4\u03c5\u057d\u0443\u04af\u03b3"
    "\ua4ee\ua4d0\ua4da\ua4d3\ua4f0\ua4d6\ua4e7\ua4f2\ua4d7\ua4df\ua4e0\ua4f3\ua4d1\ua4e3\ua4e2\ua4d4\ua4f4\ua4ec"
    "\u13aa\u13f4\u13df\u13a0\u13ac\u13c0\u13bb\u13c2\u13a5\u13e6\u13b7\u13be\u13e2\u13a1\u13da\u13a2\u13bd",
    "aabbccdeegghhhiikkimnnnooopprsttuuyyyabcdeghikmnoprstuyabcdeghhikmoprsty",
)
# Invisible letters and an invisible symbol.
_BLANKS = "\u115f\u1160\u2800"
_LOST = frozenset({ExpectationStatus.UNMET, ExpectationStatus.EXPIRED})
_ANSWERS = {
    SignalType.POSITIVE: ExpectationStatus.MET,
    SignalType.NEGATIVE: ExpectationStatus.UNMET,
    SignalType.CORRECTION: ExpectationStatus.UNMET,
}
_RESULTS = {ImmediateResult.SUCCESS: Assessment.SUCCESS, ImmediateResult.FAILURE: Assessment.FAILURE}


@dataclass(frozen=True, slots=True)
class Retention:
    """How much pruning leaves of an agent's closed entries; None: no limit of this kind."""

    days: int | None = None
    entries: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one agent, where they differ from the defaults.

    The assessment of an entry is `all_expired` if all its expectations expired without news, `some_expired` if the others were met, `unmet`
    if one is unmet or a signal was negative, and `critical_lost` if a critical one is unmet or expired. An intent without an outcome and
    without expectations is closed as expired after `unfinished_after` seconds (None: never). `intent_types` are those that the
    agent may log (None: any). `check_hosts` are the hosts whose pages its checks may request (None: any), `check_commands`
    whether its checks may run commands, and `check_network` whether such a command may use the network.
    """

    all_expired: Assessment = Assessment.EXPIRED
    some_expired: Assessment = Assessment.PARTIAL
    unmet: Assessment = Assessment.FAILURE
    critical_lost: Assessment = Assessment.FAILURE
    unfinished_after: float | None = None
    intent_types: tuple[str, ...] | None = None
    retention: Retention = Retention()
    check_hosts: tuple[str, ...] | None = None
    check_commands: bool = True
    check_network: bool = False

    def check_intent_type(self, agent_id: str, intent_type: str | None) -> None:
        """Raise ValueError for an intent type that the agent may not log."""
        if self.intent_types is not None and intent_type not in self.intent_types:
            allowed = ", ".join(self.intent_types) or "none"
            raise ValueError(f"intent_type {intent_type!r} is not one of agent {agent_id!r}: give one of {allowed}")


DEFAULT_RULES = Rules()
#: The rules under this name apply to every agent without rules of its own, except the gate's agent.
EVERYBODY = "default"
_GATE = "golden"


def rules_of(agent_id: str | None, rules: Mapping[str, Rules]) -> Rules:
    """Return the rules of an agent: its own, else those of `default`."""
    everybody = DEFAULT_RULES if agent_id == _GATE else rules.get(EVERYBODY, DEFAULT_RULES)
    return everybody if agent_id is None else rules.get(agent_id, everybody)


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts that an assessment is computed from: expectations by status, lost critical ones, and signals that decide."""

    open: int = 0
    met: int = 0
    unmet: int = 0
    expired: int = 0
    critical_lost: int = 0
    positive: int = 0
    negative: int = 0
    correction: int = 0
    human_word: Assessment | None = None
    immediate_result: ImmediateResult = ImmediateResult.UNKNOWN

    def moved(
        self, before: ExpectationStatus | None, after: ExpectationStatus, number: int = 1, *, critical: bool
    ) -> Counts:
        """Return the counts after `number` expectations changed status; `before` is None for new ones."""
        if before is after:
            return self
        changed = {after.value: getattr(self, after) + number}
        if before is not None:
            changed[before.value] = getattr(self, before) - number
        if critical and (after in _LOST) is not (before in _LOST):
            changed["critical_lost"] = self.critical_lost + (number if after in _LOST else -number)
        return replace(self, **changed)

    def received(self, signal_type: SignalType) -> Counts:
        """Return the counts after a signal; a neutral one decides nothing."""
        if signal_type is SignalType.NEUTRAL:
            return self
        return replace(self, **{signal_type.value: getattr(self, signal_type) + 1})

    def corrected(self, signal_type: SignalType) -> Counts:
        """Return the counts without a signal that a later one corrected."""
        return replace(self, **{signal_type.value: max(0, getattr(self, signal_type) - 1)})


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a signal does: the status that the expectation has afterwards, and what the signal counts as."""

    status: ExpectationStatus
    counts_as: SignalType


def settle(
    signal_type: SignalType, status: ExpectationStatus, polarity: Polarity, *, is_late: bool = False
) -> Settlement:
    """Return what a signal does to an expectation that it fits. `is_late`: it came at or after the expiry.

    A resolved expectation keeps its status, but negative news about it still counts.
    """
    turned_neutral = signal_type is SignalType.POSITIVE and polarity is Polarity.NEGATIVE
    if is_late or turned_neutral or signal_type is SignalType.NEUTRAL:
        return Settlement(status, SignalType.NEUTRAL)
    return Settlement(_ANSWERS[signal_type] if status is ExpectationStatus.OPEN else status, signal_type)


def corrects(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Tell whether later news of a forge is about the same subject as its earlier news, by their data."""
    keys = _ABOUT.get(str(later.get("event")))
    wanted = ("event", "repository", *(keys or ()))
    return keys is not None and all(later.get(key) is not None and later.get(key) == earlier.get(key) for key in wanted)


def lapse(polarity: Polarity) -> ExpectationStatus:
    """Return the status of an expectation that expires without news."""
    return ExpectationStatus.MET if polarity is Polarity.NEGATIVE else ExpectationStatus.EXPIRED


def assess(counts: Counts, rules: Rules = DEFAULT_RULES, *, before: Assessment = Assessment.OPEN) -> Assessment:
    """Return the assessment that follows from the counts. `before` is the current one: a closed entry never opens again."""
    if counts.human_word is not None:
        return counts.human_word
    assessment = _fold(counts, rules)
    if assessment is not Assessment.OPEN:
        return assessment
    # Positive news came before the outcome, which then reported a failure.
    is_contradicted = before is Assessment.SUCCESS and counts.immediate_result is ImmediateResult.FAILURE
    return Assessment.FAILURE if is_contradicted else before


def describe_assessment(assessment: Assessment, counts: Counts, cause: str | None) -> str | None:
    """Say why an entry has its assessment; `cause` is what changed it last. None if nothing is known."""
    if assessment is Assessment.FAILURE or counts.met + counts.expired <= 1:
        return cause
    told = [f"{counts.met} met"] if counts.met else []
    told += [f"{counts.expired} expired without news"] if counts.expired else []
    return "; the last: ".join(filter(None, (", ".join(told), cause)))


def _fold(counts: Counts, rules: Rules) -> Assessment:
    if counts.critical_lost:
        return rules.critical_lost
    if counts.negative or counts.correction or counts.unmet:
        return rules.unmet
    if counts.open:
        return Assessment.OPEN
    if counts.expired:
        return rules.some_expired if counts.met else rules.all_expired
    return Assessment.SUCCESS if counts.met else _fold_without_expectations(counts)


def _fold_without_expectations(counts: Counts) -> Assessment:
    settled = Assessment.SUCCESS if counts.positive else Assessment.OPEN
    return _RESULTS.get(counts.immediate_result, settled)


def _read_as_seen(name: str) -> str:
    """Return the letters of a name as a person sees them, without case, accents, signs and spaces."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_ALIKE)
    return "".join(filter(_is_seen, plain)).replace("rn", "m")


def _is_seen(sign: str) -> bool:
    is_symbol = not sign.isascii() and unicodedata.category(sign)[0] == "S"
    return (sign.isalnum() or is_symbol) and sign not in _BLANKS


def is_reserved(name: str) -> bool:
    """Tell whether a reader could mistake a name for a reserved one. Among Latin letters, a foreign letter can stand for any letter."""
    seen, reserved = _read_as_seen(name), tuple(map(_read_as_seen, RESERVED_SOURCES))
    if not any(map(_is_latin, seen)):
        return seen.translate(_FOREIGN) in reserved
    return any(
        len(seen) == len(word) and all(a == b or not a.isascii() for a, b in zip(seen, word, strict=True))
        for word in reserved
    )


def _is_latin(sign: str) -> bool:
    """Tell whether it is a Latin letter in any form, such as a small capital or a letter in a box."""
    return sign.isascii() or any(word in unicodedata.name(sign, "") for word in ("LATIN", "REGIONAL INDICATOR"))


def name_reserved() -> str:
    """Return the reserved names as part of a sentence."""
    return ", ".join(sorted(RESERVED_SOURCES))


def check_free_name(name: object, field: str = "source") -> str:
    """Return the name of a source or an agent if anybody may use it. Invisible characters cannot disguise a reserved name.

    Raises:
        ValueError: the name is reserved, blank or not a string.
    """
    checked = check_text(field, name)
    if is_reserved(checked):
        raise ValueError(
            f"{field} {show(checked)} is reserved: {name_reserved()} belong to people and this program; use a name of your own"
        )
    return checked
