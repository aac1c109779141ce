"""`--golden-changed` in a session: what is asked. Imported only when the option is given; `header.py` says what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.gate.changed.reading import Question, select_changed
from pytest_golden.gate.lessons.before import foresee

if TYPE_CHECKING:
    import pytest

    from pytest_golden.gate.changed import Selection
    from pytest_golden.gate.changed.reading import Hide
    from pytest_golden.session.declared import Declared
    from pytest_golden.settings import GoldenSettings
    from pytest_golden.storage.store import Store

_CONFTEST = "conftest.py"


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
        tuple(path for path in (settings.junit, settings.json, settings.html) if path is not None),
        tuple(folder / _CONFTEST for folder in folders),
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
