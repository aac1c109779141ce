"""After a session, let the language model that the environment names reword lessons, and report the result in a line or two.

It is loaded only where a model is named. The verdict stands by then, and nothing here changes it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.errors import SettingsError
from pytest_golden.gate.rewording import reword_lessons
from pytest_golden.learning.language_model.client import LanguageModel
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.storage.store import Store

_LOGGER = "pytest_golden.learning.language_model"


def describe_model(environ: Mapping[str, str]) -> str | None:
    """Return the header's line about the model, or why it is not used, without the key; None if no model is named."""
    try:
        model = LanguageModel.from_env(environ)
    except SettingsError as error:
        return f"golden: WARNING: no language model is used: {error}"
    return None if model is None else f"golden model: {model.endpoint}"


def reword(store: Store, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Let the model reword lessons.

    Raises:
        StorageError: the store cannot be read or written.
    """
    model = None
    # The header has said what is wrong.
    with suppress(SettingsError):
        model = LanguageModel.from_env(environ)
    if model is None:
        return
    heard = _Heard()
    logger = logging.getLogger(_LOGGER)
    logger.addHandler(heard)
    try:
        done = reword_lessons(store, model)
    finally:
        logger.removeHandler(heard)
    if heard.told:
        say(f"golden: {heard.told[0]}")
    if done.kept:
        say(
            f"golden: the language model worded {count_of(len(done.kept), 'lesson')}: `golden lessons list` shows what waits for approval"
        )


class _Heard(logging.Handler):
    """Keeps what is logged, so that many calls that fail alike are told once and at the right place."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())
