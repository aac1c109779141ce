"""The recall study's failures, through a real store. The benchmark of the same name prints more of it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.learning.lessons.model import RecallReason, SkillMemory
from pytest_golden.learning.lessons.recalling import recall_lessons
from pytest_golden.learning.lessons.store import put_lesson
from tests.learning.conftest import BOTH, START_MS
from tests.patience import without_hanging

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

MISSING = 'duckdb.BinderException: Binder Error: Referenced column "amount" not found in FROM clause!'
MISSING_AGAIN = 'duckdb.BinderException: Binder Error: Referenced column "price" not found in FROM clause!'
FRAME = '  File "/srv/etl/load.py", line 3, in load\n    x()\n'
PANDAS = '  File "/x/site-packages/pandas/core/indexes/base.py", line 9, in get_loc\n    raise\n'
TRACEBACK = "Traceback (most recent call last):\n"
SCRIPT = Path(__file__).parents[3] / "benchmarks" / "recall_study.py"


class Keeper:
    """Keeps lessons as they are given, and asks for them."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def keep(self, error: str | None, agent: str = "etl", project: str | None = None, **fields: Any) -> SkillMemory:
        evidence = {"error": error, "project": project}
        given = {"lesson": "Look at the schema first.", "evidence": evidence, **fields}
        with self.store.write() as connection:
            return put_lesson(connection, SkillMemory(**given), agent, START_MS)

    def ask(self, text: str, **options: Any) -> tuple[tuple[SkillMemory, float, RecallReason], ...]:
        with self.store.read() as connection:
            return tuple((one.lesson, one.score, one.why) for one in recall_lessons(connection, text, **options))

    def ids(self, text: str, **options: Any) -> list[str]:
        return [skill.id for skill, _, _ in self.ask(text, **options)]


@pytest.fixture
def keeper(store: Store) -> Keeper:
    return Keeper(store)


def test_lessons_that_wait_crowd_out_none(keeper: Keeper) -> None:
    skill = keeper.keep(MISSING, lesson="Look at the schema of the orders first.")
    for number in range(20):
        keeper.keep(None, lesson=f"schema orders first look schema orders {number}", approved=False, source="agent")
    assert keeper.ids("look at the schema of the orders first") == [skill.id]


@BOTH
def test_same_failure_brings_its_lesson_up_by_signature(keeper: Keeper) -> None:
    skill = keeper.keep(MISSING)
    ((found, score, why),) = keeper.ask(f"exit code 1, expected 0: {MISSING_AGAIN}")
    assert (found.id, score, why) == (skill.id, 1.0, RecallReason.SIGNATURE)
    ((_, score, why),) = keeper.ask(
        f"12:00 loading\n{TRACEBACK}{FRAME}{MISSING_AGAIN}\nLINE 1: SELECT price\n      ^\n"
    )
    assert (score, why) == (1.0, RecallReason.SIGNATURE)


@BOTH
def test_failure_that_is_worded_a_little_otherwise_is_found_by_words(keeper: Keeper) -> None:
    skill = keeper.keep(MISSING)
    ((found, score, why),) = keeper.ask(f"{MISSING_AGAIN} Look at the query.")
    assert (found.id, why) == (skill.id, RecallReason.WORDS)
    assert 0.7 <= score <= 0.9


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "'",
        "exit code 1, expected 0",
        "Exception: failed",
        'duckdb.BinderException: Binder Error: Ambiguous reference to column name "amount"',
        'duckdb.CatalogException: Catalog Error: Table with name "amount" does not exist!',
        "KeyError: 'amount'",
        "the column amount",
        "sales",
        "Look at the schema first",
    ],
)
def test_nothing_is_said_of_other_failures(keeper: Keeper, text: str) -> None:
    keeper.keep(MISSING, project="sales", lesson="Recreate views after each migration.")
    assert keeper.ask(text, project="sales") == ()


def test_part_of_what_was_printed_is_less_sure_than_the_whole(keeper: Keeper) -> None:
    skill = keeper.keep("LoadError: the nightly load was given up")
    chain = (
        f"{TRACEBACK}{FRAME}KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n"
    )
    ((found, score, why),) = keeper.ask(f"{chain}{TRACEBACK}{FRAME}etl.LoadError: the nightly load was given up\n")
    assert (found.id, score, why) == (skill.id, 0.9, RecallReason.SIGNATURE)


def test_same_exception_out_of_another_package_is_another_failure(keeper: Keeper) -> None:
    skill = keeper.keep(f"{TRACEBACK}{FRAME}{PANDAS}KeyError: 'amount'")
    assert keeper.ids(f"{TRACEBACK}{FRAME}{PANDAS}KeyError: 'price'") == [skill.id]
    assert keeper.ids(f"{TRACEBACK}{FRAME}KeyError: 'price'") == []
    assert keeper.ids("KeyError: 'price'") == [skill.id]


@BOTH
def test_projects_rank_and_bring_nothing_up(keeper: Keeper) -> None:
    elsewhere = keeper.keep(MISSING, project="crm", success_count=3)
    own = keeper.keep(MISSING, project="sales")
    plain = keeper.keep(MISSING)
    assert keeper.ids(MISSING_AGAIN, project="sales") == [own.id, elsewhere.id, plain.id]
    assert keeper.ids(MISSING_AGAIN)[0] == elsewhere.id
    assert keeper.ids(MISSING_AGAIN, limit=1, project="sales") == [own.id]
    assert keeper.ids("something wholly different happened here", project="sales") == []


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("timed out after 10m", "timed out after 1h 30m, and took 12s more to end when it was interrupted"),
        ("used 2.1GiB of memory (memory_limit: 2GiB)", "used 4.6GiB of memory (memory_limit: 4GiB)"),
        ("ended by signal 9 (SIGKILL)", "ended by signal 9 (SIGKILL)"),
        ("wrote a/b.csv, which no pattern of `writes:` names", "wrote out/c.csv, which no pattern of `writes:` names"),
    ],
)
def test_what_the_gate_says_of_any_project_is_known_within_one_alone(keeper: Keeper, text: str, again: str) -> None:
    skill = keeper.keep(text, project="sales")
    keeper.keep(text)
    assert keeper.ids(again) == []
    assert keeper.ids(again, project="crm") == []
    found = keeper.ask(text, project="sales")
    assert [(one.id, score, why) for one, score, why in found] == [(skill.id, 0.8, RecallReason.PROJECT)]


def test_an_agent_is_told_its_own_lessons_alone_when_it_asks_so(keeper: Keeper) -> None:
    first, second = keeper.keep(MISSING, "a/b"), keeper.keep(MISSING, "a")
    assert keeper.ids(MISSING_AGAIN, agent="a") == [second.id]
    assert keeper.ids(f"{MISSING_AGAIN} Look again.", agent="a/b") == [first.id]
    assert len(keeper.ids(MISSING_AGAIN)) == 2
    assert keeper.ids(MISSING_AGAIN, agent="nobody") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"superseded_by": "lesson_other"},
        {"rejected": True, "approved": False},
        {"approved": False, "source": "model"},
        {"harm_count": 5},
        {"confidence": 0.69},
    ],
)
def test_some_lessons_are_not_shown(keeper: Keeper, fields: dict[str, Any]) -> None:
    keeper.keep(MISSING, **fields)
    assert keeper.ids(MISSING_AGAIN) == []
    assert keeper.ids(f"{MISSING_AGAIN} Look at the query.") == []
    shown = keeper.keep(MISSING, harm_count=7, success_count=1, confidence=0.7)
    assert keeper.ids(MISSING_AGAIN) == [shown.id]


@BOTH
def test_words_that_a_person_types_must_all_be_in_a_lesson(keeper: Keeper) -> None:
    skill = keeper.keep(
        None, lesson="Normalise the vendor's header before choosing columns.", context="reading exports"
    )
    ((found, score, why),) = keeper.ask("vendor header Normalise")
    assert (found.id, score, why) == (skill.id, 0.75, RecallReason.WORDS)
    assert keeper.ids("vendor header spelling") == []
    assert keeper.ids("vendor header\nNormalise") == []


def test_lesson_that_somebody_else_put_there_harms_nothing(keeper: Keeper) -> None:
    keeper.keep(MISSING, evidence={"error": MISSING, "errors": [3, MISSING_AGAIN]})
    assert len(keeper.ids(MISSING_AGAIN)) == 1


@BOTH
def test_huge_and_binary_texts_are_answered_at_once(keeper: Keeper) -> None:
    skill = keeper.keep(MISSING)
    junk = os.urandom(1_000_000).decode("latin-1") * 10
    with without_hanging():
        assert keeper.ids(junk) == []
        assert keeper.ids("\x00\ud800'\"%_\\" * 100) == []
        assert keeper.ids("x" * 10_000_000) == []
        assert keeper.ids("all is well so far\n" * 500_000 + f"{TRACEBACK}{FRAME}{MISSING_AGAIN}\n") == [skill.id]


def test_secrets_are_not_searched_for(keeper: Keeper) -> None:
    skill = keeper.keep("LoginError: the service refuses password=hunter2secret of this account")
    assert keeper.ids("LoginError: the service refuses password=other5ecret99 of this account") == [skill.id]


@pytest.fixture(scope="module")
def study() -> Any:
    spec = importlib.util.spec_from_file_location("recall_study_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@BOTH
def test_failures_met_again_are_answered_and_others_are_not(store: Store, study: Any) -> None:
    meetings = study.read_study()
    study.teach(store, meetings)
    wrong: list[str] = []
    right, silent = study.count(meetings, study.ask_store(store), wrong)
    assert right.asked >= 40
    assert silent.asked >= 40
    assert right.right >= 0.92 * right.asked, wrong
    assert silent.right >= 0.98 * silent.asked, wrong


def test_a_third_was_set_aside(study: Any) -> None:
    meetings = study.read_study()
    assert sum(one.is_held_out for one in meetings) >= 0.3 * len(meetings)
