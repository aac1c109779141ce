from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.gate.fixes import Break, find_broken, make_break
from tests.gate.lessons.made import difference, point

MANIFEST = "golden_projects.yaml"


def broken(number: int = 1, project: str = "sales", **fields: Any) -> Break:
    plain = {"files": ("etl/load.py",), **fields}
    made = make_break(point(number, project=project), difference("load prices", **plain), MANIFEST)
    assert made is not None
    return made


def test_break_keeps_what_had_changed() -> None:
    one = broken(files=("README.md", MANIFEST, "etl/load.py", "lib/x.py"), inside=("etl/load.py",))
    assert (one.files, one.inside) == (("etl/load.py", "lib/x.py"), ("etl/load.py",))
    assert (one.error, one.project) == ("KeyError: 'amount'", "sales")
    assert [commit["subject"] for commit in one.commits] == ["load prices"]
    draft = one.to_draft()
    assert (draft.namespace, draft.key, draft.words) == (("breaks", "golden"), one.entry, "")
    assert Break.from_value(draft.value) == one


def test_secrets_are_taken_out_of_what_is_kept() -> None:
    one = make_break(point(message="password=hunter2hunter2 refused"), difference("a", files=("a.py",)), MANIFEST)
    assert one is not None
    assert "hunter2" not in str(one.to_draft().value)


@pytest.mark.parametrize("files", [(), ("README.md",), tuple(f"{number}.py" for number in range(101))])
def test_no_file_or_too_many_are_to_blame_for_nothing(files: tuple[str, ...]) -> None:
    assert make_break(point(), difference("a", files=files), MANIFEST) is None


def test_projects_that_broke_most_often_come_first() -> None:
    known = [
        broken(1),
        broken(2, "stock"),
        broken(3, "stock", files=("lib/x.py", "etl/load.py")),
        broken(4, "stock", files=("other.py",)),
        broken(5, "other", files=("other.py",)),
    ]
    first, second = find_broken(known, {"etl/load.py", "lib/x.py"})
    assert (first.project, first.count, first.break_count) == ("stock", 2, 3)
    assert first.files == ("lib/x.py", "etl/load.py")
    assert first.last is known[2]
    assert (second.project, second.count, second.break_count) == ("sales", 1, 1)
    assert find_broken(known, set()) == ()


def test_one_file_of_a_great_change_tells_nothing_unless_it_is_the_projects_own() -> None:
    many = tuple(f"lib/{number}.py" for number in range(20))
    one = broken(files=("etl/load.py", *many), inside=("etl/load.py",))
    assert find_broken([one], {"lib/3.py"}) == ()
    assert find_broken([one], {"lib/3.py", "etl/load.py"})[0].files == ("etl/load.py",)
