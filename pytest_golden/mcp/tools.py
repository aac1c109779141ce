"""The tools: what they are called, what they take and give, which of them write, and what does their work."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations

from pytest_golden.mcp import arguments, schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.mcp.model import Caller
    from pytest_golden.mcp.workplace import Workplace


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenTool:
    """One tool. The function of its name in `writing.py` or `reading.py` does its work."""

    name: str
    title: str
    told: str
    kind: type[arguments.Arguments]
    answers: Mapping[str, Any]
    is_writer: bool = False

    def describe(self) -> Tool:
        """Give what a client is shown."""
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
        """Do it, with the arguments as `kind` has read them."""
        # Loaded by the first call: a client that connects does not wait for it.
        module = import_module(f"pytest_golden.mcp.{'writing' if self.is_writer else 'reading'}")
        work: Callable[[Workplace, Caller, Any], Mapping[str, Any]] = getattr(module, self.name)
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
    """Give the tools that there are, without those that write where nothing is to be written."""
    return {name: tool for name, tool in TOOLS.items() if not (is_read_only and tool.is_writer)}
