"""What the API takes, and the models of answers that no one value has."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.regression.model import GoldenProjectResult
from pytest_golden.report.gate_report import GateReport
from pytest_golden.values.shape_model import list_of, model_of

_Item = TypeVar("_Item")
Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=4_096)]


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


def page_of(item: type[BaseModel]) -> Any:
    """Return the model of a page of such items."""
    return PageOf.__class_getitem__(item)


#: A result as it stands in a run's report that was read back.
RUN_RESULT = model_of(GoldenProjectResult, name="RunResult", entry_id=str)
RUN = model_of(GateReport, name="Run", results=list_of(RUN_RESULT))
#: A plan is stored as a program of any version wrote it.
PLAN = model_of(ExtractedPlan, "strategy_description", "reasoning_pattern", "confidence", name="Plan", id=str)


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
