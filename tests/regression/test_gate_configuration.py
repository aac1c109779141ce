from __future__ import annotations

import pytest

from pytest_golden.regression.gate_configuration import (
    compare_environments,
    compare_gate_files,
    list_gate_files,
    parse_configuration,
)

HOOK = "def pytest_runtest_makereport(item, call):\n    return decide(item)\n"


def compare(base: dict[str, str], head: dict[str, str], folder: str = ".", named: str | None = None) -> list[str]:
    sides = ({path: text.encode() for path, text in side.items()} for side in (base, head))
    return [weakening.message for weakening in compare_gate_files(folder, named, *sides)]


def test_files_from_the_folder_upwards_are_looked_at_and_none_outside_the_checkout() -> None:
    paths = list_gate_files("a/b", None, ["tests/conftest.py", "../conftest.py"])
    assert {"a/b/pytest.ini", "a/pyproject.toml", "setup.cfg", "a/b/conftest.py", "conftest.py"} < set(paths)
    assert "tests/conftest.py" in paths
    assert not any(path.startswith("..") for path in paths)
    assert list_gate_files(".", "ci.ini", []) == ["ci.ini", "conftest.py"]


@pytest.mark.parametrize(
    ("path", "text", "values"),
    [
        ("pytest.ini", "[pytest]\na = 1\n", {"a": "1"}),
        (".pytest.ini", "", {}),
        ("pytest.toml", "[pytest]\na = ['x']\n", {"a": ["x"]}),
        ("tox.ini", "[pytest]\na = 1\n", {"a": "1"}),
        ("tox.ini", "[tox]\n", None),
        ("setup.cfg", "[tool:pytest]\na = 1\n", {"a": "1"}),
        ("setup.cfg", "[pytest]\na = 1\n", None),
        ("pyproject.toml", "[tool.pytest.ini_options]\na = '1'\n", {"a": "1", "ini_options": {"a": "1"}}),
        ("pyproject.toml", "[tool.pytest]\na = '1'\n", {"a": "1"}),
        ("pyproject.toml", "[project]\n", None),
        ("pyproject.toml", "not toml", None),
        ("tox.ini", "no section", None),
    ],
)
def test_each_form_is_read_as_pytest_reads_it(path: str, text: str, values: dict[str, object] | None) -> None:
    assert parse_configuration(path, text.encode()) == values


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("", "-k 'not sales'", ["addopts gained -k not sales"]),
        ("-ra", "-ra -ksales", ["addopts gained -k sales"]),
        ("", "--deselect golden_projects.yaml::sales -x", ["addopts gained --deselect=golden_projects.yaml::sales -x"]),
        ("", "--collect-only", ["addopts gained --collect-only"]),
        ("", "-p evil", ["addopts gained -p evil"]),
        ("", "-o golden_require=false", ["addopts gained -o golden_require=false"]),
        ("--golden-require", "", ["addopts lost --golden-require"]),
        (
            "--golden-base=main",
            "--golden-base=HEAD",
            ["addopts gained --golden-base=HEAD", "addopts lost --golden-base=main"],
        ),
        (
            "-k 'open",
            "-k 'other",
            [
                "addopts gained -k 'other",
            ],
        ),
        ("", "-ra --strict-markers -n 4 --durations=5 -q --tb=short -W error", []),
        ("-x", "", []),
        ("-q", "-qx", ["addopts gained -x"]),
        ("", "-qksales", ["addopts gained -k sales"]),
        ("-k a", "-k a", []),
    ],
)
def test_options_that_choose_what_runs_or_are_ours_count(was: str, now: str, told: list[str]) -> None:
    was_files, now_files = ({"pytest.ini": f"[pytest]\naddopts = {options}\n"} for options in (was, now))
    assert compare(was_files, now_files) == [f"pytest.ini: {one}" for one in told]


def test_keys_of_ours_and_the_import_path_count_unless_they_ask_for_more_or_only_show() -> None:
    base = {"setup.cfg": "[tool:pytest]\ngolden_require = true\npythonpath = src\n"}
    head = {"pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['src', 'shadow']\ngolden_changed = 'HEAD'\n"}
    assert compare(base, head) == [
        "pyproject.toml: golden_changed changed from none to HEAD",
        "pyproject.toml: golden_require changed from true to none",
        "pyproject.toml: pythonpath gained shadow",
    ]
    assert compare(base, {}) == ["the configuration of pytest: golden_require changed from true to none"]
    assert compare({}, {"pytest.ini": "[pytest]\ngolden_require = 1\ngolden_html = a.html\nmarkers = slow\n"}) == []


def test_first_configuration_from_the_folder_upwards_is_the_one_that_counts() -> None:
    base = {"pyproject.toml": "[tool.pytest.ini_options]\ngolden_require = 'true'\n"}
    assert compare(base, base | {"pytest.ini": ""}) == ["pytest.ini: golden_require changed from true to none"]
    assert compare(base, base | {"sub/pytest.ini": ""}) == []
    assert compare(base, base | {"sub/pytest.ini": ""}, "sub") == [
        "sub/pytest.ini: golden_require changed from true to none"
    ]
    assert compare(base, base | {"pytest.ini": ""}, named="pyproject.toml") == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "project = 1\n"),
        ("pyproject.toml", "[project]\nentry-points = 3\n[tool]\npoetry = []\n"),
        ("pyproject.toml", "not toml ["),
        ("uv.lock", "package = 3\n"),
        ("uv.lock", "package = [1, 'a']\n"),
    ],
)
def test_files_of_odd_content_say_nothing_and_break_nothing(path: str, text: str) -> None:
    assert [*compare_environments(".", {path: (b"", text.encode())})] == []


def test_secrets_in_options_are_not_told() -> None:
    told = compare({}, {"pytest.ini": "[pytest]\naddopts = --golden-store=postgresql://me:hunter22@db/x\n"})
    assert len(told) == 1
    assert "hunter22" not in told[0]


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (None, HOOK, "pytest_runtest_makereport"),
        (HOOK, None, "pytest_runtest_makereport"),
        (HOOK, HOOK.replace("decide(item)", "None"), "pytest_runtest_makereport"),
        (HOOK + "def decide(item): return 1\n", HOOK + "def decide(item): return 2\n", "pytest_runtest_makereport"),
        (
            HOOK + "LIMIT = 1\ndef decide(item): return LIMIT\n",
            HOOK + "LIMIT = 2\ndef decide(item): return LIMIT\n",
            "pytest_runtest_makereport",
        ),
        ("", "pytest_plugins = ['evil']\n", "pytest_plugins"),
        ("", "import sys\nsys.modules['yaml'] = sys\n", "sys.modules['yaml'] = sys"),
        ("", "from pytest_golden.regression import rules\n", "from pytest_golden.regression import rules"),
        ("", "patched = install()\n", "patched = install()"),
        ("", "def f(x=install()): pass\n", "def f(x=install()):"),
        ("", "@install\ndef f(): pass\n", "@install"),
        ("", "class A:\n    x = install()\n", "class A:"),
        ("", "import pytest\n@pytest.fixture(params=install())\ndef f(): pass\n", "@pytest.fixture(params=install())"),
        ("", "def f(x: install()): pass\n", "def f(x: install()):"),
        ("", "x: install() = 1\n", "x: install() = 1"),
        ("", "class A(install()): pass\n", "class A(install()):"),
        ("", "class A(metaclass=Acts): pass\n", "class A(metaclass=Acts):"),
        ("", "def fixture(f): install()\n@fixture\ndef f(): pass\n", "@fixture"),
        ("", "TYPE_CHECKING = True\nif TYPE_CHECKING:\n    install()\n", "if TYPE_CHECKING:"),
        ("", "from helper import pytest_sessionfinish\n", "from helper import pytest_sessionfinish"),
        ("", "from helper import done as pytest_sessionfinish\n", "from helper import done as pytest_sessionfinish"),
        ("", "from helper import *\n", "from helper import *"),
        ("", "if True:\n    import os\n    os.abort()\n", "if True:"),
        ("", "def (", "text that is not Python"),
    ],
)
def test_what_a_conftest_does_in_the_gate_counts(was: str | None, now: str | None, told: str) -> None:
    was_files, now_files = ({} if text is None else {"conftest.py": text} for text in (was, now))
    assert compare(was_files, now_files) == [f"conftest.py: changed what it does in the gate: {told}"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (
            "",
            "import os\nimport pytest\n\n@pytest.fixture(scope='session')\ndef place(tmp_path): return os.fspath(tmp_path)\n",
        ),
        (HOOK, "# A comment.\n'''What this is.'''\n" + HOOK.replace(":\n", ":\n    '''Say how.'''\n    # why\n")),
        (
            "",
            "from __future__ import annotations\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import app\n",
        ),
        ("", "LIMIT = 3\nNAMES: list[str] = ['a']\nclass Fake:\n    '''One.'''\n    def run(self): return call()\n"),
        (HOOK, "import pytest\n" + HOOK + "@pytest.fixture\ndef other(): return helper()\ndef helper(): return 1\n"),
    ],
)
def test_fixtures_helpers_and_words_do_not_count(was: str, now: str) -> None:
    assert compare({"tests/conftest.py": was}, {"tests/conftest.py": now}) == []
