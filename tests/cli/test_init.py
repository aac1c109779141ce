from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.cli.finding_pipelines import FoundPipeline, find_pipelines
from pytest_golden.cli.init import (
    DraftedProject,
    draft_found,
    draft_outputs,
    generalise_writes,
    quote,
    split_command,
    try_command,
    write_draft,
)
from pytest_golden.errors import SettingsError
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.manifest.reader import load_manifest, parse_manifest
from tests.permissions import without_powers

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, GoldenProcess


ODIBI = "project: Sales\nengine: pandas\nconnections: {}\nstory: {}\npipelines: []\n"


def test_recognised_pipelines_are_declared_and_next_steps_told(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "sales").mkdir()
    (folder / "sales" / "orders.yaml").write_text(ODIBI)
    (folder / "dbt" / "shop").mkdir(parents=True)
    (folder / "dbt" / "shop" / "dbt_project.yml").write_text("name: shop\n")
    (folder / "some.yaml").write_text("a: 1\n")
    (folder / "helper.py").touch()
    ran = golden_process("init")
    assert (ran.code, ran.err) == (0, "")
    assert "wrote golden_projects.yaml with 2 golden projects" in ran.out
    for told in ("golden check", "golden run shop", "pytest --golden"):
        assert told in ran.out
    manifest = load_manifest(folder / "golden_projects.yaml")
    assert [(project.name, project.path) for project in manifest.projects] == [
        ("shop", "dbt/shop/dbt_project.yml"),
        ("orders", "sales/orders.yaml"),
    ]


def test_nothing_recognised_gives_a_template_with_an_example(golden: Golden, folder: Path) -> None:
    ran = golden("init")
    assert ran.code == 0
    assert "no pipeline was recognized with certainty" in ran.out
    text = (folder / "golden_projects.yaml").read_text()
    assert load_manifest(folder / "golden_projects.yaml").projects == ()
    uncommented = text.replace("  # - name", "  - name").replace("  #   path", "    path")
    (folder / "golden_projects.yaml").write_text(uncommented)
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert (project.name, project.path) == ("sales_daily", "sales/pipeline.yaml")


def test_every_key_that_the_comments_name_is_valid(golden: Golden, folder: Path) -> None:
    golden("init")
    text = (folder / "golden_projects.yaml").read_text()
    examples = [line.removeprefix("#") for line in text.splitlines() if line.startswith("#     ")]
    assert len(examples) == 8
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - path: a.py\n" + "".join(f"{line[1:]}\n" for line in examples)
    )
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert project.timeout == 1800


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_manifest_that_exists_is_never_overwritten(golden: Golden, folder: Path, kind: str) -> None:
    manifest = folder / "golden_projects.yaml"
    if kind == "file":
        manifest.write_text("mine")
    elif kind == "link":
        manifest.symlink_to("nowhere")
    else:
        manifest.mkdir()
    ran = golden("init", "--from", "touch ran")
    assert (ran.code, ran.out) == (2, "")
    assert "exists and is not overwritten" in ran.err
    if kind == "file":
        assert manifest.read_text() == "mine"


def test_manifest_may_have_another_name_and_place(golden: Golden, folder: Path) -> None:
    (folder / "gate").mkdir()
    ran = golden("init", "--manifest", "gate/floor.yaml")
    assert ran.code == 0
    assert "pytest --golden --golden-manifest gate/floor.yaml" in ran.out
    assert "golden check --manifest gate/floor.yaml" in ran.out
    assert "golden run NAME --manifest gate/floor.yaml" in ran.out
    assert (folder / "gate" / "floor.yaml").exists()
    ran = golden("init", "--manifest", "nowhere/floor.yaml")
    assert ran.code == 2
    assert "nowhere does not exist" in ran.err


def test_json_names_what_was_declared(golden: Golden, folder: Path) -> None:
    (folder / "orders.yml").write_text(ODIBI)
    ran = golden("init", "--json")
    assert ran.json == {
        "manifest": str(folder / "golden_projects.yaml"),
        "projects": [{"name": "orders", "path": "orders.yml", "runner": "odibi", "outputs": []}],
    }


def test_command_is_declared_with_stable_outputs_and_their_rules(golden: Golden, folder: Path) -> None:
    (folder / "etl.py").write_text(
        "import os, pathlib, time\n"
        "out = pathlib.Path('out'); (out / 'parts').mkdir(parents=True); pathlib.Path('logs').mkdir()\n"
        "[(out / 'parts' / f'part{n}.csv').write_text(f'id\\n{n}\\n') for n in range(4)]\n"
        "rows = ['1,a', '2,b'] if os.environ['PYTHONHASHSEED'] == '0' else ['2,b', '1,a']\n"
        "(out / 'orders.csv').write_text('\\n'.join(['id,name', *rows, '']))\n"
        "(out / 'run.json').write_text('{\"at\": %s, \"rows\": 2}' % time.time())\n"
        "(out / 'lost.csv').write_text('at\\n%s\\n' % time.time())\n"
        "(out / f'{time.time()}.csv').write_text('x\\n')\n"
        "(out / 'model.pkl').write_bytes(os.urandom(9)); pathlib.Path('logs/run.txt').touch()\n"
    )
    ran = golden("init", "--from", "python etl.py")
    assert (ran.code, ran.err) == (0, "")
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    declared = {output.path: output for output in project.outputs}
    assert set(declared) == {"out/orders.csv", "out/parts/*.csv", "out/run.json"}
    assert declared["out/orders.csv"].key == ("id",)
    assert declared["out/run.json"].ignore_paths == ("$.at",)
    assert set(project.writes) == {"out/**", "logs/**"}
    assert "no output: out/lost.csv: every column moves" in ran.out
    assert "only one of two runs wrote it" in ran.out
    assert "golden accept etl" in ran.out


def test_second_run_that_fails_gives_no_outputs(golden: Golden, folder: Path) -> None:
    (folder / "run.sh").write_text('echo 1 > a.csv; [ "$PYTHONHASHSEED" = 0 ]\n')
    ran = golden("init", "--from", "sh run.sh")
    assert ran.code == 0
    assert (
        "no outputs: a second run, with another hash seed, one thread and perhaps at another time, did not pass: exit code 1"
        in ran.out
    )
    assert load_manifest(folder / "golden_projects.yaml").projects[0].outputs == ()


def test_command_is_run_once_and_declared_with_what_it_wrote(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "etl.py").write_text(
        "import pathlib, sys\npathlib.Path('out/deep').mkdir(parents=True)\n"
        "pathlib.Path('out/deep/a.csv').write_text(sys.argv[1])\npathlib.Path('log[1].txt').touch()\n"
    )
    ran = golden_process("init", "--no-calibrate", "--from", "python etl.py 'first of May'")
    assert (ran.code, ran.err) == (0, "")
    assert not (folder / "out").exists()
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert project.path == "etl.py"
    assert project.command == ("python", "etl.py", "first of May")
    assert project.writes == ("log[[]1].txt", "out/**")
    assert project.unexpected_files == "warn"
    again = golden_process("run", project.name)
    assert again.code == 0
    assert "note:" not in again.out


def test_failing_command_is_exit_code_1_with_its_reason_and_no_file(golden: Golden, folder: Path) -> None:
    command = f"{sys.executable} -c 'raise SystemExit(\"no seed\")'"
    ran = golden("init", "--from", command)
    assert ran.code == 1
    assert "nothing was written" in ran.out
    assert "no seed" in ran.out
    assert "--shell" not in ran.out
    as_json = golden("init", "--json", "--from", command)
    assert as_json.code == 1
    assert as_json.json["exit_code"] == 1
    assert not (folder / "golden_projects.yaml").exists()


def test_missing_program_is_told(golden: Golden) -> None:
    ran = golden("init", "--from", "nothing_like_it --now")
    assert ran.code == 1
    assert "`nothing_like_it` is not on PATH" in ran.out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "has no command"),
        ("python 'etl.py", "No closing quotation"),
        ("python etl.py | tee log", "sh -c"),
        ("python a.py && python b.py", "'&&' has no meaning"),
    ],
)
def test_text_that_is_no_command_is_bad_input(golden: Golden, command: str, said: str) -> None:
    ran = golden("init", "--from", command)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@without_powers
def test_folder_that_cannot_be_written_is_a_sentence(golden: Golden, folder: Path) -> None:
    folder.chmod(0o500)
    try:
        ran = golden("init")
    finally:
        folder.chmod(0o700)
    assert ran.code == 2
    assert "Permission denied" in ran.err


def test_more_pipelines_than_are_declared_is_said(golden: Golden, folder: Path) -> None:
    for number in range(51):
        (folder / f"n{number}.ipynb").write_text("{}")
    ran = golden("init")
    assert ran.code == 0
    assert "it stops at 50" in ran.out
    assert len(load_manifest(folder / "golden_projects.yaml").projects) == 50


def put(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}")


def test_only_what_is_certain_is_found(folder: Path) -> None:
    put(folder, "b/report.ipynb", "a/dbt_project.yml", "etl.py", "run.sh", "docker-compose.yml", "data.csv")
    assert find_pipelines(folder) == (
        FoundPipeline("a/dbt_project.yml", "dbt"),
        FoundPipeline("b/report.ipynb", "notebook"),
    )


def test_folders_of_tools_are_left_out(folder: Path) -> None:
    put(
        folder,
        "shop/dbt_project.yml",
        "shop/dbt_packages/utils/dbt_project.yml",
        "shop/target/dbt_project.yml",
        "node_modules/x/a.ipynb",
        ".hidden/a.ipynb",
        "work/.ipynb_checkpoints/a.ipynb",
        "env/pyvenv.cfg",
        "env/share/a.ipynb",
    )
    assert [pipeline.path for pipeline in find_pipelines(folder)] == ["shop/dbt_project.yml"]


def test_folder_without_end_is_given_up(folder: Path) -> None:
    put(folder, "a/a.ipynb", "b/b.ipynb", "c/c.ipynb")
    assert len(find_pipelines(folder, most_looked_at=2)) == 2


def test_file_that_cannot_be_read_is_passed_over(folder: Path) -> None:
    (folder / "dangling.yaml").symlink_to("nowhere")
    assert find_pipelines(folder) == ()


UNUSUAL = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


@given(UNUSUAL)
def test_any_text_survives_quoting(text: str) -> None:
    assert yaml.safe_load(quote(text)) == text
    assert yaml.safe_load(f"[{quote(text)}, x]") == [text, "x"]


def test_words_that_mean_something_in_yaml_are_quoted() -> None:
    assert [quote(text) for text in ("yes", "null", "a-b.c/d", "3")] == ['"yes"', '"null"', "a-b.c/d", '"3"']


def test_bytes_that_are_no_text_become_a_wildcard() -> None:
    assert quote("a\udcff.txt") == '"a?.txt"'


@given(st.lists(st.text("ab/.ü ", min_size=1, max_size=8).map(lambda text: f"x{text}.ipynb"), unique=True, max_size=8))
def test_draft_is_a_valid_manifest_whatever_the_paths(paths: list[str]) -> None:
    drafted = draft_found([FoundPipeline(path, "notebook") for path in paths])
    manifest = parse_manifest(write_draft(drafted), "g.yaml", "/w")
    assert [project.path for project in manifest.projects] == paths


def test_names_are_told_apart() -> None:
    paths = ("dbt_project.yml", "a/etl.ipynb", "b/etl.ipynb", "b_etl.ipynb", "c/b_etl.ipynb", "shop/dbt_project.yml")
    runners = {".yml": "dbt", ".ipynb": "notebook"}
    found = [FoundPipeline(path, runners[Path(path).suffix]) for path in (*paths, "ü.ipynb", "!.ipynb", "?.ipynb")]
    names = [project.name for project in draft_found(found)]
    assert names == ["dbt", "etl", "b_etl", "b_etl_2", "c_b_etl", "shop", "u", "project", "project_2"]


def test_command_and_patterns_are_written_so_that_they_read_back() -> None:
    project = DraftedProject(
        "x", "a.py", "python", "drafted", ("python", "-c", "print('a: #b')"), ".", ("out/**", "- odd: [x]")
    )
    (read,) = parse_manifest(write_draft([project]), "g.yaml", "/w").projects
    assert read.command == project.command
    assert read.writes == project.writes
    assert read.project_dir == "."


def test_new_folder_is_one_pattern_and_files_in_an_old_one_are_named(folder: Path) -> None:
    (folder / "data").mkdir()
    written = ["a.txt", "data/new/deep/x.csv", "data/new/y.csv", "data/old.csv", "out/z.csv"]
    assert generalise_writes(written, folder) == ("a.txt", "data/new/**", "data/old.csv", "out/**")


def test_many_files_in_one_folder_are_one_pattern(folder: Path) -> None:
    (folder / "data").mkdir()
    written = [f"data/{number}.csv" for number in range(11)] + [f"{number}.txt" for number in range(11)]
    assert generalise_writes(written, folder) == ("data/*", "*")


def test_words_are_split_as_a_shell_does() -> None:
    assert split_command("python -c 'a; b' \"c d\"") == ("python", "-c", "a; b", "c d")


def test_command_without_a_file_of_its_own_is_about_the_folder(folder: Path) -> None:
    result, project = try_command("true --fast", folder, "auto")
    assert result.status == "PASSED"
    assert (project.name, project.path, project.runner) == ("true", ".", "command")


def test_script_that_is_called_by_its_path_is_the_pipeline(folder: Path) -> None:
    script = folder / "run.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    result, project = try_command("./run.sh /etc/passwd", folder, "auto")
    assert result.status == "PASSED"
    assert (project.name, project.path) == ("run", "run.sh")


def test_command_that_cannot_be_declared_is_refused(folder: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be declared"):
        try_command("'' etl", folder, "auto")


@pytest.mark.parametrize(
    ("files", "drafted"),
    [
        (["shop.duckdb", "target/manifest.json", "target/x.sql", "logs/dbt.log"], [{"dbt": ("*",)}]),
        (["shop.duckdb", "out/a.csv"], [{"path": "shop.duckdb", "tables": ("*",)}, {"path": "out/a.csv"}]),
        (["a.sqlite3", "b.db"], [{"path": "a.sqlite3", "tables": ("*",)}, {"path": "b.db", "tables": ("*",)}]),
        (["target/manifest.json", "empty.db", "link.db"], []),
    ],
)
def test_tables_of_databases_and_models_of_dbt_are_drafted(
    tmp_path: Path, files: list[str], drafted: list[dict[str, Any]]
) -> None:
    for path in files:
        place = tmp_path / path
        place.parent.mkdir(exist_ok=True)
        if path == "link.db":
            (tmp_path / "elsewhere").write_bytes(b"SQLite format 3\0")
            place.symlink_to(tmp_path / "elsewhere")
        else:
            place.write_bytes(
                b"\0" * 8 + b"DUCK"
                if "duckdb" in path or path == "b.db"
                else b"SQLite format 3\0"[: 99 * (path != "empty.db")]
            )
    written = WrittenFiles(tmp_path, tuple(sorted(files)), str)
    outputs = draft_outputs(written)
    assert [output for output in outputs if not output.path.startswith("target/")] == [
        DeclaredOutput(**one) for one in drafted
    ]
    text = write_draft([DraftedProject("a", "a.sh", "shell", "tried", outputs=outputs)])
    assert parse_manifest(text, "m.yaml", "/w").projects[0].outputs == outputs


def test_a_file_in_a_stamped_folder_is_declared_with_run(
    folder: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    (folder / "run.sh").write_text(
        'stamp=$(od -An -N8 -tx1 /dev/urandom | tr -d " \\n"); mkdir -p "out/a.json/$stamp"\n'
        'echo \'{"n": 1}\' > "out/a.json/$stamp/a.json"; echo 1 > out/b.txt\n'
    )
    ran = golden("init", "--from", "sh run.sh")
    assert ran.code == 0, ran.err
    outputs = load_manifest(folder / "golden_projects.yaml").projects[0].outputs
    assert {output.path for output in outputs} == {"out/a.json/{run}/a.json", "out/b.txt"}


@pytest.mark.parametrize(
    ("command", "name"),
    [("env printenv PATH", "env_printenv"), ("ls --all -l", "ls"), ("/bin/true 2026-01-01", "true")],
)
def test_a_command_without_a_file_is_called_by_its_words(folder: Path, command: str, name: str) -> None:
    assert try_command(command, folder, "copy")[1].name == name


def test_projects_of_engines_are_found_and_named_after_their_folders(tmp_path: Path) -> None:
    files = {
        "shop/pyproject.toml": "[tool.kedro]\n",
        "lib/pyproject.toml": "[project]\n",
        "genes/Snakefile": "",
        "genes/modules/align.nf": "",
        "data/dvc.yaml": "stages: {}\n",
        "marts/config.yaml": "model_defaults: {dialect: duckdb}\n",
        "web/config.yaml": "port: 80\n",
        "build/Makefile": "all:\n",
        "study/_targets.R": "",
        "study/R/functions.R": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    drafted = draft_found(find_pipelines(tmp_path))
    assert [(project.name, project.runner) for project in drafted] == [
        ("data", "dvc"),
        ("genes", "snakemake"),
        ("marts", "sqlmesh"),
        ("shop", "kedro"),
        ("study", "targets"),
    ]


def make_environment(place: Path) -> None:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)


def test_environments_beside_or_above_a_pipeline_are_declared(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    make_environment(tmp_path / "shop" / "venv")
    found = [FoundPipeline("shop/dbt_project.yml", "dbt"), FoundPipeline("a/b/Snakefile", "snakemake")]
    drafted = draft_found(found, tmp_path)
    assert [project.venv for project in drafted] == ["shop/venv", ".venv"]
    assert [project.venv for project in parse_manifest(write_draft(drafted), "g.yaml", "/w").projects] == [
        "shop/venv",
        ".venv",
    ]


def test_a_manifest_is_completed_and_nothing_else_of_it_changes(folder: Path, golden: Golden) -> None:
    text = """\
version: 1
workspace_root: work
golden_projects:
    - name: shop  # ours
      path: shop/dbt_project.yml
      outputs:
        - {path: a.csv}  # the last one

# What is here stays.
defaults: {timeout: 1m}
"""
    (folder / "golden_projects.yaml").write_text(text)
    for path in ("shop/dbt_project.yml", "more/shop/dbt_project.yml", "genes/Snakefile"):
        (folder / "work" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "work" / path).write_text("name: shop\n")
    ran = golden("init", "--add")
    assert ran.code == 0, ran.err
    assert "added 2 golden projects to golden_projects.yaml" in ran.out
    added = """
    # run by snakemake
    - name: genes
      path: genes/Snakefile

    # run by dbt
    - name: more_shop
      path: more/shop/dbt_project.yml
"""
    head, mark, tail = text.partition("# the last one\n")
    assert (folder / "golden_projects.yaml").read_text() == head + mark + added + tail
    again = golden("init", "--add")
    assert again.code == 0
    assert "every pipeline that is recognized with certainty is declared already" in again.out


@pytest.mark.parametrize("text", ["golden_projects: []\n", "golden_projects: [{path: a.sh}]\n"])
def test_a_manifest_that_cannot_be_completed_stays_as_it_is(folder: Path, golden: Golden, text: str) -> None:
    (folder / "golden_projects.yaml").write_text(text)
    (folder / "Snakefile").touch()
    ran = golden("init", "--add")
    assert ran.code == 2
    assert "add the projects by hand" in ran.err
    assert (folder / "golden_projects.yaml").read_text() == text


def test_a_repository_of_many_pipelines_is_declared_in_portions(folder: Path, golden: Golden) -> None:
    for number in range(5):
        (folder / f"p{number}").mkdir()
        (folder / f"p{number}" / "Snakefile").touch()
    first = golden("init", "--limit", "2")
    assert "it stops at 2; `golden init --add` goes on" in first.out
    assert golden("init", "--add", "--limit", "2").code == 0
    last = golden("init", "--add")
    assert "added 1 golden project" in last.out
    assert "there may be more" not in last.out
    names = [project.name for project in load_manifest(folder / "golden_projects.yaml").projects]
    assert names == ["p0", "p1", "p2", "p3", "p4"]


SCRIPTS = {
    "dags/nightly.py": "from airflow.sdk import dag, task\n\n@dag(schedule=None)\ndef nightly():\n    pass\n\nnightly()\n",
    "dags/classic.py": "from airflow import DAG\nwith DAG('shop_daily', schedule=None) as dag:\n    pass\n",
    "dags/named.py": "import airflow\n@dag(schedule=None, dag_id='given')\ndef other():\n    pass\n",
    "dags/two.py": "from airflow import DAG\none = DAG('one')\ntwo = DAG('two')\n",
    "orchestration/definitions.py": "import dagster as dg\n\ndefs = dg.Definitions(assets=[])\n",
    "orchestration/assets.py": "from dagster import asset\n\n@asset\ndef orders():\n    return 1\n",
    "flows/shop.py": 'from prefect import flow\n\n@flow(name="shop")\ndef shop():\n    pass\n\nif __name__ == "__main__":\n    shop()\n',
    "flows/library.py": "from prefect import flow\n\n@flow\ndef shop():\n    pass\n",
    "tasks/all.py": "import luigi\n\nclass Everything(luigi.WrapperTask):\n    pass\n",
    "tasks/one.py": "import luigi\n\nclass One(luigi.Task):\n    pass\n",
    "tests/test_flows.py": 'from prefect import flow\n@flow\ndef a():\n    pass\nif __name__ == "__main__":\n    a()\n',
    "plain.py": 'if __name__ == "__main__":\n    print(1)\n',
}


def test_scripts_of_engines_are_found_with_what_starts_them(folder: Path, golden: Golden) -> None:
    for path, text in SCRIPTS.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    assert golden("init").code == 0
    found = load_manifest(folder / "golden_projects.yaml").projects
    assert [(project.name, project.path, project.runner, project.args) for project in found] == [
        ("classic", "dags/classic.py", "airflow", ("shop_daily",)),
        ("named", "dags/named.py", "airflow", ("given",)),
        ("nightly", "dags/nightly.py", "airflow", ("nightly",)),
        ("shop", "flows/shop.py", "prefect", ()),
        ("definitions", "orchestration/definitions.py", "dagster", ()),
        ("all", "tasks/all.py", "luigi", ("Everything",)),
    ]


def test_a_completed_manifest_keeps_its_link_its_permissions_and_its_line_ends(folder: Path, golden: Golden) -> None:
    text = "version: 1\r\ngolden_projects:\r\n- name: a\r\n  path: a.sh\r\n  description: |\r\n    two\r\n    lines\r\ndefaults: {timeout: 1m}\r\n"
    (folder / "real.yaml").write_text(text, newline="")
    (folder / "real.yaml").chmod(0o640)
    (folder / "golden_projects.yaml").symlink_to("real.yaml")
    (folder / "genes").mkdir()
    (folder / "genes" / "Snakefile").touch()
    ran = golden("init", "--add")
    assert ran.code == 0, ran.err
    assert (folder / "golden_projects.yaml").is_symlink()
    assert (folder / "real.yaml").stat().st_mode & 0o777 == 0o640
    added = "\r\n# run by snakemake\r\n- name: genes\r\n  path: genes/Snakefile\r\n"
    head, mark, tail = text.partition("    lines\r\n")
    assert (folder / "real.yaml").read_bytes().decode() == head + mark + added + tail
