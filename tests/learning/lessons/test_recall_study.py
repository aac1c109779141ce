"""The recall study's failures, through a real store. The benchmark of the same name prints more of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "recall_study.py"


@pytest.fixture(scope="module")
def study() -> Any:
    spec = importlib.util.spec_from_file_location("recall_study_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_failures_met_again_are_answered_and_others_are_not(store: Store, study: Any) -> None:
    meetings = study.read_study()
    study.teach(store, meetings)
    wrong: list[str] = []
    right, silent = study.count(meetings, study.ask_store(store), wrong)
    assert right.asked >= 40
    assert silent.asked >= 40
    assert right.right >= 0.92 * right.asked, wrong
    assert silent.right >= 0.98 * silent.asked, wrong


def test_a_third_was_set_aside(study: Any) -> None:
    meetings = study.read_study()
    assert sum(one.is_held_out for one in meetings) >= 0.3 * len(meetings)
