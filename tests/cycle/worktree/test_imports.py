from __future__ import annotations

import pytest

from pytest_golden.cycle.proposal_floor import find_imported, name_module

FILES = {
    "conftest.py": "import pytest, rules\nfrom jobs.checks import strict as _\nimport own.deep.part\n",
    "jobs/conftest.py": """
import importlib
from .beside import look
pytest_plugins = ["hooks.first", "hooks.second"]
importlib.import_module("named")
spoken = "unnamed"
""",
    "rules.py": "import further\n",
    "further/__init__.py": "from .inner import x\nfrom ..up import y\n",
    "further/inner.py": "def (:\n",
    "jobs/checks/__init__.py": "",
    "jobs/checks/strict.py": "import rules\n",
    "jobs/beside.py": "",
    "jobs/other.py": "",
    "odd/place/named.py": "import besides_it",
    "odd/place/besides_it.py": "",
    "src/own/__init__.py": "",
    "src/own/deep/part.py": "",
    "src/own/aside.py": "",
    "hooks/second.py": "",
    "unnamed.py": "",
    "lib.py": "",
    "data.csv": "",
}


@pytest.mark.parametrize(
    "path",
    [
        *("rules.py", "further/__init__.py", "further/inner.py", "up.py", "jobs/checks/__init__.py"),
        *("jobs/checks/strict.py", "jobs/beside.py", "hooks/first.py", "hooks/second.py", "odd/place/named.py"),
        *("odd/place/besides_it.py", "src/own/__init__.py", "src/own/deep/part.py"),
        # New ones that would be imported instead of what is there.
        *("pytest.py", "pytest/__init__.py", "jobs/rules.py", "rules.cpython-311-x86_64-linux-gnu.so"),
    ],
)
def test_what_the_gates_conftests_import_and_what_that_imports_is_found(path: str) -> None:
    assert find_imported(["conftest.py", "jobs/conftest.py"], FILES, FILES.get)(path)


@pytest.mark.parametrize(
    "path", ["lib.py", "jobs/other.py", "unnamed.py", "src/own/aside.py", "data.csv", "elsewhere/rules.py"]
)
def test_what_they_do_not_import_is_not(path: str) -> None:
    assert not find_imported(["conftest.py", "jobs/conftest.py"], FILES, FILES.get)(path)


def test_without_a_conftest_nothing_is_imported_and_one_that_cannot_be_read_imports_nothing() -> None:
    assert not find_imported([], FILES, FILES.get)("rules.py")
    assert not find_imported(["conftest.py"], FILES, lambda _: None)("rules.py")


def test_modules_that_import_each_other_have_an_end() -> None:
    texts = {"conftest.py": "import a", "a.py": "import b", "b.py": "import a, conftest, c"}
    assert find_imported(["conftest.py"], texts, texts.get)("c.py")


def test_a_module_is_named_by_its_place() -> None:
    names = ["a/b.py", "a/__init__.py", "__init__.py", "a/b.cpython-311.so", "a.txt", "setup.cfg"]
    assert [name_module(path) for path in names] == ["a/b", "a", ".", "a/b", None, None]
