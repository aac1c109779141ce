from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_golden.gateway.runners import choice

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {
    "__init__": "",
    "graph": "from . import cleaning, orders\nfrom .rates import double as twice\n\n"
    "def load_assets_from_modules(modules):\n    return modules\n\n"
    "tasks = [cleaning.clean, twice, load_assets_from_modules([orders])]\n",
    "words": "def strip(text):\n    return text.strip()\n",
    "cleaning": "from .words import strip\n\nWORDS = 3\n\ndef clean(text):\n    return strip(text)\n",
    "orders": "from . import kept\n\ndef read():\n    return kept.keep('orders')\n",
    "kept": "def keep(name):\n    open(name, 'w')\n",
    "rates": "NAME = 'rates'\n\ndef double(text):\n    return text + text\n",
}


class ReadCode(Protocol):
    def __call__(self, **replaced: str) -> Any: ...


@pytest.fixture
def read_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReadCode]:
    """Import a small pipeline, some of its modules replaced, and read its code."""
    monkeypatch.syspath_prepend(str(Path(choice.__file__).parent))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def read(**replaced: str) -> Any:
        (tmp_path / "flow").mkdir()
        for name, text in (FILES | replaced).items():
            (tmp_path / "flow" / f"{name}.py").write_text(text)
        import_module("flow.graph")
        modules = {name: import_module(f"flow.{name}") for name in ("cleaning", "rates", "orders")}
        tasks = {"clean": modules["cleaning"].clean, "double": modules["rates"].double, "read": modules["orders"].read}
        return import_module("python_code_child").Code(tasks, str(tmp_path))

    yield read
    for name in set(sys.modules) - before:
        del sys.modules[name]


def find(code: Any, folder: Path) -> dict[str, set[str] | str]:
    """Return the tasks that each module can change, or why all of them."""
    found: dict[str, set[str] | str] = {}
    for name in FILES:
        try:
            found[name] = code.find_tasks(str(folder / "flow" / f"{name}.py"))
        except Exception as error:
            found[name] = str(error)
    return found


def test_a_module_can_change_the_tasks_that_use_it_and_all_if_it_builds_the_pipeline(
    read_code: ReadCode, tmp_path: Path
) -> None:
    code = read_code()
    assert find(code, tmp_path) == {
        "__init__": "__init__.py may change which tasks there are",
        "graph": "graph.py may change which tasks there are",
        "words": {"clean"},
        "cleaning": {"clean"},
        "orders": {"read"},
        "kept": {"read"},
        "rates": {"double"},
    }
    assert [name for name in ("clean", "double", "read") if code.may_write(name)] == ["read"]


@pytest.mark.parametrize(
    ("graph", "builders"),
    [
        (FILES["graph"] + "print(cleaning.WORDS)\n", {"cleaning", "words"}),
        (FILES["graph"].replace("double as twice", "NAME, double as twice"), {"rates"}),
        (FILES["graph"] + "names = dir(orders)\n", {"orders", "kept"}),
        (FILES["graph"].replace("[orders]", "[]"), {"orders", "kept"}),
        (FILES["graph"] + "from .rates import *\n", {"rates"}),
    ],
)
def test_a_module_that_builds_the_pipeline_uses_more_than_tasks(
    read_code: ReadCode, tmp_path: Path, graph: str, builders: set[str]
) -> None:
    told = find(read_code(graph=graph), tmp_path)
    assert {name for name, tasks in told.items() if isinstance(tasks, str)} == builders | {"__init__", "graph"}
