from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest.reader import parse_manifest
from tests.docs import documents
from tests.docs.documents import find_missing, follow, list_typed, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """
Text.

```sh title="a/run.sh"
echo hello
```

```console exit=3
$ cat a/run.sh
echo hello
$ sh a/run.sh && exit 3
hello
```

```bash
python -m pip install nothing-at-all
```

```yaml
$ not: typed
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(documents, "REPOSITORY", tmp_path)
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    return file


def test_blocks_have_their_title_their_exit_code_and_their_line(page: Path) -> None:
    script, console, installing, yaml = read_blocks(page)
    assert (script.title, script.text, script.line) == ("a/run.sh", "echo hello\n", 4)
    assert (console.language, console.exit_code) == ("console", 3)
    assert (installing.language, yaml.language) == ("bash", "yaml")


def test_only_the_last_command_of_a_block_has_its_exit_code(page: Path) -> None:
    first, last = list_typed(read_blocks(page)[1])
    assert (first.command, first.shown, first.exit_code) == ("cat a/run.sh", ("echo hello",), 0)
    assert (last.command, last.exit_code) == ("sh a/run.sh && exit 3", 3)


def test_page_is_followed_and_nothing_is_installed(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)
    assert (tmp_path / "a" / "run.sh").read_text() == "echo hello\n"


@pytest.mark.parametrize(("old", "new"), [("exit=3", "exit=0"), ("\nhello", "\ngoodbye")])
def test_page_that_tells_no_truth_is_found_out(page: Path, tmp_path: Path, old: str, new: str) -> None:
    page.write_text(page.read_text().replace(old, new))
    with pytest.raises(AssertionError, match=r"page\.md:8: "):
        follow(page, tmp_path)


PRINTED = ["one", "two   0.4s", "three"]


@pytest.mark.parametrize(
    "shown", [["one", "...", "three"], ["...", "two   1.7s", "..."], ["one", "two   0.9s", "three"], ["..."], []]
)
def test_dots_stand_for_any_lines_and_times_do_not_count(shown: list[str]) -> None:
    assert find_missing(shown, PRINTED) is None


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (["three", "one"], "three"),
        (["...", "three", "one"], "one"),
        (["one", "three"], "three"),
        (["two   1.7s"], "two   1.7s"),
        (["one", "two   1.7s"], "the end of what is shown"),
        (["...", "two   1.7s"], "the end of what is shown"),
        (["one", "...", "four"], "four"),
    ],
)
def test_lines_are_shown_as_they_are_printed_without_a_gap(shown: list[str], told: str) -> None:
    assert find_missing(shown, PRINTED) == told


def test_output_in_the_readme_is_that_of_the_tutorial() -> None:
    tutorial = [block.text.splitlines() for block in read_blocks(documents.DOCS / "tutorial" / "first-gate.md")]
    shown = [block.text for block in read_blocks(documents.REPOSITORY / "README.md") if block.language == "text"]
    assert len(shown) == 2
    assert [text for text in shown if all(find_missing(text.splitlines(), lines) for lines in tutorial)] == []


def test_every_manifest_on_a_page_can_be_used(tmp_path: Path) -> None:
    manifests = [
        (page, block)
        for page in (*documents.DOCS.rglob("*.md"), documents.REPOSITORY / "README.md")
        for block in read_blocks(page)
        if block.language == "yaml" and "\ngolden_projects:" in block.text
    ]
    assert len(manifests) > 10
    for page, block in manifests:
        assert parse_manifest(block.text, f"{page.name}:{block.line}", tmp_path).projects


def test_links_of_what_mkdocs_does_not_see_lead_somewhere() -> None:
    root = documents.REPOSITORY
    papers = [*root.glob("*.md"), *(root / ".github").rglob("*.md"), root / "examples" / "README.md"]
    links = [
        (paper, link)
        for paper in papers
        for link in re.findall(r"""(?:\]\(|src=")([^)\s"#:]+)[)"#]""", paper.read_text(encoding="utf-8"))
    ]
    assert len(links) > 40
    assert [(paper.name, link) for paper, link in links if not (paper.parent / link).exists()] == []


def test_every_page_is_on_the_first_one_and_in_the_navigation() -> None:
    pages = {str(page.relative_to(documents.DOCS)) for page in documents.DOCS.rglob("*.md")} - {"index.md"}
    first = (documents.DOCS / "index.md").read_text(encoding="utf-8")
    navigation = (documents.REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in sorted(pages) if f"]({page})" not in first] == []
    assert [page for page in sorted(pages) if f"- {page}\n" not in navigation] == []
