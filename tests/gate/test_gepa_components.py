from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.gate.gepa import GoldenAdapter
from tests.permissions import without_powers

if TYPE_CHECKING:
    from tests.gate.gepa_workspace import OpenAdapter, Workspace


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ({"query": "nope.sql"}, r"nope\.sql is not in .*etl, the folder of golden project totals \(No such file"),
        ({"query": "etl/query.sql"}, "give a path relative to that folder"),
        ({"query": "../golden_projects.yaml"}, "leads to .*golden_projects.yaml, outside"),
        ({"query": "/etc/passwd"}, "outside"),
        ({"query": "out.sql"}, "outside"),
        ({"query": "loop.sql"}, "is not in"),
        ({"query": "folder"}, "is not a regular file"),
        ({"query": "."}, "is not a regular file"),
        ({"query": ""}, "is not a path of a file"),
        ({"query": "a\0b"}, "is not a path of a file"),
        ({"query": 3}, "3 is not a path of a file"),
        ({"query": "__pycache__/x"}, r"would not see another __pycache__/x, since it lies in a cache"),
        ({"query": ".git/x"}, "would not see another .git/x"),
        ({"query": "venv/x"}, "would not see another venv/x"),
        ({"query": "binary"}, "is not UTF-8 text: invalid start byte at 1"),
        ({"query": "long"}, "has 1,048,577 bytes"),
        ({"query": "secret"}, "secret holds a secret, and GEPA sends the text to a model"),
        ({"one": "query.sql", "two": "link.sql"}, "two components are one file"),
        ({"": "query.sql"}, "is not a name of a component"),
        ({" ": "query.sql"}, "is not a name of a component"),
        ({"a\nb": "query.sql"}, "is not a name of a component"),
        ({1: "query.sql"}, "1 is not a name of a component"),
        (["query.sql"], "components must be a mapping of names to paths"),
        ("query.sql", "not the text 'query.sql'"),
        (7, "not 7"),
    ],
)
def test_component_that_could_not_be_improved_is_refused(
    components: Any, said: str, open_adapter: OpenAdapter, workspace: Workspace
) -> None:
    folder = workspace.folder
    for name in ("folder", "__pycache__", ".git", "venv/bin"):
        (folder / name).mkdir(parents=True)
    for name in ("__pycache__/x", ".git/x", "venv/x", "venv/pyvenv.cfg"):
        (folder / name).write_text("x")
    (folder / "binary").write_bytes(b"a\xff")
    (folder / "long").write_text("x" * ((1 << 20) + 1))
    (folder / "secret").write_text("url: postgresql://me:hunter2secret@db/x\n")
    (folder / "link.sql").symlink_to("query.sql")
    (folder / "out.sql").symlink_to(workspace.manifest)
    (folder / "loop.sql").symlink_to("loop.sql")
    with pytest.raises(GoldenError, match=said):
        open_adapter(components)


def test_no_components_at_all_are_refused(workspace: Workspace) -> None:
    with pytest.raises(GoldenError, match="no components: name at least one"):
        GoldenAdapter(workspace.manifest, {})


def test_link_within_the_folder_is_followed(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    (workspace.folder / "link.sql").symlink_to("query.sql")
    adapter = open_adapter({"query": Path("link.sql")})
    assert adapter.seed_candidate() == {"query": "select 1\n"}
    assert adapter.evaluate(adapter.projects(), {"query": "sum count"}).scores == [1.0, 1.0]


def test_file_below_a_mount_is_refused(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    (workspace.folder / "lake").mkdir()
    (workspace.folder / "lake" / "x.sql").write_text("x")
    workspace.declare({"name": "totals", "path": "etl/totals.py", "mounts": [{"path": "etl/lake"}]})
    with pytest.raises(GoldenError, match=r"lake/x\.sql, since `mounts:` puts the original there"):
        open_adapter({"query": "lake/x.sql"})


@without_powers
def test_file_that_cannot_be_read_is_said(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    (workspace.folder / "query.sql").chmod(0)
    with pytest.raises(GoldenError, match="cannot be read"):
        open_adapter()


def test_project_whose_file_is_missing_is_said(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    workspace.declare({"name": "gone", "path": "etl/gone.py"})
    with pytest.raises(GoldenError, match=r"golden project gone: path etl/gone\.py does not exist"):
        open_adapter()


def test_literal_secret_of_a_project_is_found_in_its_text(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    workspace.declare({"name": "totals", "path": "etl/totals.py", "set_env": {"API_KEY": "blue-elephant-42"}})
    (workspace.folder / "query.sql").write_text("-- blue-elephant-42\n")
    with pytest.raises(GoldenError, match="holds a secret"):
        open_adapter()


def test_projects_of_two_folders_share_equal_texts_and_no_others(
    open_adapter: OpenAdapter, workspace: Workspace
) -> None:
    other = workspace.root / "other"
    other.mkdir()
    (other / "query.sql").write_text("select 1\n")
    (other / "counts.py").write_text((workspace.folder / "counts.py").read_text())
    workspace.declare({"name": "totals", "path": "etl/totals.py"}, {"name": "counts", "path": "other/counts.py"})
    adapter = open_adapter()
    assert adapter.evaluate(adapter.projects(), {"query": "sum count"}).scores == [1.0, 1.0]
    (other / "query.sql").write_text("select 2\n")
    with pytest.raises(GoldenError, match=r"etl/query\.sql and .*other/query\.sql differ"):
        open_adapter()
    assert open_adapter(projects=["counts"]).seed_candidate() == {"query": "select 2\n"}
