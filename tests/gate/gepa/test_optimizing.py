"""The real GEPA with a reflection function of our own in the place of a language model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from gepa.api import optimize as gepa_optimize
from gepa.logging.logger import LoggerProtocol

from pytest_golden.errors import GoldenError
from pytest_golden.gate.gepa import GoldenAdapter
from pytest_golden.gateway.write_set import take_fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.gate.gepa.conftest import OpenAdapter, Workspace


class Quiet(LoggerProtocol):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, message: str) -> None:
        self.lines.append(message)


def optimize(adapter: GoldenAdapter, **options: Any) -> Any:
    return gepa_optimize(
        seed_candidate=adapter.seed_candidate(),
        trainset=adapter.projects(),
        valset=adapter.projects(),
        adapter=adapter,
        logger=options.pop("logger", Quiet()),
        max_metric_calls=options.pop("max_metric_calls", 12),
        **options,
    )


def add_what_is_missing(prompt: object) -> str:
    """Reflect as a model would: read what is wrong and add the word."""
    prompt = str(prompt)
    current = prompt.split("```")[1].strip()
    missing = dict.fromkeys(re.findall(r"ValueError: the query has no (\w+)", prompt))
    return f"```sql\n{' '.join([current, *missing])}\n```"


def test_text_is_improved_until_every_project_passes(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    before = take_fingerprint(str(workspace.root))
    found = optimize(open_adapter(), reflection_lm=add_what_is_missing)
    assert found.val_aggregate_scores[0] == pytest.approx(0.1)
    assert found.val_aggregate_scores[found.best_idx] == 1.0
    assert set(found.best_candidate["query"].split()) == {"select", "1", "sum", "count"}
    assert take_fingerprint(str(workspace.root)) == before


def test_each_component_is_improved_by_its_own_records(open_adapter: OpenAdapter, workspace: Workspace) -> None:
    (workspace.folder / "limits.txt").write_text("1\n")
    (workspace.folder / "totals.py").write_text(
        "import sys\n"
        "query, limit = open('query.sql').read(), open('limits.txt').read()\n"
        "sys.exit(0 if 'sum' in query and int(limit) > 5 else f'ValueError: {query.strip()!r} {int(limit)}')\n"
    )
    asked: list[str] = []

    def reflect(prompt: object) -> str:
        [component] = set(re.findall(r"### component\n(\w+)", str(prompt)))
        asked.append(component)
        return "```\nsum\n```" if component == "query" else "```\n9\n```"

    adapter = open_adapter({"query": "query.sql", "limit": "limits.txt"}, projects=["totals"])
    found = optimize(adapter, reflection_lm=reflect, acceptance_criterion="improvement_or_equal")
    assert asked[:2] == ["query", "limit"]
    assert found.best_candidate == {"query": "sum", "limit": "9"}


def test_adapter_may_propose_by_itself(workspace: Workspace) -> None:
    class Proposing(GoldenAdapter):
        def propose_new_texts(
            self,
            candidate: Mapping[str, str],
            reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
            components_to_update: list[str],
        ) -> dict[str, str]:
            return {name: f"{candidate[name]} sum count" for name in components_to_update if reflective_dataset[name]}

    with Proposing(workspace.manifest, {"query": "query.sql"}) as adapter:
        assert optimize(adapter).best_candidate == {"query": "select 1\n sum count"}


def test_what_gepa_would_swallow_ends_the_search(open_adapter: OpenAdapter) -> None:
    logger = Quiet()

    def choose(*_: object) -> list[str]:
        return ["unknown"]

    with pytest.raises(GoldenError, match=r"after the last evaluation: components to update: unknown: unknown"):
        optimize(open_adapter(), reflection_lm=add_what_is_missing, module_selector=choose, logger=logger)
    assert any("Exception building reflective dataset" in line for line in logger.lines)


def test_seed_that_lacks_a_component_ends_the_search(open_adapter: OpenAdapter) -> None:
    adapter = open_adapter()
    with pytest.raises(GoldenError, match="lacks query"):
        gepa_optimize(
            seed_candidate={"other": "text"},
            trainset=adapter.projects(),
            adapter=adapter,
            reflection_lm=add_what_is_missing,
            max_metric_calls=5,
            logger=Quiet(),
        )
