"""Asks an embedder for vectors: it may be slow, hang or fail, so it is asked in a thread of its own."""

from __future__ import annotations

import inspect
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.vectors.model import VectorsError
from pytest_golden.learning.vectors.units import read_units
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.learning.vectors.model import Embedder
    from pytest_golden.learning.vectors.units import Units

_MOST_TOLD = 300


class PatientAsker:
    """Asks one embedder. While it hangs it is not asked again: threads cannot be stopped."""

    def __init__(self, embedder: Embedder) -> None:
        self.model = name_model(embedder)
        self._embedder = embedder
        self._late: _Question | None = None

    def ask(self, texts: Sequence[str], seconds: float) -> Units:
        """Give a vector of length one, or one of zeros, for each text.

        Raises:
            VectorsError: it gave none in time, or something else.
        """
        if self._late is not None and self._late.is_alive():
            raise self.blame("has not answered an earlier question yet")
        question = _Question(self._embedder, texts)
        try:
            question.start()
        except RuntimeError as error:
            raise self.blame(f"cannot be asked ({tell(error)})") from None
        question.join(seconds)
        if question.is_alive():
            self._late = question
            raise self.blame(f"did not answer within {seconds:.3g} s")
        if question.units is None:
            raise self.blame(question.failure)
        return question.units

    def blame(self, what: str) -> VectorsError:
        """Put into words what this embedder did."""
        return VectorsError(f"the embedder {self.model} {what}")


class _Question(Thread):
    """A question to an embedder, and what came of it."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        super().__init__(name="golden-embedder", daemon=True)
        self.units: Units | None = None
        self.failure = "gave nothing"
        self._embedder = embedder
        self._texts = list(texts)

    def run(self) -> None:
        try:
            given = self._embedder(list(self._texts))
            if inspect.iscoroutine(given):
                given.close()
                self.failure = "is a coroutine function, and a plain one is wanted"
            else:
                self.units = read_units(given, len(self._texts))
        except VectorsError as error:
            self.failure = str(error)
        except BaseException as error:  # whatever a stranger raises, SystemExit too
            self.failure = f"failed ({tell(error)})"


def name_model(embedder: Embedder) -> str:
    """Give the name under which vectors of this embedder are kept: its `model`, else its own."""
    model = getattr(embedder, "model", None)
    if isinstance(model, str) and model.strip():
        return redact(model)
    named: Any = embedder.func if isinstance(embedder, partial) else embedder
    named = named if hasattr(named, "__qualname__") else type(named)
    return f"{named.__module__}.{named.__qualname__}"


def tell(error: BaseException) -> str:
    """Put somebody else's error into one line without secrets."""
    said = " ".join(redact(f"{type(error).__name__}: {error}").split()).removesuffix(":")
    return said if len(said) <= _MOST_TOLD else f"{said[:_MOST_TOLD]}..."
