from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import ManifestError
from pytest_golden.manifest.inline import parse_golden_projects_input, parse_inline_manifest

if TYPE_CHECKING:
    from pathlib import Path


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
