from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest.reader import load_manifest
from tests.cli.watched import run_watched
from tests.permissions import without_powers

if TYPE_CHECKING:
    from pathlib import Path

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
        "left_out": {},
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


def test_a_pattern_of_files_written_as_they_were_names_no_other(
    folder: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    for name in ("c.json", "d.json", "e.csv", "f.csv"):
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / name).write_text("1\n")
    (folder / "run.sh").write_text(
        'stamp=$(od -An -N8 -tx1 /dev/urandom | tr -d " \n"); mkdir -p "out/a.json/$stamp" "out/b.json/$stamp"\n'
        'echo 1 > "out/a.json/$stamp/a.json"; echo "\\"$stamp\\"" > "out/b.json/$stamp/b.json"\n'
        "for name in c.json d.json e.csv f.csv; do echo 1 > out/$name; done\n"
    )
    ran = golden("init", "--from", "sh run.sh")
    assert ran.code == 0, ran.err
    outputs = load_manifest(folder / "golden_projects.yaml").projects[0].outputs
    assert {output.path for output in outputs} == {"out/a.json/{run}/a.json", "out/c.json", "out/d.json", "out/*.csv"}
    assert "no output: out/b.json/{run}/b.json" in ran.out


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
    assert "every recognized pipeline is already declared" in again.out


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
    assert "it stops at 2; `golden init --add` continues" in first.out
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
        ("orchestration", "orchestration/definitions.py", "dagster", ()),
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


FLOW = """\
flow = lambda run: run
@flow
def run(): ...
if __name__ == "__main__":
    import time
"""


@pytest.fixture
def flows(folder: Path) -> Path:
    """Two scripts that look like flows of Prefect: one writes a table, the other fails."""
    write = "open('orders.csv', 'w').write(f'id,at\\n1,{time.time()}\\n')"
    for name, does in {"orders": write, "returns": "raise SystemExit('no such table: returns')"}.items():
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(f"{FLOW}    {does}\n")
    return folder


def test_found_pipelines_are_tried_where_that_is_asked_for(golden: Golden, flows: Path) -> None:
    ran = golden("init", "--yes")
    assert ran.code == 0
    assert "returns:  it did not pass: exit code 1, expected 0: no such table: returns" in ran.out
    orders, returns = load_manifest(flows / "golden_projects.yaml").projects
    assert [(output.path, output.ignore_columns) for output in orders.outputs] == [("orders.csv", ("at",))]
    assert returns.outputs == ()
    text = (flows / "golden_projects.yaml").read_text()
    assert "# run by prefect; when tried it did not pass: exit code 1, expected 0: no such table: returns\n" in text
    assert "# run by prefect; it took " in text
    assert not (flows / "orders" / "orders.csv").exists()


@pytest.mark.parametrize(
    ("said", "is_tried"), [("\n", True), ("y\n", True), ("n\n", False), ("No\n", False), ("\x04", False)]
)
def test_a_person_is_asked_once(flows: Path, said: str, is_tried: bool) -> None:
    ran = run_watched(flows, ["init"], typed=[("[Y/n]", said)])
    assert ran.code == 0
    assert "found 2 pipelines; run each twice, in a copy, to declare its outputs? [Y/n]" in ran.out
    assert ("ignore_columns: [at]" in (flows / "golden_projects.yaml").read_text()) == is_tried


@pytest.fixture
def alike(folder: Path) -> Path:
    """Three flows: `orders` and `returns` read nearly nothing but a library, which `stock` reads too."""
    (folder / "lib").mkdir()
    (folder / "flows").mkdir()
    (folder / "lib" / "shop.py").write_text("RATE = 2\n" * 500)
    start = f"import sys\n\nsys.path.insert(0, '../lib')\nimport shop\n{FLOW}"
    for name in ("orders", "returns", "stock"):
        more = "    # counted by hand\n" if name == "stock" else ""
        write = f"    open('{name}.csv', 'w').write(f'id,rate\\n1,{{shop.RATE}}\\n')\n"
        (folder / "flows" / f"{name}.py").write_text(start + write + more)
    return folder


def test_what_others_cover_is_left_out_on_demand(golden: Golden, alike: Path) -> None:
    ran = golden("init", "--yes", "--fewest", "--json")
    told = ran.json
    assert ([one["name"] for one in told["projects"]], sorted(told["left_out"])) == (["stock"], ["orders", "returns"])
    assert all(90 <= share < 100 for share in told["left_out"].values())
    again = golden("init", "--add", "--yes", "--json")
    assert [one["name"] for one in again.json["projects"]] == ["orders", "returns"]
    names = [project.name for project in load_manifest(alike / "golden_projects.yaml").projects]
    assert names == ["stock", "orders", "returns"]


def test_what_is_not_known_to_be_covered_is_declared(
    golden: Golden, alike: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_SANDBOX", "copy")
    ran = golden("init", "--yes", "--fewest")
    assert "because their reads are not known: orders, returns, stock" in ran.err
    assert len(load_manifest(alike / "golden_projects.yaml").projects) == 3


@pytest.mark.parametrize(("said", "declared"), [("y\n", 1), ("\n", 3), ("\x04", 3)])
def test_a_person_is_asked_whether_to_leave_out_what_others_cover(alike: Path, said: str, declared: int) -> None:
    ran = run_watched(alike, ["init"], typed=[("[Y/n]", "y\n"), ("[y/N]", said)], columns=120)
    assert "the others read 90 % of the code of 2 of these 3; leave those out? [y/N]" in ran.out
    assert ("left out: others read 9" in ran.out) == (declared == 1)
    assert len(load_manifest(alike / "golden_projects.yaml").projects) == declared


@pytest.mark.parametrize("more", [[], ["--yes", "--no-calibrate"], ["--yes", "--from", "true"]])
def test_leaving_out_needs_the_trial_of_what_is_found(golden: Golden, alike: Path, more: list[str]) -> None:
    ran = golden("init", "--fewest", *more)
    assert (ran.code, "give it with --yes, and without" in ran.err) == (2, True)
    assert not (alike / "golden_projects.yaml").exists()


def test_nothing_is_run_or_asked_where_nobody_is_there(golden_process: GoldenProcess, flows: Path) -> None:
    ran = golden_process("init")
    assert (ran.code, ran.err) == (0, "")
    assert "outputs:" not in (flows / "golden_projects.yaml").read_text().partition("\n\n#")[0]


def test_an_interruption_loses_nothing(flows: Path) -> None:
    script = flows / "orders" / "orders.py"
    script.write_text(f"{script.read_text()}    print('here', flush=True); __import__('time').sleep(60)\n")
    ran = run_watched(flows, ["init", "--yes"], typed=[("orders", "\x03")])
    assert ran.code == 0
    assert "interrupted: 2 pipelines not tried, and declared without outputs" in ran.out
    assert len(load_manifest(flows / "golden_projects.yaml").projects) == 2


def test_a_trial_gets_no_secret_that_a_pipeline_asks_for(
    golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_KEY", "hunter2hunter2")
    (folder / "send.py").write_text(f"{FLOW}    import os; print(os.environ['CLOUD_KEY'])\n")
    told = " ".join(golden("init", "--yes").out.split())
    assert "it asks for CLOUD_KEY: the gate passes that, once you have looked at it; it is tried without" in told
    assert "it did not pass: exit code 1, expected 0: KeyError: 'CLOUD_KEY'" in told
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert project.pass_env == ("CLOUD_KEY",)


def test_an_engine_that_is_missing_stands_in_the_comment(
    golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (folder / "dvc.yaml").write_text("stages: {}\n")
    assert golden("init", "--yes").code == 0
    text = (folder / "golden_projects.yaml").read_text()
    assert "# run by dvc; when tried it did not pass: `dvc` is not on PATH" in text
