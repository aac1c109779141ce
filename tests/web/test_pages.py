from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_golden.gateway.model import WriteSet
from pytest_golden.gateway.table_difference import (
    ChangedCell,
    ChangedRow,
    ColumnDifference,
    HistogramBar,
    PairedBy,
    RenamedColumn,
    TableDifference,
)
from pytest_golden.learning.agent_memory import AgentMemory
from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.outcome_logger import log_agent_outcome
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus
from pytest_golden.report.gate_report import report_schema
from pytest_golden.trajectory.model import Trajectory
from tests.web.conftest import form_token
from tests.web.recorded import Recorded, record_run

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.storage.store import Store
    from pytest_golden.web.services import Services
    from tests.web.conftest import Visit


API = "/api/v1"
# With what every page loads, 200 KiB.
MOST_PAGE_BYTES = 128 * 1024
DIFFERS = Reason(ReasonKind.OUTPUT_DIFFERS, "out.csv differs from its baseline\n- 1\n+ 2", "out.csv")


@pytest.fixture
def recorded(store: Store) -> Recorded:
    """A run in which one project passed and one failed, after one in which both passed."""
    record_run(store, 0, orders={}, prices={})
    return record_run(
        store,
        1,
        orders={
            "output_summary": "3 rows <b>",
            "output_colours": {"3 rows <b>": "\x1b[32m3 rows\x1b[0m <b>"},
            "write_set": WriteSet(created=("out/rows.csv",)),
        },
        prices={"status": ResultStatus.FAILED, "reasons": (DIFFERS,), "log_path": "/gone/prices.log"},
    )


def test_overview_lists_runs_newest_first(client: TestClient, store: Store, recorded: Recorded) -> None:
    page = client.get("/").text
    table, strip = page[page.index("<table") :], page[: page.index("<table")]
    assert table.count('href="/runs/entry_') == strip.count('href="/runs/entry_') == 2
    assert table.index(recorded.run) < table.rindex('href="/runs/entry_')
    assert strip.index(recorded.run) == strip.rindex("entry_")
    assert "1 passed, 1 failed" in page
    for minute in range(2, 60):
        record_run(store, minute, orders={})
    address = client.get("/").text.split('rel="next" href="')[1].split('"')[0]
    assert recorded.run in client.get(address).text


def test_run_lists_what_failed_first(client: TestClient, recorded: Recorded) -> None:
    page = client.get(f"/runs/{recorded.run}").text
    table = page[page.index("<table") :]
    assert table.index(recorded.results["prices"]) < table.index(recorded.results["orders"])
    assert "out.csv differs from its baseline</td>" in table.replace("\n", "")
    assert "cccccccccc" in page


def test_run_begins_with_a_cell_for_each_result_in_the_order_in_which_they_came(
    client: TestClient, recorded: Recorded
) -> None:
    page = client.get(f"/runs/{recorded.run}").text
    strip = page[page.index('<ul class="strip"') : page.index("<table")]
    orders, prices = recorded.results["orders"], recorded.results["prices"]
    assert f'class="PASSED" href="/results/{orders}" title="PASSED orders"' in strip
    assert f'class="FAILED" href="/results/{prices}" title="FAILED prices"' in strip
    assert strip.index(orders) < strip.index(prices)


def test_tables_show_the_first_line_of_a_reason_alone(client: TestClient, recorded: Recorded) -> None:
    for path in (f"/runs/{recorded.run}", "/projects/prices"):
        table = client.get(path).text.split("<tbody>")[-1].split("</tbody>")[0]
        assert "out.csv differs from its baseline" in table
        assert "- 1" not in table


def test_plot_of_durations_says_in_a_sentence_what_it_shows(client: TestClient, recorded: Recorded) -> None:
    page = client.get("/projects/prices").text
    assert "Each bar is one of the last 2 runs" in page
    assert "1 failed, which hang below the line" in page
    assert 'aria-labelledby="plot-says"' in page
    assert page.count('<rect class="failed"') == page.count('<rect class="bar failed"') == 1


def test_result_shows_why_where_and_what_it_printed(client: TestClient, recorded: Recorded) -> None:
    failed = client.get(f"/results/{recorded.results['prices']}").text
    assert "out.csv differs from its baseline" in failed
    assert '<span class="minus">- 1</span>' in failed
    assert '<span class="plus">+ 2</span>' in failed
    assert "is not on this machine, or was pruned" in failed
    passed = client.get(f"/results/{recorded.results['orders']}").text
    assert '<span class="ansi-green">3 rows</span> &lt;b&gt;' in passed
    assert "out/rows.csv" in passed
    assert "Previous run" in passed


def table_of_rows(count: int) -> TableDifference:
    rows = [
        ChangedRow(
            (str(at),), (ChangedCell("amount <b>" if at % 2 else "day", f"{at}", None if at == 3 else f"{at}.5"),)
        )
        for at in range(count)
    ]
    bars = (HistogramBar("0 to 1", 3, 4), HistogramBar("1 to 2", 0, 9))
    columns = tuple(
        ColumnDifference(name, count // 2, 0.5, 0, 1, 9, 8, 0.5, histogram=bars) for name in ("amount <b>", "day")
    )
    return TableDifference(
        900,
        901,
        count,
        1,
        0,
        PairedBy.INFERRED_KEY,
        ("id",),
        columns_renamed=(RenamedColumn("client", "customer"),),
        columns=columns,
        columns_changed=2,
        changed_rows=tuple(rows),
        added_places=(("901",),),
    )


def test_changed_rows_of_a_table_are_paged_and_filtered_by_column(client: TestClient, store: Store) -> None:
    reasons = [
        Reason(ReasonKind.OUTPUT_DIFFERS, f"{name} differs\nrows", name, table_of_rows(50)) for name in ("a", "b")
    ]
    recorded = record_run(store, 0, orders={"status": ResultStatus.FAILED, "reasons": tuple(reasons)})
    address = f"/results/{recorded.results['orders']}"
    page = client.get(address).text
    assert "<bdi>client</bdi> was renamed to <bdi>customer</bdi>" in page
    assert page.count('class="histogram"') == 4
    assert page.count("Rows 1 to 20 of 50") == 2
    assert 'aria-label="0 to 1: 3, now 4. 1 to 2: 0, now 9. "' in page
    assert "<bdi>amount &lt;b&gt;</bdi>" in page
    assert '<span class="muted">NULL</span>' in page
    second = client.get(address, params={"table": "1", "column": "day", "rows": "2"}).text
    assert "Rows 21 to 25 of 25" in second
    assert "Rows 1 to 20 of 50" in second
    assert "?table=1&amp;column=day&amp;rows=1#rows-1" in second
    for odd in ({"table": "x", "rows": "-1"}, {"rows": "99999999999999"}, {"column": "none"}, {"rows": "²"}):
        assert client.get(address, params=odd).status_code == 200
    assert client.get(f"/api/v1{address}").json()["reasons"][0]["table"]["rows_changed"] == 50


def test_page_of_the_largest_result_stays_light(client: TestClient, store: Store) -> None:
    lines = "\n".join(f"{'+-'[number % 2]} row {number} of the orders, which is not as it was" for number in range(40))
    differing = [Reason(ReasonKind.OUTPUT_DIFFERS, f"out differs\n{lines}", f"out/{place}.csv") for place in range(60)]
    told = Trajectory.new()
    for number in range(300):
        told = told.add_step("action", f"load part {number} of the orders of today")
    fields = {
        "status": ResultStatus.FAILED,
        "reasons": (*differing, Reason(ReasonKind.EXIT_CODE, "x" * 10_000)),
        "output_summary": "\x1b[32mloaded\x1b[0m\n" * 300,
        "write_set": WriteSet(created=tuple(f"out/part-{number:05d}.parquet" for number in range(3_000))),
        "steps": tuple(told.to_dict()["steps"]),
        "steps_total": 300,
    }
    recorded = record_run(store, 0, orders=fields)
    page = client.get(f"/results/{recorded.results['orders']}").text
    assert len(page.encode()) < MOST_PAGE_BYTES
    for left_out in ("41 more reasons", "40 more differences", "100 before them", "and 2800 more"):
        assert left_out in page
    assert len(client.get("/projects/orders").text.encode()) < MOST_PAGE_BYTES


def test_a_step_that_is_its_own_error_is_shown_once(client: TestClient, store: Store) -> None:
    told = Trajectory.new().add_step("observation", "it left no step", metadata={"error": "it left no step"})
    told = told.add_step("action", "load", metadata={"error": "no such table"})
    steps = tuple(told.to_dict()["steps"])
    recorded = record_run(store, 0, orders={"status": ResultStatus.FAILED, "steps": steps, "steps_total": 2})
    page = client.get(f"/results/{recorded.results['orders']}").text
    assert page.count("it left no step") == 1
    assert page.count("no such table") == 2


def test_result_says_where_the_time_went_if_it_is_worth_a_word(client: TestClient, store: Store) -> None:
    slow = {"execution_time_seconds": 2.0, "prepare_seconds": 1.2, "compare_seconds": 61.0}
    quick = {"execution_time_seconds": 2.0, "prepare_seconds": 0.02, "compare_seconds": 0.03}
    recorded = record_run(store, 0, slow=slow, quick=quick)
    page = client.get(f"/results/{recorded.results['slow']}").text
    assert "(prepared in 1.2s, compared in 1m 01s)" in page
    assert "(prepared in" not in client.get(f"/results/{recorded.results['quick']}").text


def test_projects_show_how_they_went_lately(client: TestClient, manifest: Path, recorded: Recorded) -> None:
    manifest.write_text("golden_projects:\n  - {name: new, path: new.sh}\n  - {name: prices, path: prices.sh}\n")
    (manifest.parent / "new.sh").write_text("true")
    (manifest.parent / "prices.sh").write_text("true")
    page = client.get("/projects").text
    assert page.index(">new<") < page.index(">prices<") < page.index(">orders<")
    assert "never ran" in page
    assert "no longer declared" in page
    assert page.count('class="FAILED"') == 1
    history = client.get("/projects/prices").text
    assert "out.csv differs from its baseline" in history
    assert history.count('href="/results/entry_') >= 4
    assert "It has not run yet" in client.get("/projects/new").text


def test_project_with_a_name_that_needs_quoting_is_found(client: TestClient, store: Store) -> None:
    for name in ("a/b", "a b?c#d"):
        record_run(store, 0, **{name: {}})
    page = client.get("/projects").text
    for quoted in ("a%2Fb", "a%20b%3Fc%23d"):
        assert f'href="/projects/{quoted}"' in page
        assert client.get(f"/projects/{quoted}").status_code == 200
        assert client.get(f"{API}/projects/{quoted}").status_code == 200


def test_manifest_that_cannot_be_read_is_said_without_its_place(client: TestClient, manifest: Path) -> None:
    manifest.write_text("golden_projects: [")
    for path in ("/projects", "/projects/x", f"{API}/projects"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "golden check" in answer.text
        assert str(manifest.parent) not in answer.text


def test_hostile_texts_of_a_pipeline_are_shown_and_never_taken_for_html(client: TestClient, store: Store) -> None:
    reason = Reason(ReasonKind.EXIT_CODE, HOSTILE)
    fields = {
        "status": ResultStatus.FAILED,
        "reasons": (reason,),
        "output_summary": HOSTILE,
        "warnings": (HOSTILE,),
        "write_set": WriteSet(created=(HOSTILE,)),
        "command": ("sh", HOSTILE),
        "known": ({"kind": "x", "lines": [HOSTILE]},),
    }
    recorded = record_run(store, 0, **{"<img src=x>": fields})
    paths = ["/", f"/runs/{recorded.run}", f"/results/{recorded.results['<img src=x>']}", "/projects"]
    for path in [*paths, "/projects/%3Cimg%20src=x%3E"]:
        answer = client.get(path)
        assert answer.status_code == 200
        for raw in ("<script>alert", "<img src=x", "\x1b", "\u202e", "\x07", "49'"):
            assert raw not in answer.text, path


@pytest.mark.parametrize("kind", ["runs", "results", "projects", "lessons", "plans"])
def test_what_is_not_there_is_not_found(client: TestClient, kind: str) -> None:
    for name in ("nothing", "x" * 3000, "%00", "%ff", "..%2f..", "'--"):
        assert client.get(f"/{kind}/{name}").status_code == 404
        assert client.get(f"{API}/{kind}/{name}").status_code in {404, 422}


def test_empty_store_teaches_how_to_begin(client: TestClient) -> None:
    assert "pytest --golden" in client.get("/").text.split('id="list"')[1]
    assert "golden init" in client.get("/projects").text


def test_api_gives_the_gate_report_of_a_run(client: TestClient, recorded: Recorded) -> None:
    report = client.get(f"{API}/runs/{recorded.run}").json()
    jsonschema.Draft202012Validator(report_schema()).validate(report)
    assert {one["name"]: one["entry_id"] for one in report["results"]} == recorded.results
    listed = client.get(f"{API}/runs", params={"limit": 1}).json()
    assert listed["items"][0]["id"] == recorded.run
    rest = client.get(f"{API}/runs", params={"limit": 1, "cursor": listed["next_cursor"]}).json()
    assert len(rest["items"]) == 1
    assert rest["next_cursor"] is None


def test_api_gives_results_and_projects_with_their_figures(client: TestClient, recorded: Recorded) -> None:
    result = client.get(f"{API}/results/{recorded.results['prices']}").json()
    assert (result["status"], result["run_id"], result["has_log"]) == ("FAILED", recorded.run, False)
    assert result["differences"][0]["difference"] == "- 1\n+ 2"
    project = client.get(f"{API}/projects/prices").json()
    assert [run["status"] for run in project["runs"]] == ["FAILED", "PASSED"]
    assert {"flakiness", "median_seconds", "mad_seconds", "last_difference"} <= set(project)
    names = [one["name"] for one in client.get(f"{API}/projects").json()["items"]]
    assert names == ["orders", "prices"]
    assert json.dumps(project)


HOSTILE = "<script>alert(1)</script>\x1b[31mred\u202etxt\r\nx\x07'\"{{ 7*7 }}"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;\u241b[31mred\\u202etxt"


@pytest.fixture
def entry(services: Services) -> JournalEntry:
    """An entry with an expectation that news has answered."""
    begun = services.journal.log_intent("Rebuild orders", "deploy", agent_id="builder", session_key="s1")
    services.journal.log_outcome(
        begun.id, "success", expectations=[{"description": "stays quiet", "match_hint": {"source": "pager"}}]
    )
    services.journal.add_signal("pager", "positive", "all quiet", agent_id="builder")
    return services.journal.get(begun.id)


def test_timeline_shows_entries_and_narrows_them(client: TestClient, services: Services, entry: JournalEntry) -> None:
    services.journal.log_intent("Something else", agent_id="other")
    page = client.get("/journal").text
    assert page.index("Something else") < page.index("Rebuild orders")
    assert f'href="/journal/{entry.id}"' in page
    for narrowed in ("agent=builder", "type=deploy", "filter=success"):
        shown = client.get(f"/journal?{narrowed}").text
        assert "Rebuild orders" in shown
        assert "Something else" not in shown.split('id="list"')[1]


def test_empty_pages_teach_what_they_are_for(client: TestClient) -> None:
    assert "golden journal log-intent" in client.get("/journal").text
    assert "No open expectations" in client.get("/expectations").text
    assert "No signals yet" in client.get("/signals").text
    assert "Nothing to sum up" in client.get("/summary").text
    assert "No agent has logged a task" in client.get("/agents").text
    assert "Nothing matches" in client.get("/journal?agent=nobody").text


def test_entry_shows_what_was_expected_heard_and_said(client: TestClient, entry: JournalEntry) -> None:
    page = client.get(f"/journal/{entry.id}").text
    for told in ("Rebuild orders", "stays quiet", "all quiet", "match_hint", "success", "s1"):
        assert told in page


def test_entry_with_very_much_shows_the_newest_of_it(client: TestClient, services: Services) -> None:
    begun = services.journal.log_intent("Watch the nightly loads", agent_id="builder")
    for number in range(60):
        services.journal.add_signal("pager", "neutral", f"remark {number}", entry_id=begun.id)
    page = client.get(f"/journal/{begun.id}").text
    assert "The newest 50 of 60." in page
    assert ">remark 59<" in page
    assert ">remark 9<" not in page


def test_person_has_the_last_word(client: TestClient, services: Services, entry: JournalEntry) -> None:
    token = form_token(client.get(f"/journal/{entry.id}").text)
    fields = {"csrf_token": token, "assessment": "failure", "notes": HOSTILE.replace("\x07", "")}
    answer = client.post(f"/journal/{entry.id}/assess", data=fields)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/journal/{entry.id}")
    assert services.journal.get(entry.id).assessment == "failure"
    assert SHOWN in client.get(f"/journal/{entry.id}").text


@pytest.mark.parametrize("word", ["", "open", "expired", "great"])
def test_word_that_nobody_may_give_is_refused(client: TestClient, entry: JournalEntry, word: str) -> None:
    token = form_token(client.get(f"/journal/{entry.id}").text)
    answer = client.post(f"/journal/{entry.id}/assess", data={"csrf_token": token, "assessment": word})
    assert answer.status_code == 400
    assert "assessment" in answer.text


def test_pages_of_a_server_that_only_shows_have_no_forms(visit: Visit, entry: JournalEntry) -> None:
    page = visit(is_read_only=True).get(f"/journal/{entry.id}").text
    assert 'method="post"' not in page
    assert "This server is read-only" in page


@pytest.mark.parametrize(
    "path", ["/journal/nothing", "/signals/nothing", "/journal/%00", "/signals/%00", "/journal/" + "x" * 9000]
)
def test_entry_that_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/journal?filter=great",
        "/journal?cursor=x",
        "/journal?agent=%00",
        "/signals?routed_by=x",
        "/signals?cursor=%ff",
        "/expectations?cursor=x",
        "/summary?since=x",
    ],
)
def test_query_that_is_not_understood_is_refused_with_a_sentence(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert "<h1>Bad Request</h1>" in answer.text


def test_older_entries_are_a_page_further(client: TestClient, services: Services) -> None:
    for number in range(60):
        services.journal.log_intent(f"intent {number:02}", agent_id="builder")
    page = client.get("/journal?agent=builder").text
    address = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "agent=builder" in address
    older = client.get(address).text
    assert "intent 59" in page
    assert "intent 09" in older
    assert "intent 10" not in older
    assert 'rel="next"' not in older


def test_expectations_stand_soonest_first(client: TestClient, services: Services) -> None:
    begun = services.journal.log_intent("x", agent_id="builder")
    asked = [{"description": "later", "expires_minutes": 90}, {"description": "soon", "expires_minutes": 5}]
    services.journal.log_outcome(begun.id, "success", expectations=asked)
    page = client.get("/expectations?agent=builder").text
    assert page.index(">soon<") < page.index(">later<")


def test_signal_tells_why_it_went_where_it_went(client: TestClient, services: Services, entry: JournalEntry) -> None:
    orphan = services.journal.add_signal("mars", "negative", "unheard of")
    routed = client.get(f"/signals/{entry.signals[0].id}").text
    assert "<strong>match_hint</strong>" in routed
    assert "stays quiet" in routed
    assert "No rule matched" in client.get(f"/signals/{orphan.id}").text
    listed = client.get("/signals?routed_by=orphan").text
    assert "unheard of" in listed
    assert "all quiet" not in listed


def test_an_orphan_is_attached_on_its_page(client: TestClient, services: Services, entry: JournalEntry) -> None:
    other = services.journal.log_intent("of another", agent_id="other")
    orphan = services.journal.add_signal("mars", "negative", "unheard of", agent_id="builder")
    page = client.get(f"/signals/{orphan.id}").text
    assert (f'value="{entry.id}"' in page, f'value="{other.id}"' in page) == (True, False)
    fields = {"csrf_token": form_token(page), "entry": entry.id}
    refused = client.post(f"/signals/{orphan.id}/attach", data={**fields, "entry": other.id})
    assert "is for agent" in refused.text
    assert client.post(f"/signals/{orphan.id}/attach", data={"entry": entry.id}).status_code == 403
    done = client.post(f"/signals/{orphan.id}/attach", data=fields)
    assert (done.status_code, done.headers["location"]) == (303, f"/journal/{entry.id}")
    assert services.journal.get(entry.id).assessment == "failure"
    again = client.get(f"/signals/{orphan.id}").text
    assert "Attach" not in again
    assert client.post(f"/signals/{orphan.id}/attach", data=fields).status_code == 404


def test_words_that_nobody_has_read_have_two_buttons(client: TestClient, services: Services) -> None:
    for number, (word, is_approved) in enumerate((("success", True), ("failure", False))):
        begun = services.journal.log_intent("Open a pull request", agent_id="builder")
        expected = [{"description": "merged", "match_hint": {"pr": number}}]
        services.journal.log_outcome(begun.id, "success", expectations=expected)
        data = {"pr": number, "event": "issue_comment", "author": "ann"}
        signal = services.journal.add_signal("github", "neutral", f"hmm {HOSTILE}", data=data)
        assert f'href="/signals/{signal.id}"' in client.get("/waiting").text
        page = client.get(f"/signals/{signal.id}").text
        assert ("They approve" in page, "They correct it" in page) == (True, True)
        (action,) = re.findall(r'action="(/journal/[^"]*)"', page)
        fields = {"csrf_token": form_token(page), "notes": "hmm", "assessment": word}
        assert client.post(action, data=fields).headers["location"] == f"/journal/{begun.id}"
        assert (services.journal.get(begun.id).assessment == "success") is is_approved
        assert signal.id not in client.get("/waiting").text
    decided = services.journal.add_signal("github", "positive", "merged", data={"pr": 1, "event": "pull_request"})
    assert "They approve" not in client.get(f"/signals/{decided.id}").text


@pytest.mark.parametrize(("count", "told"), [(0, None), (30, "20 more were open"), (150, "90 or more were open")])
def test_signal_tells_how_many_expectations_did_not_come_into_question(
    client: TestClient, services: Services, count: int, told: str | None
) -> None:
    expected = [{"description": "merged", "match_hint": {"pr": number}} for number in range(count)]
    begun = services.journal.log_intent("Open pull requests", agent_id="builder")
    services.journal.log_outcome(begun.id, "success", expectations=expected)
    signal = services.journal.add_signal("github", "positive", "merged", data={"pr": 7}, agent_id="builder")
    page = client.get(f"/signals/{signal.id}").text
    if told is None:
        assert "more were open" not in page
    else:
        assert f"{told} then, and did not come into question" in page


def test_summary_tells_rates_with_their_n(client: TestClient, entry: JournalEntry) -> None:
    for since in ("", "7d", entry.created_at.isoformat().replace("+00:00", "Z")):
        page = client.get(f"/summary?agent=builder&since={since}").text
        assert '<span class="figure">100 %</span>' in page
        assert '<span class="figure">1</span> assessed' in page


def test_agents_are_told_with_their_failures_and_hints(client: TestClient, services: Services) -> None:
    with AgentMemory("<b>fixer</b>", services.store) as memory:
        for success in (False, False, True):
            with memory.task(f"Fix the <i>orders</i> {HOSTILE}") as task:
                task.attempt("bash", {}, error=None if success else "KeyError: '<i>x</i>'")
    page = client.get("/agents").text
    assert ("&lt;b&gt;fixer" in page, "<b>fixer" in page, "<i>" in page) == (True, False, False)
    assert '<span class="figure">33.3 %</span> succeeded' in page
    assert "2 times" in page
    (plan,) = re.findall(r'href="(/plans/plan_[^"]*)"', page.split("Repeated failures")[1])
    assert client.get(plan).status_code == 200
    assert client.get("/outcomes?agent=nobody&since=7d").text.count("No agent has logged a task") == 1
    answer = client.get("/agents/pairs.jsonl")
    (pair,) = answer.text.splitlines()[:1]
    assert answer.headers["content-disposition"] == 'attachment; filename="pairs.jsonl"'
    assert (json.loads(pair)["chosen_reward"], client.get("/agents?since=x").status_code) == (1.0, 400)
    assert client.get("/api/v1/outcomes").json()["n"] == 3


def test_a_search_finds_ids_projects_intents_lessons_and_plans(client: TestClient, services: Services) -> None:
    assert "What are you looking for?" in client.get("/search").text
    assert "Nothing matches" in client.get("/search?q=zzzzz").text
    entry = services.journal.log_intent(f"Load the 100% Orders {HOSTILE}", agent_id="builder")
    page = client.get("/search?q=the+100%25+orders").text
    assert f'href="/journal/{entry.id}"' in page
    assert f'href="/journal/{entry.id}"' not in client.get("/search?q=the+100_+orders").text
    for raw in ("<script>alert", "\x1b", "\u202e"):
        assert raw not in page
        assert raw not in client.get("/search", params={"q": HOSTILE}).text
    assert f'href="/signals/{"signal_" + "A" * 26}"' in client.get(f"/search?q=signal_{'A' * 26}").text
    skill = SkillMemory(lesson="Name the column of the parcels", evidence={"error": "KeyError: 'parcels'"})
    verdict = services.lessons.add(skill, "builder")
    assert verdict.skill is not None
    assert f'href="/lessons/{verdict.skill.id}"' in client.get("/search?q=parcels").text
    assert client.get("/search", params={"q": "x" * 5000}).status_code == 400


def test_cycles_are_listed_and_shown(client: TestClient, services: Services) -> None:
    assert "No cycle has been recorded" in client.get("/cycles").text
    begun = services.journal.log_intent(f"improve {HOSTILE}", "cycle", agent_id="golden", session_key="cycle_1")
    assert "It has not ended" in client.get("/cycles/cycle_1").text
    step = {"step": "review", "status": "done", "reason": f"approved: {HOSTILE}", "seconds": 1.5}
    note = {"verdict": "flagged", "branch": "golden/cycle-1", "steps": [step, "odd"], "warnings": [HOSTILE]}
    services.journal.log_outcome(begun.id, "partial", f"PARTIAL {HOSTILE}", actions=[note])
    for path in ("/cycles", "/cycles/cycle_1", f"/cycles/{begun.id}"):
        page = client.get(path).text
        assert "flagged" in page
        for raw in ("<script>alert", "\x1b", "\u202e"):
            assert raw not in page
    assert client.get("/cycles/cycle_2").status_code == 404
    (listed,) = client.get(f"{API}/cycles").json()["items"]
    whole = client.get(f"{API}/cycles/{listed['cycle_id']}").json()
    assert (listed["verdict"], whole) == ("flagged", {**listed, "changes": ""})
    assert client.get(f"{API}/cycles/cycle_2").status_code == 404


def test_page_of_a_cycle_leads_to_its_gate_run_and_says_what_it_cost(client: TestClient, services: Services) -> None:
    begun = services.journal.log_intent("improve", "cycle", agent_id="golden", session_key="cycle_3")
    steps = [
        {"step": "improvement", "cost_usd": 0.4},
        {"step": "regression_checks", "run_id": "entry_1", "cost_usd": 2},
    ]
    services.journal.log_outcome(
        begun.id,
        "success",
        actions=[{"verdict": "verified", "steps": steps}],
        expectations=[{"description": "the branch is merged", "match_hint": {"branch": "golden/cycle-3"}}],
    )
    page = client.get("/cycles/cycle_3").text
    for told in ('href="/runs/entry_1"', "$2.40", "<dt>Merge</dt>"):
        assert told in page
    assert "$2.40" in client.get("/cycles").text


def test_waiting_page_lists_what_waits_for_a_person(client: TestClient, services: Services) -> None:
    failed = services.journal.log_intent(f"fix it {HOSTILE}", agent_id="<b>fixer")
    services.journal.log_outcome(failed.id, "failure", HOSTILE)
    orphan = services.journal.add_signal("mars", "positive", "all is well")
    page = client.get("/waiting").text
    assert f'href="/journal/{failed.id}"' in page
    assert f'href="/signals/{orphan.id}"' in page
    assert "Failures that nobody has judged" in page
    for raw in ("<script>alert", "<b>fixer", "\x1b", "\u202e"):
        assert raw not in page
    assert client.get(f"{API}/inbox").json()["counts"] == {"failure": 1, "signal": 1}


def test_texts_of_strangers_are_shown_and_never_taken_for_html(client: TestClient, services: Services) -> None:
    begun = services.journal.log_intent(HOSTILE, "<i>", agent_id="<b>agent</b>", session_key="<u>")
    services.journal.log_outcome(begun.id, "failure", HOSTILE, actions=[HOSTILE, {"x": HOSTILE}])
    signal = services.journal.add_signal("<s>", "negative", HOSTILE, data={"k": HOSTILE}, entry_id=begun.id)
    for path in ("/journal", f"/journal/{begun.id}", "/signals", f"/signals/{signal.id}", "/summary"):
        page = client.get(path).text
        for raw in ("<script>alert", "<b>agent", "<i>", "<u>", "<s>", "\x1b", "\u202e", "\x07", "49'"):
            assert raw not in page, path
    assert SHOWN in client.get(f"/journal/{begun.id}").text


def test_page_has_what_keyboards_and_readers_need(client: TestClient, entry: JournalEntry) -> None:
    for path, words in (
        ("/journal", "Journal"),
        (f"/journal/{entry.id}", "Journal"),
        ("/expectations", "Expectations"),
        ("/summary", "Summary"),
        ("/signals", "Signals"),
        ("/agents", "Agents"),
    ):
        page = client.get(path).text
        assert page.count("<h1") == page.count("<main") == 1
        assert page.index('class="skip" href="#main"') < page.index("<header")
        assert f'aria-current="page">{words}<' in page
        assert '<html lang="en">' in page


def test_of_very_many_agents_some_are_offered_and_the_chosen_one_stays(client: TestClient, services: Services) -> None:
    for number in range(205):
        services.journal.log_intent("Rebuild orders", agent_id=f"agent-{number:03}")
    page = client.get("/journal?agent=agent-204").text
    assert page.count("<option") < 220
    assert '<option value="agent-204" selected>' in page
    assert 'value="agent-203"' not in page
    assert page.count(" selected") == 2


def learn(services: Services, lesson: str, **more: object) -> str:
    skill = SkillMemory(
        lesson=lesson,
        context="when the orders table is read",
        what_failed="select customer from orders",
        what_worked="select customer_id from orders",
        **{"evidence": {"error": "no such column: customer", "project": "orders"}, **more},  # type: ignore[arg-type]
    )
    verdict = services.lessons.add(skill, "builder")
    assert verdict.kept, verdict.reason
    assert verdict.skill is not None
    return verdict.skill.id


@pytest.fixture
def lesson(services: Services) -> str:
    """A lesson that waits for a person."""
    return learn(services, "Use customer_id instead of customer in the orders table", approved=False, source="model")


def test_lessons_are_listed_and_searched(client: TestClient, services: Services, lesson: str) -> None:
    timeout = "Set the timeout of the pricing service to ninety seconds before the nightly backfill"
    other = learn(services, timeout, evidence={"error": "deadline of pricing exceeded", "project": "prices"})
    page = client.get("/lessons").text
    assert lesson in page
    assert other in page
    found = client.get("/lessons?q=instead+timeoutless").text
    assert lesson in found
    assert other not in found
    assert lesson not in client.get("/lessons?filter=shown").text
    assert lesson in client.get("/lessons?filter=waits").text
    assert "Nothing matches" in client.get("/lessons?q=zzzz").text
    items = client.get(f"{API}/lessons", params={"q": "instead"}).json()["items"]
    assert [one["id"] for one in items] == [lesson]


def test_person_approves_rejects_and_deletes_a_lesson(client: TestClient, services: Services, lesson: str) -> None:
    token = form_token(client.get(f"/lessons/{lesson}").text)
    fields = {"csrf_token": token}
    assert client.post(f"/lessons/{lesson}/approve", data=fields).headers["location"] == f"/lessons/{lesson}"
    assert services.lessons.get(lesson).approved
    assert client.post(f"/lessons/{lesson}/reject", data=fields).status_code == 303
    assert services.lessons.get(lesson).rejected
    assert client.post(f"/lessons/{lesson}/delete", data=fields).headers["location"] == "/lessons"
    assert client.get(f"/lessons/{lesson}").status_code == 404
    assert client.post(f"/lessons/{lesson}/approve", data=fields).status_code == 404


def test_lesson_is_judged_by_json_too(client: TestClient, services: Services, lesson: str) -> None:
    assert client.post(f"{API}/lessons/{lesson}/approve", json={"by": "ada"}).json()["approved"] is True
    assert services.lessons.get(lesson).judged_by == "ada"
    assert client.post(f"{API}/lessons/{lesson}/reject", json={}).json()["rejected"] is True
    assert client.delete(f"{API}/lessons/{lesson}").json()["id"] == lesson
    assert client.delete(f"{API}/lessons/{lesson}").status_code == 404


def test_lesson_shows_its_evidence(client: TestClient, lesson: str) -> None:
    page = client.get(f"/lessons/{lesson}").text
    for told in (
        "when the orders table is read",
        "no such column: customer",
        'href="/projects/orders"',
        "worded by a model",
    ):
        assert told in page


def test_lesson_names_who_proposed_it(client: TestClient, services: Services) -> None:
    told = {"source": "agent", "proposed_by": "<b>bot", "evidence": {"error": "x is gone"}}
    lesson = learn(services, "Ask the source for its present columns", **told)
    for path in ("/lessons", f"/lessons/{lesson}"):
        assert "proposed by &lt;b&gt;bot" in client.get(path).text
    assert "worded by an agent" in client.get(f"/lessons/{lesson}").text


def test_hostile_lesson_is_shown_and_never_taken_for_html(client: TestClient, services: Services) -> None:
    skill = SkillMemory(
        lesson=f"Use customer_id instead of customer: {HOSTILE}", context=HOSTILE, evidence={"error": HOSTILE}
    )
    verdict = services.lessons.add(skill, "<b>")
    assert verdict.skill is not None
    for path in ("/lessons", f"/lessons/{verdict.skill.id}"):
        page = client.get(path).text
        assert SHOWN in page
        for raw in ("<script>alert", "<b>", "\x1b", "\u202e", "49'"):
            assert raw not in page


def test_plans_are_listed_searched_and_shown(client: TestClient, services: Services) -> None:
    asyncio.run(
        log_agent_outcome(
            services.store, "Rebuild orders", {"rows": 3}, True, ["read", "join", "write"], "builder", 1.5
        )
    )
    (item,) = client.get(f"{API}/plans").json()["items"]
    assert client.get(f"{API}/plans/{item['id']}").json()["outcome"]["task_description"] == "Rebuild orders"
    for path in ("/plans", "/plans?q=orders", f"/plans/{item['id']}"):
        assert item["id"] in client.get(path).text
    shown = client.get(f"/plans/{item['id']}").text
    assert shown.index("read") < shown.index("join")
    assert "Nothing matches" in client.get("/plans?q=zzzz").text


def test_gate_leaves_no_plan_which_the_empty_page_says(client: TestClient, services: Services) -> None:
    record_run(services.store, 0, orders={})
    assert learn_from_results(services.store).learned == 1
    assert "Gates create none" in client.get("/plans").text


@pytest.fixture
def waiting(manifest: Path) -> Path:
    """A clean checkout in which outputs of a red run wait."""
    folder = manifest.parent
    manifest.write_text("golden_projects:\n  - {name: orders, path: run.sh, outputs: [{path: a.txt}, {path: b.txt}]}\n")
    (folder / "run.sh").write_text("echo '2 <b>' > a.txt; echo 1 > b.txt\n")
    baseline = folder / "golden_baselines/orders/a.txt"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("1\n")
    (folder / ".gitignore").write_text("golden.db*\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, cwd=folder)
    gate = [sys.executable, "-m", "pytest", "--golden", "-q", "--golden-sandbox=copy", "-p", "no:randomly"]
    subprocess.run(gate, cwd=folder, check=False, capture_output=True)
    return folder


def test_a_person_accepts_outputs_that_wait_on_a_clean_checkout(
    waiting: Path, client: TestClient, services: Services
) -> None:
    page = client.get("/waiting").text
    (item,) = client.get(f"{API}/inbox").json()["items"]
    assert (item["kind"], item["who"], item["title"], item["action"]) == (
        "outputs",
        "orders",
        "2 outputs",
        "golden accept orders",
    )
    assert "2 &lt;b&gt;" in page
    fields = {"csrf_token": form_token(page), "output": "a.txt", "reason": "new rates"}
    blank = client.post("/waiting/orders/accept", data={**fields, "reason": " "})
    assert (blank.status_code, "say in a sentence why this is right" in blank.text) == (409, True)
    (waiting / "run.sh").write_text("exit 1\n")
    edited = client.post("/waiting/orders/accept", data=fields)
    assert edited.status_code == 409
    assert "uncommitted edits (run.sh)" in edited.text
    subprocess.run(["git", "checkout", "-q", "run.sh"], check=True, cwd=waiting)
    assert client.post("/waiting/orders/accept", data=fields).headers["location"] == "/waiting"
    assert (waiting / "golden_baselines/orders/a.txt").read_text() == "2 <b>\n"
    assert "| a.txt |" in (waiting / "golden_baselines/ACCEPTED.md").read_text()
    assert "a.txt" not in client.get("/waiting").text
    assert client.post("/waiting/orders/accept", data={**fields, "output": ""}).status_code == 303
    assert (waiting / "golden_baselines/orders/b.txt").read_text() == "1\n"
    assert "Nothing waits" in client.get("/waiting").text
    assert client.post("/waiting/orders/accept", data=fields).status_code == 409
    assert client.post("/waiting/nobody/accept", data=fields).status_code == 404
    entry = services.journal.review_journal("all", "baselines_accepted", 10, agent_id="golden")[0]
    assert "accept outputs of orders: new rates (a person at the web page)" in entry.intent


def test_nobody_else_accepts_outputs(waiting: Path, visit: Visit) -> None:
    for client in (visit(), visit(is_read_only=True)):
        answer = client.post("/waiting/orders/accept", data={"output": "a.txt", "reason": "x"})
        assert answer.status_code in {401, 403, 404, 405}
    assert (waiting / "golden_baselines/orders/a.txt").read_text() == "1\n"


def test_entries_of_a_session_are_listed_and_every_id_leads_on(client: TestClient, services: Services) -> None:
    journal = services.journal
    first = journal.log_intent("one", agent_id="builder", session_key="night 1")
    journal.log_intent("two", agent_id="other", session_key="night 1")
    journal.log_intent("three", agent_id="builder", session_key="night 2")
    told = {"lesson": f"lesson_{'A' * 26}", "files": ["a.py", "b.py"], "nothing": [], "odd": None, "words": HOSTILE}
    hint = {"source": "ci", "pr": 42}
    journal.log_outcome(
        first.id, "success", actions=[told], expectations=[{"description": "merged", "match_hint": hint}]
    )
    page = client.get(f"/journal/{first.id}").text
    for shown in (
        'href="/journal?session=night+1"',
        f'href="/lessons/lesson_{"A" * 26}"',
        "source <bdi>ci</bdi>, pr <bdi>42</bdi>",
        "a.py",
    ):
        assert shown in page
    assert "<script>alert" not in page
    listed = client.get("/journal?session=night+1").text
    assert listed.count('class="row"') == 2
    items = client.get(f"{API}/entries?session=night+1&limit=1").json()
    assert [one["intent"] for one in items["items"]] == ["two"]
    wrong = client.get(f"{API}/entries?session=night+2&cursor={items['next_cursor']}")
    assert wrong.status_code == 400
    signal = journal.add_signal("ci", "neutral", "green", data={"entry": first.id}, session_key="night 1", agent_id="x")
    page = client.get(f"/signals/{signal.id}").text
    for shown in ('href="/journal?session=night+1"', 'href="/journal?agent=', f'href="/journal/{first.id}"'):
        assert shown in page
