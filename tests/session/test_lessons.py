"""What a session teaches the next one: a fix becomes a lesson, is shown at the next failure alike, and is credited."""

from __future__ import annotations

import json
import venv
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from pytest_golden.cli.main import main
from pytest_golden.history.inputs import InputReader
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.storage.schema import lesson_recalls, lesson_signatures
from pytest_golden.storage.store import Store
from tests.installed import while_nothing_is_installed
from tests.repository import git

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.learning.lessons.model import SkillMemory
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

BREAKS = "echo \"KeyError: 'amount' in row 17\" >&2; exit 3"
BREAKS_ALIKE = "echo \"KeyError: 'price' in row 4711\" >&2; exit 3"
BREAKS_OTHERWISE = "echo 'disk on fire' >&2; exit 3"
WORKS = "echo fine"


class Repository:
    """A workspace under git, whose one pipeline is changed by commits."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.path = workspace.path
        git(self.path, "init", "-q", "-b", "main")
        (self.path / ".gitignore").write_text(".golden\n*.json\n")

    def commit(self, script: str, subject: str, **keys: Any) -> str:
        self.workspace.declare({"name": "sales", "script": script, **keys})
        return self.commit_all(subject)

    def commit_all(self, subject: str) -> str:
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "-m", subject)
        return git(self.path, "rev-parse", "HEAD")

    def run(self, *arguments: str) -> str:
        return str(self.workspace.run(*arguments).stdout)

    def known(self, kind: str = "lesson") -> list[dict[str, Any]]:
        """Run, and give what the gate report knows of the failure."""
        self.run("--golden-json=out.json")
        result = json.loads((self.path / "out.json").read_text())["results"][0]
        return [one for one in result["known"] if one["kind"] == kind]


@while_nothing_is_installed
def test_data_outside_git_that_broke_a_project_is_told_and_what_mended_it_becomes_a_lesson(
    workspace: Workspace,
) -> None:
    repository = Repository(workspace)
    (repository.path / ".gitignore").write_text(".golden\n*.json\ndata/\n")
    script = (
        "set -e; echo x > written.txt; grep -q amount data/orders.csv || { echo \"KeyError: 'amount'\" >&2; exit 3; }"
    )
    data = repository.path / "sales" / "data" / "orders.csv"
    data.parent.mkdir(parents=True)
    data.write_text("id,amount\n")
    repository.commit(script, "it works", pass_env=["ORDERS_TOKEN"])
    repository.run()
    data.write_text("id,total\n")
    (changed,) = repository.known("changed_since_pass")
    assert changed["inputs"] == ["sales/data/orders.csv changed (10B -> 9B)"]
    assert changed["lines"][1] == "inputs: sales/data/orders.csv changed (10B -> 9B)"
    data.write_text("id,amount\n1,2\n")
    repository.run()
    data.write_text("id,total\n")
    (known,) = repository.known()
    assert known["lines"] == [
        "lesson: input data that git does not hold was changed",
        f"  fixed at {git(repository.path, 'rev-parse', 'HEAD')[:7]}, by no commit"
        " (sales/data/orders.csv changed (9B -> 14B))",
    ]


def test_inputs_that_cannot_be_looked_at_cost_a_warning(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.declare({"name": "sales"})

    def read(*_: object) -> None:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(InputReader, "read", read)
    ran = workspace.run()
    assert ran.ret == 0
    ran.stdout.fnmatch_lines(["*WARNING: the inputs of sales are not known: the disk is on fire*"])


@pytest.fixture
def repository(workspace: Workspace) -> Repository:
    return Repository(workspace)


def lessons(recorded: Recorded, agent: str | None = None) -> list[SkillMemory]:
    with Store.open(recorded.path) as store:
        return list(Lessons(store).list_lessons(agent, include_superseded=True))


def test_address_with_a_port_in_error_and_commit_costs_no_lesson(repository: Repository, recorded: Recorded) -> None:
    repository.commit("echo 'OSError: 10.0.17.55:5432 does not answer' >&2; exit 3", "Ask 10.0.17.55:5432 directly")
    repository.run()
    repository.commit(WORKS, "Wait for 10.0.17.55:5432 to answer")
    repository.run()
    (lesson,) = lessons(recorded)
    assert "Wait for 10.0.17.55:5432 to answer" in json.dumps(lesson.to_dict())


def recalls(recorded: Recorded) -> list[tuple[str | None, str | None, bool | None]]:
    with Store.open(recorded.path) as store, store.read() as connection:
        rows = connection.execute(select(lesson_recalls).order_by(lesson_recalls.c.number))
        return [(row.project, row.entry_id, row.passed) for row in rows]


def break_and_fix(repository: Repository) -> str:
    repository.commit(WORKS, "it works")
    repository.run()
    repository.commit(BREAKS, "rename amount to total")
    repository.run()
    fix = repository.commit(WORKS + " # now", "cast ids to str before the join")
    repository.run()
    return fix


def test_next_failure_alike_is_answered_by_the_fix_of_the_first(
    repository: Repository,
    recorded: Recorded,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(repository.path)
    fix = break_and_fix(repository)
    (skill,) = lessons(recorded)
    assert skill.lesson == 'the fix changed a shell script: "cast ids to str before the join"'
    assert (skill.kind, skill.source, skill.approved) == ("project_fix", "rules", True)
    assert skill.evidence["project"] == "sales"
    assert skill.evidence["error"] == "KeyError: 'amount' in row 17"
    assert [one["commit"] for one in skill.evidence["commits"]] == [fix]
    assert skill.evidence["files"] == ["sales/run.sh"]
    past = recorded.past("sales")
    assert {skill.evidence["failed_entry"], skill.evidence["passed_entry"]} <= {one.entry_id for one in past}
    # The recorded failure is told with what fixed it since.
    kinds = []
    for learning in ("on", "off"):
        with monkeypatch.context() as variables:
            variables.setenv("GOLDEN_LEARNING", learning)
            capsys.readouterr()
            assert main(["report", past[1].entry_id, "--json"]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        kinds.append([one["kind"] for one in result["known"]].count("lesson"))
    assert kinds == [1, 0]
    repository.commit(BREAKS_OTHERWISE, "fire")
    assert repository.known() == []
    repository.commit(BREAKS_ALIKE, "prices now")
    # A session that does not learn keeps nothing of what it shows.
    for learning, recall_ids in (("off", []), ("recall", [""])):
        told = repository.run(f"--golden-learning={learning}", "--golden-json=out.json")
        assert ("lesson: the fix changed" in told) is bool(recall_ids)
        known = json.loads((repository.path / "out.json").read_text())["results"][0]["known"]
        assert [one["recall_id"] for one in known if one["kind"] == "lesson"] == recall_ids
    assert recalls(recorded) == []
    summary = tmp_path / "summary.md"
    with monkeypatch.context() as variables:
        variables.setenv("GITHUB_ACTIONS", "true")
        variables.setenv("GITHUB_STEP_SUMMARY", str(summary))
        told = repository.run("--golden-json=out.json")
    assert "seen before in sales: last fixed by " in told
    assert "lesson: the fix changed a shell script" in told
    assert f"fixed by {fix[:7]}: 'cast ids to str before the join' (sales/run.sh)" in told
    assert "lesson: the fix changed a shell script\n  fixed by" in summary.read_text()
    known = json.loads((repository.path / "out.json").read_text())["results"][0]["known"]
    (lesson,) = (one for one in known if one["kind"] == "lesson")
    assert (lesson["why"], lesson["lines"][0]) == ("signature", "lesson: the fix changed a shell script")
    assert lesson["recall_id"].startswith("recall_")
    assert lesson["lesson"]["id"] == skill.id
    assert recalls(recorded) == [("sales", recorded.past("sales")[0].entry_id, None)]
    repository.commit(WORKS + " # fixed", "read the right column")
    repository.run("--golden-learning=off")
    assert lessons(recorded) == [skill]
    # Lessons that cannot be recalled are said once and cost nothing else.
    with Store.open(recorded.path) as store, store.write() as connection:
        lesson_signatures.drop(connection)
    repository.commit(BREAKS_ALIKE, "prices once more")
    told = repository.run()
    assert told.count("golden: WARNING: lessons cannot be recalled") == 1
    assert "seen before in sales: last fixed by " in told


def test_pass_credits_a_lesson_that_was_shown_and_the_same_failure_charges_it_once(
    repository: Repository, recorded: Recorded
) -> None:
    break_and_fix(repository)
    repository.commit(BREAKS_ALIKE, "prices now")
    repository.run()
    repository.commit(BREAKS_ALIKE + " # tried", "try something")
    # What is tried in vain charges it, and the same tried again once more, however often it is run.
    for charged in (1, 2, 2):
        repository.run()
        assert [(one.success_count, one.harm_count) for one in lessons(recorded)] == [(0, charged)]
    assert [passed for *_, passed in recalls(recorded)] == [False, False, False, None]
    repository.commit(WORKS + " # again", "cast ids to str before the join, again")
    for _ in range(2):
        repository.run()
        first = min(lessons(recorded), key=lambda one: one.created_at)
        assert (first.success_count, first.harm_count) == (1, 2)
    assert [passed for *_, passed in recalls(recorded)] == [False, False, False, True]


def test_pass_on_the_same_commit_teaches_nothing(repository: Repository, recorded: Recorded) -> None:
    flag = repository.path / ".golden-flag"
    (repository.path / ".gitignore").write_text(".golden*\n*.json\n")
    repository.commit(f"test -e {flag} || {{ {BREAKS}; }}", "it depends on the weather")
    repository.run()
    flag.touch()
    repository.run()
    assert lessons(recorded) == []


def test_change_of_papers_alone_teaches_nothing(repository: Repository, recorded: Recorded) -> None:
    flag = repository.path / ".golden-flag"
    (repository.path / ".gitignore").write_text(".golden*\n*.json\n")
    repository.commit(f"test -e {flag} || {{ {BREAKS}; }}", "it depends on the weather")
    repository.run()
    flag.touch()
    (repository.path / "README.md").write_text("words\n")
    repository.commit_all("describe it")
    repository.run()
    assert lessons(recorded) == []


def test_fix_outside_git_teaches_nothing(workspace: Workspace, recorded: Recorded) -> None:
    for script in (WORKS, BREAKS, WORKS + " # fixed"):
        workspace.declare({"name": "sales", "script": script})
        workspace.run()
    assert lessons(recorded) == []
    assert [name for name in recorded.namespaces() if name.startswith(("learning", "breaks"))] == []


def test_edit_without_a_commit_is_told_as_one(repository: Repository, recorded: Recorded) -> None:
    repository.commit(BREAKS, "broken from the start")
    repository.run()
    repository.workspace.write_pipeline("sales", WORKS)
    repository.run()
    (skill,) = lessons(recorded)
    assert skill.lesson == "the fix changed a shell script, after: KeyError: <value> in row <n>"
    assert skill.confidence == 0.7
    repository.workspace.write_pipeline("sales", BREAKS_ALIKE)
    assert "that was not committed (sales/run.sh)" in repository.known()[0]["lines"][1]


def test_edit_that_was_committed_later_is_told_by_its_commit(repository: Repository, recorded: Recorded) -> None:
    repository.commit(BREAKS, "broken from the start")
    repository.run()
    repository.workspace.write_pipeline("sales", WORKS)
    repository.run()
    fix = repository.commit_all("read the total column")
    repository.commit(WORKS + " # more", "something else")
    repository.run()
    assert len(lessons(recorded)) == 1
    repository.commit(BREAKS_ALIKE, "prices now")
    (known,) = repository.known()
    assert known["lines"][1] == f"  fixed by {fix[:7]}: 'read the total column' (sales/run.sh)"


def test_version_that_was_pinned_back_is_the_lesson(repository: Repository, recorded: Recorded) -> None:
    venv.create(repository.path / ".golden-venv", symlinks=True)
    (site,) = (repository.path / ".golden-venv").glob("lib/python*/site-packages")
    (site / "pandas-2.3.0.dist-info").mkdir()
    (repository.path / ".gitignore").write_text(".golden*\n*.json\n")
    script = (
        f"test -e {site}/pandas-2.2.3.dist-info || {{ echo \"AttributeError: pandas has no 'append'\" >&2; exit 1; }}"
    )
    repository.commit(script, "append the orders", venv=".golden-venv")
    repository.run()
    (site / "pandas-2.3.0.dist-info").rename(site / "pandas-2.2.3.dist-info")
    repository.run()
    (skill,) = lessons(recorded)
    assert skill.lesson == "pandas 2.3.0 was pinned back to 2.2.3"
    assert skill.evidence["versions"] == ["pandas 2.3.0 -> 2.2.3 (in .golden-venv)"]
    (site / "pandas-2.2.3.dist-info").rename(site / "pandas-2.3.1.dist-info")
    commit = git(repository.path, "rev-parse", "--short=7", "HEAD")
    assert repository.known()[0]["lines"] == [
        "lesson: pandas 2.3.0 was pinned back to 2.2.3",
        f"  fixed at {commit}, by no commit",
    ]


def test_manifest_key_that_was_changed_is_the_lesson(repository: Repository, recorded: Recorded) -> None:
    repository.commit("sleep 300", "slow", timeout=0.5)
    repository.run()
    repository.commit("sleep 0", "faster", timeout=90)
    repository.run()
    (skill,) = lessons(recorded)
    assert skill.lesson.startswith(
        "the manifest's timeout was changed from 0.5s to 90s; the fix changed a shell script"
    )


def test_pass_on_another_branch_fixes_nothing(repository: Repository, recorded: Recorded) -> None:
    repository.commit(WORKS, "it works")
    repository.run()
    git(repository.path, "checkout", "-q", "-b", "feature")
    repository.commit(BREAKS, "experiment")
    repository.run()
    git(repository.path, "checkout", "-q", "main")
    repository.commit(WORKS + " # more", "something else")
    repository.run()
    assert lessons(recorded) == []
    git(repository.path, "checkout", "-q", "feature")
    repository.commit(WORKS + " # good", "read the right column")
    repository.run()
    assert [one.evidence["commits"][0]["subject"] for one in lessons(recorded)] == ["read the right column"]
