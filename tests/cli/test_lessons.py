"""`golden lessons` over a real store."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.lessons.model import LessonKind, LessonSource, SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

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


def test_lessons_are_listed_newest_first(golden: Golden, kept: Path) -> None:
    lines = golden("lessons", "list").out.splitlines()
    assert lines[0].split() == ["state", "agent", "kind", "lesson", "learned", "helped", "harmed", "id"]
    assert [line.split()[-1] for line in lines[1:]] == [HOSTILE.id, DRIVER.id, RENAMED.id]
    assert [line.split()[:2] for line in lines[1:]] == [["shown", "etl"], ["waits", "etl"], ["shown", "golden"]]
    assert "project fix" in lines[3]
    assert lines[3].split()[-4:-1] == ["1", "0", "0"]


def test_list_is_readable_at_eighty_columns(golden: Golden, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = golden("lessons", "list").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [found for line in lines for found in re.findall(r"lesson_\w+", line)] == [
        HOSTILE.id,
        DRIVER.id,
        RENAMED.id,
    ]


def test_list_is_of_an_agent_and_bounded(golden: Golden, kept: Path) -> None:
    told = golden("lessons", "list", "--agent", "golden", "--json").json
    assert [(one["id"], one["agent"], one["state"]) for one in told["lessons"]] == [(RENAMED.id, "golden", "shown")]
    assert told["lessons"][0]["evidence"]["project"] == "sales"
    assert golden("lessons", "list", "--limit", "1").out.endswith("2 more; --limit shows more\n")
    assert golden("lessons", "list", "--limit", "1", "--json").json["left_out"] == 2
    assert golden("lessons", "list", "--agent", "nobody").out == "no lesson is this agent's\n"


def test_rejected_ones_are_listed_when_all_are_wanted(golden: Golden, kept: Path) -> None:
    golden("lessons", "reject", RENAMED.id)
    assert RENAMED.id not in golden("lessons", "list").out
    told = golden("lessons", "list", "--all", "--json").json["lessons"]
    assert {one["id"]: one["state"] for one in told}[RENAMED.id] == "rejected"


def test_nothing_learned_is_said(golden: Golden, folder: Path) -> None:
    golden("journal", "log-intent", "begin")
    assert golden("lessons", "list").out == "nothing is learned yet\n"
    assert golden("lessons", "stats", "--json").json["total"] == 0


def test_lesson_is_shown_with_its_evidence_and_history(golden: Golden, kept: Path) -> None:
    golden("lessons", "approve", RENAMED.id, "--by", "ada")
    ran = golden("lessons", "show", RENAMED.id)
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
    shown = golden("lessons", "show", RENAMED.id, "--json").json
    assert [(one["version"], one["why"], one["by"]) for one in shown["history"]] == [
        (1, "learned", None),
        (2, "approved", "ada"),
    ]
    assert (shown["agent"], shown["state"], shown["judged_by"]) == ("golden", "shown", "ada")


def test_nothing_in_a_lesson_speaks_to_the_terminal(golden: Golden, kept: Path) -> None:
    for words in (["list"], ["show", HOSTILE.id], ["approve", HOSTILE.id], ["delete", HOSTILE.id]):
        ran = golden("lessons", *words)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        assert "\u202e" not in ran.out
        assert "[bold]forking[red]" in ran.out


def test_lesson_is_approved_and_rejected_by_a_person(golden: Golden, kept: Path) -> None:
    told = golden("lessons", "approve", "01AAB", "--by", "ada")
    assert told.out == f"{DRIVER.id}: approved by ada: {DRIVER.lesson}\n"
    assert lessons_in(kept)[DRIVER.id].approved
    told = golden("lessons", "reject", DRIVER.id, "--by", "bob", "--json")
    assert (told.json["state"], told.json["judged_by"]) == ("rejected", "bob")
    assert lessons_in(kept)[DRIVER.id].rejected
    assert golden("lessons", "show", DRIVER.id).out.count("rejected by bob") == 2


def test_the_user_speaks_when_nobody_is_named(golden: Golden, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "eve")
    golden("lessons", "approve", RENAMED.id)
    assert lessons_in(kept)[RENAMED.id].judged_by == "eve"


def test_somebody_speaks_when_the_user_has_no_name(golden: Golden, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise OSError("no name")

    monkeypatch.setattr("getpass.getuser", refuse)
    golden("lessons", "approve", RENAMED.id)
    assert lessons_in(kept)[RENAMED.id].judged_by == "somebody"


def test_lesson_is_deleted(golden: Golden, kept: Path) -> None:
    assert golden("lessons", "delete", RENAMED.id).out == f"{RENAMED.id} deleted: {RENAMED.lesson}\n"
    assert RENAMED.id not in lessons_in(kept)
    assert golden("lessons", "delete", DRIVER.id, "--json").json["deleted"]["id"] == DRIVER.id
    told = golden("lessons", "delete", RENAMED.id)
    assert (told.code, len(told.err.splitlines())) == (2, 1)
    assert f"there is no lesson '{RENAMED.id}'" in told.err


@pytest.mark.parametrize("action", ["show", "approve", "reject", "delete"])
def test_ambiguous_beginning_is_refused_and_its_candidates_are_named(golden: Golden, kept: Path, action: str) -> None:
    before = lessons_in(kept)
    told = golden("lessons", action, "lesson_01AA")
    assert (told.code, told.out) == (2, "")
    assert RENAMED.id in told.err
    assert DRIVER.id in told.err
    assert HOSTILE.id not in told.err
    assert len(told.err.splitlines()) == 1
    assert lessons_in(kept) == before


def test_lessons_are_counted(golden: Golden, kept: Path) -> None:
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
    assert "last used" in golden("lessons", "show", RENAMED.id).out


def test_old_lessons_are_pruned(golden: Golden, kept: Path) -> None:
    told = golden("lessons", "prune", "--older-than", "2026-03-02", "--dry-run")
    assert told.out.splitlines()[0] == "1 lesson would be removed; nothing was changed"
    assert RENAMED.id in told.out
    assert len(lessons_in(kept)) == 3
    told = golden("lessons", "prune", "--older-than", "2026-03-02", "--json")
    assert (told.json["dry_run"], [one["id"] for one in told.json["lessons"]]) == (False, [RENAMED.id])
    assert set(lessons_in(kept)) == {DRIVER.id, HOSTILE.id}
    assert golden("lessons", "prune", "--older-than", "2999-01-01", "--agent", "golden").out == "0 lessons removed\n"


def test_the_best_are_kept_and_what_a_person_judged(golden: Golden, kept: Path) -> None:
    golden("lessons", "approve", DRIVER.id)
    told = golden("lessons", "prune", "--keep", "1", "--older-than", "2999-01-01")
    assert told.out.splitlines()[0] == "2 lessons removed"
    assert set(lessons_in(kept)) == {DRIVER.id}


def test_harmful_lessons_are_pruned(golden: Golden, kept: Path) -> None:
    with Store.open(kept) as store:
        lessons = Lessons(store)
        for _ in range(5):
            recalled = lessons.recall("no such column: 'amount'", project="sales")
            lessons.settle(recalled[0].recall_id, passed=False)
    assert golden("lessons", "show", RENAMED.id, "--json").json["state"] == "harmful"
    assert golden("lessons", "prune", "--harmful").out.splitlines()[0] == "1 lesson removed"


def test_many_pruned_lessons_are_told_in_part(golden: Golden, kept: Path) -> None:
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
    told = golden("lessons", "prune", "--older-than", "0m")
    assert told.out.splitlines()[0] == "23 lessons removed"
    assert told.out.endswith("  and 3 more\n")


def test_superseded_lesson_names_the_later_one(golden: Golden, kept: Path) -> None:
    later = RENAMED.replace(
        id="lesson_01CCC000000000000000000004",
        lesson="Ask the source for its present columns; `amount` is called `price` by now.",
        what_worked="selecting price",
        created_at=NOW + timedelta(days=2),
    )
    with Store.open(kept) as store:
        assert Lessons(store).add(later, "golden").kept
    assert f"superseded by {later.id}" in golden("lessons", "show", RENAMED.id).out
    assert RENAMED.id not in golden("lessons", "list").out
    assert RENAMED.id in golden("lessons", "list", "--all").out
    assert golden("lessons", "stats", "--json").json["superseded"] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "--limit", "0"], "--limit 0 cannot be used"),
        (["list", "--limit", "x"], "--limit x cannot be used"),
        (["show", "nothing"], "there is no lesson 'nothing'"),
        (["show", " "], "the id of a lesson"),
        (["show"], "the following arguments are required: ID"),
        (["approve", RENAMED.id, "--by", " "], "by must be text that is not blank"),
        (["prune"], "say which lessons to remove: give --older-than, --keep or --harmful"),
        (["prune", "--keep", "0"], "--keep 0 cannot be used"),
        (["prune", "--older-than", "soon"], "--older-than soon is no time"),
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
