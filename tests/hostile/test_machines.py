"""The gateway on lesser machines: without user namespaces, and as an ordinary user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.conftest import NO_NAMESPACES, NOT_ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import MakeProject, RunElsewhere

RUN = """
with ExecutionGateway(workspace, view=os.environ.get("VIEW", "auto")) as gateway:
    keys = json.loads(os.environ.get("KEYS", "{}"))
    show(guarded(gateway, GoldenProjectConfig("a", "project/pipeline.sh", **keys)), gateway)
"""


def test_without_namespaces_pipelines_run_in_an_unsealed_copy(
    run_elsewhere: RunElsewhere, make_project: MakeProject, project_dir: Path
) -> None:
    make_project("echo x > out; pwd; rm pipeline.sh")
    facts = run_elsewhere(NO_NAMESPACES, RUN)
    assert (facts["exit_code"], facts["problem"], facts["sealed"]) == (0, None, False)
    assert facts["write_set"]["created"] == ["out"]
    assert facts["write_set"]["removed"] == ["pipeline.sh"]
    assert facts["stdout"].strip() != str(project_dir)
    assert (facts["abilities"]["view"], facts["abilities"]["seal"]) == ("copy", "none")


def test_without_namespaces_a_demanded_network_cut_is_refused(
    run_elsewhere: RunElsewhere, make_project: MakeProject
) -> None:
    make_project("true")
    facts = run_elsewhere(NO_NAMESPACES, RUN, environment={"KEYS": '{"network": false}'})
    assert (facts["ending"], facts["problem"]) == ("not_started", "network_unavailable")
    assert "network" in facts["message"]


def test_without_namespaces_a_demanded_overlay_is_refused(
    run_elsewhere: RunElsewhere, make_project: MakeProject
) -> None:
    make_project("true")
    facts = run_elsewhere(NO_NAMESPACES, RUN, environment={"VIEW": "overlay"})
    assert (facts["ending"], facts["problem"]) == ("not_started", "sandbox_unavailable")
    assert "--golden-sandbox=overlay is required" in facts["message"]


def test_without_a_seal_a_write_to_the_original_is_found_out(
    run_elsewhere: RunElsewhere, make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "data.csv").write_text("1")
    make_project(f"echo 2 > {project_dir}/data.csv; touch {project_dir}/new")
    facts = run_elsewhere(NO_NAMESPACES, RUN)
    assert (facts["exit_code"], facts["problem"]) == (0, "project_changed")
    assert facts["changed_underneath"] == ["data.csv", "new"]


@pytest.mark.usefixtures("sealing")
def test_ordinary_user_gets_the_same_sealed_overlay(
    run_elsewhere: RunElsewhere, make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "data.csv").write_text("1\n")
    make_project(
        "id -u; cat data.csv; echo 2 > data.csv; chmod 000 data.csv; mkdir d; touch d/x; chmod 000 d; touch /etc/x"
    )
    facts = run_elsewhere(NOT_ROOT, RUN)
    assert (facts["abilities"]["view"], facts["abilities"]["seal"], facts["sealed"]) == ("overlay", "namespaces", True)
    assert facts["stdout"] == "1000\n1\n"
    assert facts["write_set"]["created"] == ["d/x"]
    assert facts["write_set"]["changed"] == ["data.csv"]
    assert facts["problem"] is None
    assert (project_dir / "data.csv").read_text() == "1\n"


@pytest.mark.usefixtures("sealing")
def test_original_that_its_owner_may_not_read_is_never_opened_up(
    run_elsewhere: RunElsewhere, make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "closed").write_text("old")
    (project_dir / "closed").chmod(0)
    make_project("chmod 600 closed")
    facts = run_elsewhere(NOT_ROOT, RUN)
    assert (facts["problem"], facts["changed_underneath"]) == (None, [])
    assert facts["write_set"]["changed"] == ["closed"]


def test_file_that_cannot_be_read_is_named_when_a_copy_is_needed(
    run_elsewhere: RunElsewhere, make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "closed").touch(mode=0)
    make_project("true")
    facts = run_elsewhere(NOT_ROOT, RUN, environment={"VIEW": "copy"})
    assert (facts["ending"], facts["problem"]) == ("not_started", "permission_denied")
    assert str(project_dir / "closed") in facts["message"]
