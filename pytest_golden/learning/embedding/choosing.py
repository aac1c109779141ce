"""Which embedder the environment names. Nothing is sent here; a model in a folder is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden import settings
from pytest_golden.errors import SettingsError
from pytest_golden.learning.embedding.endpoint import EmbeddingEndpoint
from pytest_golden.learning.embedding.static import StaticEmbedder
from pytest_golden.learning.language_model import endpoint
from pytest_golden.redaction import Redactor, secret_literals

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL_VARIABLE = "GOLDEN_EMBEDDING_MODEL"
_BASE_URL_VARIABLE, _KEY_VARIABLE = "GOLDEN_EMBEDDING_BASE_URL", "GOLDEN_EMBEDDING_API_KEY"


def embedder_from_env(environ: Mapping[str, str]) -> EmbeddingEndpoint | StaticEmbedder | None:
    """Give the embedder that GOLDEN_EMBEDDING_MODEL names: `openai:NAME` or `model2vec:FOLDER`; None when it is not set.

    Address and key of an endpoint are GOLDEN_EMBEDDING_BASE_URL and GOLDEN_EMBEDDING_API_KEY. Without such an address
    those of an OpenAI-compatible language model are taken, GOLDEN_LLM_BASE_URL and GOLDEN_LLM_API_KEY; to another address
    its key is never sent.

    Raises:
        SettingsError: it names no embedder, or one that cannot be used; the message says what to correct or to install.
    """
    said = environ.get(MODEL_VARIABLE, "").strip()
    if not said:
        return None
    kind, _, name = said.partition(":")
    if kind.lower() == "model2vec" and name.strip():
        return StaticEmbedder(name.strip())
    if kind.lower() != "openai" or not name.strip():
        raise SettingsError(f"{MODEL_VARIABLE} {said!r:.100} names no embedder: write openai:NAME or model2vec:FOLDER")
    base_url, key = _find_address(environ)
    try:
        return EmbeddingEndpoint(name.strip(), base_url, key, redactor=Redactor(secret_literals(environ)))
    except SettingsError as error:
        raise SettingsError(f"{MODEL_VARIABLE} {said!r:.100}: {error}") from None


def _find_address(environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    base_url, key = environ.get(_BASE_URL_VARIABLE), environ.get(_KEY_VARIABLE)
    # Of another provider's model, address and key are of no use.
    if base_url or not (environ.get(settings.MODEL_VARIABLE) or "openai:").strip().lower().startswith("openai:"):
        return base_url, key
    return environ.get(endpoint.BASE_URL_VARIABLE), key or environ.get(endpoint.KEY_VARIABLE)
