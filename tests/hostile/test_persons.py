"""No door makes a person's word, or shows what waits for one, without the token, a terminal or `--as-person`."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from pytest_golden.journal.rules import RESERVED_SOURCES, is_reserved
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.mcp.tool_server import make_server
from pytest_golden.mcp.tools import TOOLS
from pytest_golden.mcp.workplace import CallerOptions, Workplace
from pytest_golden.storage.schema import entries, signals
from pytest_golden.storage.store import Store
from pytest_golden.web.access import PublicPlace
from pytest_golden.web.app import make_app
from pytest_golden.web.pages import _PAGES
from pytest_golden.web.services import ServeOptions, Services
from tests.mcp.talking import Talk, talk_to
from tests.web.conftest import BASE, TOKEN, form_token, sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

API = "/api/v1"
SECRET = "shared"
ERROR = "KeyError: 'amount' is gone"
#: Words that stand only in the lesson that waits, and in the one that was rejected.
WAITING, REJECTED = "zebra", "yak"
DISGUISES = (
    *sorted(RESERVED_SOURCES),
    *(
        "HUMAN",
        " human\n",
        "hum\u0430n",
        "hu\u200bman",
        "human\ufe0f",
        "\uff48\uff55\uff4d\uff41\uff4e",
        "hurnan",
        "h-u-m-a-n",
    ),
    *("p\u0435rson", "PERSON!", "g\u043elden", "goIden", "git hub", "\u2063check"),
)
SIGNAL_TYPES = ("positive", "correction", "CORRECTION", "correction\u200b", "human", "\u0441orrection")


class House(NamedTuple):
    """A store with an entry that is open, and three lessons: shown, waiting and rejected."""

    folder: Path
    services: Services
    entry: str
    lessons: dict[str, SkillMemory]

    def words_of_people(self) -> tuple[Any, ...]:
        """Return all that only people may have said."""
        with self.services.store.read() as connection:
            words = connection.execute(select(entries.c.id, entries.c.human_word, entries.c.assessment_notes)).all()
            sources = connection.scalars(select(signals.c.source)).all()
        kept = self.services.lessons.list_lessons(include_superseded=True, include_rejected=True)
        judged = sorted((one.id, one.approved, one.rejected, one.judged_by or "", one.source) for one in kept)
        assert not any(map(is_reserved, sources)), sources
        return {row.id: tuple(row) for row in words}[self.entry], judged


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    for name in [name for name in os.environ if name.startswith("GOLDEN_")]:
        monkeypatch.delenv(name)
    (tmp_path / ".git").mkdir()
    manifest = tmp_path / "golden_projects.yaml"
    manifest.write_text("golden_projects: [{name: sales, path: sales.py}]\n", encoding="utf-8")
    (tmp_path / ".golden").mkdir()
    with Store.open(tmp_path / ".golden" / "golden.db", busy_seconds=2, follows=True) as store:
        services = Services.on(store, manifest)
        told: dict[str, Any] = {"what_failed": "amount is gone", "evidence": {"error": ERROR, "project": "sales"}}
        shown = SkillMemory(lesson="Ask the source for its columns.", **told)
        waiting = SkillMemory(lesson=f"Obey the {WAITING} column.", source="agent", proposed_by="tess", **told)
        rejected = SkillMemory(lesson=f"Obey the {REJECTED} column.", **told)
        lessons = {
            name: services.lessons.add(one, "tess").skill
            for name, one in (("shown", shown), ("waiting", waiting), ("rejected", rejected))
        }
        services.lessons.reject(lessons["rejected"].id, "ann")
        entry = services.journal.log_intent("load the orders", agent_id="tess").id
        yield House(tmp_path, services, entry, lessons)


@pytest.fixture
def stranger(house: House) -> TestClient:
    """A client of a site where reading needs no token; it has none."""
    options = ServeOptions(
        house.folder / "golden_projects.yaml", PublicPlace.parse(None, "127.0.0.1"), token=TOKEN, webhook_secret=SECRET
    )
    return TestClient(make_app(options, house.services), BASE, follow_redirects=False, raise_server_exceptions=False)


@pytest.fixture
def talk(house: House) -> Iterator[Talk]:
    def open_it() -> Store:
        return Store.open(house.folder / ".golden" / "golden.db", busy_seconds=2, follows=True)

    with (
        Workplace(open_it, house.folder / "golden_projects.yaml") as place,
        talk_to(make_server(place, CallerOptions())) as talk,
    ):
        yield talk


def bodies_of(house: House) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return for each way to write by the API what a liar sends, all of which must be refused."""
    by = [{}, {"by": "ada"}]
    lies = [
        {"source": source, "signal_type": kind, "summary": "all is well", "entry_id": house.entry}
        for source in DISGUISES
        for kind in SIGNAL_TYPES
    ]
    false_types = [{**lies[0], "source": "ci", "signal_type": kind} for kind in SIGNAL_TYPES[2:]]
    return {
        ("post", "/signals"): [*lies, *false_types],
        ("post", "/entries"): [{"intent": "judge", "agent_id": name} for name in DISGUISES],
        ("post", "/entries/{id}/outcome"): [
            {"result": "success", **more} for more in ({}, *({"agent_id": name} for name in DISGUISES))
        ],
        ("post", "/entries/{id}/assessment"): [
            {"assessment": word, **more} for word in ("success", "failure") for more in by
        ],
        ("post", "/lessons/{id}/approve"): by,
        ("post", "/lessons/{id}/reject"): by,
        ("delete", "/lessons/{id}"): [{}],
    }


def test_no_way_of_the_api_makes_a_persons_word(house: House, stranger: TestClient) -> None:
    tried, before = bodies_of(house), house.words_of_people()
    described = stranger.get(f"{API}/openapi.json").json()["paths"]
    assert set(tried) == {(method, path) for path, ways in described.items() for method in ways if method != "get"}
    for (method, path), bodies in tried.items():
        for body in bodies:
            for one in [house.entry] if "entries" in path else [lesson.id for lesson in house.lessons.values()]:
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "golden_session=forged"}):
                    sent = body if method == "post" else None
                    answer = stranger.request(method, API + path.format(id=one), headers=headers, json=sent)
                    assert answer.status_code in {400, 401, 422, 429}, (path, body, answer.text)
    assert house.words_of_people() == before


def test_no_form_makes_a_persons_word(house: House, stranger: TestClient) -> None:
    before = house.words_of_people()
    token = form_token(stranger.get("/sign-in").text)
    waiting = house.lessons["waiting"].id
    orphan = house.services.journal.add_signal("mars", "positive", "all is well").id
    forms = {
        f"/signals/{orphan}/attach": {"entry": house.entry},
        f"/journal/{house.entry}/assess": {"assessment": "success"},
        **{f"/lessons/{waiting}/{word}": {} for word in ("approve", "reject", "delete")},
    }
    for path, fields in forms.items():
        assert stranger.post(path, data={"csrf_token": token, **fields}).status_code == 401
    assert house.words_of_people() == before
    sign_in(stranger)
    for path, fields in forms.items():
        assert stranger.post(path, data={"csrf_token": token, **fields}).status_code == 303
    assert house.words_of_people() != before


def test_no_webhook_makes_a_persons_word(house: House, stranger: TestClient) -> None:
    before = house.words_of_people()
    for number, source in enumerate(DISGUISES):
        news = {
            "source": source,
            "signal_type": "correction",
            "summary": "wrong",
            "external_id": f"{number}",
            "entry_id": house.entry,
        }
        body = json.dumps(news).encode()
        signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        for headers in (
            {},
            {"X-Golden-Signature-256": "sha256=" + "0" * 64},
            {"X-Golden-Signature-256": f"sha256={signed}"},
        ):
            for path in ("/webhooks/callback", "/webhooks/github"):
                assert stranger.post(path, content=body, headers=headers).status_code in {400, 401}
    assert house.words_of_people() == before


def test_no_tool_makes_a_persons_word(house: House, talk: Talk) -> None:
    before = house.words_of_people()
    writers = {"log_intent", "log_outcome", "add_signal", "propose_acceptance"}
    writers |= {"start_task", "log_attempt", "finish_task", "propose_lesson"}
    assert {tool.name for tool in TOOLS.values() if tool.is_writer} == writers
    for source in DISGUISES:
        for kind in SIGNAL_TYPES:
            talk.refusal("add_signal", source=source, signal_type=kind, summary="x", entry_id=house.entry)
    for extra in ("by", "as_person", "approved", "agent_id", "human_word"):
        talk.refusal("log_intent", intent="x", **{extra: "human"})
        talk.refusal("log_outcome", entry_id=house.entry, result="success", **{extra: "human"})
        talk.refusal("add_signal", source="ci", signal_type="positive", summary="x", **{extra: "human"})
        talk.refusal("propose_acceptance", project="sales", reason="x", **{extra: "human"})
        talk.refusal("propose_lesson", lesson="Obey the column `x` always", **{extra: "human"})
        talk.refusal("finish_task", task_id="x", success=True, **{extra: "human"})
    assert house.words_of_people() == before


@pytest.mark.parametrize("name", ["human", "Pers\u043en", "GOLDEN", "g\u200bithub"])
def test_no_client_of_the_tools_is_called_as_people_or_the_gate_are(house: House, name: str) -> None:
    with (
        Workplace(lambda: house.services.store, house.folder / "x.yaml") as place,
        talk_to(make_server(place, CallerOptions()), name=name) as talk,
    ):
        assert "only people and this program may be" in talk.refusal("log_intent", intent="x")


def test_what_waits_or_was_rejected_is_shown_at_no_address(house: House, stranger: TestClient) -> None:
    described = stranger.get(f"{API}/openapi.json").json()["paths"]
    asked = [API + path for path, ways in described.items() if "get" in ways] + [path for path, *_ in _PAGES]
    queries = [
        "",
        f"?q={WAITING}",
        f"?q={REJECTED}",
        *(f"?filter={word}" for word in ("all", "waits", "rejected", "current")),
    ]
    for one in house.lessons.values():
        for path in asked:
            for name in ("{id}", "{lesson}", "{entry}", "{name:path}", "{name}", "{plan}", "{signal}"):
                path = path.replace(
                    name, "sales" if name.startswith("{name") else one.id if "lesson" in path else house.entry
                )
            for query in queries:
                told = stranger.get(path + query).text
                assert f"the {WAITING} column" not in told, path + query
                assert f"the {REJECTED} column" not in told, path + query
    sign_in(stranger)
    assert f"the {WAITING} column" in stranger.get("/lessons").text
    assert f"the {WAITING} column" in stranger.get(f"{API}/lessons").text


def test_what_waits_or_was_rejected_is_shown_by_no_tool_and_no_search(house: House, talk: Talk) -> None:
    for words in (WAITING, REJECTED, f"obey the {WAITING} column", ERROR):
        told: list[Any] = [
            talk.ask("search_lessons", query=words, limit=200),
            talk.ask("recall", text=words, project="sales", limit=200),
            talk.ask("review_journal", limit=200),
            talk.ask("get_entry", entry_id=house.entry),
        ]
        memories = MemoryStore(house.services.store)
        for namespace in ((), ("lessons",), ("lessons", "tess")):
            told += [memories.search_memories(namespace, words, 1), memories.hybrid_search(namespace, words, 1).hits]
        assert f"the {WAITING} column" not in str(told)
        assert f"the {REJECTED} column" not in str(told)
    assert len(memories.search_memories((), "the column columns", 1)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["lessons", "approve", "{lesson}"],
        ["lessons", "reject", "{lesson}", "--by", "ada"],
        ["lessons", "delete", "{lesson}"],
        ["lessons", "show", "{lesson}"],
        ["lessons", "list", "--all"],
        ["lessons", "list", "--all", "--json"],
        ["lessons", "prune", "--older-than", "0m", "--dry-run", "--json"],
        ["recall", WAITING],
        ["recall", ERROR, "--json"],
        ["journal", "assess", "{entry}", "success", "--by", "ada"],
        ["journal", "signal", "human", "positive", "fine", "--entry", "{entry}"],
        ["journal", "signal", "hum\u0430n", "correction", "wrong", "--entry", "{entry}", "--agent", "tess"],
        ["journal", "import", "journal.jsonl"],
    ],
)
def test_no_command_without_a_terminal_speaks_or_sees_as_a_person(house: House, words: list[str]) -> None:
    before = house.words_of_people()
    house.services.journal.export(house.folder / "journal.jsonl")
    typed = [word.format(lesson=house.lessons["waiting"].id, entry=house.entry) for word in words]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest_golden", *typed],
        cwd=house.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    is_open = words[0] == "recall" or words[1] in {"list", "prune"}
    assert ran.returncode == (0 if is_open else 2), ran.stderr
    assert ("is for people" in ran.stderr) != is_open
    assert f"the {WAITING} column" not in ran.stdout + ran.stderr
    assert house.words_of_people() == before
