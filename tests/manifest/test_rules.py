from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import ManifestError
from pytest_golden.manifest.reader import parse_manifest

if TYPE_CHECKING:
    from pytest_golden.manifest.model import Manifest


def _read(text: str) -> Manifest:
    return parse_manifest(text, "m.yaml", "/w")


def _problems(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ManifestError) as refusal:
        _read(text)
    return [problem[1:] for problem in refusal.value.problems]


def test_a_need_names_an_earlier_project() -> None:
    manifest = _read("golden_projects:\n- {name: a, path: a.sh}\n- {name: b, path: b.sh, needs: [a]}\n")
    assert manifest.projects[1].needs == ("a",)


def test_a_need_declared_later_is_explained() -> None:
    found = _problems("golden_projects:\n- {name: b, path: b.sh, needs: [a]}\n- {name: a, path: a.sh}\n")
    assert found == [
        (2, 33, "needs[0]: 'a' is declared later, in line 3; declare this one after it, since projects run in order")
    ]


def test_an_unknown_need_suggests_the_nearest_name() -> None:
    found = _problems("golden_projects:\n- {name: load_ref, path: a.sh}\n- {name: b, path: b.sh, needs: [load_red]}\n")
    assert found[0][2].endswith("did you mean 'load_ref'?")


def test_guesses_end_when_there_are_many_mistakes() -> None:
    items = "".join(f"- {{name: load_{number}, path: p.sh, needs: [loaf_{number}]}}\n" for number in range(50))
    found = _problems("golden_projects:\n" + items)
    assert len(found) == 50
    assert "did you mean" in found[0][2]
    assert "declare it earlier" in found[-1][2]


def test_an_independent_project_has_no_needs() -> None:
    found = _problems(
        "golden_projects:\n- {name: a, path: a.sh}\n- {name: b, path: b.sh, needs: [a], independent: true}\n"
    )
    assert found[0][:2] == (3, 32)
    assert "independent project may run on another worker" in found[0][2]


def test_an_independent_project_is_not_needed() -> None:
    found = _problems(
        "golden_projects:\n- {name: a, path: a.sh, independent: true}\n- {name: b, path: b.sh, needs: [a]}\n"
    )
    assert "'a' is independent" in found[0][2]


def test_a_project_does_not_need_itself() -> None:
    assert "cannot need itself" in _problems("golden_projects:\n- {name: a, path: a.sh, needs: [a]}\n")[0][2]


def test_a_doubled_name_is_reported_where_it_stands_again() -> None:
    found = _problems("golden_projects:\n- {name: a, path: x.sh}\n- {path: b/a.sh}\n- {path: c.sh, name: a}\n")
    assert [(line, column) for line, column, _ in found] == [(3, 10), (4, 22)]
    assert "already taken in line 2" in found[0][2]


def test_a_doubled_name_in_one_line_is_found() -> None:
    found = _problems("golden_projects: [{name: a, path: a.sh}, {name: a, path: b.sh}]\n")
    assert [(line, column) for line, column, _ in found] == [(1, 49)]


def test_a_need_of_a_project_with_a_bad_name_is_no_second_mistake() -> None:
    found = _problems('golden_projects:\n- {name: 123, path: a.sh}\n- {name: b, path: b.sh, needs: ["123"]}\n')
    assert len(found) == 1


def test_a_default_that_contradicts_is_reported_once_at_the_defaults() -> None:
    found = _problems(
        "defaults: {needs: [zz], runner: command}\ngolden_projects:\n- {name: a, path: a.sh}\n- {name: b, path: b.sh}\n- just text\n"
    )
    assert [(line, column) for line, column, _ in found] == [(1, 20), (1, 33), (5, 3)]
