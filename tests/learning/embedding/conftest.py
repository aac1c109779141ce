from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.learning.language_model.server import run_model_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.learning.language_model.server import ModelServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server of models, reached without whatever proxy this machine has."""
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with run_model_server() as running:
        yield running
