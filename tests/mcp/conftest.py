from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_golden.mcp.tool_server import make_server
from pytest_golden.mcp.workplace import CallerOptions, Workplace
from pytest_golden.storage.store import Store
from tests.mcp.talking import talk_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp.server import Server

    from tests.mcp.talking import Talk

MANIFEST = """\
golden_projects:
  - name: second_by_letter
    path: second.py
    description: Comes first.
  - name: first_by_letter
    path: first.py
    expected_outcome: "specific_error:no such column"
"""


class MakeServer(Protocol):
    def __call__(self, **options: Any) -> Server[Any]: ...


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with two declared projects, without anything that is set outside."""
    for name in [name for name in os.environ if name.startswith("GOLDEN_")]:
        monkeypatch.delenv(name)
    (tmp_path / ".git").mkdir()
    (tmp_path / "golden_projects.yaml").write_text(MANIFEST, encoding="utf-8")
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text("print('done')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store_file(workspace: Path) -> Path:
    """Where the store is; it need not be there yet."""
    return workspace / ".golden" / "golden.db"


@pytest.fixture
def place(workspace: Path, store_file: Path) -> Iterator[Workplace]:
    store_file.parent.mkdir()

    def open_it() -> Store:
        return Store.open(store_file, busy_seconds=0.2, follows=True)

    with Workplace(open_it, workspace / "golden_projects.yaml") as opened:
        yield opened


@pytest.fixture
def make(place: Workplace) -> MakeServer:
    def make_one(*, is_read_only: bool = False, **options: Any) -> Server[Any]:
        place.is_read_only = is_read_only
        return make_server(place, CallerOptions(**options))

    return make_one


@pytest.fixture
def talk(make: MakeServer) -> Iterator[Talk]:
    with talk_to(make()) as connected:
        yield connected
