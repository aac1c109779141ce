from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.web.conftest import form_token

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.web.services import Services
    from tests.web.conftest import Visit

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
    assert "Nothing is waited for" in client.get("/expectations").text
    assert "No news yet" in client.get("/signals").text
    assert "Nothing to sum up" in client.get("/summary").text
    assert "Nothing fits" in client.get("/journal?agent=nobody").text


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
    assert "only shows" in page


@pytest.mark.parametrize(
    "path", ["/journal/nothing", "/signals/nothing", "/journal/%00", "/signals/%00", "/journal/" + "x" * 9000]
)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
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
    assert "No rule found it a place" in client.get(f"/signals/{orphan.id}").text
    listed = client.get("/signals?routed_by=orphan").text
    assert "unheard of" in listed
    assert "all quiet" not in listed


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
