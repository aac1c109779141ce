"""What a gate run reports to the store: its beginning, results, explanations, its end. One line of a spool each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import GoldenProjectResult

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The agent that a gate's entries are of.
GATE_AGENT = "golden"
#: The key in a recorded run's facts for whether another gate found it killed.
FOUND_KILLED = "found_killed"


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A gate run begins. `expectations` gives the id of each selected project's expectation, in declaration order.

    `moment` is milliseconds since the epoch. `checkout` is `Checkout.to_dict()`, `surroundings` what is installed.
    """

    run_id: str
    moment: int
    workspace_root: str
    manifest: str
    command_line: tuple[str, ...]
    checkout: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    host: str
    pid: int
    expectations: Mapping[str, str]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultJudged:
    """A project's result. `fails` tells that it fails the gate. `declaration` is its manifest keys, redacted.

    `inputs` is what it read that git does not hold, as `InputReader` gives it; empty where nobody has looked.
    """

    run_id: str
    entry_id: str
    signal_id: str
    moment: int
    expectation_id: str | None
    fails: bool
    declaration: Mapping[str, Any]
    result: GoldenProjectResult
    inputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailureExplained:
    """What earlier runs have told about a failure whose result is recorded: `{kind, lines, ...}` each, redacted."""

    run_id: str
    entry_id: str
    known: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A gate run ends. `immediate_result` is a word of the journal; `facts` say what was deselected and the like.

    `verdict` is what `RunVerdict.to_dict` returned. `is_correction` means that the run has recorded its end before.

    `news` are signals about the run as a whole, `{id, signal_type, summary, data}` each. `dirty_files` is as in
    `Checkout.to_dict()`, given where the run itself has changed it since it began.
    """

    run_id: str
    moment: int
    immediate_result: str
    notes: str
    verdict: Mapping[str, Any]
    facts: Mapping[str, Any]
    news: tuple[Mapping[str, Any], ...] = ()
    is_correction: bool = False
    dirty_files: Mapping[str, str | None] | None = None


GateEvent = RunBegun | ResultJudged | FailureExplained | RunEnded
_KINDS: Mapping[str, type[GateEvent]] = {
    "begun": RunBegun,
    "judged": ResultJudged,
    "explained": FailureExplained,
    "ended": RunEnded,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write_event(event: GateEvent) -> dict[str, Any]:
    """Return an event as JSON-safe values."""
    if isinstance(event, ResultJudged):
        fields = {name: getattr(event, name) for name in event.__slots__}
        return {"event": "judged", **fields, "result": event.result.to_dict()}
    return {"event": _NAMES[type(event)], **asdict(event)}


def read_event(plain: Mapping[str, Any]) -> GateEvent:
    """Read back what `write_event` returned.

    Raises:
        ValueError: it is no event, or one of a newer form.
    """
    fields = dict(plain)
    kind = _KINDS.get(str(fields.pop("event", None)))
    if kind is None:
        raise ValueError(f"{plain.get('event')!r} is no event of a gate run")
    try:
        if kind is ResultJudged:
            fields["result"] = GoldenProjectResult.from_dict(fields["result"])
        for name in {"command_line", "known", "news"} & fields.keys():
            fields[name] = tuple(fields[name])
        return kind(**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"an event of a gate run that cannot be read: {error}") from None


def was_found_killed(facts: Any) -> bool:
    """Tell from a run's facts whether another gate found it unfinished and closed it."""
    return isinstance(facts, dict) and facts.get(FOUND_KILLED) is True
