from __future__ import annotations

import os
import string
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import ManifestError, ManifestProblem
from pytest_golden.manifest.model import PROJECT_KEYS
from pytest_golden.manifest.reader import (
    LARGEST_BYTES,
    load_manifest,
    parse_golden_projects_input,
    parse_inline_manifest,
    parse_manifest,
)

if TYPE_CHECKING:
    from pathlib import Path


_PROJECT = "golden_projects:\n  - path: a.sh\n"


def _problems(text: str | bytes) -> list[tuple[int, int, str]]:
    with pytest.raises(ManifestError) as refusal:
        parse_manifest(text, "golden_projects.yaml", "/w")
    assert all(problem.file == "golden_projects.yaml" for problem in refusal.value.problems)
    return [problem[1:] for problem in refusal.value.problems]


def _write(folder: Path, content: str | bytes) -> Path:
    file = folder / "golden_projects.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_a_manifest_is_read_from_its_file(tmp_path: Path) -> None:
    file = _write(tmp_path, "version: 1\ngolden_projects:\n  - name: etl\n    path: etl.py\n  - path: b/load.sh\n")
    manifest = load_manifest(file)
    assert [(project.name, project.path) for project in manifest.projects] == [("etl", "etl.py"), ("load", "b/load.sh")]
    assert manifest.path == file
    assert manifest.workspace_root == tmp_path.resolve()
    assert manifest.lines == {"etl": 3, "load": 5}


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "---\n", "null\n", "version: 1\n", "golden_projects:\n", "golden_projects: []\n"]
)
def test_an_empty_manifest_has_no_projects(tmp_path: Path, content: str) -> None:
    assert load_manifest(_write(tmp_path, content)).projects == ()


def test_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    assert len(load_manifest(_write(tmp_path, b"\xef\xbb\xbf" + _PROJECT.encode())).projects) == 1
    assert len(parse_manifest("\ufeff" + _PROJECT, "x.yaml", tmp_path).projects) == 1


def test_windows_line_ends_are_tolerated(tmp_path: Path) -> None:
    manifest = load_manifest(_write(tmp_path, _PROJECT.replace("\n", "\r\n")))
    assert manifest.lines == {"a": 2}


def test_a_text_that_is_not_on_disk_is_read(tmp_path: Path) -> None:
    manifest = parse_manifest(_PROJECT, "HEAD~1:golden_projects.yaml", tmp_path / "gone")
    assert manifest.path is None
    assert manifest.workspace_root == tmp_path.resolve() / "gone"


def test_a_missing_file_tells_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="run `golden init`") as refusal:
        load_manifest(tmp_path / "golden_projects.yaml")
    assert refusal.value.problems[0].line == 0


def test_a_folder_is_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="not a file"):
        load_manifest(tmp_path)


def test_a_pipe_is_no_manifest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ManifestError, match="not a file"):
        load_manifest(tmp_path / "pipe")


def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ManifestError, match=r"cannot be read|no such file"):
        load_manifest(tmp_path / "loop")
    with pytest.raises(ManifestError, match="cannot be read"):
        load_manifest(tmp_path / ("x" * 300))


def test_a_file_below_the_present_folder_is_named_shortly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write(tmp_path, "golden_projects: 3\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ManifestError) as refusal:
        load_manifest(file)
    assert str(refusal.value).startswith("golden_projects.yaml:1:18: ")
    monkeypatch.chdir("/")
    with pytest.raises(ManifestError) as refusal:
        load_manifest(file)
    assert refusal.value.problems[0].file.endswith("golden_projects.yaml")


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="larger than 5 MiB"):
        load_manifest(_write(tmp_path, "#" * (LARGEST_BYTES + 1)))
    assert load_manifest(_write(tmp_path, "#" * LARGEST_BYTES)).projects == ()


def test_what_is_not_utf8_is_refused_at_its_byte() -> None:
    assert _problems(b"a: 1\nb: \xe9\n")[0][:2] == (2, 4)
    assert "0xFF" in _problems("a: 1\n".encode("utf-16"))[0][2]


def test_all_mistakes_come_at_once_and_in_order() -> None:
    text = """\
version: 2
golden_project: []
defaults: {timeout: 0}
golden_projects:
  - name: a
    path: a.sh
    timout: 90s
    tags: [x, 3]
  - name: a
    path: !x b.sh
    memory_limit: lots
"""
    assert [(line, column) for line, column, _ in _problems(text)] == [
        (1, 10),
        (2, 1),
        (3, 21),
        (7, 5),
        (8, 15),
        (9, 11),
        (10, 11),
        (11, 19),
    ]


# Each row: what a project (or the whole file) says, where the mistake is, and what the message tells.
@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("golden_projets: []\n", 1, 1, "did you mean 'golden_projects'?"),
        ("- path: a.sh\n", 1, 1, "the file holds a list"),
        ("just text\n", 1, 1, "the file holds 'just text'"),
        ("timeout: 3\n", 1, 1, "belongs to a project, or below defaults"),
        ("name: x\n", 1, 1, "belongs to a project below golden_projects"),
        ("version: 2\n", 1, 10, "write 1, or upgrade"),
        ('version: "1"\n', 1, 10, "is not a version; write 1"),
        ("version: 1.0\n", 1, 10, "is not a version; write 1"),
        ("version: true\n", 1, 10, "is not a version; write 1"),
        ("version: 1\nversion: 1\n", 2, 1, "a duplicate"),
        ("require_golden_projects: maybe\n", 1, 26, "neither true nor false"),
        ("workspace_root: 3\n", 1, 17, 'quote it: "3"'),
        ("workspace_root: D:/x\n", 1, 17, "a Windows path"),
        ("workspace_root: ~nobody-of-that-name/x\n", 1, 17, "cannot be resolved"),
        ("setup: []\n", 1, 8, "is empty"),
        ("defaults: []\n", 1, 11, "must be a mapping"),
        ("defaults: {name: x}\n", 1, 12, "cannot have a default"),
        ("defaults: {path: x}\n", 1, 12, "cannot have a default"),
        ("defaults: {outputs: {path: x}}\n", 1, 21, "must be a list"),
        ("outputs: []\n", 1, 1, "belongs to a project, or below defaults"),
        ("max_slowdown: 2.0\n", 1, 1, "belongs to a project, or below defaults"),
        ("golden_projects: {a: {path: x}}\n", 1, 18, "begin each item with a dash"),
        ("golden_projects: [x]\n", 1, 19, "must be a mapping"),
        ("golden_projects:\n  -\n", 2, 4, "the key path is missing"),
        ("golden_projects:\n  - name: a\n", 2, 5, "the key path is missing"),
        ("golden_projects:\n  - path: .\n", 2, 11, "gives the project no name"),
        ("retired: {a: b}\n", 1, 10, "begin each item with a dash"),
        ("retired: [{reason: x}]\n", 1, 11, "the key name is missing"),
        ("retired: [{name: a}]\n", 1, 11, "the key reason is missing"),
        ("retired: [{name: a, reason: x}, {name: a, reason: y}]\n", 1, 40, "already retired"),
        ("retired: [{name: a, reason: x}]\n" + _PROJECT, 1, 18, "still declared in line 3"),
    ],
)
def test_mistakes_of_the_file_are_reported_at_their_place(text: str, line: int, column: int, part: str) -> None:
    assert [(at, col) for at, col, message in _problems(text) if part in message] == [(line, column)]


@pytest.mark.parametrize(
    ("declared", "column", "part"),
    [
        ("timout: 3", 5, "unknown key 'timout'; did you mean 'timeout'?"),
        ("Timeout: 3", 5, "did you mean 'timeout'?"),
        ("zzzzzz: 3", 5, "the keys here are name, path"),
        (f"{'z' * 100}: 3", 5, "the keys here are"),
        ("name: 123", 11, 'quote it: "123"'),
        ("name: no", 11, 'YAML reads no as a boolean, but a text is required; quote it: "no"'),
        ("name: null", 11, 'quote it: "null"'),
        ("name: 2026-12-31", 11, "as a date"),
        ("name:", 10, "has no value"),
        ('name: ""', 11, "is empty"),
        ("name: ../x", 11, "is not a name"),
        ("name: a b", 11, "is not a name"),
        ("name: .x", 11, "is not a name"),
        ("title: 3", 12, 'quote it: "3"'),
        ("description: yes", 18, 'quote it: "yes"'),
        ("description:", 17, "or null for none"),
        ('expected_outcome: "specific_error:("', 23, "is not a regular expression"),
        ('expected_outcome: "specific_error:"', 23, "has no pattern"),
        ("expected_outcome: {specific_error: x}", 23, "is one text; write it in quotes"),
        ("expected_outcome: failure", 23, "is not an expected outcome"),
        ("expected_outcome: exit_code:300", 23, "from 0 to 255"),
        ("runner: [odibi]", 13, "not a list"),
        ("runner: command", 13, "what the key command says"),
        ("args: --select", 11, "write it in brackets"),
        ("args: [1]", 12, 'quote it: "1"'),
        ("command: [odibi, run, {path}]", 27, "quote a text that"),
        ('command: "a \'b"', 14, "close the quote"),
        ("command: []", 14, "is empty"),
        ('command: ""', 14, "command: is empty; write a text"),
        ("command: [sleep, 5]", 22, 'command[1]: YAML reads 5 as a number, but a text is required; quote it: "5"'),
        ("command: [sleep, 0.50]", 22, 'quote it: "0.50"'),
        ("args: [--limit, 0x10]", 21, 'quote it: "0x10"'),
        ("args: [--offset, -1]", 22, 'quote it: "-1"'),
        ("before: [[sleep, 5]]", 22, 'before[0][1]: YAML reads 5 as a number, but a text is required; quote it: "5"'),
        ("command: {}", 14, "must be a command"),
        ("timeout: 0", 14, "not above 0"),
        ("timeout: -5s", 14, "not above 0"),
        ("timeout: .inf", 14, "is not a duration"),
        ("timeout: .nan", 14, "is not a duration"),
        ("timeout: 1:30", 14, "1:30 is not a duration"),
        ("timeout: 0x10", 14, "0x10 is not a duration"),
        ("timeout: 010", 14, "010 is not a duration"),
        ("timeout: yes", 14, "yes is not a duration"),
        ("timeout: null", 14, "is not a duration"),
        ("timeout: []", 14, "a list is not a duration"),
        ("memory_limit: 0", 19, "not above 0"),
        ("memory_limit: 2 G", 19, "is not a size"),
        ("memory_limit: 1.5", 19, "is not a size"),
        ("cpu_limit: 0s", 16, "not above 0"),
        ("disk_limit: 0", 17, "not above 0"),
        ("process_limit: 0", 20, "not above 0"),
        ('network: "no"', 14, "without quotes"),
        ("network: 0", 14, "0 is not true, false, loopback or host"),
        ("independent: maybe", 18, "neither true nor false"),
        ("retries: -1", 14, "whole number"),
        ('retries: "2"', 14, "without quotes"),
        ("retries: 1.0", 14, "whole number"),
        ("retries: 0x2", 14, "whole number"),
        ("set_env: [A]", 14, "must be a mapping"),
        ("set_env: {A: true}", 18, "text or a number"),
        ("set_env: {A: null}", 18, "text or a number"),
        ("set_env: {A: [x]}", 18, "text or a number"),
        ('set_env: {"A=B": x}', 15, "cannot name an environment variable"),
        ("set_env: {A: 1, A: 2}", 21, "a duplicate"),
        ("pass_env: [A B]", 16, "cannot name an environment variable"),
        ("pass_files: x", 17, "must be a list"),
        ("mounts: [/data]", 14, "its keys are path, mode"),
        ("mounts: [{path: /x, mode: rw}]", 31, "write read, copy or write"),
        ("mounts: [{path: /x, mod: rw}]", 25, "did you mean 'mode'?"),
        ("mounts: [{mode: read}]", 14, "the key path is missing"),
        ("before: python x.py", 13, "must be a list"),
        ("after: [[]]", 13, "is empty"),
        ("needs: x", 12, "must be a list"),
        ("needs: [a]", 13, "cannot need itself"),
        ("needs: [x]", 13, "no golden project is called 'x'"),
        ("depends_on: 3", 17, "this must be a list, not 3"),
        ("quarantine: {until: 2026-12-31}", 17, "the key reason is missing"),
        ("quarantine: {until: 2026-13-31, reason: x}", 25, "is not a day"),
        ("quarantine: {until: 2026-12-31 10:00:00, reason: x}", 25, "is not a day"),
        ("quarantine: {until: 20261231, reason: x}", 25, "is not a day"),
        ("quarantine: true", 17, "must be a mapping"),
        ("tags: [a b]", 12, "is not a name"),
        ("tags: a b", 11, "is not a name"),
        ("tags: {a: b}", 11, "must be a list"),
        ("tags: 3", 11, "must be a list"),
        ("steps: [odibi, auto]", 12, "auto cannot be combined"),
        ("skip_if_missing: dbt", 22, "must be a list"),
        ("unexpected_files: never", 23, "write allow, warn or fail"),
        ("writes: [3]", 14, 'quote it: "3"'),
        ("writes: [~/out/**]", 14, "'~/out/**' would mean a folder named '~', because nothing is expanded here"),
        ("outputs: x.csv", 14, "write it in brackets: ['x.csv']"),
        ("outputs: [x.csv]", 15, "this must be a mapping, not 'x.csv'; its keys are path, compare"),
        ("outputs: [{compare: text}]", 15, "the key path is missing"),
        ("outputs: [{path: x, pth: y}]", 25, "unknown key 'pth'; did you mean 'path'?"),
        ("max_slowdown: 1", 19, "1 is not above 1"),
        ("max_slowdown: 0.5", 19, "0.5 is not above 1"),
        ("max_slowdown: fast", 19, "'fast' is not a number; write a factor above 1, such as 2.0"),
        ("max_slowdown: .inf", 19, "is not a number"),
        ("max_slowdown: true", 19, "true is not a number"),
        ("max_slowdown:", 18, "has no value"),
        ('quarantine: {until: "2026-13-45", reason: x}', 25, "is not a day"),
        ("timeout: !!int 5", 14, "YAML tags"),
        ("tags: [!x a, b]", 12, "YAML tags"),
        ("set_env: {A: !x a}", 18, "YAML tags"),
    ],
)
def test_mistakes_of_a_project_are_reported_at_their_place(declared: str, column: int, part: str) -> None:
    found = _problems(f"golden_projects:\n  - path: a.sh\n    {declared}\n")
    assert [(line, at) for line, at, message in found if part in message] == [(3, column)]
    assert len(found) == 1


def test_a_project_may_say_everything(tmp_path: Path) -> None:
    text = """\
version: 1
workspace_root: data
require_golden_projects: true
setup: uv sync --frozen
defaults: {timeout: 5m, tags: base, memory_limit: 1GiB, set_env: {A: 1}}
golden_projects:
  - {name: load_reference, path: D:/ref/load.py}
  - name: sales
    path: sales/pipeline.yaml
    title: Sales, daily
    description: |
      Daily sales
    expected_outcome: "specific_error: no such (table|view)"
    runner: odibi
    command: [odibi, run, "{path}"]
    timeout: 90
    memory_limit: null
    set_env: {N: 3, V: 1.10, H: 0x10, T: 12:30, D: 2026-01-31, NO: "no", E: ""}
    mounts: [{path: /data/lake, mode: copy}, {path: /ref}]
    before: ["python 'make seed.py'", [touch, x]]
    needs: [load_reference]
    quarantine: {until: 2026-12-31, reason: flaky upstream}
    tags: [nightly, slow]
retired:
  - {name: old_etl, reason: replaced by sales}
"""
    manifest = load_manifest(_write(tmp_path, text))
    reference, sales = manifest.projects
    assert (manifest.workspace_root, manifest.setup) == (tmp_path.resolve() / "data", ("uv", "sync", "--frozen"))
    assert manifest.require_golden_projects
    assert [(old.name, old.reason) for old in manifest.retired] == [("old_etl", "replaced by sales")]
    assert (reference.timeout, reference.tags, reference.memory_limit, reference.set_env) == (
        300.0,
        ("base",),
        2**30,
        {"A": "1"},
    )
    assert (sales.timeout, sales.tags, sales.memory_limit) == (90.0, ("nightly", "slow"), None)
    assert sales.set_env == {"N": "3", "V": "1.10", "H": "0x10", "T": "12:30", "D": "2026-01-31", "NO": "no", "E": ""}
    assert sales.expected.pattern == "no such (table|view)"
    assert sales.before == (("python", "make seed.py"), ("touch", "x"))
    assert [mount.mode for mount in sales.mounts] == ["copy", "read"]
    assert sales.quarantine is not None
    assert sales.quarantine.until.isoformat() == "2026-12-31"


_ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.dates(),
        st.text(max_size=10),
        st.sampled_from(["a", "x.sh", "1h", "1GB"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["path", "mode", "until", "reason", "A"]), inner, max_size=3),
    ),
    max_leaves=6,
)
_PROJECTS = st.lists(
    st.dictionaries(st.sampled_from(sorted(PROJECT_KEYS.keys)), _ANYTHING, max_size=5).map(
        lambda keys: {"path": "x.sh", **keys}
    ),
    max_size=3,
)


@given(_PROJECTS, st.dictionaries(st.sampled_from(sorted(PROJECT_KEYS.keys)), _ANYTHING, max_size=2))
def test_whatever_is_declared_is_a_manifest_or_a_list_of_problems(
    projects: list[dict[str, Any]], defaults: dict[str, Any]
) -> None:
    text = yaml.safe_dump({"defaults": defaults, "golden_projects": projects}, allow_unicode=True)
    try:
        manifest = parse_manifest(text, "m.yaml", "/w")
    except ManifestError as error:
        assert list(error.problems) == sorted(set(error.problems))  # noqa: PT017 - either outcome is right
        assert all(problem.line and problem.column for problem in error.problems)  # noqa: PT017
    else:
        assert len(manifest.projects) == len(projects)


def test_a_problem_is_a_plain_tuple_for_machines() -> None:
    with pytest.raises(ManifestError) as refusal:
        parse_manifest("x: 1\n", "m.yaml", "/w")
    problem = refusal.value.problems[0]
    assert isinstance(problem, ManifestProblem)
    assert (problem.line, problem.column) == (1, 1)


def _parse(text: str) -> list[tuple[str, str]]:
    return [(project.name, project.path) for project in parse_golden_projects_input(text, "/w")]


@pytest.mark.parametrize(
    ("text", "projects"),
    [
        ("a.yaml, b/c.py", [("a", "a.yaml"), ("c", "b/c.py")]),
        (" a.yaml ,\n b.yaml,,\r\n", [("a", "a.yaml"), ("b", "b.yaml")]),
        ("x:a.yaml, y : b.yaml", [("x", "a.yaml"), ("y", "b.yaml")]),
        ("x:a.yaml, b.yaml", [("x", "a.yaml"), ("b", "b.yaml")]),
        ("my etl.sh", [("my_etl", "my etl.sh")]),
        ("D:\\p\\q.yaml, d:/p/r.yaml", [("q", "D:\\p\\q.yaml"), ("r", "d:/p/r.yaml")]),
        ("q:D:\\p\\x.yaml, d:p.yaml", [("q", "D:\\p\\x.yaml"), ("d", "p.yaml")]),
        ("a/p.yaml, b/p.yaml", [("a_p", "a/p.yaml"), ("b_p", "b/p.yaml")]),
        ("/w/a/p.yaml, /w/b/p.yaml, /x/p.yaml", [("a_p", "/w/a/p.yaml"), ("b_p", "/w/b/p.yaml"), ("x_p", "/x/p.yaml")]),
        ("D:\\a\\p.yaml, D:\\b\\p.yaml", [("D_a_p", "D:\\a\\p.yaml"), ("D_b_p", "D:\\b\\p.yaml")]),
        ("e.py, e.sh", [("e.py", "e.py"), ("e.sh", "e.sh")]),
        ("p:x.yaml, b/p.yaml", [("p", "x.yaml"), ("b_p", "b/p.yaml")]),
        ("a:x.yaml, b:x.yaml", [("a", "x.yaml"), ("b", "x.yaml")]),
    ],
)
def test_inline_forms_are_read(text: str, projects: list[tuple[str, str]]) -> None:
    assert _parse(text) == projects


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a.yaml, a.yaml", "is given 2 times"),
        ("x:a.yaml, x:b.yaml", "the name 'x' is given 2 times"),
        ("x:", "the path in 'x:': is empty"),
        (":a.yaml", "the name in ':a.yaml': is empty"),
        ("a/b:c.yaml", "'a/b' is not a name"),
        (".", "gives no name; write it as name:path"),
        ("a\0.yaml", "NUL"),
    ],
)
def test_wrong_inline_forms_are_refused(text: str, part: str) -> None:
    with pytest.raises(ManifestError, match="--golden-projects: ") as refusal:
        _parse(text)
    assert part in str(refusal.value)
    assert refusal.value.problems[0].line == 0


@pytest.mark.parametrize("text", ["", "  \n", " ,\n, "])
def test_text_that_names_nothing_declares_nothing(text: str) -> None:
    assert parse_golden_projects_input(text, "/work") == ()


def test_all_mistakes_of_an_inline_form_come_at_once() -> None:
    with pytest.raises(ManifestError) as refusal:
        _parse("x:, a b:c, :")
    assert len(refusal.value.problems) == 3


def test_a_very_long_stem_still_gives_a_name() -> None:
    assert len(_parse("a" * 240 + ".sh")[0][0]) == 200


def test_an_inline_manifest_has_no_file(tmp_path: Path) -> None:
    manifest = parse_inline_manifest("a.yaml", tmp_path)
    assert manifest.path is None
    assert manifest.lines == {}
    assert manifest.workspace_root == tmp_path.resolve()
    assert [project.name for project in manifest.projects] == ["a"]


_NAMES = st.text(string.ascii_letters + string.digits + "_", min_size=2, max_size=8)
_PATHS = st.one_of(
    st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5}){0,2}\.(yaml|py)", fullmatch=True),
    st.from_regex(r"[C-F]:[\\/][a-z]{1,5}\.yaml", fullmatch=True),
)


@given(st.dictionaries(_NAMES, _PATHS, min_size=1, max_size=6))
def test_names_and_paths_come_back_as_they_were_written(projects: dict[str, str]) -> None:
    text = ", ".join(f"{name}:{path}" for name, path in projects.items())
    assert _parse(text) == list(projects.items())


@given(st.lists(_PATHS, min_size=1, max_size=6, unique=True))
def test_paths_come_back_under_different_names(paths: list[str]) -> None:
    try:
        projects = _parse(",".join(paths))
    except ManifestError as error:
        assert "is given" in str(error)  # noqa: PT017 - paths that differ in no letter or digit
    else:
        assert [path for _, path in projects] == paths
        assert len({name for name, _ in projects}) == len(paths)


@given(st.text(max_size=40))
def test_any_text_gives_projects_or_problems(text: str) -> None:
    try:
        assert _parse(text) or not text.replace(",", "").strip()
    except ManifestError as error:
        assert error.problems  # noqa: PT017 - either outcome is right
