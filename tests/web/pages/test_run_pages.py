from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_golden.gateway.model import WriteSet
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus
from pytest_golden.report.report_schema import report_schema
from pytest_golden.trajectory.model import Trajectory
from tests.web.pages.test_journal_pages import HOSTILE
from tests.web.recorded import Recorded, record_run

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from pytest_golden.storage.store import Store

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
    assert "The run before" in passed


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


def test_projects_show_how_they_went_lately(client: TestClient, manifest: Path, recorded: Recorded) -> None:
    manifest.write_text("golden_projects:\n  - {name: new, path: new.sh}\n  - {name: prices, path: prices.sh}\n")
    (manifest.parent / "new.sh").write_text("true")
    (manifest.parent / "prices.sh").write_text("true")
    page = client.get("/projects").text
    assert page.index(">new<") < page.index(">prices<") < page.index(">orders<")
    assert "never ran" in page
    assert "declared no more" in page
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
