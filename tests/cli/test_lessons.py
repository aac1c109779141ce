"""`golden lessons` over a real store."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.lessons.model import LessonKind, LessonSource, SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.storage.store import Store
from tests.cli.watched import run_watched

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

ACTIONS = ("list", "show", "approve", "reject", "delete", "stats", "prune")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RENAMED = SkillMemory(
    id="lesson_01AAA000000000000000000001",
    lesson="Read the column by the name that the source gives it now; `amount` was renamed to `total`.",
    context="loading the daily sales",
    what_failed="selecting amount",
    what_worked="selecting total",
    why="the source renamed the column",
    kind=LessonKind.PROJECT_FIX,
    evidence={"error": "no such column: 'amount'", "project": "sales", "changed": ["load.sql"]},
    created_at=NOW,
)
DRIVER = SkillMemory(
    id="lesson_01AAB000000000000000000002",
    lesson="Use the driver psycopg where the driver pg8000 cannot read arrays.",
    kind=LessonKind.TOOL_SUBSTITUTION,
    tool_name="psycopg",
    evidence={"error": "NotImplementedError: arrays are not read", "failed_tool": "pg8000", "worked_tool": "psycopg"},
    approved=False,
    source=LessonSource.MODEL,
    created_at=NOW + timedelta(days=1),
)
HOSTILE = SkillMemory(
    id="lesson_01BBB000000000000000000003",
    lesson="Close the \x1b[31mconnection\u202e before [bold]forking[red] the workers of the pool.",
    kind=LessonKind.CORRECTION,
    source=LessonSource.PERSON,
    evidence={"error": "SSL error: decryption failed or bad record mac"},
    created_at=NOW + timedelta(days=2),
)


@pytest.fixture
def kept(folder: Path) -> Path:
    """A store where the gate keeps it, with three lessons of two agents."""
    (folder / "golden_projects.yaml").write_text("version: 1\n")
    with Store.open(folder / ".golden" / "golden.db") as store:
        lessons = Lessons(store, clock=lambda: NOW + timedelta(days=3))
        for skill, agent in ((RENAMED, "golden"), (DRIVER, "etl"), (HOSTILE, "etl")):
            verdict = lessons.add(skill, agent)
            assert verdict.kept, verdict.reason
        assert store.path is not None
        return store.path


def lessons_in(kept: Path) -> dict[str, SkillMemory]:
    with Store.open(kept) as store:
        skills = Lessons(store).list_lessons(include_superseded=True, include_rejected=True)
        return {skill.id: skill for skill in skills}


def test_lessons_are_listed_newest_first(person: Golden, kept: Path) -> None:
    lines = person("lessons", "list").out.splitlines()
    assert lines[0].split() == ["state", "agent", "kind", "lesson", "learned", "helped", "harmed", "id"]
    assert [line.split()[-1] for line in lines[1:]] == [HOSTILE.id, DRIVER.id, RENAMED.id]
    assert [line.split()[:2] for line in lines[1:]] == [["shown", "etl"], ["waits", "etl"], ["shown", "golden"]]
    assert "project fix" in lines[3]
    assert lines[3].split()[-4:-1] == ["1", "0", "0"]


def test_list_is_readable_at_eighty_columns(person: Golden, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = person("lessons", "list").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [found for line in lines for found in re.findall(r"lesson_\w+", line)] == [
        HOSTILE.id,
        DRIVER.id,
        RENAMED.id,
    ]


def test_list_is_of_an_agent_and_bounded(person: Golden, kept: Path) -> None:
    told = person("lessons", "list", "--agent", "golden", "--json").json
    assert [(one["id"], one["agent"], one["state"]) for one in told["lessons"]] == [(RENAMED.id, "golden", "shown")]
    assert told["lessons"][0]["evidence"]["project"] == "sales"
    assert person("lessons", "list", "--limit", "1").out.endswith("2 more; --limit shows more\n")
    assert person("lessons", "list", "--limit", "1", "--json").json["left_out"] == 2
    assert person("lessons", "list", "--agent", "nobody").out == "no lesson is this agent's\n"


def test_rejected_ones_are_listed_when_all_are_wanted(person: Golden, kept: Path) -> None:
    person("lessons", "reject", RENAMED.id)
    assert RENAMED.id not in person("lessons", "list").out
    told = person("lessons", "list", "--all", "--json").json["lessons"]
    assert {one["id"]: one["state"] for one in told}[RENAMED.id] == "rejected"


def test_nothing_learned_is_said(golden: Golden, person: Golden, folder: Path) -> None:
    golden("journal", "log-intent", "begin")
    assert person("lessons", "list").out == "nothing is learned yet\n"
    assert golden("lessons", "stats", "--json").json["total"] == 0


def test_lesson_is_shown_with_its_evidence_and_history(person: Golden, kept: Path) -> None:
    person("lessons", "approve", RENAMED.id, "--by", "ada")
    ran = person("lessons", "show", RENAMED.id)
    assert ran.code == 0
    for told in (
        RENAMED.lesson,
        "loading the daily sales",
        "selecting total",
        "the source renamed the column",
        "no such column: 'amount'",
        '["load.sql"]',
        "project fix, worded by rules",
        "approved by ada, ",
        "version 1: learned",
        "version 2: approved by ada",
    ):
        assert told in ran.out
    shown = person("lessons", "show", RENAMED.id, "--json").json
    assert [(one["version"], one["why"], one["by"]) for one in shown["history"]] == [
        (1, "learned", None),
        (2, "approved", "ada"),
    ]
    assert (shown["agent"], shown["state"], shown["judged_by"]) == ("golden", "shown", "ada")


def test_nothing_in_a_lesson_speaks_to_the_terminal(person: Golden, kept: Path) -> None:
    for words in (["list"], ["show", HOSTILE.id], ["approve", HOSTILE.id], ["delete", HOSTILE.id]):
        ran = person("lessons", *words)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        assert "\u202e" not in ran.out
        assert "[bold]forking[red]" in ran.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["approve", DRIVER.id], "approving a lesson"),
        (["approve", DRIVER.id, "--by", "ada", "--json"], "approving a lesson"),
        (["reject", RENAMED.id], "rejecting a lesson"),
        (["delete", RENAMED.id], "deleting a lesson"),
        (["show", DRIVER.id], "a lesson that is not shown (waits)"),
    ],
)
def test_without_a_terminal_nobody_speaks_as_a_person(
    golden_process: GoldenProcess, kept: Path, words: list[str], told: str
) -> None:
    before = lessons_in(kept)
    ran = golden_process("lessons", *words)
    assert ran.code == 2
    assert f"{told} is for people, and nobody is at a terminal here" in ran.out + ran.err
    assert "--as-person" in ran.out + ran.err
    assert DRIVER.lesson not in ran.out + ran.err
    assert lessons_in(kept) == before


def test_without_a_terminal_what_waits_is_counted_and_not_shown(golden_process: GoldenProcess, kept: Path) -> None:
    for words in (["list"], ["list", "--all", "--json"], ["prune", "--older-than", "0m", "--dry-run"]):
        told = golden_process("lessons", *words).out
        assert RENAMED.id in told
        assert DRIVER.lesson not in told
    assert golden_process("lessons", "list").out.endswith(
        "1 lesson only for people: at a terminal, or with --as-person\n"
    )
    assert golden_process("lessons", "list", "--json").json["hidden"] == 1
    shown = {"id": DRIVER.id}
    assert shown in golden_process("lessons", "prune", "--older-than", "0m", "--dry-run", "--json").json["lessons"]


def test_at_a_terminal_a_person_speaks(folder: Path, kept: Path) -> None:
    assert DRIVER.lesson in " ".join(run_watched(folder, ["lessons", "show", DRIVER.id]).out.split())
    assert run_watched(folder, ["lessons", "approve", DRIVER.id, "--by", "ada"]).code == 0
    assert lessons_in(kept)[DRIVER.id].judged_by == "ada"


def test_who_proposed_a_lesson_is_shown(person: Golden, kept: Path) -> None:
    with Store.open(kept) as store:
        Lessons(store).add(
            HOSTILE.replace(
                id="lesson_9", lesson="Close the pool before the workers are forked.", source="agent", proposed_by="bot"
            ),
            "x",
        )
    assert "worded by an agent" in person("lessons", "show", "lesson_9").out
    assert person("lessons", "approve", "lesson_9").code == 0
    assert re.search(r"proposed by +bot", person("lessons", "show", "lesson_9").out)


def test_lesson_is_approved_and_rejected_by_a_person(person: Golden, kept: Path) -> None:
    told = person("lessons", "approve", "01AAB", "--by", "ada")
    assert told.out == f"{DRIVER.id}: approved by ada: {DRIVER.lesson}\n"
    assert lessons_in(kept)[DRIVER.id].approved
    told = person("lessons", "reject", DRIVER.id, "--by", "bob", "--json")
    assert (told.json["state"], told.json["judged_by"]) == ("rejected", "bob")
    assert lessons_in(kept)[DRIVER.id].rejected
    assert person("lessons", "show", DRIVER.id).out.count("rejected by bob") == 2


def test_the_user_speaks_when_nobody_is_named(person: Golden, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "eve")
    person("lessons", "approve", RENAMED.id)
    assert lessons_in(kept)[RENAMED.id].judged_by == "eve"


def test_somebody_speaks_when_the_user_has_no_name(person: Golden, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise OSError("no name")

    monkeypatch.setattr("getpass.getuser", refuse)
    person("lessons", "approve", RENAMED.id)
    assert lessons_in(kept)[RENAMED.id].judged_by == "somebody"


def test_lesson_is_deleted(person: Golden, kept: Path) -> None:
    assert person("lessons", "delete", RENAMED.id).out == f"{RENAMED.id} deleted: {RENAMED.lesson}\n"
    assert RENAMED.id not in lessons_in(kept)
    assert person("lessons", "delete", DRIVER.id, "--json").json["deleted"]["id"] == DRIVER.id
    told = person("lessons", "delete", RENAMED.id)
    assert (told.code, len(told.err.splitlines())) == (2, 1)
    assert f"there is no lesson '{RENAMED.id}'" in told.err


@pytest.mark.parametrize("action", ["show", "approve", "reject", "delete"])
def test_ambiguous_beginning_is_refused_and_its_candidates_are_named(person: Golden, kept: Path, action: str) -> None:
    before = lessons_in(kept)
    told = person("lessons", action, "lesson_01AA")
    assert (told.code, told.out) == (2, "")
    assert RENAMED.id in told.err
    assert DRIVER.id in told.err
    assert HOSTILE.id not in told.err
    assert len(told.err.splitlines()) == 1
    assert lessons_in(kept) == before


def test_lessons_are_counted(golden: Golden, person: Golden, kept: Path) -> None:
    with Store.open(kept) as store:
        lessons = Lessons(store)
        recalled = lessons.recall("no such column: 'amount'", project="sales")
        lessons.settle(recalled[0].recall_id, passed=True)
    counted = golden("lessons", "stats", "--json").json
    assert (counted["total"], counted["shown"], counted["unapproved"]) == (3, 2, 1)
    assert (counted["recalled"], counted["helped"], counted["harmed"]) == (1, 1, 0)
    assert golden("lessons", "stats", "--agent", "etl", "--json").json["by_agent"] == {"etl": 2}
    out = golden("lessons", "stats").out
    assert re.search(r"wait for approval +1\n", out)
    assert re.search(r"of kind project fix +1\n", out)
    assert "last used" in person("lessons", "show", RENAMED.id).out


def test_old_lessons_are_pruned(person: Golden, kept: Path) -> None:
    told = person("lessons", "prune", "--older-than", "2026-03-02", "--dry-run")
    assert told.out.splitlines()[0] == "1 lesson would be removed; nothing was changed"
    assert RENAMED.id in told.out
    assert len(lessons_in(kept)) == 3
    told = person("lessons", "prune", "--older-than", "2026-03-02", "--json")
    assert (told.json["dry_run"], [one["id"] for one in told.json["lessons"]]) == (False, [RENAMED.id])
    assert set(lessons_in(kept)) == {DRIVER.id, HOSTILE.id}
    assert person("lessons", "prune", "--older-than", "2999-01-01", "--agent", "golden").out == "0 lessons removed\n"


def test_the_best_are_kept_and_what_a_person_judged(person: Golden, kept: Path) -> None:
    person("lessons", "approve", DRIVER.id)
    told = person("lessons", "prune", "--keep", "1", "--older-than", "2999-01-01")
    assert told.out.splitlines()[0] == "2 lessons removed"
    assert set(lessons_in(kept)) == {DRIVER.id}


def test_harmful_lessons_are_pruned(person: Golden, kept: Path) -> None:
    with Store.open(kept) as store:
        lessons = Lessons(store)
        for _ in range(5):
            recalled = lessons.recall("no such column: 'amount'", project="sales")
            lessons.settle(recalled[0].recall_id, passed=False)
    assert person("lessons", "show", RENAMED.id, "--json").json["state"] == "harmful"
    assert person("lessons", "prune", "--harmful").out.splitlines()[0] == "1 lesson removed"


def test_many_pruned_lessons_are_told_in_part(person: Golden, kept: Path) -> None:
    words = (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
        *("lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon"),
    )
    with Store.open(kept) as store:
        lessons = Lessons(store)
        for word in words:
            lesson = f"Open the {word} valve before the {word} pump is started."
            skill = SkillMemory(lesson=lesson, evidence={"error": f"{word} pressure is too high"})
            assert lessons.add(skill, "plant").kept
    told = person("lessons", "prune", "--older-than", "0m")
    assert told.out.splitlines()[0] == "23 lessons removed"
    assert told.out.endswith("  and 3 more\n")


def test_superseded_lesson_names_the_later_one(golden: Golden, person: Golden, kept: Path) -> None:
    later = RENAMED.replace(
        id="lesson_01CCC000000000000000000004",
        lesson="Ask the source for its present columns; `amount` is called `price` by now.",
        what_worked="selecting price",
        created_at=NOW + timedelta(days=2),
    )
    with Store.open(kept) as store:
        assert Lessons(store).add(later, "golden").kept
    assert f"superseded by {later.id}" in person("lessons", "show", RENAMED.id).out
    assert RENAMED.id not in person("lessons", "list").out
    assert RENAMED.id in person("lessons", "list", "--all").out
    assert golden("lessons", "stats", "--json").json["superseded"] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "--limit", "0"], "--limit 0 cannot be used"),
        (["list", "--limit", "x"], "--limit x cannot be used"),
        (["show", "nothing"], "there is no lesson 'nothing'"),
        (["show", " "], "the id of a lesson"),
        (["show"], "the following arguments are required: ID"),
        (["approve", RENAMED.id, "--as-person", "--by", " "], "by must be text that is not blank"),
        (["prune"], "say which lessons to remove: give --older-than, --keep or --harmful"),
        (["prune", "--keep", "0"], "--keep 0 cannot be used"),
        (["prune", "--older-than", "soon"], "--older-than soon is not a time"),
        (["list", "--store", ""], "--store is empty"),
        (["stats", "--store", "nowhere.db"], "nothing is recorded yet"),
        (["forget"], "invalid choice: 'forget'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(golden: Golden, kept: Path, words: list[str], told: str) -> None:
    ran = golden("lessons", *words)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert told in ran.err
    if words[0] in ACTIONS and len(words) > 1:
        as_json = golden("lessons", *words, "--json")
        assert told in as_json.json["error"]


def test_help_names_every_action(golden: Golden, folder: Path) -> None:
    assert "lessons" in golden("--help").out
    told = golden("lessons", "--help")
    assert all(action in told.out for action in ACTIONS)
    for action in ACTIONS:
        assert "--json" in golden("lessons", action, "--help").out
