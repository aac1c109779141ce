from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.journal.service import Journal
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.storage.store import Store
from tests.installed import while_nothing_is_installed
from tests.patience import wait_until
from tests.repository import MANIFEST, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Golden, Ran

pytestmark = pytest.mark.usefixtures("temporary_folder", "warm_gates")

DIFFERS = "printf 'id\\n2\\n' > x.csv; printf 'id\\n1\\n' > y.csv\n"
# Of its runs, the second and the fourth fail.
FLAKY = "runs=$(cat {counter}); echo $((runs + 1)) > {counter}; test $runs -ne 1 -a $runs -ne 3\n"


@pytest.fixture
def repository(folder: Path) -> Repository:
    return Repository(folder)


@pytest.fixture
def committed(repository: Repository) -> Repository:
    """A base on the branch main: one project passes, one fails; the branch topic is checked out."""
    repository.declare("works", "broken")
    repository.script("works", "echo fine\n")
    repository.script("broken", "exit 3\n")
    repository.commit("base")
    repository.git("checkout", "-q", "-b", "topic")
    return repository


def verdicts(ran: Ran) -> dict[str, str]:
    return {project["name"]: project["verdict"] for project in ran.json["projects"]}


def projects(ran: Ran) -> dict[str, Any]:
    return {project["name"]: project for project in ran.json["projects"]}


def left_behind(temporary_folder: Path) -> list[str]:
    return [path.name for path in temporary_folder.glob(f"{PRIVATE_PREFIX}*")]


@pytest.fixture
def changed(repository: Repository, temporary_folder: Path, tmp_path: Path) -> Repository:
    """A base on the branch main, which a gate has run there, and edits that do something else to each project."""
    counter = tmp_path / "flaky" / "counter"
    counter.parent.mkdir()
    counter.write_text("0\n")
    outputs = "outputs: [{path: x.csv}, {path: y.csv}]"
    more = {
        "works": "",
        "same": outputs,
        "more": outputs,
        "other": outputs,
        "flaky": f"mounts: [{{path: {counter.parent}, mode: write}}]",
    }
    entries = "".join(f"  - {{name: {name}, path: {name}/run.sh, {keys}}}\n" for name, keys in more.items())
    skips = "skip_if_missing: [no-such-program]"

    def declare(*projects: tuple[str, str]) -> None:
        rest = "".join(f"  - {{name: {name}, path: {name}/run.sh, {keys}}}\n" for name, keys in projects)
        repository.write(golden_projects__yaml=f"golden_projects:\n{entries}{rest}")

    declare(("stays", ""), ("goes", ""))
    scripts = {"works": "echo fine\n", "flaky": FLAKY.format(counter=counter)}
    for name in (*more, "stays", "goes", "comes"):
        repository.script(name, scripts.get(name, DIFFERS if more.get(name) else "true\n"))
        repository.write(**{f"golden_baselines___{name}___{output}__csv": "id\n1\n" for output in "xy"})
    repository.commit("base")
    gate = [sys.executable, "-m", "pytest", "--golden", "-q"]
    assert subprocess.run(gate, cwd=repository.folder, capture_output=True, check=False).returncode == 1
    repository.git("checkout", "-q", "--detach")
    declare(("stays", skips), ("comes", ""))
    repository.script("works", "echo 'no such table: orders' >&2; exit 1\n")
    repository.script("same", f"# Nothing else.\n{DIFFERS}")
    repository.script("more", "printf 'id\\n2\\n' > x.csv; printf 'id\\n9\\n' > y.csv\n")
    repository.script("other", "echo 'no such table: orders' >&2; exit 1\n")
    repository.script("comes", "false\n")
    return repository


def test_what_this_change_broke_is_told_from_what_was_broken_before(
    changed: Repository, golden: Golden, temporary_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = changed.git("rev-parse", "HEAD")
    with monkeypatch.context() as hook:
        # As in a hook of git, where these would lead to one index whatever the folder.
        hook.setenv("GIT_INDEX_FILE", "nowhere")
        hook.setenv("GIT_DIR", "nowhere")
        first = golden("verify", "--base", "main", "--repeat", "2", "--floor", "accept")
    assert first.code == 1
    assert f"base main ({base[:12]}), head {base[:12]} with edits" in first.err
    assert "base: 4 PASSED, 3 FAILED, from earlier runs" in first.err
    assert "base: running same, more, other anew, since only a run of today can excuse a failure" in first.err
    assert "head: running same" not in first.err
    assert "2 of 2 passed  0 of 2 passed  this change broke it, and it repeats byte for byte" in first.out
    assert "FAILED: exit code 1, expected 0: no such table: orders" in first.out
    assert "it failed before this change too, for the same reason" in first.out
    assert "  on the base it failed for another reason: x.csv differs from its baseline" in first.out
    assert "weakened floor\n  stays: skip_if_missing gained no-such-program" in first.out
    assert (
        "3 new regressions; 1 known, 1 new project, 1 unstable, 1 removed, 1 skipped; the floor is weaker, which is"
        " accepted" in " ".join(first.out.split())
    )
    head = changed.commit("break it")
    again = golden("verify", "--base", "main", "--repeat", "2", "--json")
    assert again.code == 1
    assert again.json["base"] == {
        "ref": "main",
        "commit": base,
        "ref_commit": base,
        "available": True,
        "reused": True,
        "reason": None,
    }
    assert again.json["head"] == {"commit": head, "dirty": False}
    told = (again.json["schema_version"], again.json["new_regressions"], again.json["exit_code"])
    assert told == (1, ["works", "more", "other"], 1)
    assert verdicts(again) == {
        "works": "new_regression",
        "same": "known",
        "more": "new_regression",
        "other": "new_regression",
        "flaky": "unstable",
        "stays": "skipped",
        "comes": "new_project",
        "goes": "removed",
    }
    works, same, more, flaky = (projects(again)[name] for name in ("works", "same", "more", "flaky"))
    assert (works["base_status"], works["head_status"]) == ("PASSED", "FAILED")
    assert works["repeats"] == {"base": {"passed": 2, "failed": 0}, "head": {"passed": 0, "failed": 2}}
    assert works["p_value"] is None
    assert works["base_reasons"] == []
    assert works["head_reasons"] == [{"kind": "exit_code", "message": "exit code 1, expected 0: no such table: orders"}]
    reasons = [[(reason["kind"], reason["path"]) for reason in same[f"{side}_reasons"]] for side in ("base", "head")]
    assert reasons == [[("output_differs", "x.csv")]] * 2
    assert more["repeats"] == {"base": {"passed": 0, "failed": 2}, "head": {"passed": 0, "failed": 2}}
    assert [reason["path"] for reason in more["base_reasons"]] == ["x.csv"]
    assert [reason["path"] for reason in more["head_reasons"]] == ["x.csv", "y.csv"]
    assert flaky["repeats"] == {"base": {"passed": 1, "failed": 0}, "head": {"passed": 1, "failed": 1}}
    assert flaky["p_value"] >= 0.05
    kinds = {(one["project"], one["kind"]) for one in again.json["weakened_floor"]}
    assert {("goes", "project_gone"), ("stays", "not_run"), ("stays", "skip_if_missing")} <= kinds
    assert changed.worktrees() == [str(changed.folder)]
    assert left_behind(temporary_folder) == []
    with Journal.open(changed.folder / ".golden" / "golden.db") as journal:
        entries = journal.review_journal(agent_id="golden", intent_type="verify")
    assert [entry.assessment for entry in entries] == ["failure", "failure"]


def test_first_manifest_is_judged_alone(repository: Repository, golden: Golden) -> None:
    repository.script("a", "true\n")
    repository.script("b", "echo 'no such table: b' >&2; exit 1\n")
    before = repository.commit("before")
    repository.declare("a", "b")
    ran = golden("verify", "--base", "HEAD")
    told = f"the base {before[:12]} has no manifest, so there is nothing to compare with: the head is judged on its own"
    assert (ran.code, f"golden: {told}" in ran.err) == (1, True)
    assert "failing b\n  FAILED: exit code 1, expected 0: no such table: b" in ran.out
    assert "the first manifest: 1 of 2 failing; 2 new projects\n" in ran.out
    assert "weakened" not in ran.out


OUTPUTS = "golden_projects: [{name: a, path: a/run.sh, outputs: [{path: out.csv}]}]\n"


def test_base_without_the_baselines_that_git_ignores_is_never_green(repository: Repository, golden: Golden) -> None:
    repository.write(golden_projects__yaml=OUTPUTS, __gitignore="*.csv\n")
    repository.script("a", "echo 1 > out.csv\n")
    baseline = repository.folder / "golden_baselines" / "a" / "out.csv"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("1\n")
    repository.commit("base")
    repository.script("a", "echo wrong > out.csv\n")
    ran = golden("verify", "--base", "HEAD", "--json")
    assert (ran.code, ran.json["exit_code"], ran.json["projects"]) == (3, 3, [])
    sentence = (
        "golden_baselines/a/out.csv is ignored by .gitignore:1 (`*.csv`): add `!golden_baselines/**` below it and commit"
        " the baselines"
    )
    lacks = "the base lacks baselines that only this working tree has: "
    assert ran.json["base"]["reason"] == lacks + sentence
    assert f"note: {sentence}" in " ".join(golden("check").out.split())
    found = {one["subject"]: one for one in golden("doctor", "--json").json["findings"]}
    assert f"{found['baselines']['told']}: {found['baselines']['advice']}" == sentence
    # Git does not ignore it, but only the head has it.
    repository.write(golden_projects__yaml=OUTPUTS, __gitignore="")
    repository.commit("baseline")
    ran = golden("verify", "--base", "HEAD~1", "--json")
    assert (ran.code, ran.json["projects"]) == (3, [])
    assert ran.json["base"]["reason"].startswith(
        "a fails on the head, and the base has no baseline for out.csv: commit baselines that are accepted on the base"
    )


def test_setup_installs_what_the_base_runs_and_brings_its_baselines_and_nothing_for_the_head(
    repository: Repository, golden: Golden
) -> None:
    bring = "setup: [sh, -c, 'cp -r $GOLDEN_HEAD/golden_baselines . && exec python prepare.py']\n"
    repository.write(
        golden_projects__yaml=f"{bring}{OUTPUTS[:-2]}, {{name: uses, path: uses/run.py}}]\n",
        prepare__py="import shutil, sysconfig\nshutil.copy('thing.py', sysconfig.get_path('purelib'))\n",
        thing__py="VALUE = 'of the base'\n",
        uses___run__py="import thing\nassert thing.VALUE == 'of the base'\n",
        __gitignore="*.csv\n",
        golden_baselines___a___out__csv="1\n",
    )
    repository.script("a", "echo 1 > out.csv\n")
    repository.commit("a package")
    repository.script("a", "echo wrong > out.csv\n")
    ran = golden("verify", "--base", "HEAD", "--json", "--fresh", "--repeat", "1")
    assert (ran.code, verdicts(ran)) == (1, {"a": "new_regression", "uses": "new_regression"})
    uses = projects(ran)["uses"]
    assert (uses["base_status"], uses["head_status"]) == ("PASSED", "FAILED")
    assert "base: running its `setup:`" in ran.err


def test_moved_manifest_is_compared_with_what_it_was(repository: Repository, golden: Golden) -> None:
    repository.write(
        old___golden_projects__yaml="golden_projects: [{name: a, path: run.sh}, {name: b, path: run.sh}]\n"
    )
    repository.script("old", "true\n")
    repository.commit("base")
    repository.git("rm", "-q", "old/golden_projects.yaml")
    repository.write(golden_projects__yaml="golden_projects: [{name: a, path: old/run.sh}]\n")
    repository.script("old", "exit 1\n")
    ran = golden("verify", "--base", "HEAD", "--json", "--repeat", "1")
    assert (ran.code, verdicts(ran)) == (1, {"a": "new_regression", "b": "removed"})
    assert ("b", "project_gone") in {(one["project"], one["kind"]) for one in ran.json["weakened_floor"]}


def test_what_the_store_does_not_take_of_either_side_waits_for_the_next_gate(
    committed: Repository, golden: Golden
) -> None:
    state = committed.folder / ".golden"
    Store.open(state / "golden.db").close()
    with closing(sqlite3.connect(state / "golden.db")) as store, store:
        store.execute("UPDATE golden_version SET version_num = '9999'")
    ran = golden("verify", "--base", "main", "--json")
    assert (ran.code, verdicts(ran)) == (0, {"works": "ok", "broken": "known"})
    begun = [json.loads(file.read_text().splitlines()[0]) for file in sorted((state / "spool").glob("*.jsonl"))]
    places = {PRIVATE_PREFIX in one["workspace_root"] for one in begun}
    assert (len(begun), places) == (2, {True, False})
    assert "lost" not in ran.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("setup: [sh, -c, 'echo no mirror; exit 9']\n", "`setup:` ended with exit code 9: no mirror. Mend that, or"),
        (
            "",
            "the gate of the base ended with exit code 4: RuntimeError: broken conftest (conftest.py:1). Mend that, or"
            " give a --base that can be run. All that it printed is in {log}",
        ),
    ],
)
def test_base_that_cannot_be_run_is_never_green(
    repository: Repository, golden: Golden, more: str, told: str, temporary_folder: Path
) -> None:
    repository.declare("a", more=more)
    repository.script("a", "true\n")
    if not more:
        repository.write(conftest__py="raise RuntimeError('broken conftest')\n")
    repository.commit("base")
    (repository.folder / "conftest.py").unlink(missing_ok=True)
    ran = golden("verify", "--base", "HEAD", "--json")
    assert ran.code == ran.json["exit_code"] == 3
    assert ran.json["base"]["available"] is False
    assert ran.json["projects"] == []
    log = repository.folder / ".golden" / "verify-base.log"
    assert told.format(log=log) in ran.json["base"]["reason"]
    assert log.is_file()
    assert "base unavailable: " in ran.err
    assert repository.worktrees() == [str(repository.folder)]
    assert left_behind(temporary_folder) == []


def test_unknown_ref_and_no_git_are_no_base(golden: Golden, committed: Repository, tmp_path: Path) -> None:
    unknown = golden("verify", "--base", "origin/nowhere")
    assert unknown.code == 3
    assert unknown.out == ""
    assert (
        "base unavailable: there is no such commit here. Check its name, or fetch it first: git fetch origin nowhere"
        in unknown.err
    )
    asked = golden("verify", "--base", "nowhere", "--json")
    assert (asked.code, asked.json["base"]["commit"], asked.json["exit_code"]) == (3, None, 3)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / MANIFEST).write_text("golden_projects: []\n")
    plain = golden("verify", "--base", "main", "--manifest", str(outside / MANIFEST))
    assert plain.code == 3
    assert "is not in a git repository" in plain.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--base", "main", "--repeat", "0"), "--repeat 0: give a number from 1"),
        (("--base=",), "--base '' is not a git ref"),
        (("--base=-x",), "--base '-x' is not a git ref"),
        ((), "the following arguments are required: --base"),
        (("--base", "main", "--manifest", "nowhere.yaml"), "nowhere.yaml is not there"),
        (("--base", "main", "--store", "golden_projects.yaml"), "golden_projects.yaml is not a golden store"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    golden: Golden, committed: Repository, words: tuple[str, ...], told: str
) -> None:
    ran = golden("verify", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_heads_manifest_and_gate_must_be_usable(golden: Golden, committed: Repository, temporary_folder: Path) -> None:
    committed.write(
        conftest__py="import os\nif os.getcwd().endswith('judge'):\n    raise RuntimeError('broken conftest')\n"
    )
    committed.commit("a base that does not judge")
    broken = golden("verify", "--base", "HEAD")
    assert broken.code == 2
    assert "the gate of the head ended with exit code 4: RuntimeError: broken conftest (conftest.py:3)" in broken.err
    assert (committed.folder / ".golden" / "verify-head.log").is_file()
    committed.write(golden_projects__yaml="golden_projects: [{nam: a}]\n")
    ran = golden("verify", "--base", "main", "--json")
    assert ran.code == 2
    assert "golden_projects.yaml:1:" in json.loads(ran.out)["error"]
    assert left_behind(temporary_folder) == []


def test_failure_that_the_bases_missing_submodule_may_have_caused_excuses_nothing(
    repository: Repository, golden: Golden, tmp_path: Path
) -> None:
    (tmp_path / "library").mkdir()
    library = Repository(tmp_path / "library")
    library.write(file="content")
    library.commit()
    repository.git("submodule", "add", "-q", str(library.folder), "a/sub")
    repository.declare("a")
    repository.script("a", "cat sub/file\n")
    repository.commit("base")
    repository.script("a", "cat sub/file; exit 1\n")
    ran = golden("verify", "--base", "HEAD", "--repeat", "1", "--json")
    assert ran.code == 3
    assert "a failed on the base too, but submodules are empty there (a/sub)" in ran.json["base"]["reason"]
    # What was recorded of such a base does not stand for it later either.
    with Journal.open(repository.folder / ".golden" / "golden.db") as journal:
        (entry,) = journal.review_journal(agent_id="golden", intent_type="verify")
    assert [(len(note["head_runs"]), note["base_runs"]) for note in entry.actions] == [(1, [])]


def test_failure_that_the_bases_missing_ignored_file_may_have_caused_excuses_nothing(
    repository: Repository, golden: Golden
) -> None:
    repository.declare("a", "b")
    repository.script("a", "cat data.csv\n")
    repository.script("b", "exit 1\n")
    repository.write(a___data__csv="1\n", __gitignore="data.csv\n")
    repository.commit("base")
    clean = golden("verify", "--base", "HEAD", "--json")
    assert (clean.code, verdicts(clean)) == (0, {"a": "fixed", "b": "known"})
    repository.script("a", "cat data.csv; exit 1\n")
    # A pass of the base is known from this checkout now, and failing in a worktree does not make it unstable.
    ran = golden("verify", "--base", "HEAD", "--repeat", "2", "--json")
    assert ran.code == 3
    assert ran.json["base"]["reason"].startswith(
        "a failed on the base too, but what git ignores is not there (a/data.csv): let `setup:` copy it"
    )
    assert "base: 1 PASSED, 1 FAILED, from earlier runs" in ran.err


@while_nothing_is_installed
def test_a_change_cannot_reach_its_judge(
    committed: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acts = "import os\nopen(os.environ['WITNESS'], 'a').write(__name__ + '\\n')\n"
    hides = "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n    report = yield\n    report.outcome = 'passed'\n    return report\n"
    witness = tmp_path / "witness"
    monkeypatch.setenv("WITNESS", str(witness))
    monkeypatch.setenv("PYTHONPATH", str(committed.folder))
    committed.script("works", "exit 1\n")
    for module in ("yaml", "sitecustomize", "usercustomize", "pluggy", "sqlalchemy", "json", "helper"):
        committed.write(**{f"{module}__py": acts})
    committed.write(
        conftest__py=acts + hides,
        tests___conftest__py=acts,
        pytest__ini="[pytest]\naddopts = -p helper -k nothing --noconftest\npythonpath = .\n",
    )
    ran = golden("verify", "--base", "main", "--repeat", "2", "--json")
    assert ran.code == 1
    assert verdicts(ran) == {"works": "new_regression", "broken": "known"}
    assert not witness.exists()
    told = {one["message"] for one in ran.json["weakened_floor"]}
    shadows = ("yaml", "sitecustomize", "usercustomize", "pluggy", "sqlalchemy", "json")
    assert told - {
        f"{name}.py: is new, and would be imported instead of the {name} that the judge uses" for name in shadows
    } == {
        "pytest.ini: pythonpath gained .",
        "pytest.ini: addopts gained -p helper -k nothing --noconftest",
        "conftest.py: changed what it does in the gate: open(os.environ['WITNESS'], 'a').write(__name__ + '\\n'), pytest_runtest_makereport",
    }


def test_what_conftests_import_by_pythonpath_is_that_of_the_base(
    repository: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(repository.folder / "lib"))
    repository.declare("works")
    repository.script("works", "echo fine\n")
    repository.write(conftest__py="import rules\nrules.check()\n", lib___rules__py="def check(): pass\n")
    repository.commit("base")
    repository.write(lib___rules__py="raise SystemExit(0)\n", lib___yaml__py="raise SystemExit(0)\n")
    repository.script("works", "exit 1\n")
    ran = golden("verify", "--base", "HEAD", "--repeat", "1", "--json")
    assert verdicts(ran) == {"works": "new_regression"}


def test_manifest_that_is_named_through_a_link_is_judged_like_any_other(
    committed: Repository, golden: Golden, tmp_path: Path
) -> None:
    (tmp_path / "deep" / "down").mkdir(parents=True)
    link = tmp_path / "deep" / "down" / "link"
    link.symlink_to(committed.folder)
    committed.script("works", "exit 1\n")
    ran = golden("verify", "--base", "main", "--manifest", str(link / MANIFEST), "--repeat", "1", "--json")
    assert verdicts(ran) == {"works": "new_regression", "broken": "known"}
    assert (committed.folder / MANIFEST).is_file()


def test_recorded_failure_of_the_base_excuses_nothing(
    repository: Repository, golden: Golden, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    repository.write(golden_projects__yaml="golden_projects: [{name: a, path: a/run.sh, pass_env: [DB_HOST]}]\n")
    repository.script("a", 'test -n "$DB_HOST" || { echo "cannot connect" >&2; exit 1; }\n')
    repository.commit("base")
    gate = [sys.executable, "-m", "pytest", "--golden", "-q"]
    assert subprocess.run(gate, cwd=repository.folder, capture_output=True, check=False).returncode == 1
    repository.script("a", 'echo "cannot connect" >&2; exit 1\n')
    reused = golden("verify", "--base", "HEAD", "--repeat", "2")
    assert "base: running a anew" in reused.err
    assert "it failed before this change too" in reused.out
    monkeypatch.setenv("DB_HOST", "db.internal")
    other = golden("verify", "--base", "HEAD", "--repeat", "2")
    assert other.code == 1
    assert "from earlier runs" not in other.err
    assert "this change broke it" in other.out


def test_base_that_was_skipped_earlier_is_run_when_the_head_fails(
    repository: Repository, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = "{name: a, path: a/run.sh, skip_if_missing: [a-program-of-this-test]}"
    repository.write(golden_projects__yaml=f"golden_projects:\n  - {entry}\n")
    repository.script("a", "true\n")
    repository.commit("base")
    with monkeypatch.context() as strict:
        strict.setenv("GOLDEN_REQUIRE", "1")
        skipped = golden("verify", "--base", "HEAD")
    # The base was skipped too, for the same reason: nothing became worse.
    assert (skipped.code, "weakened floor" in skipped.out) == (1, False)
    assert "no new regression; 1 skipped; the head's gate fails for what was skipped\n" in skipped.out
    program = tmp_path / "programs" / "a-program-of-this-test"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    repository.script("a", "exit 1\n")
    ran = golden("verify", "--base", "HEAD", "--repeat", "1", "--json")
    assert (ran.code, verdicts(ran)) == (1, {"a": "new_regression"})
    assert ran.json["base"]["reused"]
    assert "base: running a anew" in ran.err


# Of this process alone.
SLEEP = f"sleep {10_000 + os.getpid()}"
VERIFY = [sys.executable, "-m", "pytest_golden", "verify", "--base", "HEAD"]


@pytest.fixture
def start(repository: Repository, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a verification and wait until its base is running: a pipeline that has told its process and sleeps."""
    mark = tmp_path / "marked"
    mark.mkdir()
    repository.script("sleeps", f"touch {mark}/running; exec {SLEEP}\n")
    entry = f"{{name: sleeps, path: sleeps/run.sh, mounts: [{{path: {mark}, mode: write}}]}}"
    repository.write(golden_projects__yaml=f"golden_projects:\n  - {entry}\n")
    repository.commit("sleeps")
    # The head does not, so that what runs then is the base.
    repository.script("sleeps", "true\n")
    with ExitStack() as started:

        def begin() -> subprocess.Popen[str]:
            (mark / "running").unlink(missing_ok=True)
            process = subprocess.Popen(VERIFY, cwd=repository.folder, stderr=subprocess.PIPE, text=True)
            started.callback(process.communicate)
            started.callback(process.kill)
            wait_until((mark / "running").exists, 240)
            return process

        yield begin


def test_verification_that_is_ended_leaves_nothing_and_what_a_killed_one_leaves_is_removed_by_the_next(
    start: Callable[[], subprocess.Popen[str]], repository: Repository, temporary_folder: Path
) -> None:
    killed = start()
    killed.kill()
    killed.wait()
    wait_until(lambda: sleepers() == [], 240)
    left, folders = repository.worktrees(), left_behind(temporary_folder)
    assert (len(left), len(folders)) == (3, 1)
    running = start()
    assert (len(repository.worktrees()), len(left_behind(temporary_folder))) == (3, 1)
    assert (repository.worktrees() != left, left_behind(temporary_folder) != folders) == (True, True)
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=240)
    assert running.returncode == 2
    assert "interrupted; nothing was decided" in told
    assert repository.worktrees() == [str(repository.folder)]
    assert left_behind(temporary_folder) == []
    assert sleepers() == []


def sleepers() -> list[str]:
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in told.splitlines() if line == SLEEP]


def test_a_fix_that_no_project_notices_is_named(golden: Golden, committed: Repository) -> None:
    committed.write(sums__py="total = 1\n")
    fix = committed.commit("Fix the total of sums (#3)")
    committed.write(README__md="more\n")
    committed.commit("Fix a word in the documentation")
    ran = golden("verify", "--base", "main")
    assert ran.code == 0, ran.err
    assert "protected by no golden project: none was red before and is green now" in ran.out
    assert f"{fix[:12]} Fix the total of sums (#3)" in ran.out
    assert f"golden init --add --from-fix {fix[:12]}" in ran.out
    told = golden("verify", "--base", "main", "--json").json
    assert told["unprotected_fixes"] == [{"commit": fix, "subject": "Fix the total of sums (#3)"}]


def test_a_fix_that_a_project_notices_is_not_named(golden: Golden, committed: Repository) -> None:
    committed.write(sums__py="total = 1\n")
    committed.script("broken", "exit 0\n")
    committed.commit("Fix the total of sums")
    ran = golden("verify", "--base", "main", "--json")
    assert (ran.json["unprotected_fixes"], verdicts(ran)["broken"]) == ([], "fixed")


def test_a_change_is_a_fix_if_a_person_says_so(golden: Golden, committed: Repository) -> None:
    committed.write(sums__py="total = 1\n")
    # GitHub puts the number of the pull request behind each title.
    change = committed.commit("Sums (#12)")
    committed.write(README__md="sums\n")
    committed.commit("Say it in the documentation")
    assert golden("verify", "--base", "main", "--json").json["unprotected_fixes"] == []
    told = golden("verify", "--base", "main", "--fix", "--json").json
    assert told["unprotected_fixes"] == [{"commit": change, "subject": "Sums (#12)"}]
