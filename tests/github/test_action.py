"""The composite action, run step by step in a clone as GitHub's runner would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.docs.documents import REPOSITORY
from tests.gate_processes import WITHOUT_PLUGINS
from tests.github.comments_api import CommentsApi
from tests.github.expressions import evaluate
from tests.github.runner import ACTION, ACTIONS, Runner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = "golden_projects:\n  - {name: sales, path: sales.sh, timeout: 5m}\n  - {name: fine, path: fine.sh}\n"
NO_SUDO = {"sysctl": '[ "$1" = -n ] && echo 1 || exit 1', "sudo": "exit 1"}


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=120)


def rev_parse(folder: Path, ref: str) -> str:
    return subprocess.run(
        ["git", "rev-parse", ref], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def api() -> Iterator[CommentsApi]:
    with CommentsApi() as server:
        yield server


def make_floor(folder: Path) -> Path:
    """Make a repository with two golden projects."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    (folder / "sales.sh").write_text("echo sold\n")
    (folder / "fine.sh").write_text("echo fine\n")
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = {' '.join(WITHOUT_PLUGINS)}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "A floor")
    return folder


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return make_floor(tmp_path / "origin")


@pytest.fixture
def runner(tmp_path: Path, origin: Path, api: CommentsApi, warm_starts: Path) -> Runner:
    """A runner in a shallow clone of a pull request's branch, which has no branch `main` of origin."""
    git(origin, "checkout", "-q", "-b", "change")
    (origin / "note.txt").write_text("a change\n")
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "A change")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", "--single-branch", "-b", "change", origin.as_uri(), str(clone))
    runner = Runner(tmp_path / "runner", clone, api.url, warm_starts)
    for name, script in NO_SUDO.items():
        runner.write_command(name, script)
    return runner


def pull_request(label: str | None = None, *, repository: str = "me/shop", action: str = "labeled") -> dict[str, Any]:
    labels = [{"name": name} for name in ("bug", label) if name is not None]
    told = {"number": 7, "labels": labels, "head": {"repo": {"full_name": repository}}}
    event = {"pull_request": told, "action": action, "sender": {"login": "ann"}, "label": {"name": label}}
    return {"base_ref": "main", "event": event}


def write_comment(summary: Path, api: CommentsApi) -> str:
    done = subprocess.run(
        [sys.executable, str(ACTIONS / "golden-comment" / "comment.py")],
        env={
            "REPORTS": str(summary.parent),
            "NAME": "golden-report",
            "NUMBER": "7",
            "TOKEN": "t",
            "GITHUB_API_URL": api.url,
            "GITHUB_SERVER_URL": "https://git.example",
            "GITHUB_REPOSITORY": "me/shop",
            "GITHUB_RUN_ID": "1",
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_a_pull_request_gets_one_comment_which_is_updated_and_the_journal_is_kept(
    runner: Runner, api: CommentsApi
) -> None:
    api.comments += [{"id": 1, "user": {"type": "User"}, "body": "<!-- golden-gate golden_report -->"}]
    first = runner.run(pull_request())
    assert first.code == 0, first.log
    # The job of the gate has no token.
    assert api.requests == []
    assert runner.run(pull_request(), "golden-comment").code == 0
    assert len(api.comments) == 2
    assert api.comments[1]["body"].startswith("<!-- golden-gate golden_report -->\n## Golden projects: PASSED\n")
    assert "https://git.example/me/shop/actions/runs/2" in api.comments[1]["body"]

    (runner.workspace / "sales.sh").write_text("echo no such column >&2\nexit 3\n")
    subprocess.run(["rm", "-r", str(runner.workspace / ".golden")], check=True)
    second = runner.run(pull_request())
    assert second.code == 1
    assert second.ran[-1] == "Tell the verdict"
    assert "the comment was updated" in runner.run(pull_request(), "golden-comment").log
    assert len(api.comments) == 2
    assert "## Golden projects: FAILED" in api.comments[1]["body"]
    assert "no such column" in api.comments[1]["body"]
    # What changed since the last pass is known although the folder was gone: the journal came back.
    assert "last passed" in second.log
    assert {line.partition(" ")[0] for line in api.requests} == {"GET", "POST", "PATCH"}
    assert all(line.endswith("Bearer t0ken") for line in api.requests)
    (newest,) = (runner.artifacts / "golden-report").glob("*/golden-report.json")
    report = json.loads(newest.read_text(encoding="utf-8"))
    assert report["gate"]["floor_base"] == rev_parse(runner.workspace, "refs/remotes/origin/main")
    assert "::error file=golden_projects.yaml,line=2,title=sales%3A FAILED::exit code 3" in second.log
    assert "::warning title=golden sandbox::" in second.log
    assert "without a seal" in second.log


def test_a_gate_takes_up_no_journal_of_one_whose_name_only_begins_alike(runner: Runner) -> None:
    for artifact, streak in (("golden-report-slow", False), ("golden-report", False), ("golden-report-slow", True)):
        ran = runner.run({"event": {}, "base_ref": "", "ref_name": "main"}, artifact=artifact)
        assert ran.code == 0, ran.log
        assert ("2nd pass in a row" in ran.log) is streak
        subprocess.run(["rm", "-r", str(runner.workspace / ".golden")], check=True)


def test_a_weakened_floor_is_red_until_the_label_is_there(runner: Runner, api: CommentsApi) -> None:
    (runner.workspace / "golden_projects.yaml").write_text(MANIFEST.replace("5m", "50m"))
    for event in (pull_request("bug"), pull_request("golden-floor-accepted", action="synchronize")):
        red = runner.run(event)
        assert red.code == 1
        assert "Weakened floor" in red.summary
    green = runner.run(pull_request("golden-floor-accepted"), arguments="-k 'sales or fine'")
    assert "::notice title=golden floor::ann accepts a weakened floor of this commit" in green.log
    assert green.code == 0, green.log
    assert "Weakened floor, accepted" in green.summary
    assert api.requests == []


HIDES = (
    "def pytest_cmdline_main(config):\n    return 0\n",
    "import os\nos._exit(0)\n",
    "def pytest_configure(config):\n    config.option.golden_base = None\n    config.option.collectonly = True\n",
)


@pytest.mark.parametrize("hides", HIDES)
def test_a_gate_that_is_kept_from_running_is_red_also_where_no_base_judges(runner: Runner, hides: str) -> None:
    (runner.workspace / "sales.sh").write_text("exit 1\n")
    (runner.workspace / "conftest.py").write_text(hides)
    run = runner.run({"event": {}})
    assert run.code == 3
    assert "::error title=golden gate::pytest ended with 0, but left no report of a gate that passed" in run.log


def test_a_change_does_not_reach_the_judge_of_its_pull_request(runner: Runner) -> None:
    (runner.workspace / "sales.sh").write_text("env | grep ^GITHUB; exit 1\n")
    (runner.workspace / "conftest.py").write_text("".join(HIDES))
    # `python -m` and `python -c` would take these for the modules that they import first.
    for module in ("pytest_golden", "shlex", "json", "pathlib", "argparse"):
        (runner.workspace / f"{module}.py").write_text("raise SystemExit(0)\n")
    run = runner.run(pull_request(), attest="true")
    assert run.code == 1, run.log
    assert "FAILED golden_projects.yaml::sales - exit code 1" in run.log
    assert "GITHUB_OUTPUT=" not in run.log
    assert "floor weakened" in run.log
    (statement,) = (runner.artifacts / "golden-report").glob("*/golden-attestation.json")
    predicate = json.loads(statement.read_text(encoding="utf-8"))["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == ("FAILED", ["sales"])


def test_only_jobs_without_the_changes_code_have_a_token_that_writes() -> None:
    folder = REPOSITORY / ".github" / "workflows"
    jobs = yaml.safe_load((folder / "golden-gate.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["gate"]["permissions"] == {"contents": "read"}
    for name in ("comment", "attest"):
        told = json.dumps(jobs[name]["steps"])
        assert "checkout" not in told
        assert "install" not in told
        own, fork = ({"event": pull_request(repository=one)["event"]} for one in ("me/shop", "you/shop"))
        condition = jobs[name]["if"].removeprefix("${{").removesuffix("}}").replace("!cancelled()", "'true'")
        contexts = {"inputs": {"attest": True}, "needs": {}}
        github = {"repository": "me/shop"}
        assert evaluate(condition, {**contexts, "github": {**github, **own}})
        assert not evaluate(condition, {**contexts, "github": {**github, **fork}})


def test_a_token_that_may_not_write_is_a_notice_and_no_failure(runner: Runner, api: CommentsApi) -> None:
    api.refuses = 403
    run = runner.run(pull_request(), "golden-comment")
    assert run.code == 0, run.log
    assert "::notice title=golden comment::no comment on the pull request (403 Forbidden)" in run.log


def test_a_persons_token_finds_its_own_comment_again(runner: Runner, api: CommentsApi) -> None:
    api.person = "ann"
    marked = "<!-- golden-gate golden_report -->\nquoted"
    api.comments += [{"id": 1, "user": {"type": "Bot", "login": "other[bot]"}, "body": marked}]
    (runner.temporary / "golden-summary.md").write_text("## Golden projects: PASSED\n")
    for _ in range(2):
        told = write_comment(runner.temporary / "golden-summary.md", api)
    assert told == "golden: the comment was updated\n"
    assert [comment["body"] == marked for comment in api.comments] == [True, False]


@pytest.mark.parametrize("arguments", ["--golden-require 'never closed", "-k sales \\"])
def test_arguments_that_cannot_be_read_are_an_error_and_no_gate_without_them(runner: Runner, arguments: str) -> None:
    run = runner.run({"event": {}}, arguments=arguments, keep_journal="false")
    assert run.code == 4
    assert run.ran[-1] == "Run the golden projects"
    assert "::error title=golden arguments::" in run.log
    assert "golden-json" not in run.log


def test_arguments_reach_pytest_as_they_are_quoted_and_nothing_in_them_is_run(runner: Runner) -> None:
    script = "import json, sys; print('GIVEN', json.dumps(sys.argv[-4:]))"
    (runner.temporary / "tell.py").write_text(script)
    run = runner.run(
        {"event": {}},
        python=f"{sys.executable} {runner.temporary / 'tell.py'}",
        arguments="-k 'a\nb' \"$(touch gone)\"\n`id`",
        keep_journal="false",
        artifact="",
    )
    assert 'GIVEN ["-k", "a\\nb", "$(touch gone)", "`id`"]' in run.log
    assert not (runner.workspace / "gone").exists()


def test_a_push_compares_no_floor_and_comments_nothing(runner: Runner, api: CommentsApi) -> None:
    run = runner.run({"event": {}}, keep_journal="false", artifact="")
    assert "the floor is not compared" in run.log
    assert "ref" not in run.steps["base"]["outputs"]
    assert api.requests == []


def test_a_base_that_cannot_be_fetched_is_said_and_refused_by_the_gate(runner: Runner) -> None:
    run = runner.run({**pull_request(), "base_ref": "gone"}, keep_journal="false")
    assert run.code == 3
    assert "::warning title=golden base::" in run.log
    assert "there is no such commit here" in run.log


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ({"sysctl": "echo 0"}, "nothing is to be set"),
        ({"sysctl": '[ "$1" = -n ] && echo 1 || exit 0', "id": "echo 0"}, "was set to 0 for this job:"),
        ({"sysctl": NO_SUDO["sysctl"], "id": "echo 1000", "sudo": "exit 0"}, "for this job by sudo"),
        ({**NO_SUDO, "id": "echo 1000"}, "::warning title=golden sandbox::"),
    ],
)
def test_the_kernel_switch_is_set_where_it_can_be_and_said(runner: Runner, commands: dict[str, str], told: str) -> None:
    for name, script in commands.items():
        runner.write_command(name, script)
    done = subprocess.run(
        ["bash", str(ACTION / "kernel.sh")],
        env={**os.environ, "PATH": f"{runner.commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert told in done.stdout


def test_a_summary_that_is_too_long_for_a_comment_loses_whole_failures_only(api: CommentsApi, tmp_path: Path) -> None:
    head = "## Golden projects: FAILED\n\n" + "".join(f"| row {number} |\n" for number in range(5_000))
    failure = f"<details><summary>sales</summary>\n\n<pre>\n{'x' * 15_000}\n</pre>\n\n</details>\n\n"
    (tmp_path / "golden-summary.md").write_text(head + "\n" + failure * 20)
    told = write_comment(tmp_path / "golden-summary.md", api)
    assert told == "golden: the comment was posted\n"
    body = api.comments[0]["body"]
    assert len(body) < 65_000
    assert body.count("<details>") == body.count("</details>") == 2
    assert "There is more in the summary of the job." in body


def test_the_workflows_pass_on_only_inputs_that_there_are() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    folder = REPOSITORY / ".github" / "workflows"
    called = yaml.safe_load((folder / "golden-gate.yml").read_text(encoding="utf-8"))
    own = yaml.safe_load((folder / "golden.yml").read_text(encoding="utf-8"))
    step = next(step for step in called["jobs"]["gate"]["steps"] if step.get("uses", "").endswith("/golden"))
    # PyYAML reads the key `on` as true.
    declared = called[True]["workflow_call"]["inputs"]
    assert set(step["with"]) <= set(action["inputs"])
    assert set(own["jobs"]["gate"]["with"]) <= set(declared)
    shards = yaml.safe_load((folder / "golden-shards.yml").read_text(encoding="utf-8"))
    step = next(step for step in shards["jobs"]["shard"]["steps"] if step.get("uses", "").endswith("/golden"))
    assert set(step["with"]) <= set(action["inputs"])
    wanted = {name: told for job in called["jobs"].values() for name, told in job["permissions"].items()}
    assert own["jobs"]["gate"]["permissions"] == wanted


def test_on_a_pull_request_the_base_is_installed_and_the_change_apart(runner: Runner, origin: Path) -> None:
    (runner.workspace / "fine.sh").write_text("a change\n")
    git(runner.workspace, "fetch", "-q", "--unshallow", "origin", "main:refs/remotes/origin/main", "change")
    said = "cat fine.sh >>{}; env | grep -c '^GITHUB_ENV=' >>{} || true"
    one, two = runner.temporary / "one", runner.temporary / "two"
    run = runner.run(
        pull_request(), "golden-install", install=said.format(one, one), install_head=said.format(two, two)
    )
    assert run.code == 0, run.log
    assert one.read_text() == "echo fine\n1\n"
    assert two.read_text() == "a change\n0\n"
    python = runner.temporary / "golden-head" / "bin" / "python"
    assert run.steps["install"]["outputs"] == {"arguments": f"--golden-python={python}"}
    assert python.exists()
    pushed = runner.run({"event": {}}, "golden-install", install=f"cat fine.sh >{one}")
    assert (pushed.code, one.read_text()) == (0, "a change\n")
    lost = runner.run({**pull_request(), "base_ref": "gone"}, "golden-install", install="true")
    assert lost.code == 3
    assert "fetch-depth: 0" in lost.log


def test_what_the_base_builds_is_not_tried_in_the_place_of_the_change(runner: Runner) -> None:
    git(runner.workspace, "fetch", "-q", "--unshallow", "origin", "main:refs/remotes/origin/main", "change")
    own = runner.temporary / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(own)], check=True)
    runner.write_command("python", f'exec {own}/bin/python "$@"')
    (packages,) = (own / "lib").glob("python*/site-packages")
    said = (
        f"mkdir -p {packages}/shop-1.dist-info && cd {packages}/shop-1.dist-info && echo 'Name: shop' >METADATA"
        ' && echo "{\\"url\\": \\"file://$OLDPWD\\"}" >direct_url.json'
    )
    refused = runner.run(pull_request(), "golden-install", install=said)
    assert refused.code == 3, refused.log
    assert "::error title=golden install::shop was installed from the base" in refused.log
    git(runner.workspace, "worktree", "remove", "--force", str(runner.temporary / "golden-base"))
    assert runner.run(pull_request(), "golden-install", install=said, install_head="true").code == 0


def test_the_comment_tells_what_the_change_does_to_the_data(runner: Runner, origin: Path, api: CommentsApi) -> None:
    git(origin, "checkout", "-q", "main")
    declared = MANIFEST.replace("timeout: 5m", "outputs: [{path: t.csv, compare: exists}]")
    declared += "  - {name: which, path: which.py, outputs: [{path: p.txt, compare: exists}]}\n"
    (origin / "which.py").write_text("import sys\nopen('p.txt', 'w').write(sys.prefix)\n")
    (runner.workspace / "which.py").write_text("import sys\nopen('p.txt', 'w').write(sys.prefix)\n")
    git(origin, "add", ".")
    (origin / "golden_projects.yaml").write_text(declared)
    (origin / "sales.sh").write_text("printf 'id,n\\n1,2\\n' > t.csv\n")
    git(origin, "commit", "-qam", "Outputs")
    (runner.workspace / "golden_projects.yaml").write_text(declared)
    (runner.workspace / "sales.sh").write_text("printf 'id,n\\n1,3\\n' > t.csv\n")
    own = runner.workspace.parent / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    run = runner.run(pull_request(), data_diff="true", arguments=f"--golden-python={own}/bin/python")
    assert run.code == 0, run.log
    runner.run(pull_request(), "golden-comment")
    (comment,) = api.comments
    told = "<details><summary>What this change does to the data: 2 outputs changed</summary>"
    assert told in comment["body"], run.log
    assert "t.csv differs from the base: 1 row differs in `n`" in comment["body"]
    # The change runs in its own environment, as it does in the gate.
    assert f"+ {own}" in comment["body"]
    (page,) = (runner.artifacts / "golden-report").glob("*/golden-data.html")
    assert "1 row differs in" in page.read_text(encoding="utf-8")
