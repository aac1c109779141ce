from __future__ import annotations

import pytest

from pytest_golden.history.unchanged_paths import Claims, InputPlaces, PathIndex

CLAIMS = Claims(
    [
        InputPlaces(("sales",), ("sql/**/*.sql", "*.cfg"), folder="sales"),
        InputPlaces(("all",), folder="all"),
        InputPlaces(("all/of/it",), folder="all/of/it"),
        InputPlaces((), doubt="/elsewhere"),
    ],
    ("golden_projects.yaml", "golden_baselines"),
)


@pytest.mark.parametrize(
    "path",
    [
        "sales/etl.py",
        "sql/deep/a.sql",
        "some.cfg",
        "all/of/it/x.py",
        "golden_projects.yaml",
        "golden_baselines/gone/x.csv",
        "README",
        "lib/notes.md",
        "docs/conf.py",
        ".github/workflows/x.yml",
    ],
)
def test_what_is_of_someone_or_for_people_is_no_doubt(path: str) -> None:
    assert CLAIMS.find_unclaimed(PathIndex([path])) is None


@pytest.mark.parametrize(
    "path",
    ["lib/shared.py", "sql/deep/a.txt", "all/shared.py", "all/of/x.py", "salesman/x.py", "lib/docs/x.py", "sub/"],
)
def test_what_nobody_claims_is_found(path: str) -> None:
    index = PathIndex(["README.md", path])
    assert CLAIMS.find_unclaimed(index) == CLAIMS.find_unclaimed(index) == path


def test_project_at_the_root_claims_nothing_that_others_may_read() -> None:
    places = [InputPlaces(("",), folder=""), InputPlaces(("a",), folder="a")]
    assert Claims(places).find_unclaimed(PathIndex(["lib.py"])) == "lib.py"
    assert Claims(places[:1]).find_unclaimed(PathIndex(["lib.py"])) is None
