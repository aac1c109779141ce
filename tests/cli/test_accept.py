from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from pytest_golden.cli.accept import _wait
from pytest_golden.cli.main import main
from pytest_golden.compare import kept_outputs
from pytest_golden.compare.waiting import digest_entries
from pytest_golden.gate.waiting_outputs import _examine, open_waiting
from pytest_golden.manifest.reader import load_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

MANIFEST = """\
version: 1
golden_projects:
  - {name: sales, path: run.sh, outputs: [{path: a.txt}, {path: "t*.csv"}]}
  - {name: sales_eu, path: run.sh, outputs: [{path: a.txt}]}
  - {name: a, path: run.sh, outputs: [{path: a.txt}]}
"""
RIGHT = ("--as-person", "--reason", "rounding was wrong | before", "--by", "ann")


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    (folder / "run.sh").write_text("echo 1 > a.txt; printf 'id,n\\n1,2\\n' > t.csv\n")
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    return folder


@pytest.fixture(scope="module")
def changed_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "run.sh").write_text("echo 2 > a.txt; printf 'id,n\\n1,3\\n' > t.csv; echo x > t2.csv\n")
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    for name in ("sales", "a"):
        (folder / "golden_baselines" / name).mkdir(parents=True)
        (folder / "golden_baselines" / name / "a.txt").write_text("1\n")
    (folder / "golden_baselines/sales/t.csv").write_text("id,n\n1,2\n")
    gate("sales", "a", folder=folder)
    return folder


@pytest.fixture
def changed(changed_shop: Path, shop: Path) -> Path:
    """A shop with baselines, whose pipeline writes something else now, after a gate that saw it."""
    shutil.copytree(changed_shop, shop, dirs_exist_ok=True)
    return shop


def gate(*names: str, folder: Path | None = None) -> None:
    words = ["--golden", "-q", "--golden-sandbox=copy", *(f"golden_projects.yaml::{name}" for name in names)]
    subprocess.run([sys.executable, "-m", "pytest", *words], check=False, capture_output=True, cwd=folder)


def accepted(shop: Path) -> list[str]:
    return sorted(file.parent.name for file in shop.glob("golden_baselines/*/a.txt"))


def read(shop: Path, path: str) -> str:
    return (shop / "golden_baselines" / path).read_text()


def test_named_projects_alone_are_run_again_and_accepted(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["accept", "sales", "a", "sales", "--rerun", "--manifest", "golden_projects.yaml"])
    told = capfd.readouterr().out
    assert code == 0, told
    assert "sales: 2 new" in told
    assert accepted(shop) == ["a", "sales"]


def test_failing_project_is_exit_code_1_and_nothing_is_accepted(shop: Path) -> None:
    (shop / "run.sh").write_text("exit 3\n")
    assert main(["accept", "sales", "--rerun"]) == 1
    assert accepted(shop) == []


def test_unknown_name_is_exit_code_2_and_the_nearest_is_suggested(shop: Path, golden: Golden) -> None:
    ran = golden("accept", "sales", "sale_eu")
    assert (ran.code, ran.out) == (2, "")
    assert "no golden project is called 'sale_eu'" in ran.err
    assert "did you mean 'sales_eu'?" in ran.err
    assert accepted(shop) == []


def test_it_is_refused_in_ci(changed: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    ran = golden("accept", "sales", *RIGHT)
    assert ran.code == 2
    assert "outputs are not accepted in CI (CI is set)" in ran.err
    assert main(["accept", "sales", "--rerun"]) == pytest.ExitCode.USAGE_ERROR
    assert read(changed, "sales/a.txt") == "1\n"


def test_what_waits_is_listed_with_its_difference(changed: Path, golden: Golden) -> None:
    ran = golden("accept")
    assert ran.code == 0
    for told in (
        "sales: 3 outputs wait",
        "a: 1 output waits",
        "- 1",
        "+ 2",
        "1 row differs in `n`",
        "new        t2.csv (2B",
    ):
        assert told in ran.out
    facts = json.loads(golden("accept", "--json").out)
    assert [one["project"] for one in facts["projects"]] == ["sales", "a"]
    assert facts["projects"][0]["proposal"] is None


def test_a_copy_is_examined_once_until_it_or_its_baseline_changes(changed: Path) -> None:
    waiting = open_waiting(load_manifest(changed / "golden_projects.yaml"))
    first = waiting.list_runs()
    known = _examine.cache_info()
    assert waiting.list_runs() == first
    again = _examine.cache_info()
    assert (again.misses, again.hits) == (known.misses, known.hits + 4)
    (changed / "golden_baselines/a/a.txt").write_text("7\n")
    [output] = waiting.list_runs()[1].outputs
    assert "its baseline has changed since that run" in str(output.refused)
    (changed / ".golden/waiting/sales/1.txt").write_text("8\n")
    assert "its copy has changed since that run" in str(waiting.list_runs()[0].outputs[0].refused)


def test_kept_outputs_become_baselines_without_a_second_run(changed: Path, golden: Golden) -> None:
    (changed / "run.sh").write_text("exit 1\n")
    ran = golden("accept", "sales", *RIGHT)
    assert ran.code == 0, ran.err
    assert "sales: 1 new, 2 changed" in ran.out
    assert read(changed, "sales/a.txt") == "2\n"
    assert read(changed, "a/a.txt") == "1\n"
    lines = read(changed, "ACCEPTED.md").splitlines()
    assert len([line for line in lines if "| sales |" in line]) == 3
    assert "| 1 row differs in `n` | 1 | 2 | rounding was wrong \\| before | ann |" in lines[-2].replace(
        "differs from its baseline: ", ""
    )
    assert "golden accept a" in golden("accept").out
    told = golden("journal", "review").out
    assert "accept outputs of sales: rounding was wrong" in told
    assert "nothing of sales waits" in golden("accept", "sales", *RIGHT).err


def test_one_output_can_be_accepted_and_the_others_still_wait(changed: Path, golden: Golden) -> None:
    assert golden("accept", "sales", "--output", "t.csv", *RIGHT).code == 0
    assert (read(changed, "sales/t.csv"), read(changed, "sales/a.txt")) == ("id,n\n1,3\n", "1\n")
    assert "sales: 2 outputs wait" in golden("accept").out
    ran = golden("accept", "sales", "--output", "t.csv", *RIGHT)
    assert (ran.code, "t.csv of sales does not wait; what waits is a.txt, t2.csv" in ran.err) == (1, True)


def test_a_green_run_leaves_nothing_waiting(changed: Path, golden: Golden) -> None:
    (changed / "run.sh").write_text("echo 1 > a.txt; printf 'id,n\\n1,2\\n' > t.csv\n")
    gate("sales", "a")
    assert "nothing waits" in golden("accept").out
    assert list((changed / ".golden/waiting").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("golden_baselines/sales/a.txt", "9\n", "its baseline has changed since that run"),
        ("golden_projects.yaml", MANIFEST.replace("{path: a.txt}, {", "{path: a.txt, unordered: true}, {"), "its entry in the manifest has changed"),
        (".golden/waiting/sales/1.txt", "7\n", "its copy has changed since that run"),
        (".golden/waiting/sales/1.txt", None, "its copy cannot be read"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_was_is_refused(
    changed: Path, golden: Golden, path: str, text: str | None, told: str
) -> None:
    before = read(changed, "sales/a.txt")
    if text is None:
        (changed / path).unlink()
    else:
        (changed / path).write_text(text)
    ran = golden("accept", "sales", "--output", "a.txt", *RIGHT)
    assert ran.code == 1
    assert told in ran.out
    assert read(changed, "sales/a.txt") == (text if path.startswith("golden_baselines") else before)


def test_a_damaged_record_is_one_sentence(changed: Path, golden: Golden) -> None:
    for text in ("{", "[]", "{}", json.dumps({"project": "a"})):
        (changed / ".golden/waiting/sales/waiting.json").write_text(text)
        ran = golden("accept", "sales", *RIGHT)
        assert ran.code == 1
        assert "the waiting outputs of sales cannot be read" in ran.err
        assert golden("accept").code == 2


def test_a_run_that_failed_also_for_something_else_gives_no_baselines(shop: Path, golden: Golden) -> None:
    (shop / "golden_projects.yaml").write_text(MANIFEST.replace("sales, path", "sales, unexpected_files: fail, path"))
    (shop / "run.sh").write_text("echo 1 > a.txt; printf 'id,n\\n1,2\\n' > t.csv; echo > stray\n")
    gate("sales")
    assert "nothing of it can be accepted: the run failed also for something else: wrote stray" in golden("accept").out
    ran = golden("accept", "sales", *RIGHT)
    assert (ran.code, "nothing of sales can be accepted" in ran.err) == (1, True)


def test_only_the_last_attempt_waits(shop: Path, golden: Golden) -> None:
    (shop / "golden_projects.yaml").write_text(MANIFEST.replace("sales, path", "sales, retries: 2, path"))
    gate("sales")
    ran = golden("accept")
    assert "sales: 2 outputs wait" in ran.out
    assert ran.out.count("a.txt") == 1
    assert golden("accept", "sales", *RIGHT).code == 0
    assert accepted(shop) == ["sales"]


def test_what_is_too_large_is_named_and_not_kept(shop: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_outputs, "MOST_BYTES", 5)
    assert golden("run", "sales").code == 1
    out = golden("accept").out
    assert "refused    t.csv: it is larger than 5B, so no copy of it is kept" in out
    assert "new        a.txt (2B" in out
    monkeypatch.setattr(kept_outputs, "MOST_BYTES", 1 << 30)
    monkeypatch.setattr(kept_outputs, "MOST_BYTES_OF_PROJECT", 5)
    assert golden("run", "sales").code == 1
    assert "the project's outputs are larger than 5B" in golden("accept").out


def test_a_folder_that_cannot_be_written_is_a_note_and_changes_no_verdict(shop: Path, golden: Golden) -> None:
    (shop / ".golden").mkdir()
    (shop / ".golden/waiting").write_text("")
    ran = golden("run", "sales")
    assert ran.code == 1
    assert "the outputs are not kept in .golden/waiting for `golden accept`" in ran.out
    assert "a.txt has no baseline" in ran.out


def test_a_secret_is_not_kept(shop: Path, golden: Golden) -> None:
    (shop / "run.sh").write_text("echo password=hunter2hunter2 > a.txt; printf 'id,n\\n1,2\\n' > t.csv\n")
    gate("sales")
    assert not any("hunter2" in file.read_text() for file in (shop / ".golden/waiting").rglob("*.*"))
    ran = golden("accept", "sales", *RIGHT)
    assert ran.code == 1
    assert "refused" in ran.out
    assert not (shop / "golden_baselines/sales/a.txt").exists()


def test_who_is_no_person_proposes_and_a_person_confirms(
    changed: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    assert "say why it is right with --reason" in golden("accept", "sales").err
    ran = golden("accept", "sales", "--reason", "I fixed it", "--by", "claude", "--output", "a.txt")
    assert ran.code == 1
    assert "proposed, and not accepted" in ran.err
    assert read(changed, "sales/a.txt") == "1\n"
    assert "proposed by claude: I fixed it" in golden("accept").out
    assert golden("accept", "--pending").code == 2
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "n\n", raising=False)
    assert golden("accept", "--pending").code == 1
    assert read(changed, "sales/a.txt") == "1\n"
    monkeypatch.setattr(sys.stdin, "readline", lambda: "y\n", raising=False)
    assert golden("accept", "--pending", "--by", "ann").code == 0
    assert read(changed, "sales/a.txt") == "2\n"
    assert read(changed, "sales/t.csv") == "id,n\n1,2\n"
    assert "| I fixed it (proposed by claude) | ann |" in read(changed, "ACCEPTED.md")
    assert "nothing is proposed" in golden("accept", "--pending").out


def test_a_person_at_a_terminal_is_asked_for_the_reason(
    changed: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: " \n", raising=False)
    ran = golden("accept", "a")
    assert (ran.code, "say in a sentence why this is right" in ran.err) == (2, True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "new rates\n", raising=False)
    assert golden("accept", "a").code == 0
    assert "| new rates |" in read(changed, "ACCEPTED.md")


@pytest.mark.parametrize("form", ["folder", "waiting folder", "zip", "zip of the folder"])
def test_what_ci_kept_is_accepted_at_home(changed: Path, golden: Golden, tmp_path: Path, form: str) -> None:
    artifact = tmp_path / "artifact"
    waiting = changed / ".golden/waiting"
    if form == "waiting folder":
        artifact.mkdir()
    if "zip" in form:
        with ZipFile(artifact, "w") as packed:
            for file in waiting.rglob("*.*"):
                packed.write(file, file.relative_to(waiting if form == "zip" else changed))
            packed.writestr("../../evil/1.txt", "evil")
            packed.writestr("sales/../../evil.sh", "evil")
    else:
        waiting.rename(artifact / "waiting" if form == "waiting folder" else artifact)
    if waiting.exists():
        waiting.rename(changed / "gone")
    assert "nothing waits" in golden("accept").out
    ran = golden("accept", "--from", str(artifact))
    assert "sales: 3 outputs wait" in ran.out
    assert golden("accept", "sales", "--from", str(artifact), *RIGHT).code == 0
    assert read(changed, "sales/a.txt") == "2\n"
    assert not list(tmp_path.rglob("evil*"))


def test_an_artifact_that_is_none_or_of_another_commit_is_refused(shop: Path, golden: Golden, tmp_path: Path) -> None:
    for content in (None, b"no zip"):
        place = tmp_path / "artifact"
        if content is not None:
            place.write_bytes(content)
        ran = golden("accept", "--from", str(place))
        assert (ran.code, "artifact is neither a folder nor a zip file" in ran.err) == (2, True)
    (tmp_path / "empty").mkdir()
    assert "holds no outputs that wait" in golden("accept", "--from", str(tmp_path / "empty")).err
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, cwd=shop)
    gate("sales")
    kept = tmp_path / "kept"
    (shop / ".golden/waiting").rename(kept)
    for _ in range(2):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "more"], check=True, cwd=shop)
    ran = golden("accept", "sales", "--from", str(kept), *RIGHT)
    assert ran.code == 1
    assert "come from commit" in ran.err
    subprocess.run([*git, "checkout", "-q", "HEAD~2"], check=True, cwd=shop)
    assert golden("accept", "sales", "--from", str(kept), *RIGHT).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--reason", "x"],
        ["--output", "a.txt"],
        ["--rerun"],
        ["sales", "a", "--output", "a.txt"],
        ["sales", "--rerun", "--reason", "x"],
        ["sales", "--pending"],
    ],
)
def test_options_that_do_not_go_together_are_refused(shop: Path, golden: Golden, words: list[str]) -> None:
    ran = golden("accept", *words)
    assert (ran.code, ran.out) == (2, "")


def test_json_lists_and_does_nothing_else(changed: Path, golden: Golden) -> None:
    for words in (["sales", *RIGHT], ["--pending"]):
        ran = golden("accept", *words, "--json")
        assert (ran.code, "--json prints the waiting outputs" in json.loads(ran.out)["error"]) == (2, True)
    assert read(changed, "sales/a.txt") == "1\n"


def test_gate_that_ctrl_c_reached_too_is_waited_for() -> None:
    class Interrupted(subprocess.Popen[bytes]):
        is_told = False

        def wait(self, timeout: float | None = None) -> int:
            if not self.is_told:
                self.is_told = True
                raise KeyboardInterrupt
            return super().wait(timeout)

    with Interrupted([sys.executable, "-c", "raise SystemExit(7)"]) as gate:
        assert _wait(gate) == 7


def forge(shop: Path, **fields: object) -> None:
    """Change what the record says of a.txt."""
    place = shop / ".golden/waiting/sales/waiting.json"
    record = json.loads(place.read_text())
    output = next(one for one in record["outputs"] if one["path"] == "a.txt")
    output.update(fields)
    place.write_text(json.dumps(record))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("path", ["../../evil.txt", "/tmp/evil.txt", "a/../../b", "a//b", "", "a\0b"])
@pytest.mark.parametrize("change", ["new", "changed", "removed"])
def test_a_record_names_nothing_outside_of_the_baselines(changed: Path, golden: Golden, path: str, change: str) -> None:
    (changed / "golden_projects.yaml").write_text(MANIFEST.replace("{path: a.txt}, {", '{path: "**"}, {'))
    forge(changed, path=path, change=change, baseline_sha256=None)
    ran = golden("accept", "sales", *RIGHT)
    assert ran.code == 1
    assert "the waiting outputs of sales cannot be read: their record is not one of this project" in ran.err
    assert list(changed.rglob("evil.txt")) == []


def test_a_copy_that_is_a_link_is_not_followed(changed: Path, golden: Golden) -> None:
    secret = changed.parent / "private.txt"
    secret.write_text("mine\n")
    copy = changed / ".golden/waiting/sales/1.txt"
    copy.unlink()
    copy.symlink_to(secret)
    forge(changed, sha256=digest(secret))
    ran = golden("accept", "sales", "--output", "a.txt", *RIGHT)
    assert (ran.code, "its copy cannot be read" in ran.out) == (1, True)
    assert read(changed, "sales/a.txt") == "1\n"


@pytest.mark.parametrize(
    ("rules", "text", "told"),
    [
        ("", "password=hunter2hunter2", "remove it from the output"),
        (", not_contains: [failed]", "failed", "would not pass with itself"),
    ],
)
def test_a_forged_record_does_not_make_a_baseline_of_what_may_be_none(
    changed: Path, golden: Golden, rules: str, text: str, told: str
) -> None:
    (changed / "golden_projects.yaml").write_text(MANIFEST.replace("{path: a.txt}, {", f"{{path: a.txt{rules}}}, {{"))
    copy = changed / ".golden/waiting/sales/1.txt"
    copy.write_text(f"{text}\n")
    entry = load_manifest(changed / "golden_projects.yaml").projects[0].outputs[0]
    forge(changed, sha256=digest(copy), allowed="it is fine", declared=digest_entries([entry]))
    ran = golden("accept", "sales", "--output", "a.txt", *RIGHT)
    assert (ran.code, told in ran.out) == (1, True), ran.out
    assert read(changed, "sales/a.txt") == "1\n"


def test_a_proposal_names_outputs_and_no_person(changed: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda _: False)
    ran = golden("accept", "sales", "--reason", "x", "--by", "humаn")
    assert (ran.code, "is reserved" in ran.err) == (2, True)
    assert golden("accept", "sales", "--reason", "x").code == 1
    place = changed / ".golden/waiting/sales/proposed.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "paths": []}))
    monkeypatch.setattr(os, "isatty", lambda _: True)
    ran = golden("accept", "--pending")
    assert (ran.code, "names no output" in ran.err) == (2, True)


def test_accepted_outputs_are_noted_whatever_lies_there(changed: Path, golden: Golden) -> None:
    noted = changed / "golden_baselines/ACCEPTED.md"
    noted.mkdir()
    ran = golden("accept", "sales", *RIGHT)
    assert (ran.code, "ACCEPTED.md cannot be read" in ran.err) == (2, True)
    assert read(changed, "sales/a.txt") == "1\n"
    noted.rmdir()
    private = changed.parent / "private.txt"
    private.write_text("mine\n")
    noted.symlink_to(private)
    assert "ACCEPTED.md cannot be read" in golden("accept", "sales", *RIGHT).err
    noted.unlink()
    noted.write_bytes(b"\xff old\n")
    assert golden("accept", "sales", *RIGHT).code == 0
    assert noted.read_text().startswith("\\xff old\n| ")


def test_a_damaged_or_huge_zip_file_is_one_sentence(changed: Path, golden: Golden, tmp_path: Path) -> None:
    whole = tmp_path / "whole.zip"
    with ZipFile(whole, "w", ZIP_DEFLATED) as packed:
        packed.writestr("sales/1.txt", "a" * 100_000)
    raw = whole.read_bytes()
    broken = tmp_path / "broken.zip"
    broken.write_bytes(raw[:60] + b"\x00\xff\x13\x37" * 4 + raw[76:])
    ran = golden("accept", "--from", str(broken))
    assert (ran.code, "is neither a folder nor a zip file that can be read" in ran.err) == (2, True), ran.err
    (tmp_path / "cut.zip").write_bytes(raw[: len(raw) // 2])
    assert golden("accept", "--from", str(tmp_path / "cut.zip")).code == 2
    size = raw.rindex(b"PK\x01\x02") + 24
    (tmp_path / "huge.zip").write_bytes(raw[:size] + (3 << 30).to_bytes(4, "little") + raw[size + 4 :])
    assert "is larger than any that the gate keeps" in golden("accept", "--from", str(tmp_path / "huge.zip")).err


def test_large_table_waits_as_a_profile_and_is_accepted_as_one(shop: Path, golden: Golden) -> None:
    entry = "{path: wh.duckdb, table: t, profile_above: 1kB}"
    (shop / "golden_projects.yaml").write_text(
        f"version: 1\ngolden_projects:\n  - {{name: sales, path: run.py, outputs: [{entry}]}}\n"
    )
    script = (
        "import duckdb; duckdb.connect('wh.duckdb').execute('CREATE TABLE t AS SELECT {} AS a FROM range(999) t(i)')"
    )
    (shop / "run.py").write_text(script.format("i"))
    assert main(["accept", "sales", "--rerun"]) == 0
    (shop / "wh.duckdb").unlink(missing_ok=True)
    (shop / "run.py").write_text(script.format("i + (i = 5)::INT"))
    gate("sales")
    listed = golden("accept").out
    assert "at least 1 row differs in `a`" in listed
    [copy] = (shop / ".golden/waiting/sales").glob("*.parquet")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert golden("accept", "sales", *RIGHT).code == 0
    assert "| changed" not in read(shop, "ACCEPTED.md")
    assert "at least 1 row differs in `a` | 999 | 1 |" in read(shop, "ACCEPTED.md")
    assert b"golden_profile" in (shop / "golden_baselines/sales/wh.duckdb/main.t.parquet").read_bytes()
    gate("sales")
    assert "nothing waits" in golden("accept").out
