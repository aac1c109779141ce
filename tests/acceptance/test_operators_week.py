"""One week of an operator whose three agents work at night: 30 intents, and every question answered from one page, command and tool.

The week is lived through the journal, with signed deliveries of GitHub, a `gh` that is a script, a real repository with a cycle in it, two agents
that are killed, and a clock that is put back. Then the operator comes in.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

pytest.importorskip("mcp")
from pytest_golden.cli.main import main
from pytest_golden.journal.outside.human import human_signal
from pytest_golden.journal.service import Journal
from pytest_golden.mcp.tool_server import make_server
from pytest_golden.mcp.workplace import CallerOptions, Workplace
from pytest_golden.storage.store import Store
from pytest_golden.web.access import PublicPlace
from pytest_golden.web.app import make_app
from pytest_golden.web.services import ServeOptions, Services
from tests.journal.conftest import Clock
from tests.journal.outside import github_payloads as github
from tests.journal.outside.fake_github import FakeGitHub, put
from tests.mcp.talking import talk_to
from tests.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_golden.journal.model import JournalEntry

TOKEN = "the operator's own long token"
KILLED = """
import os, signal, sys
from datetime import datetime
from pytest_golden import Journal
from pytest_golden.storage.store import Store
journal = Journal(Store.open(sys.argv[1]), clock=lambda: datetime.fromisoformat(sys.argv[2]))
journal.log_intent(sys.argv[3], agent_id="fixer")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Week:
    """What the agents did, by the answers that the operator is to find."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / ".golden" / "golden.db"
        self.place.parent.mkdir()
        self.clock = Clock()
        self.clock.now = datetime.now(UTC) - timedelta(days=6)
        self.store = Store.open(self.place)
        self.journal = Journal(self.store, clock=self.clock)
        self.why: dict[str, str] = {}
        self.stands: dict[str, str] = {}

    def log(self, agent: str, intent: str, result: str = "success", **more: Any) -> JournalEntry:
        self.clock.move(minutes=20)
        begun = self.journal.log_intent(intent, agent_id=agent, session_key=more.pop("session", None))
        expected = more.pop("expected", None)
        wishes = [] if expected is None else [{"description": f"{intent}: accepted", **expected}]
        return self.journal.log_outcome(begun.id, result, more.pop("notes", None), expectations=wishes)

    def expect(self, entry: JournalEntry, stands: str, why: str = "") -> None:
        self.stands[entry.id] = stands
        if why:
            self.why[entry.id] = why

    def deliver(self, event: str, payload: dict[str, Any]) -> None:
        self.clock.move(minutes=5)
        self.journal.add_signal(**github.heard(event, payload))


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Week]:
    for name in [name for name in os.environ if name.startswith(("GOLDEN_", "GITHUB_", "GH_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    repository = Repository(tmp_path)
    repository.write(golden_projects__yaml="version: 1\ngolden_projects:\n  - {name: works, path: run.sh}\n")
    repository.write(run__sh=". ./lib.sh\n", lib__sh="exit 0\n", __gitignore=".golden\n")
    repository.commit("base")
    one = Week(tmp_path)
    yield one
    one.store.close()


def live(week: Week) -> None:
    """Let the agents work for five nights."""
    # The builder opens ten pull requests: six are merged, one is closed, one has a red check, about one a member asks, one is forgotten.
    requests = {
        number: week.log("builder", f"open #{number}", expected={"match_hint": {"source": "github", "pr": number}})
        for number in range(1, 11)
    }
    for number in range(1, 7):
        week.deliver("pull_request", github.closed(merged=True, number=number, id=number))
        week.expect(requests[number], "success")
    week.deliver("pull_request", github.closed(merged=False, number=7, id=7))
    week.expect(requests[7], "failure", "unmet: open #7: accepted: pull request closed without merging")
    week.expect(requests[8], "failure", "unmet: open #8: accepted: check unit tests: failure")
    asked = github.comment("What happens to refunds?")
    asked["issue"]["number"] = 9
    week.deliver("issue_comment", asked)
    week.expect(requests[9], "open")
    week.expect(requests[10], "open")
    # The clock of the machine is put back by two hours, in the middle of an entry.
    begun = week.journal.log_intent("mend the import", agent_id="fixer", session_key="chat")
    week.clock.move(hours=-2)
    week.expect(week.journal.log_outcome(begun.id, "success"), "failure", "You forgot the refunds")
    word = human_signal("You forgot the refunds, they are negative")
    assert word is not None
    week.journal.add_signal(**word, session_key="chat")
    for number in range(4):
        week.expect(week.log("fixer", f"mend bug {number}"), "success")
    for number in range(3):
        failed = week.log("fixer", f"mend bug {number + 4}", "failure", notes=f"tests/test_{number}.py still fails")
        week.expect(failed, "failure", f"the agent reported failure: tests/test_{number}.py still fails")
    for number in range(2):
        at = (week.clock.now + timedelta(minutes=number)).isoformat()
        command = [sys.executable, "-c", KILLED, str(week.place), at, f"mend bug {number + 7}"]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    # The reporter sends ten reports: for five somebody answers, two are never read, one is read as wrong, two wait.
    reports = [
        week.log(
            "reporter",
            f"send report {number}",
            expected={
                "match_hint": {"source": "mail", "report": number},
                "expires_minutes": 600 if number in {5, 6} else 60 * 24 * 30,
            },
        )
        for number in range(10)
    ]
    for number, entry in enumerate(reports):
        if number < 5 or number == 7:
            kind = "negative" if number == 7 else "positive"
            week.journal.add_signal("mail", kind, f"answer to {number}", data={"report": number}, agent_id="reporter")
        week.expect(entry, "expired" if number in {5, 6} else "success" if number < 5 else "open")
    week.expect(reports[7], "failure", "unmet: send report 7: accepted: answer to 7")
    week.clock.move(hours=11)
    week.journal.sweep()
    week.journal.add_signal("monitor", "negative", "the shop is slow", data={"host": "shop"})


def ask_github(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the operator's cron job ask GitHub, through a program `gh`, for what no webhook has brought."""
    with FakeGitHub() as fake:
        Thread(target=fake.serve_forever, daemon=True).start()
        put(fake, 8)
        whole = "repos/octo/shop"
        for path in ("pulls/8/reviews", "pulls/8/comments", "issues/8/comments"):
            fake.pages[f"{whole}/{path}"] = []
        fake.pages[f"{whole}/commits/{github.SHA}/status"] = {"statuses": []}
        program = week.folder / "bin" / "gh"
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\nshift 4\n[ "$1" = --header ] && {{ set -- "$3" "$2"; }}\nexec curl -s -i ${{2:+-H "$2"}} "{fake.url}/$1"\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        assert main(["journal", "sync", "github", "--repo", "octo/shop", "--as-person"]) == 0
        fake.shutdown()


def run_cycle() -> None:
    task = ("cycle", "--improve", "echo '# faster' >> lib.sh", "--review", "echo looks faster", "--task", "Be faster")
    assert main([*task, "--max-improvements", "1"]) == 0


def test_the_operator_finds_every_answer(
    week: Week, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    live(week)
    ask_github(week, monkeypatch)
    run_cycle()
    capsys.readouterr()

    def ask(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    site = TestClient(
        make_app(
            ServeOptions(week.folder / "golden_projects.yaml", PublicPlace.parse(None, "127.0.0.1"), token=TOKEN),
            Services.on(week.store, week.folder / "golden_projects.yaml"),
        ),
        "http://127.0.0.1:8000",
        follow_redirects=False,
    )
    assert site.get("/sign-in", params={"token": TOKEN}).status_code == 303

    # What was tried? One command has all of it, and each entry stands as it should.
    tried = ask("journal", "review", "--limit", "100")["entries"]
    stands = {one["id"]: one["assessment"] for one in tried if one["agent_id"] != "golden"}
    assert len(stands) == 30
    left = [one for one in tried if one["id"] not in week.stands and one["agent_id"] == "fixer"]
    assert [one["assessment"] for one in left] == ["open", "open"]
    assert {entry: stands[entry] for entry in week.stands} == week.stands
    page = site.get("/journal?limit=100").text
    assert all(f'href="/journal/{entry}"' in page for entry in week.stands)

    # What came of it?
    by_agent = {name: ask("journal", "summary", "--agent", name) for name in ("builder", "fixer", "reporter")}
    counted = {
        name: (one["n"], round(one["success_rate"], 2), one["open"], one["expired"]) for name, one in by_agent.items()
    }
    assert counted == {"builder": (8, 0.75, 2, 0), "fixer": (8, 0.5, 2, 0), "reporter": (6, 0.83, 2, 2)}
    for name, one in by_agent.items():
        assert f'<span class="figure">{one["n"]}</span> assessed' in site.get(f"/summary?agent={name}").text
    with (
        Workplace(lambda: Store.open(week.place), week.folder / "golden_projects.yaml") as place,
        talk_to(make_server(place, CallerOptions(agent="fixer"))) as talk,
    ):
        own = talk.ask("review_journal", limit=50)["entries"]
        assert len(own) == 10
        # Why? The command, the page and the tool say the same, at one call and one click from the list.
        for entry, why in week.why.items():
            main(["journal", "show", entry])
            assert why in " ".join(capsys.readouterr().out.split())
            assert why in site.get(f"/journal/{entry}").text.replace("&#39;", "'")
            assert why in str(talk.ask("get_entry", entry_id=entry)["assessment_notes"])
        waits = talk.read("golden://inbox")

    # What waits for me? The same by all three, each with its one action.
    inbox = ask("inbox")
    assert inbox["counts"] == {"cycle": 1, "failure": 6, "words": 1, "signal": 1, "intent": 2}
    assert waits["counts"] == inbox["counts"] == site.get("/api/v1/inbox").json()["counts"]
    waiting = site.get("/waiting").text
    for item in inbox["items"]:
        (link,) = re.findall(rf'href="(/[a-z]+/{re.escape(item["id"])})"', waiting)
        answered = site.get(link)
        assert answered.status_code == 200
        wanted = {
            "cycle": "git merge golden/cycle-",
            "words": "They approve",
            "signal": "Attach",
            "failure": "Your judgement",
            "intent": "Your judgement",
        }
        assert wanted[item["kind"]] in answered.text
        assert item["action"]

    # Two clicks settle each: the list, the entry's form. Afterwards nothing of the journal waits.
    settle(week, inbox["items"])
    capsys.readouterr()
    # What was attached made a failure of an entry that had been a success: somebody is to see that too.
    assert ask("inbox")["counts"] == {"failure": 1}


def settle(week: Week, items: list[dict[str, Any]]) -> None:
    """Do for each item what its action says."""
    for item in items:
        if item["kind"] in {"failure", "intent"}:
            assert main(["journal", "assess", item["id"], "failure", "--notes", "seen", "--as-person"]) == 0
        elif item["kind"] == "signal":
            attached = main(["journal", "attach", item["id"], next(iter(week.stands)), "--as-person"])
            assert attached == 0
        elif item["kind"] == "words":
            assert (
                main(
                    [
                        "journal",
                        "assess",
                        find_entry(item["action"]),
                        "success",
                        "--notes",
                        "they are kept",
                        "--as-person",
                    ]
                )
                == 0
            )
        elif item["kind"] == "cycle":
            subprocess.run(item["action"].split(), cwd=week.folder, check=True, capture_output=True)


def find_entry(action: str) -> str:
    (entry,) = re.findall(r"entry_\w+", action)
    return str(entry)
