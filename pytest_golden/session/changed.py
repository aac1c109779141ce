"""`--golden-changed` in a session: what is asked. Imported only when the option is given; `header.py` says what came of it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gate.known import foresee
from pytest_golden.history.unchanged import Question, select_changed
from pytest_golden.session.sharding import find_plan_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pytest

    from pytest_golden.history.unchanged import Hide, Selection
    from pytest_golden.session.declared import Declared
    from pytest_golden.settings import GoldenSettings
    from pytest_golden.storage.store import Store

_CONFTEST = "conftest.py"
_OURS = Path(__file__).parents[1]
_INSTALLED = f"{os.sep}site-packages{os.sep}"
_BESIDE_STORE = ("", "-wal", "-shm", "-journal")


def find_selection(
    config: pytest.Config, settings: GoldenSettings, declared: Declared, store: Store | None, hide: Hide
) -> Selection:
    """Find which projects are unchanged since the ref, and what these changes have broken before.

    Raises:
        SettingsError: the ref is not there; the message says what to fetch.
    """
    manifest = declared.manifest
    folders = [config.rootpath, *([] if declared.manifest_path is None else [declared.manifest_path.parent])]
    question = Question(
        str(settings.changed),
        manifest,
        hide,
        tuple(_list_products(config, settings, declared, store)),
        tuple(_list_judging(config, folders)),
        reads=settings.reads,
    )
    selection = select_changed(question, store)
    if store is None or selection.commit is None or settings.learning == "off":
        return selection
    try:
        foresight = foresee(store, manifest.workspace_root, question.ref, projects=declared.projects.keys())
        return replace(selection, forewarnings=foresight.tell())
    except Exception as error:
        # It is only a word to the person who waits.
        return replace(selection, forewarnings=(f"what these changes broke before is not known: {error}",))


def _list_judging(config: pytest.Config, folders: Iterable[Path]) -> Iterator[Path]:
    """List what takes part in the judgement of every project, as far as it may lie in the checkout.

    A conftest or a plugin of one's own has the hooks' code, or imports it: whatever is imported by now and not installed.
    """
    yield from (folder / _CONFTEST for folder in folders)
    if config.inipath is not None:
        yield config.inipath
    yield _OURS
    installed = (str(_OURS), sys.prefix, sys.base_prefix)
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and not file.startswith(installed) and _INSTALLED not in file:
            yield Path(file)


def _list_products(
    config: pytest.Config, settings: GoldenSettings, declared: Declared, store: Store | None
) -> Iterator[Path]:
    """List the files that are the gate's own: reports, also pytest's, the store, and the plan of shards."""
    plan = find_plan_file(settings, declared)
    if plan is not None:
        yield plan
    reports = (settings.junit, settings.json, settings.html, config.getoption("xmlpath", None))
    yield from (Path(config.invocation_params.dir, path) for path in reports if path is not None)
    if store is not None and store.path is not None:
        yield from (Path(f"{store.path}{ending}") for ending in _BESIDE_STORE)
