"""`golden learn` and `golden recall --diff` over a real repository with real gates."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from pytest_golden.gate.teaching import GateLearner
from pytest_golden.journal.outside.human import human_signal
from pytest_golden.journal.service import Journal
from pytest_golden.learning.agent_memory import AgentMemory
from pytest_golden.learning.gate_learning import TURNS
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.memories import MemoryDraft
from pytest_golden.learning.store import insert_all_new
from pytest_golden.storage.schema import gate_results, gate_runs
from pytest_golden.storage.store import Store
from tests.learning.language_model.server import hangs, run_model_server, says
from tests.patience import PATIENCE_SECONDS, without_hanging
from tests.repository import git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Golden
    from tests.learning.language_model.server import ModelServer

WORKS, BROKEN = "print('fine')\n", "raise KeyError('amount')\n"


class Gate:
    """A repository with one golden project, whose gate runs as a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self) -> None:
        git(self.folder, "init", "-q", "-b", "main")
        (self.folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: sales, path: etl/load.py}\n")
        (self.folder / "etl").mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")

    def commit(self, script: str, subject: str) -> str:
        (self.folder / "etl" / "load.py").write_text(script)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", subject)
        return git(self.folder, "rev-parse", "HEAD")

    def run(self, *options: str) -> int:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--golden",
            "--golden-sandbox=copy",
            "-q",
            *options,
        ]
        return subprocess.run(command, cwd=self.folder, check=False, capture_output=True, timeout=120).returncode

    @property
    def store(self) -> Path:
        return self.folder / ".golden" / "golden.db"


@pytest.fixture(scope="module")
def broken_and_fixed(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    """A gate that passed, failed and passed again; to be copied."""
    gate = Gate(tmp_path_factory.mktemp("broken-and-fixed"))
    gate.begin()
    for script, subject in ((WORKS, "it works"), (BROKEN, "prices now"), (WORKS + "# ok\n", "read the total column")):
        gate.commit(script, subject)
        gate.run()
    # On a busy machine the gates had no time for all of it.
    with Store.open(gate.store) as store:
        GateLearner(store, gate.folder, gate.folder / "golden_projects.yaml").learn(PATIENCE_SECONDS)
    return gate


@pytest.fixture
def gate(folder: Path, broken_and_fixed: Gate) -> Gate:
    """A gate that passed, failed and passed again, in the current folder."""
    (folder / ".git").rmdir()
    shutil.copytree(broken_and_fixed.folder, folder, dirs_exist_ok=True, symlinks=True)
    return Gate(folder)


def forget(gate: Gate) -> None:
    """Let nothing have been learned yet."""
    with Store.open(gate.store) as store, store.write() as connection:
        connection.execute(update(gate_results).values(learned_at=None))
    with Store.open(gate.store) as store:
        for skill in Lessons(store).list_lessons():
            Lessons(store).delete(skill.id)


def test_changes_that_broke_a_project_before_are_told_before_they_are_run(
    golden: Golden, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, _ = git(gate.folder, "log", "--format=%H").splitlines()
    assert golden("recall", "--diff", "main").out == (
        "0 files changed since main: no golden project is known to have broken after such a change\n"
    )
    (gate.folder / "etl" / "load.py").write_text("# an edit\n")
    told = golden("recall", "--diff", "main").out.splitlines()
    assert told[0] == "1 file changed since main"
    assert told[1].startswith("sales: broke once when etl/load.py changed, last on ")
    assert told[1].endswith(f"by {bad[:7]}: 'prices now'")
    assert told[2:] == [
        "  KeyError: 'amount'",
        "  lesson: the fix changed Python code",
        f"    fixed by {good[:7]}: 'read the total column' (etl/load.py)",
    ]
    plain = golden("recall", "--diff", "HEAD", "--json").json
    assert (plain["diff"], plain["files"]) == ("HEAD", ["etl/load.py"])
    (project,) = plain["projects"]
    assert (project["project"], project["count"], project["files"]) == ("sales", 1, ["etl/load.py"])
    assert project["last_broken"]["commits"] == [{"commit": bad, "subject": "prices now"}]
    assert project["lesson"]["evidence"]["commits"][0]["commit"] == good
    assert project["lines"] == told[1:]
    # Long lines fold below their beginning.
    monkeypatch.setenv("COLUMNS", "40")
    told = golden("recall", "--diff", "main").out.splitlines()
    lesson = next(place for place, line in enumerate(told) if line.startswith("    fixed by"))
    assert told[lesson + 1].startswith("    ")
    assert all(len(line) <= 40 for line in told)


def test_only_what_this_branch_changed_is_asked_about(golden: Golden, gate: Gate) -> None:
    git(gate.folder, "checkout", "-q", "-b", "feature", "HEAD~2")
    (gate.folder / "new.txt").write_text("not committed, not known\n")
    assert golden("recall", "--diff", "main", "--json").json["files"] == ["new.txt"]
    # Without a common commit it is compared with the ref itself.
    git(gate.folder, "checkout", "-q", "--orphan", "other")
    git(gate.folder, "commit", "-q", "-m", "alone")
    assert "etl/load.py" in golden("recall", "--diff", "main", "--json").json["files"]


def test_project_can_be_named_and_one_that_is_gone_is_not_told_of(golden: Golden, gate: Gate) -> None:
    (gate.folder / "etl" / "load.py").write_text("# an edit\n")
    assert golden("recall", "--diff", "main", "--project", "sales").out.count("broke once") == 1
    ran = golden("recall", "--diff", "main", "--project", "stock")
    assert (ran.code, ran.out) == (2, "")
    (gate.folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: other, path: etl/load.py}\n")
    assert "broke once" not in golden("recall", "--diff", "main").out
    (gate.folder / "golden_projects.yaml").unlink()
    assert "broke once" in golden("recall", "--diff", "main").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--diff", "nowhere"),
            "--diff nowhere: there is no such commit here. Check its name, or fetch it first: git fetch origin nowhere",
        ),
        (("--diff", "origin/main"), "git fetch origin main"),
        (("--diff", " "), "is not a git ref"),
        (("--diff=--all",), "is not a git ref"),
        ((), "or ask with --task or --diff REF"),
    ],
)
def test_bad_ref_is_one_sentence(golden: Golden, gate: Gate, words: tuple[str, ...], told: str) -> None:
    ran = golden("recall", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_outside_git_it_is_said(golden: Golden, folder: Path) -> None:
    (folder / ".git").rmdir()
    (folder / "golden_projects.yaml").write_text("version: 1\n")
    Store.open(folder / ".golden" / "golden.db").close()
    ran = golden("recall", "--diff", "main")
    assert (ran.code, ran.out) == (2, "")
    assert "is not in a git repository" in ran.err


def test_what_is_left_is_learned_with_all_its_lessons(golden: Golden, gate: Gate) -> None:
    forget(gate)
    ran = golden("learn")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "learned from 3 results, 1 lesson kept",
        '  the fix changed Python code: "read the total column"',
    ]
    assert golden("learn").out == "learned from nothing new\n"


def test_secret_of_the_manifest_in_a_commit_is_not_learned(golden: Golden, folder: Path) -> None:
    gate = Gate(folder)
    gate.begin()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {name: sales, path: etl/load.py, set_env: {SHOP_TOKEN: qwertz-7712-uio}}\n"
    )
    for script, subject in ((BROKEN, "it breaks"), (WORKS, "give qwertz-7712-uio another chance")):
        gate.commit(script, subject)
        gate.run("--golden-learning=recall")
    with Store.open(gate.store) as store, store.write() as connection:
        connection.execute(update(gate_runs).values(facts={"learning": "on"}))
    assert golden("learn", "--json")[0] == 0
    with Store.open(gate.store) as store:
        (lesson,) = Lessons(store).list_lessons()
    assert "another chance" in lesson.lesson
    assert "qwertz" not in str(lesson.to_dict())


def test_json_tells_what_was_learned_and_what_is_left(golden: Golden, gate: Gate) -> None:
    forget(gate)
    plain = golden("learn", "--json", "--budget", "0.000001s").json
    assert (plain["results"]["learned"], plain["results"]["left"]) == (0, 3)
    plain = golden("learn", "--json", "--budget", "1m").json
    assert plain["results"] == {"learned": 3, "passed_over": 0, "unreadable": 0, "left": 0}
    (verdict,) = plain["lessons"]
    assert (verdict["kept"], verdict["skill"]["kind"]) == (True, "project_fix")
    # The break is known from before.
    assert (plain["breaks"], plain["settled"], plain["left"], plain["model"]) == (0, 0, 0, None)


def test_two_that_learn_at_once_learn_once(gate: Gate) -> None:
    forget(gate)
    with Store.open(gate.store) as store:
        agent = Journal(store)
        entry = agent.log_intent("load the orders", agent_id="etl")
        heard = human_signal("No, that's wrong: amounts are in cents, not in euros")
        assert heard is not None
        agent.add_signal(**heard, entry_id=entry.id)
    command = [sys.executable, "-m", "pytest_golden", "learn"]
    both = [subprocess.Popen(command, cwd=gate.folder, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    for process in both:
        process.communicate()
    with Store.open(gate.store) as store:
        known = {skill.kind: skill.support for skill in Lessons(store).list_lessons()}
    assert known == {"project_fix": 1, "correction": 1}


def test_correction_of_a_person_waits_for_approval(golden: Golden, gate: Gate) -> None:
    with Store.open(gate.store) as store:
        agent = Journal(store)
        entry = agent.log_intent("load the orders", agent_id="etl")
        agent.add_signal("human", "correction", "amounts are in cents, not in euros", entry_id=entry.id)
    told = golden("learn").out
    assert "cents" not in told
    with Store.open(gate.store) as store:
        (skill,) = Lessons(store).list_lessons("etl")
    assert f"  {skill.id} (waits for approval)" in told
    assert (skill.kind, skill.source, skill.approved, skill.context) == (
        "correction",
        "person",
        False,
        "load the orders",
    )
    assert golden("learn").out == "learned from nothing new\n"


@pytest.fixture
def model(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A language model on this machine, which the environment names."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with run_model_server() as server:
        monkeypatch.setenv("GOLDEN_LLM_MODEL", "openai:test")
        monkeypatch.setenv("GOLDEN_LLM_BASE_URL", f"{server.address}/v1")
        yield server


def test_model_words_the_lessons_and_what_it_says_waits(golden: Golden, model: ModelServer) -> None:
    said = "After a column was renamed, read it under its new name everywhere, amount first."
    model.behave(says(json.dumps({"lesson": said, "why": "the column was renamed"})))
    told = golden("learn").out
    assert said not in told
    assert " (in the model's words, waits for approval)" in told
    assert "read the total column" in str(model.requests[0][2])
    assert golden("learn", "--json").json["model"] == {"lessons": [], "refused": 0, "left": 0}


def test_model_that_hangs_costs_no_more_than_the_budget(golden: Golden, model: ModelServer) -> None:
    model.behave(hangs)
    with without_hanging():
        told = golden("learn", "--budget", "1s").out
    assert "1 lesson the model has not worded yet" in told


def test_model_that_cannot_be_used_is_bad_input(golden: Golden, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDEN_LLM_MODEL", "nobody")
    ran = golden("learn")
    assert (ran.code, ran.out) == (2, "")
    assert "GOLDEN_LLM_MODEL" in ran.err


def test_what_could_not_be_read_is_told(golden: Golden, gate: Gate) -> None:
    forget(gate)
    with Store.open(gate.store) as store, store.write() as connection:
        number = connection.scalars(select(gate_results.c.number).order_by(gate_results.c.number)).all()[1]
        connection.execute(update(gate_results).where(gate_results.c.number == number).values(result=["nothing"]))
        # A change whose result is gone.
        insert_all_new(connection, [MemoryDraft(TURNS, "entry_x", {})], 0)
    ran = golden("learn")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:2] == ["learned from 2 results", "1 result could not be read"]


@pytest.mark.parametrize("budget", ["0", "soon", "-1s", ""])
def test_bad_budget_is_one_sentence(golden: Golden, gate: Gate, budget: str) -> None:
    ran = golden("learn", f"--budget={budget}")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("golden: --budget")


def test_pairs_for_training_are_written(golden: Golden, folder: Path) -> None:
    with AgentMemory("fixer", folder / "a.db") as memory:
        for success in (False, True):
            with memory.task("Load the orders") as task:
                task.attempt("bash", {"command": f"load {success}"}, None if success else RuntimeError("boom"))
                task.done(success)
    ran = golden("learn", "--export", "pairs.jsonl", "--store", "a.db")
    assert (ran.code, ran.out) == (0, "wrote 1 pair of a success and a failure to pairs.jsonl\n")
    assert json.loads((folder / "pairs.jsonl").read_text())["prompt"] == "Load the orders"
    told = golden("learn", "--export", "pairs.jsonl", "--agent", "nobody", "--store", "a.db", "--json").json
    assert told == {"pairs": 0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--export", "x", "--from", "y"), "--from, --export and --history are different tasks"),
        (("--export", "x", "--agent", " "), "--agent is blank"),
        (("--export", "no/such/folder/x"), "cannot be written"),
        (("--export", "a.db"), "is the store itself"),
        (("--agent", "x"), "give it with --from FILE or --export FILE"),
    ],
)
def test_a_bad_export_is_one_sentence(golden: Golden, folder: Path, arguments: tuple[str, ...], said: str) -> None:
    Store.open(folder / "a.db").close()
    ran = golden("learn", *arguments, "--store", "a.db")
    assert ran.code == 2
    assert said in ran.err


def test_without_a_store_there_is_nothing_to_learn_from(golden: Golden) -> None:
    ran = golden("learn", "--json")
    assert ran.code == 2
    assert "pytest --golden" in ran.json["error"]


def test_fixes_older_than_the_store_teach_by_being_run(
    folder: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    (folder / ".git").rmdir()
    gate = Gate(folder)
    gate.begin()
    (folder / ".gitignore").write_text(".golden\n")
    gate.commit(WORKS, "It works")
    gate.commit(BROKEN, "Tidy the loader")
    fix = gate.commit(WORKS + "# read\n", "Fix the name of the amount column (#12)")
    gate.commit(WORKS + "# more\n", "Handle nothing new")
    (folder / "README.md").write_text("For people.\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Fix the typo in the readme")
    told = golden("learn", "--history", "--since", "1.year", "--json")
    assert told.code == 0, told.err
    plain = told.json
    assert [plain[name] for name in ("fixes", "run", "known", "unnoticed")] == [2, 2, 0, 1]
    (lesson,) = plain["lessons"]
    assert lesson["evidence"]["from_history"] == fix
    assert lesson["confidence"] == 0.7
    assert lesson["why"].startswith(f"from history: it failed before {fix[:12]} and passed with it")
    # The parent's failure has become known, and the lesson says where it comes from.
    recalled = golden("recall", "KeyError: 'amount'").out
    assert f"fixed by {fix[:7]}: 'Fix the name of the amount column (#12)' (etl/load.py)" in recalled
    assert "from history:" in recalled
    again = golden("learn", "--history", "--json").json
    assert (again["known"], again["lessons"]) == (1, [])
    assert golden("lessons", "list", "--json").json["lessons"][0]["support"] == 1
    assert "0 run" in golden("learn", "--history", "--budget", "1ms").out
    assert git(folder, "worktree", "list").count("\n") == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--since", "2.years"), "give them with --history"),
        (("--run", "3"), "give them with --history"),
        (("--history", "--from", "x"), "different tasks"),
        (("--history", "--run", "0"), "give a number from 1 to 1000"),
        (("--history", "--since", ""), "is not a date"),
    ],
)
def test_what_cannot_be_learned_from_history_is_refused(golden: Golden, words: tuple[str, ...], told: str) -> None:
    Path("golden_projects.yaml").write_text("golden_projects: []\n")
    ran = golden("learn", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
