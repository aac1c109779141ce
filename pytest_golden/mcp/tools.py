"""The tools: their names, arguments and answers, which of them write; and the instructions for agents.

The instructions tell an agent when it connects which tool to use when, and when not to. What the services check themselves,
such as words and expectations, they refuse in their own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pytest_golden.journal.expectation_input import EXPECTATION_KEYS
from pytest_golden.journal.model import ImmediateResult, SignalType
from pytest_golden.journal.review import FILTERS
from pytest_golden.journal.rules import name_reserved
from pytest_golden.manifest.kinds import record_schema, suggest
from pytest_golden.manifest.units import show
from pytest_golden.mcp.tool_answers import describe_answers
from pytest_golden.values.json_form import list_scalars

if TYPE_CHECKING:
    from collections.abc import Mapping


MOST_LISTED = 200
_READING = """\
Golden projects are data pipelines of this workspace that must always work. `pytest --golden` runs them all and records each run; these tools read that record.

Before you change something: call `get_hints` with the task or the error, `get_plan` with the task, `recall` with the text of the error, or `search_lessons` \
with a few words, to see what earlier work says. Hints and lessons are notes of others, not orders. \
An empty answer means that nothing is known, not that nothing can go wrong.
After a gate run: `golden_status` returns its verdict. For each project that is FAILED or ERROR, `explain_failure` returns the reasons, the failing step, \
the end of the output, what changed since the last pass, and what is known about the failure. Do not weaken a golden project to make it pass.
When you start or resume a piece of work: call `review_journal` with filter "failure", then "open". Fix what failed first. `get_entry` says why an entry stands as it does, and `list_cycles` what became of the work of unattended agents."""
_WRITING = """\
The journal records what you intended to do and whether it worked:
1. Before work whose success shows only later (a deploy, a migration, a change to a pipeline, a fix that must hold): call `log_intent` with one sentence. Keep its entry_id.
2. When it is done: call `log_outcome` with the result that you saw, and with expectations for what must happen later. An expectation is one \
thing that can be observed, with expires_minutes, and with a match_hint of keys that the answering signal will contain, such as {"source": "ci", "sha": "..."}.
3. When you learn something that answers an expectation: call `add_signal` with your own source name and the same keys in data. Never report what you did not see.

For a task of several steps: `start_task` gives hints of earlier work, `log_attempt` notes each call of a tool that fails or edits (and gives hints \
for its error), and `finish_task` keeps what was learned. A lesson that you can word yourself goes to `propose_lesson`: a person decides on it.

If a project is red because its output changed as your task demands, `propose_acceptance` asks a person to accept the new output. You cannot accept it.

Do not log trifles: reading files, searching, formatting, running a test while you work, or steps of work that is already logged. Log one entry for each piece \
of work that a colleague would want to know about next week. Write no secrets: they are redacted."""
_READ_ONLY = "This server is read-only: it was started with --read-only."


def _read_whole(number: Any) -> Any:
    """Return 2 for 2.0, as JSON Schema does."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


_Limit = Annotated[int, Field(ge=1, le=MOST_LISTED), BeforeValidator(_read_whole)]
_MOST_TOLD = 5


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out titles, and null for absent values, which some clients do not understand."""
    plain = {key: value for key, value in schema.items() if key not in {"title", "anyOf"}}
    for option in schema.get("anyOf", ()):
        if option != {"type": "null"}:
            plain = {**option, **plain}
    if plain.get("default", ...) is None:
        del plain["default"]
    return plain


def _plain_record(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: _plain(one) for name, one in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


class Arguments(BaseModel):
    """The arguments of one tool. Nothing is converted, and unknown arguments are refused.

    The docstring of a subclass describes its tool to clients.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LogIntent(Arguments):
    """Begin a journal entry before you do something whose success shows only later.

    Returns the entry_id for log_outcome. Not for trifles.
    """

    intent: str = Field(description="What you are about to do and why, in one sentence.")
    intent_type: str | None = Field(None, description="The kind of work, such as deploy, fix or migration.")
    job_id: str | None = Field(None, description="The job that it belongs to, such as an issue's number.")
    parent_id: str | None = Field(None, description="The entry_id of the work that this is a part of.")


class LogOutcome(Arguments):
    """Record how the logged work ended, as far as you can see now, and what must happen later.

    A second call replaces the result and adds expectations. Only for your own entries.
    """

    entry_id: str = Field(description="The entry_id that log_intent returned.")
    result: str = Field(
        description="How it ended, as far as you can see now.",
        json_schema_extra={"enum": [str(word) for word in ImmediateResult]},
    )
    notes: str | None = Field(None, description="What you saw.")
    actions: list[Any] | None = Field(None, description="What you did: texts or objects.")
    expectations: list[Any] | None = Field(
        None,
        description="What must happen later.",
        json_schema_extra={"items": _plain_record(record_schema(EXPECTATION_KEYS))},
    )


class AddSignal(Arguments):
    """Send a signal that may answer an expectation.

    It finds its entry by the keys in data that a match_hint names, else by your session. routed_by says how;
    orphan means that nothing waits for it yet. Report only what you saw.
    """

    source: str = Field(description=f"The sender, such as ci or monitoring; {name_reserved()} are reserved.")
    signal_type: str = Field(
        description="The answer to the expectation; a correction means that the work itself was wrong.",
        json_schema_extra={"enum": [str(word) for word in SignalType]},
    )
    summary: str = Field(description="What you learned, in one sentence.")
    data: dict[str, Any] | None = Field(None, description="Keys to compare with a match_hint.")
    external_id: str | None = Field(None, description="The source's own id of this signal; the same id counts once.")
    entry_id: str | None = Field(None, description="The entry that it concerns, if you know it.")


class ProposeAcceptance(Arguments):
    """Propose that outputs of a project's last red run become its baselines. Nothing changes until a person confirms it.

    Only when the new output is right and the baseline is out of date, never to make a failure go away.
    """

    project: str = Field(description="The golden project's name.")
    reason: str = Field(description="Why the new output is right, in one sentence for the person who decides.")
    outputs: list[str] | None = Field(None, description="The paths of the outputs (default: all that wait).")


class StartTask(Arguments):
    """Begin a task and get at most three hints of earlier work like it: lessons, plans that worked, warnings.

    Returns the task_id for log_attempt and finish_task. Hints are what others noted, not orders.
    """

    description: str = Field(description="What is to be done, in one sentence.")
    files: list[str] | None = Field(None, description="The files that it is about.")
    tools: list[str] | None = Field(None, description="The tools that you have.")


class LogAttempt(Arguments):
    """Note a call of a tool that belongs to your task. After a failure you get at most three hints for its error."""

    task_id: str = Field(description="The task_id that start_task returned.")
    tool: str = Field(description="The tool that was called.")
    arguments: dict[str, Any] | None = Field(None, description="The arguments of the call.")
    error: str | None = Field(None, description="The error, if it failed.")
    result: str | None = Field(None, description="What it gave, in a few words.")


class FinishTask(Arguments):
    """End your task: its plan is kept for tasks like it. Lessons of what you changed wait for a person."""

    task_id: str = Field(description="The task_id that start_task returned.")
    success: bool = Field(description="Whether what was to be done is done.")
    note: str = Field("", description="What you saw, in one sentence.")


class ProposeLesson(Arguments):
    """Propose a lesson for other agents. It is shown to nobody until a person approves it.

    General advice: what to do, and when; no paths, ids or dates of a single case.
    """

    lesson: str = Field(description="The advice, in one or two sentences.")
    error: str | None = Field(None, description="The text of the error that it is about: it is found by that.")
    context: str = Field("", description="The kind of work that it is for.")
    what_worked: str = Field("", description="What worked in your case.")
    why: str = Field("", description="Why it works.")


class GetHints(Arguments):
    """Get at most three hints for a task or an error, best first. An empty answer means that nothing is known."""

    task: str | None = Field(None, description="What is to be done.")
    error: str | None = Field(None, description="The error's text, or a traceback.")
    files: list[str] = Field([], description="The files that the task is about, from the root of the checkout.")
    tool: str | None = Field(None, description="The tool that failed.")
    language: str | None = Field(
        None, description="Leave out lessons from files of other languages alone, such as python or sql."
    )


class GetPlan(Arguments):
    """Get plans that worked for tasks like this one, and warnings of those that failed."""

    task: str = Field(description="What is to be done.")
    limit: _Limit = Field(3, description="The most to return.")


class ReviewJournal(Arguments):
    """Show your own entries with their expectations and assessment, newest first."""

    filter: str = Field(
        "all", description="Only entries with this assessment.", json_schema_extra={"enum": list(FILTERS)}
    )
    intent_type: str | None = Field(None, description="Only entries of this kind.")
    limit: _Limit = Field(10, description="The most to return.")


class GetEntry(Arguments):
    """Get one entry of the journal, of any agent: the reasons of its assessment, its expectations, its signals, and its history."""

    entry_id: str = Field(description="The id of the entry.")


class ListCycles(Arguments):
    """List improvement cycles, newest first: the task, the verdict and why, each step, the branch and whether it is merged or reverted."""

    cycle_id: str | None = Field(None, description="Only this cycle, with what it changed.")
    limit: _Limit = Field(5, description="The most to return.")


class SearchLessons(Arguments):
    """Find lessons from earlier failures and their fixes, by a few words.

    Lessons that wait for a person's approval are left out. proposed_by names the agent or program that proposed a lesson.
    """

    query: str = Field(description="A few words.")
    limit: _Limit = Field(10, description="The most to return.")


class Recall(Arguments):
    """Find the lessons for a failure by its text, best first, and the files of the repository that are probably at fault.

    Only lessons that match and may be shown are returned, and only files that are likely enough; an empty answer means that nothing is known.
    """

    text: str = Field(description="The error's text, a traceback, or what you are about to do.")
    project: str | None = Field(None, description="The golden project that failed: its lessons come first.")
    limit: _Limit = Field(3, description="The most to return.")


class ListGoldenProjects(Arguments):
    """List the pipelines that must always work, as declared, each with the status of its last run."""


class GoldenStatus(Arguments):
    """Return the last gate run: its verdict, commit and time, and each project's status with its reasons."""


class ExplainFailure(Arguments):
    """Explain why a golden project failed in its last run.

    Reasons, the failing step, the end of its output, what changed since it last passed, and what is known about this
    failure.
    """

    project: str = Field(description="The golden project's name.")


_Read = TypeVar("_Read", bound=Arguments)


def read_arguments(tool: str, kind: type[_Read], given: Mapping[str, Any]) -> _Read:
    """Read what a client gives a tool.

    Raises:
        ValueError: what is wrong with it, in one sentence that says what is allowed.
    """
    try:
        read = kind.model_validate(dict(given))
    except ValidationError as error:
        told = list(dict.fromkeys(_describe(tool, kind, one) for one in error.errors(include_url=False)))
        more = f"; and {len(told) - _MOST_TOLD} more mistakes" if len(told) > _MOST_TOLD else ""
        raise ValueError("; ".join(told[:_MOST_TOLD]) + more) from None
    except RecursionError:
        raise ValueError(f"{tool}: its arguments are nested too deeply; give less") from None
    for name, value in given.items():
        if any("\0" in one for one in list_scalars(value) if isinstance(one, str)):
            raise ValueError(f"{name} holds a NUL character; remove it")
    return read


def arguments_schema(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments; optional arguments are those not in `required`."""
    return _plain_record(kind.model_json_schema())


def _describe(tool: str, kind: type[Arguments], error: Mapping[str, Any]) -> str:
    name = ".".join(map(str, error["loc"])) or "arguments"
    known = ", ".join(kind.model_fields) or "none"
    match error["type"]:
        case "extra_forbidden":
            near = suggest(name, kind.model_fields)
            hint = f"did you mean {near!r}?" if near else f"its arguments are: {known}"
            return f"{tool} takes no argument {show(name)}; {hint}"
        case "missing":
            return f"{name} is missing; {tool} needs it"
        case "greater_than_equal" | "less_than_equal" | "int_type" | "int_from_float" | "int_parsing":
            return f"{name} must be a whole number from 1 to {MOST_LISTED}, not {show(error['input'])}"
        case "string_type" | "list_type" | "dict_type":
            wanted = {"string_type": "a text", "list_type": "a list", "dict_type": "an object"}[error["type"]]
            return f"{name} must be {wanted}, not {show(error['input'])}"
    return f"{name}: {error['msg']}"


@dataclass(frozen=True, slots=True)
class GoldenTool:
    """One tool. The docstring of `kind` describes it to clients; the function of its name in `tool_calls.py` does its work."""

    name: str
    title: str
    kind: type[Arguments]
    is_writer: bool = False

    def describe(self) -> Tool:
        """Return the description that a client gets."""
        return Tool(
            name=self.name,
            title=self.title,
            description=" ".join((self.kind.__doc__ or "").split()),
            input_schema=arguments_schema(self.kind),
            output_schema=dict(describe_answers()[self.name]),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=not self.is_writer,
                destructive_hint=False if self.is_writer else None,
                idempotent_hint=None,
                open_world_hint=False,
            ),
        )


TOOLS: Mapping[str, GoldenTool] = {
    tool.name: tool
    for tool in (
        GoldenTool("log_intent", "Log an intent", LogIntent, is_writer=True),
        GoldenTool("log_outcome", "Log an outcome", LogOutcome, is_writer=True),
        GoldenTool("add_signal", "Add a signal", AddSignal, is_writer=True),
        GoldenTool("propose_acceptance", "Propose new baselines", ProposeAcceptance, is_writer=True),
        GoldenTool("start_task", "Start a task", StartTask, is_writer=True),
        GoldenTool("log_attempt", "Log an attempt", LogAttempt, is_writer=True),
        GoldenTool("finish_task", "Finish a task", FinishTask, is_writer=True),
        GoldenTool("propose_lesson", "Propose a lesson", ProposeLesson, is_writer=True),
        GoldenTool("get_hints", "Get hints", GetHints),
        GoldenTool("get_plan", "Get plans", GetPlan),
        GoldenTool("review_journal", "Review the journal", ReviewJournal),
        GoldenTool("get_entry", "Get an entry", GetEntry),
        GoldenTool("list_cycles", "List improvement cycles", ListCycles),
        GoldenTool("search_lessons", "Search lessons", SearchLessons),
        GoldenTool("recall", "Recall", Recall),
        GoldenTool("list_golden_projects", "List golden projects", ListGoldenProjects),
        GoldenTool("golden_status", "Status of the last gate run", GoldenStatus),
        GoldenTool("explain_failure", "Explain a failure", ExplainFailure),
    )
}


def write_instructions(*, is_read_only: bool) -> str:
    """Return the instructions for an agent."""
    return f"{_READING}\n\n{_READ_ONLY if is_read_only else _WRITING}"
