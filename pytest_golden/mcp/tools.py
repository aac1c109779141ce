"""The tools: their names, what they take and return, and which of them write; and the instructions for agents.

The instructions tell an agent when it connects which tool to use when, and when not to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from pytest_golden.mcp import arguments
from pytest_golden.mcp import tool_answers as schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.mcp.caller import Caller
    from pytest_golden.mcp.workplace import Workplace

_READING = """\
Golden projects are data pipelines of this workspace that must always work. `pytest --golden` runs them all and records each run; these tools read that record.

Before you change something: `recall` with the text of the error at hand, or `search_lessons` with a few words, tells what earlier failures taught. \
Nothing found means that nothing is known, not that nothing can go wrong.
After a gate run: `golden_status` tells its verdict. For each project that FAILED or is in ERROR, `explain_failure` gives the reasons, the failing step, \
the end of the output, what changed since the last pass, and what is known of it. Do not weaken a golden project to make it pass.
At the start of a piece of work, and when you come back to one: `review_journal` with filter "failure", then "open"; what failed is to be mended first."""
_WRITING = """\
The journal keeps what you meant to do and whether it came true:
1. Before work whose success shows only later (a deploy, a migration, a change to a pipeline, a fix that is to hold): `log_intent`, one sentence. Keep its entry_id.
2. When it is done: `log_outcome` with what you saw at once, and with expectations for what must come true later. An expectation is one \
thing that can be observed, with expires_minutes, and with a match_hint of keys that the answering news will carry, such as {"source": "ci", "sha": "..."}.
3. When you learn something that answers an expectation: `add_signal` with your own source name and the same keys in data. Never report what you did not see.

Do not log trifles: reading files, searching, formatting, running a test while you work, or steps of something that is logged already. One entry for each piece \
of work that a colleague would want to know of next week. Write no secrets: they are blotted out."""
_READ_ONLY = "This server only reads: it was started with --read-only."


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenTool:
    """One tool. The function of its name in `tool_calls.py` does its work."""

    name: str
    title: str
    told: str
    kind: type[arguments.Arguments]
    answers: Mapping[str, Any]
    is_writer: bool = False

    def describe(self) -> Tool:
        """Return the description that a client gets."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.told,
            input_schema=arguments.arguments_schema(self.kind),
            output_schema=dict(self.answers),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=not self.is_writer,
                destructive_hint=False if self.is_writer else None,
                idempotent_hint=None,
                open_world_hint=False,
            ),
        )

    def call(self, place: Workplace, caller: Caller, given: arguments.Arguments) -> Mapping[str, Any]:
        """Do the tool's work, with the arguments as `kind` has read them."""
        # Imported by the first call: a client that connects does not wait for it.
        from pytest_golden.mcp import tool_calls

        work: Callable[[Workplace, Caller, Any], Mapping[str, Any]] = getattr(tool_calls, self.name)
        return work(place, caller, given)


TOOLS: Mapping[str, GoldenTool] = {
    tool.name: tool
    for tool in (
        GoldenTool(
            name="log_intent",
            title="Log an intent",
            told=(
                "Begin a journal entry: say what you are about to do, before you do it, when its success shows only later. "
                "Gives the entry_id that log_outcome wants. Not for trifles."
            ),
            kind=arguments.LogIntent,
            answers=schemas.LOG_INTENT,
            is_writer=True,
        ),
        GoldenTool(
            name="log_outcome",
            title="Log an outcome",
            told=(
                "Say how what you logged ended, as seen at once, and what must come true later. Said again, the later result "
                "stands and expectations are added. Only for your own entries."
            ),
            kind=arguments.LogOutcome,
            answers=schemas.LOG_OUTCOME,
            is_writer=True,
        ),
        GoldenTool(
            name="add_signal",
            title="Add a signal",
            told=(
                "Report news that may answer an expectation. It finds its entry by the keys of data that a match_hint names, "
                "else by your session. routed_by tells how; orphan: nothing waits for it yet. Report only what you saw."
            ),
            kind=arguments.AddSignal,
            answers=schemas.ADD_SIGNAL,
            is_writer=True,
        ),
        GoldenTool(
            name="review_journal",
            title="Review the journal",
            told="Show your own newest entries with what they expect, newest first: what you began, and how it stands.",
            kind=arguments.ReviewJournal,
            answers=schemas.REVIEW_JOURNAL,
        ),
        GoldenTool(
            name="search_lessons",
            title="Search lessons",
            told=(
                "Find what was learned from earlier failures and their fixes, by a few words. Lessons that nobody has approved "
                "yet are among them (approved is false): take those as hints."
            ),
            kind=arguments.SearchLessons,
            answers=schemas.SEARCH_LESSONS,
        ),
        GoldenTool(
            name="recall",
            title="Recall",
            told=(
                "Find the lessons that bear on a failure by its text, best first. Only approved lessons that fit come back; "
                "an empty answer means that nothing is known."
            ),
            kind=arguments.Recall,
            answers=schemas.RECALL,
        ),
        GoldenTool(
            name="list_golden_projects",
            title="List golden projects",
            told="List the pipelines that must always work, as declared, each with the status of its last run.",
            kind=arguments.ListGoldenProjects,
            answers=schemas.LIST_GOLDEN_PROJECTS,
        ),
        GoldenTool(
            name="golden_status",
            title="Status of the last gate run",
            told="Tell the last gate run: its verdict, commit and time, and each project's status with its reasons.",
            kind=arguments.GoldenStatus,
            answers=schemas.GOLDEN_STATUS,
        ),
        GoldenTool(
            name="explain_failure",
            title="Explain a failure",
            told=(
                "Tell why a golden project failed when it last ran: reasons, the failing step, the end of its output, what "
                "changed since it last passed, and what is known of this failure."
            ),
            kind=arguments.ExplainFailure,
            answers=schemas.EXPLAIN_FAILURE,
        ),
    )
}


def list_tools(*, is_read_only: bool) -> Mapping[str, GoldenTool]:
    """Return all tools, without those that write on a read-only server."""
    return {name: tool for name, tool in TOOLS.items() if not (is_read_only and tool.is_writer)}


def write_instructions(*, is_read_only: bool) -> str:
    """Return the instructions for an agent."""
    return f"{_READING}\n\n{_READ_ONLY if is_read_only else _WRITING}"
