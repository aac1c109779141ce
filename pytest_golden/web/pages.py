"""The pages for people: gate runs and projects, the journal, and what was learned; their forms, and signing in and out.

They show what the services give. A form that changes something is tied to the page that it was shown on.
"""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pytest_golden.clock import utc_now
from pytest_golden.cycle.past_cycles import get_cycle, list_cycles
from pytest_golden.errors import BaselineError, GoldenError
from pytest_golden.gate.inbox_items import KINDS, open_inbox
from pytest_golden.gate.state_folder import hold_gate_lock
from pytest_golden.gate.store import RESULT_TYPE
from pytest_golden.gate.waiting_outputs import check_clean, log_acceptance, open_waiting
from pytest_golden.history.past_store import list_projects
from pytest_golden.journal.model import Assessment, RoutedBy, SignalType
from pytest_golden.journal.review import ALL, FILTERS, parse_timestamp
from pytest_golden.journal.rules import COMMENTS, HUMAN
from pytest_golden.learning.learned_pages import CURRENT, LESSON_FILTERS
from pytest_golden.learning.lessons.recalling import SHOWN
from pytest_golden.learning.outcome_summary import sum_up_outcomes
from pytest_golden.learning.training import export_preferences
from pytest_golden.regression.model import OutputChange
from pytest_golden.storage.paging import DEFAULT_ITEMS
from pytest_golden.web.access import Refusal
from pytest_golden.web.drawing import MOST_STEP_BARS, lay_out_steps, plot_runs, stack_periods
from pytest_golden.web.problems import asked, named
from pytest_golden.web.visitor import SIGN_IN, check_person, is_person

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.regression.model import Reason
    from pytest_golden.web.rendering import Site
    from pytest_golden.web.services import Services

    # What a page shows: the values of its template.
    Read = Callable[[Services, Request], dict[str, Any]]
    # What a form does.
    Act = Callable[[Request, Mapping[str, str]], Response]

#: The periods of the summary; blank is all time.
SPANS = (("", "all time"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("365d", "a year"))
_TOKEN_FIELD = "csrf_token"
_MOST_FIELDS = 50
_FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
_SEE_OTHER = 303
_UNAUTHORIZED = 401
_PERSON = "a person at the web page"
_WORDS = tuple(word.value for word in (Assessment.SUCCESS, Assessment.PARTIAL, Assessment.FAILURE))
_MOST_RESULTS = 200
_SHOWN_RUNS = 100
_ROWS_OF_PAGE = 20
_CHUNK_BYTES = 1 << 16
_MOST_CHOICES = 30
# The page of each kind of what waits; outputs are on the page itself.
_INBOX_PAGES = {
    "cycle": "cycles",
    "failure": "journal",
    "words": "signals",
    "signal": "signals",
    "intent": "journal",
    "lesson": "lessons",
    "quarantine": "projects",
    "floor": "runs",
}


# By the beginning of an id, the page that shows it.
_ID_PAGES = {"entry": "journal", "signal": "signals", "lesson": "lessons", "plan": "plans", "cycle": "cycles"}
_ID = re.compile(r"[a-z]+_[A-Za-z0-9]{1,40}")
_MOST_FOUND = 5


def list_routes(site: Site) -> Iterator[Route]:
    """Yield the routes of the pages and their forms."""

    def show(request: Request, template: str, current: str, read: Read) -> Response:
        return site.renderer.render(request, template, current=current, **read(site.services, request))

    for path, template, current, read in _PAGES:
        yield Route(path, partial(show, template=template, current=current, read=read))
    yield Route("/agents/pairs.jsonl", partial(_download_pairs, site))
    for path, act in {
        "/journal/{entry}/assess": _assess,
        "/signals/{signal}/attach": _attach_signal,
        "/waiting/{name:path}/accept": _accept_outputs,
        "/lessons/{lesson}/approve": _judge_lesson,
        "/lessons/{lesson}/reject": _judge_lesson,
        "/lessons/{lesson}/delete": _delete_lesson,
    }.items():
        yield Route(path, form_action(site, partial(_act_for_person, partial(act, site))), methods=["POST"])
    signing = _SignInPages(site)
    yield Route(SIGN_IN, signing.show, methods=["GET"])
    yield Route(SIGN_IN, form_action(site, signing.sign_in), methods=["POST"])
    yield Route("/sign-out", form_action(site, signing.sign_out), methods=["POST"])


def _act_for_person(act: Act, request: Request, fields: Mapping[str, str]) -> Response:
    check_person(request)
    return act(request, fields)


def _show_overview(services: Services, request: Request) -> dict[str, Any]:
    cursor = asked(request, "cursor")
    running = () if cursor else services.live_gates.look().gates
    return {"page": services.gates.list_runs(cursor=cursor), "running": running}


def _show_run(services: Services, request: Request) -> dict[str, Any]:
    entry, cursor = named(request, "entry"), asked(request, "cursor")
    gate = next((one for one in services.live_gates.look().gates if one.run_id == entry), None)
    return {
        "run": services.gates.get_listed_run(entry),
        "facts": services.gates.get_run_facts(entry),
        "page": services.gates.list_results(entry, _MOST_RESULTS, cursor),
        "live": gate,
        "waiting": () if gate is None else services.live_gates.list_waiting(gate),
    }


def _show_result(services: Services, request: Request) -> dict[str, Any]:
    recorded = services.gates.get_result(named(request, "entry"))
    result = recorded.result
    return {
        "recorded": recorded,
        "result": result,
        "bars": lay_out_steps(result.steps),
        "left_out": max(0, result.steps_total - MOST_STEP_BARS),
        "command": shlex.join(result.command),
        "written": {name: getattr(result.write_set, name) for name in ("created", "changed", "removed")},
        "tables": _page_tables(request, result.reasons),
    }


def _page_tables(request: Request, reasons: Sequence[Reason]) -> dict[int, dict[str, Any]]:
    """Return the changed rows to be shown of each table that differs, by the place of its reason.

    One table at a time can be paged and filtered: `table` is its place, `column` a column that differs, `rows` the page.
    """
    chosen, column, asked_page = asked(request, "table") or "0", asked(request, "column"), asked(request, "rows")
    told: dict[int, dict[str, Any]] = {}
    for at, reason in enumerate(reasons):
        if reason.table is None:
            continue
        wanted, number = (column, asked_page) if str(at) == chosen else (None, None)
        rows = [
            row for row in reason.table.changed_rows if not wanted or any(cell.column == wanted for cell in row.cells)
        ]
        pages = max(1, -(-len(rows) // _ROWS_OF_PAGE))
        page = min(max(1, int(number)), pages) if number and number.isdecimal() and len(number) < 9 else 1
        first = (page - 1) * _ROWS_OF_PAGE
        shown = rows[first : first + _ROWS_OF_PAGE]
        told[at] = {"rows": shown, "first": first, "count": len(rows), "page": page, "pages": pages, "column": wanted}
    return told


def _list_projects(services: Services, request: Request) -> dict[str, Any]:
    return {"page": services.gates.list_projects(services.manifest.read(), cursor=asked(request, "cursor"))}


def _show_project(services: Services, request: Request) -> dict[str, Any]:
    name = named(request, "name")
    details = services.gates.get_project(name, services.manifest.read(), _SHOWN_RUNS)
    history = details.history
    figures, limit = history.to_dict(), history.trend.limit_seconds if history.trend else None
    plot = plot_runs(history.runs, figures["median_seconds"], limit)
    return {"name": name, "details": details, "figures": figures, "plot": plot}


def _show_timeline(services: Services, request: Request) -> dict[str, Any]:
    agent, intent_type, session = (asked(request, name) for name in ("agent", "type", "session"))
    standing = asked(request, "filter") or ALL
    pages = services.journal_pages
    return {
        "page": pages.list_entries(agent, standing, intent_type, cursor=asked(request, "cursor"), session=session),
        "agents": pages.list_agents(limit=200).items,
        "standings": FILTERS,
        "chosen": {"agent": agent, "filter": standing, "type": intent_type, "session": session},
    }


def _show_entry(services: Services, request: Request) -> dict[str, Any]:
    return {"details": services.journal_pages.get_entry(named(request, "entry"), DEFAULT_ITEMS), "words": _WORDS}


def _show_expectations(services: Services, request: Request) -> dict[str, Any]:
    agent, pages = asked(request, "agent"), services.journal_pages
    page = pages.list_expectations(agent, cursor=asked(request, "cursor"))
    return {"page": page, "agents": pages.list_agents(limit=200).items, "agent": agent}


def _list_signals(services: Services, request: Request) -> dict[str, Any]:
    rule, agent, pages = asked(request, "routed_by"), asked(request, "agent"), services.journal_pages
    return {
        "page": pages.list_signals(rule, agent, cursor=asked(request, "cursor")),
        "rules": tuple(RoutedBy),
        "agents": pages.list_agents(limit=200).items,
        "chosen": {"routed_by": rule, "agent": agent},
    }


def _show_signal(services: Services, request: Request) -> dict[str, Any]:
    details = services.journal_pages.get_signal(named(request, "signal"))
    choices: Sequence[JournalEntry] = ()
    if details.signal.routed_by is RoutedBy.ORPHAN:
        choices = services.journal.review_journal(
            limit=_MOST_CHOICES, agent_id=details.agent_id, without_type=RESULT_TYPE
        )
    signal = details.signal
    is_said = signal.source == HUMAN or signal.data.get("event") in COMMENTS
    is_unread = is_said and signal.entry_id is not None and signal.signal_type is SignalType.NEUTRAL
    return {"details": details, "choices": choices, "is_unread": is_unread}


def _show_summary(services: Services, request: Request) -> dict[str, Any]:
    agent, since = asked(request, "agent"), asked(request, "since")
    summary = services.journal.summary(agent, None if since is None else parse_timestamp(since, utc_now()))
    return {
        "summary": summary,
        "stacks": stack_periods(summary.by_time),
        "agents": services.journal_pages.list_agents(limit=200).items,
        "agent": agent,
        "since": since or "",
        "spans": _list_spans(since),
    }


def _show_agents(services: Services, request: Request) -> dict[str, Any]:
    agent, since = asked(request, "agent"), asked(request, "since")
    began = None if since is None else parse_timestamp(since, utc_now())
    summary = sum_up_outcomes(services.store, agent, began)
    plans = {f"plan_{one.last_outcome_id}" for one in summary.failures}
    return {
        "summary": summary,
        "stacks": stack_periods(summary.by_time),
        "plans": services.learned.find_plans(plans),
        "agent": agent,
        "since": since or "",
        "spans": _list_spans(since),
    }


def _download_pairs(site: Site, request: Request) -> Response:
    check_person(request)
    folder = TemporaryDirectory()
    file = Path(folder.name) / "pairs.jsonl"
    try:
        export_preferences(site.services.store, file, asked(request, "agent"))
    except GoldenError:
        folder.cleanup()
        raise

    def stream() -> Iterator[bytes]:
        with folder, file.open("rb") as opened:
            while part := opened.read(_CHUNK_BYTES):
                yield part

    headers = {"Content-Disposition": 'attachment; filename="pairs.jsonl"'}
    return StreamingResponse(stream(), media_type="application/x-ndjson", headers=headers)


def _list_spans(since: str | None) -> tuple[tuple[str, str], ...]:
    return SPANS if since is None or since in dict(SPANS) else (*SPANS, (since, since))


def _list_lessons(services: Services, request: Request) -> dict[str, Any]:
    words, standing = asked(request, "q"), asked(request, "filter") or CURRENT
    if not is_person(request):
        standing = SHOWN
    page = services.learned.list_lessons(words, filter=standing, cursor=asked(request, "cursor"))
    return {"page": page, "standings": LESSON_FILTERS, "chosen": {"q": words, "filter": standing}}


def _show_lesson(services: Services, request: Request) -> dict[str, Any]:
    details = services.learned.get_lesson(named(request, "lesson"))
    if details.state != SHOWN:
        check_person(request)
    return {"details": details}


def _list_plans(services: Services, request: Request) -> dict[str, Any]:
    words = asked(request, "q")
    return {"page": services.learned.list_plans(words, cursor=asked(request, "cursor")), "words": words}


def _show_plan(services: Services, request: Request) -> dict[str, Any]:
    return {"details": services.learned.get_plan(named(request, "plan"))}


def _list_waiting(services: Services, request: Request) -> dict[str, Any]:
    manifest = services.manifest.read()
    waiting = None if manifest is None else open_waiting(manifest)
    runs = () if waiting is None else waiting.list_runs()
    proposals = {} if waiting is None else {run.project: waiting.find_proposal(run.project) for run in runs}
    inbox = open_inbox(services.store, manifest, utc_now(), by_person=is_person(request))
    others = {
        kind: [item for item in inbox.items if item.kind == kind] for kind in inbox.counts if kind in _INBOX_PAGES
    }
    return {"runs": runs, "proposals": proposals, "others": others, "kinds": KINDS, "pages": _INBOX_PAGES}


def _search(services: Services, request: Request) -> dict[str, Any]:
    """Find an id, and projects, entries, lessons and plans by words."""
    words = (asked(request, "q") or "").strip()
    if not words:
        return {"words": "", "found": None}
    kind = words.partition("_")[0]
    manifest = services.manifest.read()
    with services.store.read() as connection:
        names = {*list_projects(connection), *(one.name for one in (() if manifest is None else manifest.projects))}
    standing = CURRENT if is_person(request) else SHOWN
    return {
        "words": words,
        "found": {
            "page": (_ID_PAGES[kind], words) if kind in _ID_PAGES and _ID.fullmatch(words) else None,
            "projects": [name for name in sorted(names) if words.casefold() in name.casefold()][:_MOST_FOUND],
            "entries": services.journal_pages.search_entries(words, limit=_MOST_FOUND),
            "lessons": services.learned.list_lessons(words, filter=standing, limit=_MOST_FOUND).items,
            "plans": services.learned.list_plans(words, limit=_MOST_FOUND).items,
        },
    }


def _list_cycles(services: Services, _request: Request) -> dict[str, Any]:
    return {"cycles": list_cycles(services.journal, services.manifest.folder, limit=DEFAULT_ITEMS)}


def _show_cycle(services: Services, request: Request) -> dict[str, Any]:
    found = get_cycle(services.journal, services.manifest.folder, named(request, "cycle"))
    return {"cycle": found.cycle, "changes": found.changes}


# The address, the template, the place in the navigation, and what reads the values.
_PAGES: tuple[tuple[str, str, str, Read], ...] = (
    ("/", "runs.html", "Gate runs", _show_overview),
    ("/runs/{entry}", "run.html", "Gate runs", _show_run),
    ("/results/{entry}", "result.html", "Gate runs", _show_result),
    ("/projects", "projects.html", "Projects", _list_projects),
    ("/projects/{name:path}", "project.html", "Projects", _show_project),
    ("/journal", "journal.html", "Journal", _show_timeline),
    ("/journal/{entry}", "entry.html", "Journal", _show_entry),
    ("/expectations", "expectations.html", "Expectations", _show_expectations),
    ("/summary", "summary.html", "Summary", _show_summary),
    ("/signals", "signals.html", "Signals", _list_signals),
    ("/signals/{signal}", "signal.html", "Signals", _show_signal),
    ("/waiting", "waiting.html", "Waiting", _list_waiting),
    ("/search", "search.html", "", _search),
    ("/cycles", "cycles.html", "Waiting", _list_cycles),
    ("/cycles/{cycle}", "cycle.html", "Waiting", _show_cycle),
    ("/agents", "agents.html", "Agents", _show_agents),
    ("/outcomes", "agents.html", "Agents", _show_agents),
    ("/lessons", "lessons.html", "Lessons", _list_lessons),
    ("/lessons/{lesson}", "lesson.html", "Lessons", _show_lesson),
    ("/plans", "plans.html", "Plans", _list_plans),
    ("/plans/{plan}", "plan.html", "Plans", _show_plan),
)


def _assess(site: Site, request: Request, fields: Mapping[str, str]) -> Response:
    entry, word = named(request, "entry"), fields.get("assessment", "")
    if word not in _WORDS:
        raise Refusal(400, f"The assessment is one of {', '.join(_WORDS)}.")
    site.services.journal.assess(entry, word, fields.get("notes", "").strip() or None, by=_PERSON)
    return RedirectResponse(site.renderer.url("journal", entry), _SEE_OTHER)


def _attach_signal(site: Site, request: Request, fields: Mapping[str, str]) -> Response:
    signal = site.services.journal.attach(named(request, "signal"), fields.get("entry", ""))
    return RedirectResponse(site.renderer.url("journal", str(signal.entry_id)), _SEE_OTHER)


def _accept_outputs(site: Site, request: Request, fields: Mapping[str, str]) -> Response:
    """Make outputs that wait the baselines: one, or all of a project."""
    name, reason = named(request, "name"), fields.get("reason", "")
    manifest = site.services.manifest.read()
    project = None if manifest is None else manifest.find_project(name)
    if manifest is None or project is None:
        raise Refusal(404, "No golden project has this name.")
    try:
        check_clean(manifest)
        paths = (fields["output"],) if fields.get("output") else ()
        with hold_gate_lock(manifest.workspace_root, _refuse_to_wait):
            accepted = open_waiting(manifest).accept(project, paths, reason, _PERSON)
    except BaselineError as error:
        raise Refusal(409, f"{error}.") from None
    log_acceptance(site.services.journal, name, accepted, reason, _PERSON)
    refused = [output for output in accepted if output.change is OutputChange.REFUSED]
    if refused:
        raise Refusal(409, f"{refused[0].path} is not accepted: {refused[0].message}.")
    return RedirectResponse(site.renderer.url("waiting"), _SEE_OTHER)


def _refuse_to_wait(told: str) -> None:
    raise Refusal(409, f"{told.partition(':')[0]}: send the form again when it has ended.")


def _judge_lesson(site: Site, request: Request, _: Mapping[str, str]) -> Response:
    lessons = site.services.lessons
    judge = lessons.approve if request.url.path.endswith("/approve") else lessons.reject
    return RedirectResponse(site.renderer.url("lessons", judge(named(request, "lesson"), _PERSON).id), _SEE_OTHER)


def _delete_lesson(site: Site, request: Request, _: Mapping[str, str]) -> Response:
    site.services.lessons.delete(named(request, "lesson"))
    return RedirectResponse(site.renderer.url("lessons"), _SEE_OTHER)


def form_action(site: Site, act: Act) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a form: it calls `act` with the form's fields, in a worker thread.

    A form without the token that its page was given is refused with 403, a body that is not a form with 415.
    """

    async def answer(request: Request) -> Response:
        if not request.headers.get("content-type", "").lower().startswith(_FORM_TYPES):
            raise Refusal(415, "Send a form.")
        fields = await _read_fields(request)
        visit = site.doorkeeper.sessions.find_visit(request.cookies)
        if not site.doorkeeper.sessions.fits_form(visit, fields.get(_TOKEN_FIELD, "")):
            raise Refusal(403, "The form is from another visit: go back, load the page again, and send it once more.")
        return await run_in_threadpool(act, request, fields)

    return answer


async def _read_fields(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=_MOST_FIELDS) as form:
        fields: dict[str, Any] = dict(form)
    return {name: value for name, value in fields.items() if not isinstance(value, UploadFile)}


class _SignInPages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def show(self, request: Request) -> Response:
        # The link that `golden serve` prints at its first start. The answer leads on, so that the token leaves the address bar.
        if "token" in request.query_params:
            return self.sign_in(request, request.query_params)
        return self._show(request, request.query_params.get("next", "/"), None, 200)

    def sign_in(self, request: Request, fields: Mapping[str, str]) -> Response:
        asked = fields.get("next", "/")
        doorkeeper = self._site.doorkeeper
        if not doorkeeper.is_token(fields.get("token", "").strip()):
            try:
                doorkeeper.refuse_wrong_token(request.scope["golden.address"])
            except Refusal as refusal:
                page = self._show(request, asked, refusal.detail, refusal.status)
                page.headers.update(refusal.headers)
                return page
            return self._show(request, asked, "That is not the token.", _UNAUTHORIZED)
        response = RedirectResponse(f"{self._site.options.place.prefix}{_stay_inside(asked)}", _SEE_OTHER)
        doorkeeper.sessions.open(response)
        return response

    def sign_out(self, request: Request, fields: Mapping[str, str]) -> Response:  # noqa: ARG002 - a form's action
        response = RedirectResponse(self._site.renderer.url("sign-in"), _SEE_OTHER)
        self._site.doorkeeper.sessions.close(response, request.cookies)
        return response

    def _show(self, request: Request, asked: str, problem: str | None, status: int) -> Response:
        inside = _stay_inside(asked)
        told = {"is_inside": False, "next": inside, "problem": problem}
        return self._site.renderer.render(request, "sign_in.html", status=status, **told)


def _stay_inside(path: str) -> str:
    """Return a path of this site; the first page for anything that a browser may take for another site's address."""
    is_inside = path.startswith("/") and path.isascii() and path.isprintable() and "\\" not in path
    return path if is_inside and not path.startswith("//") else "/"
