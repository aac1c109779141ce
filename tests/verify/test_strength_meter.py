"""The score of a project, and its bounds."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway.runners.runner import CHANGED_FILES
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig
from pytest_golden.regression.model import ResultStatus
from pytest_golden.verify import strength_meter
from pytest_golden.verify.mutants import Mutant
from pytest_golden.verify.strength_meter import Noticed, ProjectStrength, StrengthMeter, TriedMutant
from tests.requirement import require

if TYPE_CHECKING:
    from pathlib import Path

SHOP = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodel-paths: [models]\n",
    "profiles.yml": "shop:\n  target: gate\n  outputs:\n    gate: {type: duckdb, path: shop.duckdb}\n",
    "models/orders.sql": "select 1 as id, 10 as amount\n",
    "models/total.sql": "select sum(amount) as total, 20 > 7 as is_many from {{ ref('orders') }}\n",
    "models/other.sql": "select 3 as n\n",
}


def tried(*found: Noticed) -> ProjectStrength:
    mutant = Mutant("1", "a.py", 1, "constant", "1", "2")
    return ProjectStrength("orders", ("a.py",), 99, tuple(TriedMutant(mutant, one, "why") for one in found))


@pytest.mark.parametrize(
    ("found", "score"),
    [
        ((), None),
        ((Noticed.SAME, Noticed.INVALID, Noticed.UNCLEAR), None),
        ((Noticed.CAUGHT,), 100),
        ((Noticed.SURVIVED, Noticed.SAME), 0),
        ((Noticed.CAUGHT, Noticed.CAUGHT, Noticed.SURVIVED, Noticed.INVALID), 66),
    ],
)
def test_score_is_the_share_of_what_made_a_difference(found: tuple[Noticed, ...], score: int | None) -> None:
    strength = tried(*found)
    assert strength.score == score
    if score is None:
        assert strength.interval is None
    else:
        low, high = strength.interval or (0, 0)
        assert 0 <= low <= score <= high <= 100
        assert high - low > 50
    assert ProjectStrength.from_dict(strength.to_dict()) == strength


def test_bounds_are_closer_after_more_changes() -> None:
    few, many = (tried(*[Noticed.CAUGHT] * (8 * times), *[Noticed.SURVIVED] * (2 * times)) for times in (1, 20))
    assert few.score == many.score == 80
    assert few.interval is not None
    assert many.interval is not None
    assert few.interval[0] < many.interval[0] < 80 < many.interval[1] < few.interval[1]


class NotingGateway(ExecutionGateway):
    """Notes to which changed files each run was narrowed."""

    narrowed: list[str | None]

    def run_pipeline(self, project: GoldenProjectConfig, **keywords: Any) -> Any:
        self.narrowed.append(project.set_env.get(CHANGED_FILES))
        return super().run_pipeline(project, **keywords)


@pytest.mark.dbt
def test_a_part_of_a_project_notices_what_all_of_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dbt", "duckdb"):
        require(find_spec(module), module)
    for path, text in SHOP.items():
        (tmp_path / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / path).write_text(text)
    project = GoldenProjectConfig("shop", "shop/dbt_project.yml", outputs=(DeclaredOutput(dbt=("*",)),))
    manifest = tmp_path / "golden_projects.yaml"
    content = (tmp_path / "shop" / "models" / "total.sql").read_bytes()
    found = []
    # However long a part takes, and never a part.
    for worth in (float("inf"), 0.0):
        monkeypatch.setattr(strength_meter, "_PART_WORTH", worth)
        with NotingGateway(tmp_path) as gateway:
            gateway.narrowed = []
            keeper = BaselineKeeper(tmp_path / "golden_baselines", accepts=True)
            accepted = RegressionGuard(gateway, baselines=keeper).check_one(project, {})
            assert accepted.status is ResultStatus.PASSED, accepted.error_message
            meter = StrengthMeter(project, gateway, manifest=manifest, seconds=200, reads_from=tmp_path)
            meter.look()
            strength = meter.measure({"models/total.sql": content}, {})
            found.append({one.mutant.id: one.found for one in strength.tried})
            parts = [told for told in gateway.narrowed if told is not None]
            assert set(parts) == {'["models/total.sql"]'}
            assert len(parts) == (strength.total if worth else 1)
            assert gateway.narrowed[:3] == [None, None, None]
    assert found[0] == found[1]
    assert Noticed.CAUGHT in found[0].values()
