from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pytest_golden.clock import utc_now
from pytest_golden.errors import PermissionDeniedError, SettingsError, StorageError
from pytest_golden.gateway.model import AgentRole, Ending, Permissions, PipelineOutcome
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.journal.checks.heartbeat import Heartbeat, record_answer, run_command
from pytest_golden.journal.checks.rules import Answer, unable
from pytest_golden.journal.checks.store import claim_check, list_due
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.outside.github_sync import find_state
from pytest_golden.journal.service import Journal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from tests.journal.checks.conftest import expect
from tests.journal.conftest import Clock
from tests.journal.outside import github_payloads as github
from tests.journal.outside.fake_github import FakeGitHub, put
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.journal.checks.store import Claim
    from pytest_golden.journal.store import SweptStore
    from pytest_golden.manifest.model import GoldenProjectConfig
    from tests.journal.checks.conftest import Site

COMMAND = {"command": "true"}


@pytest.fixture
def fake_github() -> Iterator[FakeGitHub]:
    with FakeGitHub.answering() as fake:
        yield fake


class Plugged:
    """A gateway that gives what it is told, and counts."""

    def __init__(self, gives: Callable[[], PipelineOutcome]) -> None:
        self.gives = gives
        self.count = 0
        self.has_network = False

    def run_pipeline(
        self, project: GoldenProjectConfig, *, role: AgentRole, permissions: Permissions
    ) -> PipelineOutcome:
        assert (role, permissions) == ("environment", Permissions(can_execute_tasks=True, can_edit_source=False))
        assert project.network is self.has_network
        self.count += 1
        return self.gives()


def end_with(code: int) -> Callable[[], PipelineOutcome]:
    return lambda: PipelineOutcome(Ending.EXITED, code)


def test_a_beat_sweeps_checks_and_routes_again(journal: Journal, store: Store, clock: Clock, site: Site) -> None:
    site.says({"state": "done"})
    over = expect(journal, {"after": 1, **COMMAND}, expires_minutes=2)
    clock.move(minutes=2)
    entry = expect(
        journal, {"url": site.url, "path": "state", "equals": "done"}, {"url": f"{site.url}/x", "status": 404}
    )
    waiting = journal.log_intent("wait", agent_id="builder")
    journal.log_outcome(waiting.id, "success", expectations=[{"description": "d", "match_hint": {"pr": 42}}])
    orphan = journal.add_signal("ci", "positive", "green", data={"pr": 41})
    with store.write() as connection:
        connection.execute(text("""UPDATE signals SET data = '{"pr": 42}' WHERE id = :id"""), {"id": orphan.id})
    clock.move(minutes=1)
    report = Heartbeat(journal).beat()
    assert (report.resolved, report.rerouted, report.left) == (0, 1, 0)
    assert [(one.signal_type, one.tries, one.next_at) for one in report.checks] == [
        ("positive", 1, None),
        ("negative", 1, None),
    ]
    assert report.checks[0].summary == "the page says: state is 'done'"
    assert [one.status for one in journal.get(entry.id).expectations] == ["met", "unmet"]
    assert journal.get(over.id).assessment == "expired"
    told = report.to_dict()
    assert {one["signal_id"] for one in told["checks"]} == {one.id for one in journal.get(entry.id).signals}
    assert told["checks"][0]["signal_type"] == "positive"
    again = Heartbeat(journal).beat()
    assert again.to_dict() == {"resolved": 0, "checks": [], "rerouted": 0, "left": 0}
    assert len(site.asked) == 2


def test_a_beat_resolves_what_is_over(journal: Journal, clock: Clock) -> None:
    expect(journal, COMMAND, expires_minutes=2)
    clock.move(minutes=2)
    assert Heartbeat(journal).beat().resolved == 1


def test_commands_are_run_by_the_gateway_of_the_workspace(journal: Journal, clock: Clock, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "data.txt").write_text("42\n")
    with ExecutionGateway(workspace) as gateway:
        require(gateway.describe().seal == "namespaces", "user namespaces: commands are run without a network")
    wanted = ["grep -q 42 data.txt", ["sh", "-c", "echo x > new.txt; echo bad; exit 2"], "nosuchprogram"]
    entry = expect(journal, *({"command": one} for one in wanted))
    clock.move(minutes=1)
    report = Heartbeat(journal, workspace_root=workspace).beat()
    assert [one.signal_type for one in report.checks] == ["positive", "negative", "neutral"]
    assert [one.status for one in journal.get(entry.id).expectations] == ["met", "unmet", "open"]
    assert report.checks[1].summary == "the check's command failed (exit code 2): bad"
    assert [path.name for path in workspace.iterdir()] == ["data.txt"]


def test_a_workspace_that_is_gone_is_no_answer(journal: Journal, clock: Clock, tmp_path: Path) -> None:
    expect(journal, COMMAND)
    clock.move(minutes=1)
    [told] = Heartbeat(journal, workspace_root=tmp_path / "gone").beat().checks
    assert told.signal_type == "neutral"


def test_a_view_that_there_is_not_is_told_and_leaves_the_check_due(journal: Journal, clock: Clock) -> None:
    expect(journal, COMMAND)
    clock.move(minutes=1)
    with pytest.raises(SettingsError, match="unknown view 'glass'"):
        Heartbeat(journal, view="glass").beat()
    [told] = Heartbeat(journal, gateway=Plugged(end_with(0))).beat().checks
    assert told.tries == 1


def test_pages_are_asked_some_at_once(journal: Journal, clock: Clock, site: Site) -> None:
    together = threading.Barrier(4)
    site.before = lambda: together.wait(60)
    expect(journal, *[{"url": site.url}] * 8)
    clock.move(minutes=1)
    report = Heartbeat(journal, timeout_seconds=60).beat()
    assert [one.signal_type for one in report.checks] == ["positive"] * 8


def test_a_check_that_cannot_be_run_is_tried_again_later_and_later(journal: Journal, clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    entry = expect(journal, {"url": f"http://127.0.0.1:{port}/"}, expires_minutes=200)
    for tries, minutes in enumerate([1, 1, 2, 4, 8, 16, 32, 60, 60], 1):
        clock.move(minutes=minutes, milliseconds=-1)
        assert Heartbeat(journal).beat().checks == ()
        clock.move(milliseconds=1)
        [told] = Heartbeat(journal).beat().checks
        assert (told.signal_type, told.tries, told.next_at is None) == ("neutral", tries, tries == 9)
    clock.move(minutes=60)
    assert Heartbeat(journal).beat().checks == ()
    kept = journal.get(entry.id)
    assert kept.assessment == "expired"
    assert [one.data["try"] for one in kept.signals if one.source == "check"] == list(range(1, 10))
    assert {one.signal_type for one in kept.signals} == {"neutral"}


def test_a_check_that_can_be_run_at_last_answers(journal: Journal, clock: Clock, site: Site) -> None:
    site.body = b"<html>"
    entry = expect(journal, {"url": site.url, "path": "ok"})
    clock.move(minutes=1)
    [first] = Heartbeat(journal).beat().checks
    assert (first.signal_type, first.next_at) == ("neutral", clock.now + timedelta(minutes=1))
    assert first.to_dict()["next_at"] == "2026-03-01T12:02:00.000000Z"
    site.says({"ok": True})
    clock.move(minutes=1)
    [second] = Heartbeat(journal).beat().checks
    assert (second.signal_type, second.tries) == ("positive", 2)
    assert journal.get(entry.id).assessment == "success"


def test_what_is_pending_is_asked_again_until_its_time_is_over(journal: Journal, clock: Clock, site: Site) -> None:
    waiting = {"url": site.url, "path": "state", "equals": "done", "pending": ["queued"], "until": "5m"}
    entries = [expect(journal, waiting, expires_minutes=60) for _ in range(2)]
    site.says({"state": "queued"})
    clock.move(minutes=1)
    assert {one.next_at for one in Heartbeat(journal).beat().checks} == {clock.now + timedelta(minutes=1)}
    clock.move(minutes=1)
    first, second = Heartbeat(journal).beat().checks
    assert (first.summary, first.tries) == ("not yet: the page says: state is 'queued'", 2)
    # The pauses grow, but the last try is when nothing is waited for any more.
    assert first.next_at == second.next_at == clock.now + timedelta(minutes=2)
    clock.move(minutes=2)
    assert {one.next_at for one in Heartbeat(journal).beat().checks} == {clock.now + timedelta(minutes=1)}
    clock.move(minutes=1)
    last = Heartbeat(journal).beat().checks
    assert {(one.signal_type, one.summary, one.next_at) for one in last} == {
        ("negative", "still not yet: the page says: state is 'queued'", None)
    }
    assert {journal.get(entry.id).assessment for entry in entries} == {"failure"}


def test_a_check_asks_github(
    journal: Journal, clock: Clock, fake_github: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(fake_github)
    request = fake_github.pages["repos/octo/shop/pulls/42"]
    merged, tests, commit, other = (
        expect(journal, check)
        for check in (
            {"github": "octo/shop#42"},
            {"github": "octo/shop#42", "name": "unit tests"},
            {"github": f"octo/shop@{github.SHA}", "name": "unit tests"},
            {"github": "octo/none#1"},
        )
    )
    clock.move(minutes=1)
    told = {one.entry_id: one for one in Heartbeat(journal).beat().checks}
    assert (told[merged.id].summary, told[merged.id].signal_type) == ("not yet: pull request 42 is open", "neutral")
    for entry in (tests, commit):
        assert told[entry.id].summary == "GitHub says: check 'unit tests': failure"
        assert journal.get(entry.id).assessment_notes.startswith("unmet: check 0: GitHub says")  # type: ignore[union-attr]
    assert "GitHub does not show octo/none" in told[other.id].summary
    request |= {"merged_at": "2026-03-01T13:00:00Z", "state": "closed"}
    clock.move(minutes=1)
    told = {one.entry_id: one for one in Heartbeat(journal).beat().checks}
    assert (told[merged.id].summary, told[merged.id].signal_type) == (
        "GitHub says: pull request 42 was merged",
        "positive",
    )
    monkeypatch.setenv("GITHUB_API_URL", "http://example.org")
    clock.move(minutes=60)
    (again,) = Heartbeat(journal).beat().checks
    assert "give an https address" in again.summary


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ([], "GitHub has no check 'x'"),
        ([{"status": "queued", "conclusion": None}], "check 'x' is queued"),
        ([{"conclusion": "skipped"}], "check 'x': skipped"),
    ],
)
def test_what_github_does_not_know_yet_is_not_yet(fake_github: FakeGitHub, run: list[Any], told: str) -> None:
    fake_github.pages["repos/octo/shop/commits/main/check-runs"] = {"check_runs": run}
    assert find_state("octo/shop@main", "x")[:2] == (None, told)
    fake_github.pages["repos/octo/shop/pulls/3"] = {"number": 3, "state": "closed", "merged_at": None}
    assert find_state("octo/shop#3")[:2] == ("negative", "pull request 3 was closed without merging")


def test_a_command_has_the_network_only_if_it_says_so(
    journal: Journal, store: Store, clock: Clock, tmp_path: Path, site: Site
) -> None:
    check = {"command": "fetch it", "network": True}
    with pytest.raises(ValueError, match="its rule check_network does not allow a command the network"):
        expect(journal, check)
    open_journal = Journal(store, clock=clock, rules={"builder": {"check_network": True}})
    expect(open_journal, check)
    clock.move(minutes=1)
    gateway = Plugged(end_with(0))
    gateway.has_network = True
    assert [one.signal_type for one in Heartbeat(open_journal, gateway=gateway).beat().checks] == ["positive"]
    script = f"import urllib.request; urllib.request.urlopen('{site.url}')"
    with ExecutionGateway(tmp_path) as sealed:
        refused = run_command(sealed, (sys.executable, "-c", script), 30)
    assert (refused.signal_type, site.asked) == ("neutral", [])
    assert "only with network: true" in refused.summary


def test_what_does_not_fit_in_a_beat_is_left_for_the_next(journal: Journal, clock: Clock) -> None:
    expect(journal, *[COMMAND] * 5)
    clock.move(minutes=1)
    gateway = Plugged(end_with(0))
    assert Heartbeat(journal, gateway=gateway, budget_seconds=0).beat().left == 5
    assert gateway.count == 0
    report = Heartbeat(journal, gateway=gateway, most_checks=2).beat()
    assert (len(report.checks), report.left) == (2, 3)
    assert len(Heartbeat(journal, gateway=gateway).beat().checks) == 3


def test_rules_hold_when_a_check_is_run(journal: Journal, store: Store, clock: Clock, site: Site) -> None:
    expect(journal, COMMAND, {"url": site.url})
    clock.move(minutes=1)
    strict = Journal(store, clock=clock, rules={"builder": {"check_hosts": [], "check_commands": False}})
    gateway = Plugged(end_with(0))
    report = Heartbeat(strict, gateway=gateway).beat()
    assert [one.signal_type for one in report.checks] == ["neutral", "neutral"]
    assert all("its rule check_" in one.summary for one in report.checks)
    assert (gateway.count, site.asked) == (0, [])


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ({"url": "http://user:hunter22@127.0.0.1:{port}/"}, "it held a secret"),
        ({"command": ["curl", "--token", "ghp_" + "a1B2" * 9]}, "it held a secret"),
    ],
)
def test_a_check_without_its_secret_is_not_run(
    journal: Journal, clock: Clock, site: Site, check: dict[str, Any], told: str
) -> None:
    if "url" in check:
        check = {"url": check["url"].replace("{port}", site.url.rpartition(":")[2])}
    entry = expect(journal, check)
    assert "hunter22" not in str(entry.to_dict())
    assert "ghp_" not in str(entry.to_dict())
    clock.move(minutes=1)
    gateway = Plugged(end_with(1))
    [one] = Heartbeat(journal, gateway=gateway).beat().checks
    assert one.signal_type == "neutral"
    assert told in one.summary
    assert (gateway.count, site.asked) == (0, [])


def test_a_check_of_another_version_is_no_answer(journal: Journal, store: Store, clock: Clock) -> None:
    expect(journal, COMMAND)
    with store.write() as connection:
        connection.execute(text("""UPDATE expectations SET "check" = '{"after": "1m", "ping": "x"}'"""))
    clock.move(minutes=1)
    [told] = Heartbeat(journal).beat().checks
    assert told.signal_type == "neutral"
    assert "this version does not know such a check: unknown key 'ping'" in told.summary


def test_another_heartbeat_that_was_faster_is_believed(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)

    def be_slow() -> PipelineOutcome:
        clock.move(minutes=10)
        assert Heartbeat(journal, gateway=Plugged(end_with(0))).beat().checks[0].signal_type == "positive"
        return PipelineOutcome(Ending.EXITED, 1, stdout="password=hunter22hunter22")

    [told] = Heartbeat(journal, gateway=Plugged(be_slow)).beat().checks
    assert (told.signal_type, told.signal_id) == ("negative", None)
    assert "hunter22" not in told.summary
    assert [one.signal_type for one in journal.get(entry.id).signals] == ["positive"]


def test_what_another_heartbeat_has_taken_is_left_to_it(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND, COMMAND)
    clock.move(minutes=1)
    other = Heartbeat(journal, gateway=Plugged(end_with(0)))

    def be_slow() -> PipelineOutcome:
        assert len(other.beat().checks) == 1
        return PipelineOutcome(Ending.EXITED, 0)

    gateway = Plugged(be_slow)
    report = Heartbeat(journal, gateway=gateway).beat()
    assert (len(report.checks), report.left, gateway.count) == (1, 1, 1)
    assert len(journal.get(entry.id).signals) == 2


def test_a_ctrl_c_leaves_everything_due_at_once(journal: Journal, clock: Clock, talk: Any) -> None:
    is_asked, done = threading.Event(), threading.Event()

    def speak(_: socket.socket) -> None:
        is_asked.set()
        done.wait(60)

    def press() -> PipelineOutcome:
        assert is_asked.wait(60)
        raise KeyboardInterrupt

    entry = expect(journal, {"url": talk(speak)}, COMMAND, COMMAND)
    clock.move(minutes=1)
    with pytest.raises(KeyboardInterrupt):
        Heartbeat(journal, gateway=Plugged(press), timeout_seconds=60).beat()
    done.set()
    assert journal.get(entry.id).signals == ()
    report = Heartbeat(journal, gateway=Plugged(end_with(0)), timeout_seconds=1).beat()
    assert sorted(one.tries for one in report.checks) == [1, 1, 1]


def test_a_store_that_is_closed_is_told(journal: Journal, store: Store) -> None:
    store.close()
    with pytest.raises(StorageError):
        Heartbeat(journal).beat()


def start(path: str | Path) -> subprocess.Popen[bytes]:
    code = (
        "import sys; from pytest_golden import Journal; from pytest_golden.journal.checks.heartbeat import Heartbeat; "
        "Heartbeat(Journal.open(sys.argv[1])).beat()"
    )
    return subprocess.Popen([sys.executable, "-c", code, str(path)])


def test_heartbeats_of_many_processes_run_each_check_once(location: str | Path, site: Site) -> None:
    with Store.open(location) as store:
        journal = Journal(store)
        entry = expect(journal, *[{"after": "1ms", "url": f"{site.url}/{number}"} for number in range(24)])
        processes = [start(location) for _ in range(3)]
        assert [process.wait(60) for process in processes] == [0, 0, 0]
        kept = journal.get(entry.id)
    assert sorted(site.asked) == sorted(f"/{number}" for number in range(24))
    assert len(kept.signals) == 24
    assert {one.status for one in kept.expectations} == {"met"}


def test_a_check_of_a_killed_heartbeat_is_run_again_and_counts_once(location: str | Path, site: Site) -> None:
    is_asked, done = threading.Event(), threading.Event()

    def hold() -> None:
        is_asked.set()
        done.wait(60)

    site.before = hold
    with Store.open(location) as store:
        journal = Journal(store)
        entry = expect(journal, {"after": "1ms", "url": site.url})
        process = start(location)
        assert is_asked.wait(60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        done.set()
        assert Heartbeat(journal).beat().checks == ()
        later = Journal(store, clock=lambda: utc_now() + timedelta(minutes=5))
        [told] = Heartbeat(later).beat().checks
        assert (told.signal_type, told.tries) == ("positive", 2)
        assert [one.id for one in journal.get(entry.id).signals] == [told.signal_id]
    assert site.asked == ["/", "/"]


_CONNECT = """python3 -c 'import socket, sys
number = socket.socket().connect_ex(("192.0.2.1", 80))
sys.exit("no network" if number == 101 else 9)'"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[ExecutionGateway]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "data.txt").write_text("42\n")
    with ExecutionGateway(workspace) as gateway:
        require(gateway.describe().seal == "namespaces", "user namespaces: commands are run without a network")
        yield gateway


def test_a_command_sees_the_workspace_and_leaves_nothing(gateway: ExecutionGateway) -> None:
    answer = run_command(gateway, ("sh", "-c", "grep -q 42 data.txt && echo 43 > data.txt && echo x > new.txt"), 30)
    assert answer.signal_type == "positive"
    assert [path.name for path in gateway.workspace_root.iterdir()] == ["data.txt"]
    assert (gateway.workspace_root / "data.txt").read_text() == "42\n"


@pytest.mark.parametrize(
    ("script", "kind", "told"),
    [
        ("echo first; echo no such row >&2; exit 3", "negative", "(exit code 3): no such row"),
        ("echo token ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2; false", "negative", "REDACTED"),
        ("kill -9 $$", "neutral", "signal 9 ended it"),
        ("sleep 60", "neutral", "it took too long"),
        ("nosuchprogram", "neutral", "a program was not found"),
        (_CONNECT, "negative", "(exit code 1): no network"),
    ],
)
def test_a_command_tells_by_its_end(gateway: ExecutionGateway, script: str, kind: str, told: str) -> None:
    answer = run_command(gateway, ("sh", "-c", script), 3)
    assert answer.signal_type == kind
    assert told in answer.summary


def test_a_program_that_is_not_there_is_no_answer(gateway: ExecutionGateway) -> None:
    answer = run_command(gateway, ("nosuchprogram",), 5)
    assert answer[:2] == ("neutral", "the check could not be run: its program was not found here")


def test_a_gateway_that_refuses_is_no_answer() -> None:
    def refuse() -> PipelineOutcome:
        raise PermissionDeniedError("not you")

    answer = run_command(Plugged(refuse), ("true",), 5)
    assert answer[:2] == ("neutral", "the check could not be run: not you")


def test_a_command_that_cannot_be_declared_is_no_answer() -> None:
    answer = run_command(Plugged(end_with(0)), ("",), 5)
    assert answer.signal_type == "neutral"
    assert "its command cannot be declared" in answer.summary


def test_a_command_that_was_interrupted_ends_the_beat() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_command(Plugged(lambda: PipelineOutcome(Ending.INTERRUPTED)), ("true",), 5)


GOOD = Answer(SignalType.POSITIVE, "it is there")
BAD = Answer(SignalType.NEGATIVE, "it is not there")


def claim(swept: SweptStore, seconds: float = 60) -> Claim:
    now = to_ms(swept.now())
    with swept.store.write() as connection:
        first, *_ = list_due(connection, now, 10)
        taken = claim_check(connection, first.id, now, now + round(seconds * 1000))
    assert taken is not None
    return taken


def test_an_answer_goes_to_its_own_expectation_whatever_else_fits(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    other = expect(journal, COMMAND, match_hint={"source": "check"}, expires_minutes=5)
    clock.move(minutes=1)
    kept = record_answer(journal.swept_store, claim(journal.swept_store), GOOD)[0]
    assert kept is not None
    assert (kept.source, kept.routed_by, kept.entry_id) == ("check", "entry", entry.id)
    assert kept.expectation_id == entry.expectations[0].id
    assert kept.external_id == f"{entry.expectations[0].id}:answer"
    assert kept.data == {"try": 1}
    after = journal.get(entry.id)
    assert (after.expectations[0].status, after.expectations[0].resolved_by) == ("met", kept.id)
    assert (after.assessment, after.history[-1].who) == ("success", "check")
    assert journal.get(other.id).assessment == "open"
    [candidate] = journal.explain_routing(kept.id).candidates
    assert (candidate.taken, candidate.reason) == (True, "the check belongs to this expectation")


def test_a_check_that_could_not_be_run_leaves_the_question_open(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)
    kept, next_at = record_answer(journal.swept_store, claim(journal.swept_store), unable("no\0 network"))
    assert kept is not None
    assert (kept.signal_type, kept.external_id) == ("neutral", f"{entry.expectations[0].id}:try-1")
    assert next_at is not None
    assert (next_at - clock.now).total_seconds() == 60
    after = journal.get(entry.id)
    assert (after.assessment, after.expectations[0].status) == ("open", "open")


def test_who_has_lost_the_claim_records_nothing(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    clock.move(minutes=1)
    late = claim(journal.swept_store)
    clock.move(minutes=1)
    assert record_answer(journal.swept_store, claim(journal.swept_store), GOOD)[0] is not None
    assert record_answer(journal.swept_store, late, BAD) == (None, None)
    assert [signal.signal_type for signal in journal.get(entry.id).signals] == ["positive"]
    assert journal.get(entry.id).assessment == "success"


def test_an_answer_that_is_known_already_is_not_heard_again(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND)
    asked = entry.expectations[0].id
    clock.move(minutes=1)
    # As an import may bring it.
    known = journal.add_signal("check", "neutral", "from elsewhere", external_id=f"{asked}:try-1", entry_id=entry.id)
    kept, next_at = record_answer(journal.swept_store, claim(journal.swept_store), unable("x"))
    assert kept == known
    assert next_at is not None


def test_an_answer_after_the_expiry_decides_nothing(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND, expires_minutes=2)
    clock.move(minutes=1)
    taken = claim(journal.swept_store, seconds=600)
    clock.move(minutes=1)
    kept = record_answer(journal.swept_store, taken, BAD)[0]
    assert kept is not None
    assert (kept.entry_id, kept.expectation_id) == (entry.id, None)
    assert journal.get(entry.id).assessment == "expired"


def test_bad_news_on_what_was_met_meanwhile_is_news_against_the_entry(journal: Journal, clock: Clock) -> None:
    entry = expect(journal, COMMAND, match_hint={"pr": 1})
    clock.move(minutes=1)
    taken = claim(journal.swept_store)
    journal.add_signal("ci", "positive", "green", data={"pr": 1}, agent_id="builder")
    record_answer(journal.swept_store, taken, BAD)
    assert journal.get(entry.id).assessment == "failure"


@pytest.mark.parametrize(("answer", "assessment"), [(GOOD, "open"), (BAD, "failure"), (unable("x"), "open")])
def test_where_nothing_is_expected_to_happen_only_bad_news_counts(
    journal: Journal, clock: Clock, answer: Answer, assessment: str
) -> None:
    entry = expect(journal, COMMAND, polarity="negative", expires_minutes=60)
    clock.move(minutes=1)
    _, next_at = record_answer(journal.swept_store, claim(journal.swept_store), answer)
    assert journal.get(entry.id).assessment == assessment
    assert (next_at is None) == answer.is_final


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([GOOD, BAD, unable("x")]), st.booleans(), st.integers(0, 90)), max_size=12))
def test_a_check_answers_once_whoever_comes_late_or_twice(store: Store, plan: list[tuple[Answer, bool, int]]) -> None:
    clock = Clock()
    journal = Journal(store, clock=clock)
    entry = expect(journal, COMMAND)
    finals: list[str] = []
    lost: list[Claim] = []
    for answer, dies, minutes in plan:
        clock.move(minutes=minutes)
        now = to_ms(clock.now)
        with store.write() as connection:
            taken = claim_check(connection, entry.expectations[0].id, now, now + 60_000)
        for late in lost:
            clock.move(seconds=61 if taken is None else 0)
            if taken is not None:
                assert record_answer(journal.swept_store, late, BAD)[0] is None
        if taken is None:
            continue
        if dies:
            lost.append(taken)
            continue
        kept, _ = record_answer(journal.swept_store, taken, answer)
        finals += [kept.id] if kept is not None and answer.is_final else []
    signals = journal.get(entry.id).signals
    assert len(finals) <= 1
    assert [signal.id for signal in signals if signal.signal_type != "neutral"] == finals
    assert len({signal.external_id for signal in signals}) == len(signals)
