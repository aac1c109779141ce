"""Pipelines that go for their own sources, or for what is around them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import Ending, PipelineOutcome, Problem
from tests.gateway.conftest import NOT_ROOT, run_guarded, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject, RunElsewhere

Run = Any
in_both_views = pytest.mark.parametrize("view", ["auto", "copy"])


@pytest.fixture(autouse=True)
def sources(project_dir: Path) -> None:
    (project_dir / "models").mkdir()
    for name in ("a.sql", "b.sql", "c.sql", "models/d.sql"):
        (project_dir / name).write_text(f"select '{name}'\n")


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (path.read_text(), path.stat().st_mode)
        for path in folder.rglob("*")
        if path.is_file()
    }


@in_both_views
def test_pipeline_that_wrecks_its_sources_leaves_the_originals_alone(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    project = make_project(
        "echo x >> a.sql; chmod 600 b.sql; rm c.sql; mv models/d.sql e.sql; rm -r models; rm pipeline.sh"
    )
    before = contents(project_dir)
    outcome = run_guarded(open_gateway(view=view), project)
    assert (outcome.exit_code, outcome.problem, outcome.changed_underneath) == (0, None, ())
    assert contents(project_dir) == before
    written = outcome.write_set
    assert written.created == ("e.sql",)
    assert written.changed == ("a.sql", "b.sql")
    assert written.removed == ("c.sql", "models/d.sql", "pipeline.sh")


@pytest.mark.usefixtures("sealing")
@in_both_views
def test_pipeline_that_removes_everything_it_can_reach_removes_nothing(
    view: str, run: Run, project_dir: Path, home: Path
) -> None:
    outcome: PipelineOutcome = run(f"rm -rf {home} {project_dir.parent}; true", view=view)
    assert outcome.ending is Ending.EXITED
    assert outcome.problem is None
    assert (project_dir / "a.sql").exists()
    assert (home / ".ssh" / "id_ed25519").exists()


@in_both_views
def test_ordinary_users_pipeline_that_closes_folders_is_still_looked_at(
    view: str, run_elsewhere: RunElsewhere, make_project: MakeProject
) -> None:
    make_project("echo x >> a.sql; echo y >> models/d.sql; mkdir -p made; echo z > made/new; chmod $MODE $FOLDER")
    facts = run_elsewhere(
        NOT_ROOT,
        f"""
        found = {{}}
        with ExecutionGateway(workspace, view="{view}") as gateway:
            for mode in ("000", "100", "444"):
                for folder in (".", "models", "made"):
                    keys = {{"set_env": {{"MODE": mode, "FOLDER": folder}}}}
                    outcome = guarded(gateway, GoldenProjectConfig("a", "project/pipeline.sh", **keys))
                    written = outcome.write_set
                    lists = [written.created, written.changed, written.removed]
                    found[f"{{mode}} {{folder}}"] = [outcome.exit_code, outcome.problem, *lists]
        print(json.dumps(found))
        """,
    )
    assert len(facts) == 9
    for written in facts.values():
        assert written == [0, None, ["made/new"], ["a.sql", "models/d.sql"], []]


@in_both_views
def test_links_that_lead_out_are_never_followed(view: str, run: Run, home: Path, workspace: Path) -> None:
    secret = home / ".ssh" / "id_ed25519"
    outcome = run(
        f"""
        ln -s {secret} out.csv; ln -s {home} folder; rm a.sql; ln -s {secret} a.sql
        ln -s {secret} $GOLDEN_STEPS; mkdir d; ln -s loop d/loop; ln -s ../d d/d
        """,
        view=view,
    )
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert outcome.write_set.created == ("d/d", "d/loop", "folder", "out.csv")
    assert {file.kind for file in outcome.write_set.files.values()} == {"symlink"}
    assert outcome.trajectory.steps == ()
    assert secret.read_text() == "the private key\n"


@in_both_views
def test_pipes_sockets_and_devices_hold_nobody_up(view: str, run: Run) -> None:
    outcome = run(
        """
        import os, socket
        os.mkfifo("pipe")
        os.remove("a.sql")
        os.mkfifo("a.sql")
        socket.socket(socket.AF_UNIX).bind("socket")
        os.mkfifo(os.environ["GOLDEN_STEPS"])
        """,
        view=view,
        timeout=60,
    )
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert (outcome.write_set.created, outcome.write_set.removed) == ((), ("a.sql",))


@in_both_views
def test_folders_of_any_depth_and_names_of_any_bytes_are_dealt_with(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    project = make_project("""
        import os
        open(b"new\\nline \\xff", "w").close()
        for depth in range(1500):
            os.mkdir("d")
            os.chdir("d")
            if depth in (0, 700):
                open("file", "w").close()
    """)
    gateway = open_gateway(view=view)
    outcome = run_guarded(gateway, project)
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert [os.fsencode(path) for path in outcome.write_set.created] == [
        b"d/" * 701 + b"file", b"d/file", b"new\nline \xff",
    ]  # fmt: skip
    place = gateway._machine.choose_place(Path(os.devnull)).scratch.root
    assert wait_until(lambda: [path.name for path in place.iterdir()] == ["alive.lock"])


@pytest.mark.usefixtures("sealing")
def test_names_longer_than_any_path_are_dealt_with(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    project = make_project("""
        import os
        open("near", "w").close()
        for _ in range(30):
            os.mkdir("x" * 200)
            os.chdir("x" * 200)
            open("file", "w").close()
    """)
    gateway = open_gateway()
    outcome = run_guarded(gateway, project)
    assert (outcome.exit_code, outcome.problem) == (0, None)
    assert "near" in outcome.write_set.created
    assert len(outcome.write_set.created) > 10
    place = gateway._machine.choose_place(Path(os.devnull)).scratch.root
    assert wait_until(lambda: [path.name for path in place.iterdir()] == ["alive.lock"])


@in_both_views
def test_thousands_of_files_are_all_told(view: str, run: Run) -> None:
    outcome = run("import os\nfor n in range(3000): open(f'{n:04}', 'w').close()", view=view)
    assert len(outcome.write_set.created) == 3000


def test_project_folder_that_goes_away_while_it_runs_is_found_out(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    gateway = open_gateway(view="copy")
    project = make_project("true", after=[["sh", "-c", "true"]])
    gateway.describe()
    moved = project_dir.with_name("moved")
    original = gateway._prove_untouched

    def move_then_look(*arguments: Any) -> PipelineOutcome:
        project_dir.rename(moved)
        return original(*arguments)

    gateway._prove_untouched = move_then_look  # type: ignore[assignment,method-assign]
    outcome = run_guarded(gateway, project)
    assert outcome.problem is Problem.PROJECT_CHANGED
    assert "pipeline.sh" in outcome.changed_underneath
