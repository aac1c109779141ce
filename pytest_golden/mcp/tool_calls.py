"""The work of the tools, one function for each, of the same name.

Tools that read go on while the store is locked; `recall` records that a lesson was shown, if the store takes it. Tools that
write do so in the journal: an agent writes for itself alone, and cannot speak for people or the gate.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pytest_golden.cycle import past_cycles
from pytest_golden.errors import GoldenError, JournalError, ManifestError, SettingsError
from pytest_golden.history.suspects import find_suspects
from pytest_golden.journal.rules import check_free_name
from pytest_golden.learning.agent_hints import find_hints
from pytest_golden.learning.lessons.model import LessonSource, SkillMemory
from pytest_golden.learning.lessons.recalling import SHOWN, recall_lessons
from pytest_golden.learning.plans import find_plans
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.report.gate_report import recorded_report
from pytest_golden.storage.paging import MOST_ITEMS

if TYPE_CHECKING:
    from pytest_golden.history.recorded_model import ListedProject
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.mcp import tools
    from pytest_golden.mcp.workplace import Caller, Workplace

# `explain_failure` gives the details of one project, with what is known now; colours are for people.
_NOT_IN_STATUS = frozenset({"steps", "trajectory", "output_colours", "known"})
_TABLE = frozenset({"table"})
_CONFIRM = (
    "nothing is accepted yet: a person confirms it with `golden accept --pending`, or on the page of `golden serve`"
)
# The confidence of a lesson that an agent proposes.
_PROPOSED = 0.8
# The entries of a list come without these.
_NOT_LISTED = frozenset({"signals", "history"})


def log_intent(place: Workplace, caller: Caller, given: tools.LogIntent) -> dict[str, Any]:
    """Begin an entry."""
    journal = place.services().journal
    entry = journal.log_intent(**given.model_dump(), agent_id=caller.agent, session_key=caller.session)
    return {"entry_id": entry.id, "assessment": entry.assessment.value}


def log_outcome(place: Workplace, caller: Caller, given: tools.LogOutcome) -> dict[str, Any]:
    """Record how an entry ended, and what is expected."""
    entry = place.services().journal.log_outcome(**given.model_dump(), agent_id=caller.agent)
    told = [asked.to_dict() for asked in entry.expectations]
    return {"entry_id": entry.id, "assessment": entry.assessment.value, "expectations": told}


def add_signal(place: Workplace, caller: Caller, given: tools.AddSignal) -> dict[str, Any]:
    """Record a signal."""
    check_free_name(given.source)
    journal = place.services().journal
    return journal.add_signal(**given.model_dump(), agent_id=caller.agent, session_key=caller.session).to_dict()


def propose_acceptance(place: Workplace, caller: Caller, given: tools.ProposeAcceptance) -> dict[str, Any]:
    """Leave for a person what the caller would accept."""
    # Few agents ask for it, and it compares tables.
    from pytest_golden.gate.waiting_outputs import open_waiting

    manifest = load_manifest(place.manifest)
    project = manifest.get_project(given.project)
    outputs = open_waiting(manifest).propose(project, given.outputs or (), given.reason, caller.agent)
    return {"project": project.name, "outputs": list(outputs), "next": _CONFIRM}


def start_task(place: Workplace, caller: Caller, given: tools.StartTask) -> dict[str, Any]:
    """Begin a task of the caller."""
    _refuse_blank("description", given.description)
    task_id, task = place.tasks().start(
        place.memories(), caller.agent, place.root, given.description, given.files or (), given.tools or ()
    )
    return {"task_id": task_id, "hints": [hint.to_dict() for hint in task.hints]}


def log_attempt(place: Workplace, caller: Caller, given: tools.LogAttempt) -> dict[str, Any]:
    """Note a call, and find hints for its error."""
    task = place.tasks().find(caller.agent, given.task_id)
    task.attempt(given.tool, given.arguments, given.result, given.error)
    hints = () if given.error is None else task.hints_for(given.error, given.tool)
    return {"hints": [hint.to_dict() for hint in hints]}


def finish_task(place: Workplace, caller: Caller, given: tools.FinishTask) -> dict[str, Any]:
    """End a task of the caller, and keep what it teaches."""
    return {"kept": place.tasks().finish(caller.agent, given.task_id, success=given.success, note=given.note)}


def propose_lesson(place: Workplace, caller: Caller, given: tools.ProposeLesson) -> dict[str, Any]:
    """Leave a lesson for a person to decide on."""
    _refuse_blank("lesson", given.lesson)
    words = given.model_dump(exclude={"error"})
    evidence = {} if given.error is None else {"error": given.error}
    skill = SkillMemory(
        **words,
        evidence=evidence,
        what_failed=(given.error or "").strip().partition("\n")[0],
        source=LessonSource.AGENT,
        proposed_by=caller.agent,
        confidence=_PROPOSED,
        approved=False,
    )
    verdict = place.services().lessons.add(skill, caller.agent)
    lesson_id = verdict.skill.id if verdict.kept and verdict.skill is not None else None
    told = None if lesson_id is None else f"a person decides: `golden lessons approve {lesson_id}`, or on the page"
    return {"lesson_id": lesson_id, "kept": verdict.kept, "reason": verdict.reason, "next": told}


def get_hints(place: Workplace, caller: Caller, given: tools.GetHints) -> dict[str, Any]:
    """Find hints, and record nothing."""
    if not (given.task or "").strip() and not (given.error or "").strip() and not given.files:
        raise ValueError(
            "task, error and files are blank: say what is to be done, what failed, or which files it is about"
        )
    hints = find_hints(place.memories(), **given.model_dump(), agent=caller.agent, root=place.root)
    return {"hints": [hint.to_dict() for hint in hints]}


def get_plan(place: Workplace, caller: Caller, given: tools.GetPlan) -> dict[str, Any]:
    """Find plans for a task."""
    _refuse_blank("task", given.task)
    with place.services().store.read() as connection:
        found = find_plans(connection, given.task, caller.agent)
    plans = [one.plan.to_dict() for one in found if one.has_worked][: given.limit]
    return {"plans": plans, "warnings": [one.warning for one in found if not one.has_worked][: given.limit]}


def review_journal(place: Workplace, caller: Caller, given: tools.ReviewJournal) -> dict[str, Any]:
    """Return the caller's newest entries."""
    page = place.services().journal_pages.list_entries(caller.agent, given.filter, given.intent_type, given.limit)
    return {"entries": [_without(_NOT_LISTED, entry.to_dict()) for entry in page.items]}


def get_entry(place: Workplace, _: Caller, given: tools.GetEntry) -> dict[str, Any]:
    """Return one entry with the newest of what belongs to it."""
    _refuse_blank("entry_id", given.entry_id)
    return place.services().journal_pages.get_entry(given.entry_id).to_dict()


def list_cycles(place: Workplace, _: Caller, given: tools.ListCycles) -> dict[str, Any]:
    """Return the newest cycles, or one with what it changed."""
    journal = place.services().journal
    if given.cycle_id is not None:
        return {"cycles": [past_cycles.get_cycle(journal, place.root, given.cycle_id).to_dict()]}
    return {"cycles": [one.to_dict() for one in past_cycles.list_cycles(journal, place.root, limit=given.limit)]}


def search_lessons(place: Workplace, _: Caller, given: tools.SearchLessons) -> dict[str, Any]:
    """Find lessons by words, only those that may be shown."""
    _refuse_blank("query", given.query)
    page = place.services().learned.list_lessons(given.query, filter=SHOWN, limit=given.limit)
    return {"lessons": [lesson.to_dict() for lesson in page.items]}


def recall(place: Workplace, _: Caller, given: tools.Recall) -> dict[str, Any]:
    """Find the lessons that bear on a failure, and the files at fault; a read-only server does not record what was shown."""
    _refuse_blank("text", given.text)
    services = place.services()
    if place.is_read_only:
        with services.store.read() as connection:
            found = recall_lessons(connection, given.text, project=given.project, limit=given.limit, root=place.root)
    else:
        found = services.lessons.recall(given.text, project=given.project, limit=given.limit, root=place.root)
    recall_id = (found[0].recall_id or None) if found else None
    try:
        suspects = find_suspects(place.root, given.text)
    except GoldenError:
        # Without git there is only what the store knows.
        suspects = ()
    return {
        "recall_id": recall_id,
        "recalled": [one.to_dict() for one in found],
        "suspects": [one.to_dict() for one in suspects],
    }


def list_golden_projects(place: Workplace, _: Caller, __: tools.ListGoldenProjects) -> dict[str, Any]:
    """List the declared projects in their order; statuses are unknown where nothing is recorded yet."""
    manifest = load_manifest(place.manifest)
    try:
        statuses = _find_statuses(place, manifest)
    except SettingsError:
        statuses = {}
    shown = ("name", "path", "description", "expected_outcome")
    return {
        "projects": [
            {**{key: getattr(project, key) for key in shown}, "last_status": statuses.get(project.name)}
            for project in manifest.projects
        ]
    }


def golden_status(place: Workplace, _: Caller, __: tools.GoldenStatus) -> dict[str, Any]:
    """Return the last gate run, each result without its steps."""
    services = place.services()
    try:
        run = services.gates.get_run()
    except JournalError as error:
        raise GoldenError(f"{error}: run `pytest --golden` (the store is {services.store.where})") from None
    report = recorded_report(run)
    results = [_without_tables(_without(_NOT_IN_STATUS, result)) for result in report["results"]]
    return {**report, "results": results}


def explain_failure(place: Workplace, _: Caller, given: tools.ExplainFailure) -> dict[str, Any]:
    """Explain why a project failed; an unreadable manifest counts as none."""
    _refuse_blank("project", given.project)
    manifest: Manifest | None = None
    with suppress(ManifestError):
        manifest = load_manifest(place.manifest)
    return _without_tables(place.services().gates.explain_failure(given.project, manifest).to_dict())


def _find_statuses(place: Workplace, manifest: Manifest) -> dict[str, str]:
    found: list[ListedProject] = []
    cursor: str | None = None
    while len(found) < len(manifest.projects):
        page = place.services().gates.list_projects(manifest, MOST_ITEMS, cursor, recent=1)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return {one.name: one.last_status.value for one in found if one.last_status is not None}


def _without_tables(told: dict[str, Any]) -> dict[str, Any]:
    """Leave out the rows of tables that differ: the messages say what matters, and a model reads every word."""
    return {**told, "reasons": [_without(_TABLE, reason) for reason in told["reasons"]]}


def _without(names: frozenset[str], plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if key not in names}


def _refuse_blank(name: str, text: str) -> None:
    if not text.strip():
        raise ValueError(f"{name} is blank: say what you look for")
