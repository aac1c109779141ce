from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

import pytest_golden.storage.schema  # noqa: F401
from pytest_golden.cli.main import main
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.mcp.tool_server import make_server
from pytest_golden.mcp.workplace import CallerOptions, Workplace
from pytest_golden.storage.store import Store
from tests.mcp.talking import talk_to
from tests.repository import git
from tests.session.workspace import FAILS, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mcp.conftest import MakeServer
    from tests.mcp.talking import Talk

STEPS = 'echo \'{"name": "load"}\' >> "$GOLDEN_STEPS"\necho \'{"name": "merge", "error": "no column"}\' >> "$GOLDEN_STEPS"\n'
ERROR = "ModuleNotFoundError: No module named 'pandas'"


@pytest.fixture
def recorded(workspace: object, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    """A client of a workspace with one gate run: `broken` has failed, `fine` has passed, `left_out` was never run."""
    monkeypatch.chdir(pytester.path)
    project = Workspace(pytester)
    project.declare({"name": "fine"}, {"name": "broken", "script": STEPS + FAILS}, {"name": "a_left_out"})
    assert project.run_apart("-k", "not left_out").ret == 1
    store_file, manifest = project.path / ".golden" / "golden.db", project.path / "golden_projects.yaml"
    with Workplace(lambda: Store.open(store_file), manifest, is_read_only=True) as place:
        server = make_server(place, CallerOptions())
        with talk_to(server) as talk:
            yield talk


def test_what_the_gate_recorded_is_told(recorded: Talk) -> None:
    projects = recorded.ask("list_golden_projects")["projects"]
    assert [(one["name"], one["last_status"]) for one in projects] == [
        ("fine", "PASSED"),
        ("broken", "FAILED"),
        ("a_left_out", None),
    ]
    assert set(projects[0]) == {"name", "path", "description", "expected_outcome", "last_status"}
    assert projects[0]["expected_outcome"] == "success"

    status = recorded.ask("golden_status")
    assert status["final_status"] == "failed"
    assert status["gate"]["entry_id"].startswith("entry_")
    assert [(one["name"], one["status"]) for one in status["results"]] == [("fine", "PASSED"), ("broken", "FAILED")]
    assert status["results"][1]["reasons"][0]["message"]
    assert not {"steps", "output_colours"} & set(status["results"][1])

    told = recorded.ask("explain_failure", project="broken")
    assert (told["project"], told["status"]) == ("broken", "FAILED")
    assert told["reasons"][0]["kind"] == status["results"][1]["reasons"][0]["kind"]
    assert told["failing_step"]["content"] == "merge"
    assert "it broke" in told["output_tail"]
    assert told["changed_since_last_pass"] is None
    assert told["explanation"].startswith(
        f"broken is FAILED\n{told['reasons'][0]['message']}\nit failed in the step merge"
    )
    assert told["entry_id"] == status["results"][1]["entry_id"]

    assert recorded.ask("explain_failure", project="a_left_out")["status"] is None
    assert "did you mean 'broken'" in recorded.refusal("explain_failure", project="brokn")
    assert "explain_failure takes no argument 'name'" in recorded.refusal("explain_failure", project="fine", name="x")


def test_where_nothing_was_run_the_projects_are_told_all_the_same(talk: Talk) -> None:
    projects = talk.ask("list_golden_projects")["projects"]
    assert [(one["name"], one["last_status"]) for one in projects] == [
        ("second_by_letter", None),
        ("first_by_letter", None),
    ]
    assert projects[1]["expected_outcome"] == "specific_error:no such column"
    assert "pytest --golden" in talk.refusal("golden_status")


def test_without_a_manifest_its_place_is_told(place: Workplace, talk: Talk) -> None:
    place.manifest.unlink()
    assert "golden_projects.yaml: there is no such file" in talk.refusal("list_golden_projects")


@pytest.fixture
def red(workspace: object, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    """A client called `tess` where two outputs of `sales` differ from their baselines."""
    monkeypatch.chdir(pytester.path)
    project = Workspace(pytester)
    project.declare(
        {"name": "sales", "script": "echo 2 > a.txt; echo 2 > b.txt", "outputs": [{"path": "a.txt"}, {"path": "b.txt"}]}
    )
    baselines = pytester.path / "golden_baselines" / "sales"
    baselines.mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (baselines / name).write_text("1\n")
    assert project.run_apart().ret == 1
    store_file = project.path / ".golden" / "golden.db"
    with (
        Workplace(lambda: Store.open(store_file), project.path / "golden_projects.yaml") as place,
        talk_to(make_server(place, CallerOptions())) as talk,
    ):
        yield talk


def test_what_an_agent_proposes_waits_for_a_person(red: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    told = red.ask("propose_acceptance", project="sales", reason="two is right", outputs=["a.txt"])
    assert (told["project"], told["outputs"]) == ("sales", ["a.txt"])
    assert "golden accept --pending" in told["next"]
    assert Path("golden_baselines/sales/a.txt").read_text() == "1\n"
    assert main(["accept", "--json"]) == 0
    (waits,) = json.loads(capsys.readouterr().out)["projects"]
    assert [one["path"] for one in waits["outputs"]] == ["a.txt", "b.txt"]
    assert {**waits["proposal"], "at": None} == {
        "schema_version": 1,
        "at": None,
        "paths": ["a.txt"],
        "reason": "two is right",
        "who": "tess",
    }


def test_a_proposal_that_names_nothing_that_waits_is_refused(red: Talk) -> None:
    assert "did you mean 'sales'" in red.refusal("propose_acceptance", project="sale", reason="right")
    assert "c.txt of sales does not wait" in red.refusal(
        "propose_acceptance", project="sales", reason="right", outputs=["c.txt"]
    )
    assert "say in a sentence" in red.refusal("propose_acceptance", project="sales", reason=" ")
    assert red.ask("propose_acceptance", project="sales", reason="right")["outputs"] == ["a.txt", "b.txt"]


@pytest.fixture
def taught(place: Workplace) -> Workplace:
    lessons = place.services().lessons
    for text, approved in (("Install pandas before the run.", True), ("Pin pandas below 3.", False)):
        skill = SkillMemory(
            lesson=text,
            context="pandas is missing",
            what_failed="the import",
            what_worked="the install",
            why="it is not there",
            approved=approved,
            kind="environmental_constraint" if approved else "correction",
            evidence={"error": ERROR, "project": "first_by_letter"},
        )
        assert lessons.add(skill, "golden").kept
    return place


def test_an_unapproved_lesson_is_neither_found_nor_recalled(taught: Workplace, talk: Talk) -> None:
    found = talk.ask("search_lessons", query="pandas")["lessons"]
    assert [(one["lesson"], one["approved"]) for one in found] == [("Install pandas before the run.", True)]
    told = talk.ask("recall", text=ERROR, project="first_by_letter")
    assert [one["lesson"]["lesson"] for one in told["recalled"]] == ["Install pandas before the run."]
    assert told["recalled"][0]["why"] == "signature"
    assert told["recalled"][0]["score"] == 1.0
    assert taught.services().lessons.settle(told["recall_id"], True) is not None


def test_a_server_that_only_reads_does_not_keep_that_a_lesson_was_shown(taught: Workplace, make: MakeServer) -> None:
    with talk_to(make(is_read_only=True)) as talk:
        told = talk.ask("recall", text=ERROR)
    assert told["recall_id"] is None
    assert len(told["recalled"]) == 1
    shown = taught.services().learned.get_lesson(told["recalled"][0]["lesson"]["id"])
    assert shown.recalls == ()


def test_recall_names_the_files_at_fault(talk: Talk, workspace: Path) -> None:
    folder = workspace
    git(folder, "init", "-q", "-b", "main")
    for name in "abcdef":
        (folder / f"{name}.py").write_text(f"def load_{name}(path):\n    return {name}\n")
    (folder / "orders.py").write_text("def round_price(price):\n    return price\n\ndef parse_price(text): pass\n")
    git(folder, "add", "*.py")
    (first, *_) = talk.ask("recall", text="assert round_price(parse_price(text)) == price")["suspects"]
    assert (first["path"], first["why"]) == ("orders.py", ["its words are the closest to the failure's"])


def test_what_is_not_known_is_no_error(talk: Talk) -> None:
    assert talk.ask("recall", text="KeyError: 'nobody has seen this'") == {
        "recall_id": None,
        "recalled": [],
        "suspects": [],
    }
    assert talk.ask("search_lessons", query="nothing AND (") == {"lessons": []}


def test_a_limit_may_be_written_as_a_whole_number_with_a_fraction_of_nothing(talk: Talk) -> None:
    for intent in ("a", "b", "c"):
        talk.ask("log_intent", intent=intent)
    assert [one["intent"] for one in talk.ask("review_journal", limit=2.0)["entries"]] == ["c", "b"]


def test_cycles_are_listed_and_one_has_what_it_changed(talk: Talk, place: Workplace) -> None:
    journal = place.services().journal
    for name in ("cycle_1", "cycle_2"):
        entry = journal.log_intent(f"improve {name}", "cycle", agent_id="golden", session_key=name)
        journal.log_outcome(entry.id, "success", actions=[{"verdict": "verified"}], agent_id="golden")
    listed = talk.ask("list_cycles", limit=1)["cycles"]
    assert [(one["cycle_id"], one["verdict"]) for one in listed] == [("cycle_2", "verified")]
    (one,) = talk.ask("list_cycles", cycle_id="cycle_1")["cycles"]
    assert (one["task"], one["changes"]) == ("improve cycle_1", "")
    assert "no cycle 'cycle_9'" in talk.refusal("list_cycles", cycle_id="cycle_9")


BAD_QUESTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("recall", {}, "text is missing"),
    ("recall", {"text": " \n"}, "text is blank"),
    ("recall", {"text": "a", "limit": 0}, "limit must be a whole number from 1 to 200, not 0"),
    ("recall", {"text": "a", "limit": 2.5}, "limit must be a whole number from 1 to 200, not 2.5"),
    ("recall", {"text": "a", "limit": 1e300}, "limit must be a whole number from 1 to 200, not 1000"),
    ("recall", {"text": "a", "project": 5}, "project must be a text, not 5"),
    ("recall", {"text": "a\0"}, "NUL"),
    ("search_lessons", {"query": ""}, "query is blank"),
    ("search_lessons", {"query": "a", "limit": 201}, "from 1 to 200, not 201"),
    ("search_lessons", {"query": "a", "limit": "5"}, "from 1 to 200, not '5'"),
    ("search_lessons", {"query": "a", "limit": 1.5}, "from 1 to 200, not 1.5"),
    ("search_lessons", {"query": "a", "limit": True}, "from 1 to 200, not True"),
    ("get_entry", {"entry_id": " "}, "entry_id is blank"),
    ("get_entry", {"entry_id": "entry_x"}, "the journal has no entry 'entry_x'"),
    ("review_journal", {"limit": 10**30}, "from 1 to 200"),
    ("review_journal", {"filter": "bad"}, "give one of all, open, success, failure, partial, expired"),
    ("review_journal", {"filter": None}, "filter must be a text, not None"),
    (
        "review_journal",
        {"agent": "max"},
        "takes no argument 'agent'; its arguments are: filter, intent_type, limit",
    ),
    ("list_golden_projects", {"limit": 5}, "takes no argument 'limit'; its arguments are: none"),
    ("golden_status", {"run": "x"}, "takes no argument 'run'"),
    ("explain_failure", {}, "project is missing"),
    ("explain_failure", {"project": "\0"}, "NUL"),
    ("explain_failure", {"project": " "}, "project is blank"),
]


def test_bad_arguments_are_refused_in_one_clear_sentence(talk: Talk) -> None:
    for tool, arguments, told in BAD_QUESTIONS:
        assert told in talk.short_refusal(tool, **arguments)


def test_a_review_is_narrowed_and_newest_first(talk: Talk) -> None:
    for number in range(3):
        entry_id = talk.ask("log_intent", intent=f"work {number}", intent_type="fix" if number else "deploy")[
            "entry_id"
        ]
    talk.ask("log_outcome", entry_id=entry_id, result="failure", expectations=[])
    assert [one["intent"] for one in talk.ask("review_journal", limit=2)["entries"]] == ["work 2", "work 1"]
    assert [one["intent"] for one in talk.ask("review_journal", intent_type="deploy")["entries"]] == ["work 0"]
    assert [one["intent"] for one in talk.ask("review_journal", filter="open")["entries"]] == ["work 1", "work 0"]


def test_what_waits_for_a_person_is_a_resource(talk: Talk) -> None:
    assert talk.resources() == ["golden://inbox"]
    assert talk.read("golden://inbox") == {"counts": {}, "items": []}
    entry_id = talk.ask("log_intent", intent="deploy")["entry_id"]
    talk.ask("log_outcome", entry_id=entry_id, result="failure", notes="\x1b[31mno disk")
    talk.ask("propose_lesson", lesson="Wash the fruit before it is cut", error="KiwiError: dirty", why="it was dirty")
    told = talk.read("golden://inbox")
    assert told["counts"] == {"failure": 1, "lesson": 1}
    assert (told["items"][0]["id"], "no disk" in told["items"][0]["detail"]) == (entry_id, True)
    assert "Wash the fruit" not in str(told)
    with pytest.raises(MCPError, match="there is no resource 'golden://other'; there is golden://inbox"):
        talk.read("golden://other")


def test_a_mebibyte_comes_back_cut_and_marked(talk: Talk) -> None:
    talk.ask("log_intent", intent="x" * (1 << 20))
    (entry,) = talk.ask("review_journal")["entries"]
    assert len(entry["intent"]) <= 4096
    assert entry["intent"].endswith("more characters]")
    assert talk.ask("recall", text="E" * (1 << 20))["recalled"] == []


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J\x1b]0;owned\x07",
        "\u202egnp.exe\u2066",
        "<script>alert(1)</script>",
        "'; DROP TABLE entries;--",
        "${jndi:ldap://x}",
    ],
)
def test_hostile_texts_come_back_as_they_are_and_as_escapes(talk: Talk, hostile: str) -> None:
    talk.ask("log_intent", intent=hostile)
    answer = talk.call("review_journal")
    assert answer.structured_content is not None
    assert answer.structured_content["entries"][0]["intent"] == hostile
    assert "\x1b" not in str(answer.content[0])
    assert "\u202e" not in answer.content[0].text  # type: ignore[union-attr]


def begin(talk: Talk, intent: str = "deploy the new pipeline") -> str:
    entry_id: str = talk.ask("log_intent", intent=intent)["entry_id"]
    return entry_id


def test_an_intent_becomes_an_entry_of_the_client_with_all_that_it_says(talk: Talk, place: Workplace) -> None:
    parent = begin(talk, "the whole")
    told = talk.ask("log_intent", intent="a part", intent_type="deploy", job_id="job-7", parent_id=parent)

    assert set(told) == {"entry_id", "assessment"}
    assert told["assessment"] == "open"
    kept = place.services().journal.get(told["entry_id"])
    assert (kept.intent, kept.intent_type, kept.job_id, kept.parent_id) == ("a part", "deploy", "job-7", parent)
    assert kept.agent_id == "tess"


def test_an_outcome_gives_its_expectations_and_a_signal_answers_them(talk: Talk) -> None:
    entry_id = begin(talk)
    told = talk.ask(
        "log_outcome",
        entry_id=entry_id,
        result="success",
        notes="it is out",
        actions=["built", {"command": "deploy"}],
        expectations=[
            {"description": "CI is green", "match_hint": {"source": "ci", "sha": "abc"}, "expires_minutes": 60},
            {"description": "nobody complains", "polarity": "negative", "expires_minutes": 60, "critical": True},
        ],
    )
    assert set(told) == {"entry_id", "assessment", "expectations"}
    assert [one["status"] for one in told["expectations"]] == ["open", "open"]

    signal = talk.ask("add_signal", source="ci", signal_type="positive", summary="all green", data={"sha": "abc"})
    assert signal["entry_id"] == entry_id
    assert signal["expectation_id"] == told["expectations"][0]["id"]
    assert signal["routed_by"] == "match_hint"
    assert signal["id"].startswith("signal_")


def test_the_same_external_id_counts_once(talk: Talk) -> None:
    said = {"source": "ci", "signal_type": "neutral", "summary": "built", "external_id": "build-1"}
    assert talk.ask("add_signal", **said)["id"] == talk.ask("add_signal", **said)["id"]


def test_a_signal_of_the_session_finds_the_sessions_entry(make: MakeServer) -> None:
    server = make()
    with talk_to(server) as one, talk_to(server) as other:
        entry_id = begin(one)
        one.ask("log_outcome", entry_id=entry_id, result="success", expectations=[{"description": "it holds"}])
        elsewhere = begin(other)
        other.ask("log_outcome", entry_id=elsewhere, result="success", expectations=[{"description": "it holds"}])

        told = one.ask("add_signal", source="monitor", signal_type="positive", summary="it holds")
    assert (told["entry_id"], told["routed_by"]) == (entry_id, "session_key")


@pytest.mark.parametrize("source", ["human", "HUMAN", " golden ", "github", "system", "check", "hu\u200bman"])
def test_no_agent_speaks_for_people_or_the_gate(talk: Talk, source: str) -> None:
    entry_id = begin(talk)
    told = talk.refusal("add_signal", source=source, signal_type="positive", summary="fine", entry_id=entry_id)
    assert "reserved" in told


def test_no_agent_touches_anothers_entry(make: MakeServer) -> None:
    server = make()
    with talk_to(server, name="tess") as tess, talk_to(server, name="max") as other:
        entry_id = begin(tess)
        assert "another agent's" in other.refusal("log_outcome", entry_id=entry_id, result="success")
        assert "another agent's" in other.refusal(
            "add_signal", source="ci", signal_type="positive", summary="fine", entry_id=entry_id
        )
        assert other.ask("review_journal")["entries"] == []


BAD_WRITES: list[tuple[str, dict[str, Any], str]] = [
    ("log_intent", {}, "intent is missing; log_intent needs it"),
    ("log_intent", {"intent": ""}, "intent"),
    ("log_intent", {"intent": 5}, "intent must be a text, not 5"),
    ("log_intent", {"intent": None}, "intent must be a text, not None"),
    ("log_intent", {"intent": ["a"]}, "intent must be a text, not a list"),
    ("log_intent", {"intent": "a\0b"}, "intent holds a NUL character; remove it"),
    ("log_intent", {"intent": "a", "intnt_type": "b"}, "did you mean 'intent_type'?"),
    ("log_intent", {"intent": "a", "agent_id": "golden"}, "takes no argument 'agent_id'"),
    ("log_intent", {"intent": "a", "session_key": "x"}, "takes no argument 'session_key'"),
    ("log_intent", {"intent": "a", "parent_id": "entry_none"}, "no entry 'entry_none'"),
    ("log_intent", {"intent": "x" * (1 << 20) + "y"}, "1,048,577 characters"),
    ("log_outcome", {"result": "success"}, "entry_id is missing"),
    ("log_outcome", {"entry_id": "entry_none", "result": "success"}, "entry_none"),
    ("log_outcome", {"entry_id": "e", "result": "good"}, "give one of success, failure, partial, unknown"),
    ("log_outcome", {"entry_id": "e", "result": "success", "actions": "built"}, "actions must be a list"),
    ("log_outcome", {"entry_id": "e", "result": "success", "expectations": {}}, "expectations must be a list"),
    ("log_outcome", {"entry_id": "e", "result": "success", "expectations": [{"desc": 1}]}, "unknown key 'desc'"),
    ("log_outcome", {"entry_id": "e", "result": "success", "expectations": ["x"]}, "expectations[0]"),
    ("add_signal", {"source": "ci"}, "signal_type is missing"),
    ("add_signal", {"source": "ci", "signal_type": "good", "summary": "s"}, "give one of positive, negative"),
    (
        "add_signal",
        {"source": "ci", "signal_type": "neutral", "summary": "s", "data": []},
        "data must be an object",
    ),
    (
        "add_signal",
        {"source": "ci", "signal_type": "neutral", "summary": "s", "data": {"a": ["\0"]}},
        "data holds a NUL",
    ),
]


def test_a_secret_is_blotted_out(talk: Talk) -> None:
    begin(talk, "use token=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB for it")
    (entry,) = talk.ask("review_journal")["entries"]
    assert "ghp_0123" not in entry["intent"]
    assert "REDACTED" in entry["intent"]


def test_null_says_nothing(talk: Talk) -> None:
    talk.ask("log_intent", intent="a", intent_type=None, job_id=None, parent_id=None)


def test_a_task_gives_hints_and_leaves_a_lesson_that_waits(talk: Talk) -> None:
    started = talk.ask("start_task", description="Fix the orders import", files=["src/orders.py"], tools=["bash"])
    assert started["hints"] == []
    task = started["task_id"]
    error = "KeyError: 'customer_id'"
    assert talk.ask("log_attempt", task_id=task, tool="bash", arguments={"command": "pytest"}, error=error) == {
        "hints": []
    }
    talk.ask("log_attempt", task_id=task, tool="edit", arguments={"path": "src/a.py", "content": "b = 1"}, result="ok")
    talk.ask("log_attempt", task_id=task, tool="bash", arguments={"command": "pytest"}, result="1 passed")
    assert talk.ask("finish_task", task_id=task, success=True, note="done") == {"kept": True}
    assert "there is no open task" in talk.refusal("finish_task", task_id=task, success=True)

    (plan,) = talk.ask("get_plan", task="the import of orders")["plans"]
    assert plan["tools_sequence"] == ["bash", "edit", "bash"]
    (hint,) = talk.ask("get_hints", task="repair the orders import")["hints"]
    assert (hint["kind"], bool(hint["evidence"]["by"])) == ("plan", True)
    # What an agent says of itself is shown to nobody before a person has read it.
    assert talk.ask("get_hints", error=error) == {"hints": []}
    again = talk.ask("start_task", description="The import of orders fails")
    assert [one["kind"] for one in again["hints"]] == ["plan"]
    assert talk.ask("log_attempt", task_id=again["task_id"], tool="bash", error=error) == {"hints": []}
    assert talk.ask("finish_task", task_id=again["task_id"], success=False) == {"kept": True}
    told = talk.ask("get_plan", task="import the orders")
    assert told["warnings"] == [f"Sequential execution: bash failed: {error}"]


def test_a_proposed_lesson_waits_for_a_person(talk: Talk) -> None:
    error = "KeyError: 'customer_id'"
    told = talk.ask("propose_lesson", lesson="Rename the column `customer_id` before `load` is called", error=error)
    assert told["kept"] is True
    assert f"golden lessons approve {told['lesson_id']}" in told["next"]
    assert talk.ask("get_hints", error=error) == {"hints": []}
    assert talk.ask("search_lessons", query="customer_id") == {"lessons": []}
    refused = talk.ask("propose_lesson", lesson="Be careful")
    assert (refused["kept"], refused["lesson_id"], refused["next"]) == (False, None, None)
    assert refused["reason"]


def test_a_task_is_its_own_agents_alone(place: Workplace) -> None:
    with talk_to(make_server(place, CallerOptions(agent="one"))) as talk:
        task = talk.ask("start_task", description="Load the orders")["task_id"]
        assert "there is no open task" in talk.refusal("log_attempt", task_id=f"{task}0", tool="a")
        assert "description is blank" in talk.refusal("start_task", description=" ")
        assert "task, error and files are blank" in talk.refusal("get_hints", task=" ")
    with talk_to(make_server(place, CallerOptions(agent="two"))) as talk:
        assert "there is no open task" in talk.refusal("finish_task", task_id=task, success=True)


def test_the_oldest_open_task_gives_way(talk: Talk) -> None:
    tasks = [talk.ask("start_task", description=f"task {number}")["task_id"] for number in range(201)]
    assert "there is no open task" in talk.refusal("finish_task", task_id=tasks[0], success=True)
    assert talk.ask("finish_task", task_id=tasks[1], success=True) == {"kept": True}


@pytest.mark.parametrize("is_read_only", [True, False])
def test_only_a_place_that_may_write_uses_an_embedding_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_read_only: bool
) -> None:
    monkeypatch.setenv("GOLDEN_EMBEDDING_MODEL", "model2vec:nowhere")
    with (
        Workplace(
            lambda: Store.open(tmp_path / "golden.db"), tmp_path / "golden_projects.yaml", is_read_only=is_read_only
        ) as place,
        talk_to(make_server(place, CallerOptions())) as talk,
    ):
        assert talk.ask("get_hints", task="Load the orders", language="sql") == {"hints": []}
    assert ("nowhere" in caplog.text) is not is_read_only
