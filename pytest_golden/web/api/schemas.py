"""What the API takes and gives, as OpenAPI tells it. Values are made by the services' `to_dict`; none is computed here."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pytest_golden.regression.verdict import RunStatus

_Item = TypeVar("_Item")
Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=4_096)]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


class PageOf(BaseModel, Generic[_Item]):
    """A part of a list; `next_cursor` gives the part behind it."""

    items: list[_Item]
    next_cursor: str | None


class _Told(BaseModel):
    # What a service tells beyond the fields that are named here is told too.
    model_config = ConfigDict(extra="allow")


class Expectation(_Told):
    """An open question about an entry, or one that was answered."""

    id: str
    entry_id: str
    description: str
    polarity: str
    critical: bool
    status: str
    match_hint: dict[str, Any] | None
    expires_at: Moment | None
    check: dict[str, Any] | None
    resolved_by: str | None
    created_at: Moment
    resolved_at: Moment | None


class Signal(_Told):
    """News, and the entry and expectation that it found."""

    id: str
    entry_id: str | None
    expectation_id: str | None
    source: str
    signal_type: str
    summary: str
    data: dict[str, Any]
    external_id: str | None
    routed_by: str
    created_at: Moment


class HistoryRecord(_Told):
    """One change of an entry."""

    what: str
    who: str
    when: Moment
    why: str | None
    details: dict[str, Any]


class Entry(_Told):
    """What was intended, how it ended at once, and where it stands."""

    id: str
    job_id: str | None
    agent_id: str
    session_key: str | None
    intent: str
    intent_type: str | None
    actions: list[Any]
    immediate_result: str
    immediate_notes: str | None
    assessment: str
    assessment_notes: str | None
    closed_at: Moment | None
    created_at: Moment
    updated_at: Moment
    parent_id: str | None
    expectations: list[Expectation]
    signals: list[Signal]
    history: list[HistoryRecord]


class Candidate(_Told):
    """An expectation that a signal might have concerned."""

    expectation_id: str
    rule: str
    taken: bool
    reason: str


class Routing(_Told):
    """The rule by which a signal found its place, and what else came into question."""

    rule: str
    candidates: list[Candidate]


class RoutedSignal(Signal):
    """A signal with how it was routed."""

    routing: Routing


class Agent(_Told):
    """An agent that has an entry."""

    agent_id: str


class SuccessRate(_Told):
    """How many of `n` entries succeeded; what is open or expired is counted apart."""

    n: int
    success_rate: float | None
    open: int
    expired: int


class Day(SuccessRate):
    """The same for one day (UTC)."""

    day: str


class Summary(SuccessRate):
    """The same for all, by intent type, and by day."""

    by_intent_type: dict[str, SuccessRate]
    by_time: list[Day]


class Verdict(_Told):
    """The verdict of a gate run, null until it ends; the verdict in one sentence; and the counts."""

    final_status: RunStatus | None
    is_partial: bool
    verdict: str
    total_count: int
    passed_count: int
    failed_count: int
    error_count: int
    skipped_count: int
    quarantined_count: int
    flaky_count: int
    unchanged_count: int
    deselected_count: int
    other_shards_count: int
    not_run_count: int
    weakening_count: int
    other_failures_count: int
    floor_accepted: bool
    problems: list[str]


class ListedRun(Verdict):
    """A gate run as a list has it. Without `finished_at` it still runs, or was killed."""

    id: str
    started_at: Moment
    finished_at: Moment | None
    commit: str | None
    branch: str | None
    dirty: bool | None
    is_running: bool
    is_interrupted: bool
    is_own: bool


class RunResult(_Told):
    """One project's result in the gate report."""

    entry_id: str
    name: str
    path: str
    status: str
    exit_code: int | None
    reasons: list[dict[str, Any]]
    execution_time_seconds: float
    attempts: int
    is_flaky: bool


class Run(Verdict):
    """A gate run: the fields of the gate report."""

    schema_version: int
    regression_detected: bool
    weakened_floor: list[dict[str, Any]]
    gate: dict[str, Any]
    results: list[RunResult]


class Result(RunResult):
    """The same with all that is kept of it."""

    run_id: str
    output_summary: str
    steps: list[dict[str, Any]]
    write_set: dict[str, Any]
    differences: list[dict[str, Any]]
    environment: dict[str, Any]
    gate: dict[str, Any]
    has_log: bool


class ListedProject(_Told):
    """A project, what is declared of it, and how it went lately."""

    name: str
    path: str | None
    description: str | None
    expected_outcome: str | None
    is_declared: bool
    last_status: str | None


class Project(ListedProject):
    """The same with its history and its figures."""

    runs: list[dict[str, Any]]
    flakiness: float | None
    median_seconds: float | None
    mad_seconds: float | None
    last_difference: dict[str, Any] | None
    lessons: list[dict[str, Any]]


class Lesson(_Told):
    """What failed, what worked and why."""

    id: str
    lesson: str
    approved: bool
    rejected: bool
    evidence: dict[str, Any]
    created_at: Moment


class Plan(_Told):
    """A strategy that was read out of an outcome."""

    id: str
    strategy_description: str
    reasoning_pattern: str
    confidence: float


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _shown(**example: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [example]})


class NewEntry(_Asked):
    """What is about to be done."""

    model_config = _shown(intent="Widen customer_id to bigint", agent_id="builder", intent_type="migration")
    intent: Text
    agent_id: Name
    intent_type: Name | None = None
    session_key: Name | None = None
    job_id: Name | None = None
    parent_id: Name | None = None


class NewExpectation(_Asked):
    """What is expected, and what news answers it."""

    description: Text = Field(description="What is expected, for people.")
    match_hint: dict[str, str | bool | int | float | None] | None = Field(
        None, min_length=1, description="What a signal must hold to be the answer."
    )
    expires_minutes: float | None = Field(
        None, gt=0, le=5_000_000, allow_inf_nan=False, description="After so many minutes the question is closed."
    )
    polarity: Literal["positive", "negative"] | None = Field(
        None, description="positive: it happens; negative: it does not happen, for which it must expire."
    )
    critical: bool | None = Field(None, description="Without it the entry is a failure, whatever else is met.")
    check: dict[str, Any] | None = Field(
        None, description="What finds out: {after, command} or {after, url, status, path, equals}."
    )


_QUIET = {"description": "no alarm for an hour", "match_hint": {"source": "pager"}, "expires_minutes": 60}


class NewOutcome(_Asked):
    """How it ended, and what is expected of it now."""

    model_config = _shown(result="success", notes="3 tables", expectations=[_QUIET])
    result: Literal["success", "failure", "partial", "unknown"]
    agent_id: Name | None = None
    notes: Text | None = None
    actions: list[Any] = []
    # All are kept in one transaction, for which other writers wait.
    expectations: list[NewExpectation] = Field([], max_length=200)


class NewAssessment(_Asked):
    """A person's word on an entry."""

    model_config = _shown(assessment="partial", notes="two days late", by="ada")
    assessment: Literal["success", "failure", "partial"]
    notes: Text | None = None
    by: Name = "a person by the JSON API"


class NewSignal(_Asked):
    """News."""

    model_config = _shown(source="grafana", signal_type="positive", summary="rows are back", external_id="alert 17")
    source: Name
    signal_type: Literal["positive", "negative", "neutral", "correction"]
    summary: Text
    data: dict[str, Any] | None = None
    external_id: Name | None = None
    agent_id: Name | None = None
    session_key: Name | None = None
    entry_id: Name | None = None


class Judged(_Asked):
    """Who judges."""

    by: Name = "a person by the JSON API"
