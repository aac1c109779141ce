"""Embedders that the environment can name: a model at an OpenAI-compatible endpoint, or a static model in a folder."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.learning.language_model import endpoint
from pytest_golden.redaction.literals import secret_literals
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.settings import EMBEDDER_VARIABLE, MODEL_VARIABLE
from pytest_golden.values.checking import check_timeout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# A number takes some twenty characters: 256 vectors of 4,096 numbers fit.
_MOST_BYTES = 32 * 1024 * 1024
# The files that a model consists of, besides notes for people.
_PARTS = ("*.safetensors", "*.json")
_DIGITS = 16
_BASE_URL_VARIABLE, _KEY_VARIABLE = "GOLDEN_EMBEDDING_BASE_URL", "GOLDEN_EMBEDDING_API_KEY"


def embedder_from_env(environ: Mapping[str, str]) -> EmbeddingEndpoint | StaticEmbedder | None:
    """Return the embedder that GOLDEN_EMBEDDING_MODEL names: `openai:NAME` or `model2vec:FOLDER`; None when it is not set.

    Address and key of an endpoint are GOLDEN_EMBEDDING_BASE_URL and GOLDEN_EMBEDDING_API_KEY. Without such an address,
    those of an OpenAI-compatible language model are used, GOLDEN_LLM_BASE_URL and GOLDEN_LLM_API_KEY; its key is never sent
    to another address.

    Raises:
        SettingsError: it names no embedder, or one that cannot be used; the message says what to correct or to install.
    """
    said = environ.get(EMBEDDER_VARIABLE, "").strip()
    if not said:
        return None
    kind, _, name = said.partition(":")
    if kind.lower() == "model2vec" and name.strip():
        return StaticEmbedder(name.strip())
    if kind.lower() != "openai" or not name.strip():
        raise SettingsError(
            f"{EMBEDDER_VARIABLE} {said!r:.100} names no embedder: write openai:NAME or model2vec:FOLDER"
        )
    base_url, key = _find_address(environ)
    try:
        return EmbeddingEndpoint(name.strip(), base_url, key, redactor=Redactor(secret_literals(environ)))
    except SettingsError as error:
        raise SettingsError(f"{EMBEDDER_VARIABLE} {said!r:.100}: {error}") from None


def _find_address(environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    base_url, key = environ.get(_BASE_URL_VARIABLE), environ.get(_KEY_VARIABLE)
    # Address and key of another provider's model cannot be used.
    if base_url or not (environ.get(MODEL_VARIABLE) or "openai:").strip().lower().startswith("openai:"):
        return base_url, key
    return environ.get(endpoint.BASE_URL_VARIABLE), key or environ.get(endpoint.KEY_VARIABLE)


class EmbeddingEndpoint:
    """An embedding model at an endpoint: send redacted texts, get a vector for each. Safe between threads.

    Source: https://platform.openai.com/docs/api-reference/embeddings, which many servers speak.

    Args:
        name: the model's name there.
        base_url: texts go to `BASE/embeddings`, so it ends in /v1; None is OpenAI's own service.
        api_key: sent as a bearer token; None sends none.
        timeout_seconds: for one call in all: connecting, both tries and the body.
        redactor: knows further secrets, which are redacted in the texts.
        most_bytes: the size of the largest answer that is read.

    Raises:
        SettingsError: name, address or key cannot be used, or the extra `embeddings` is not installed.
        ValueError: the timeout is not a number of seconds above 0.
    """

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = 5.0,
        *,
        redactor: Redactor | None = None,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._most_bytes = most_bytes
        self._timeout_seconds = check_timeout(timeout_seconds)
        base = None if base_url is None else base_url.strip().rstrip("/").removesuffix("/embeddings")
        self._endpoint = endpoint.make_endpoint(f"openai:{name}", base, api_key, names=("name", "base_url", "api_key"))
        if self._endpoint.is_default and self._endpoint.api_key is None:
            raise SettingsError(
                f"{self._endpoint.base_url} needs a key: set GOLDEN_EMBEDDING_API_KEY, or give the address"
            )
        endpoint.refuse_missing_extra("an embedder", "embeddings")
        self._redactor = self._endpoint.make_redactor(redactor)

    @property
    def model(self) -> str:
        """The name that its vectors are kept under."""
        return f"openai:{self._endpoint.name}"

    def __repr__(self) -> str:
        """Return model and address, never the key."""
        return f"EmbeddingEndpoint({str(self._endpoint)!r})"

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text. Do not call it where an event loop runs.

        Raises:
            LanguageModelError: the vectors did not come in time, or the answer holds something else.
        """
        if not texts:
            return []
        sent = [endpoint.write_whole(self._redactor.text(text)) for text in texts]
        body = {"model": self._endpoint.name, "input": sent, "encoding_format": "float"}
        url, headers = f"{self._endpoint.base_url}/embeddings", endpoint.write_bearer(self._endpoint.api_key)
        request = endpoint.Request.of_json(url, body, headers)
        try:
            answer = asyncio.run(endpoint.exchange(request, seconds=self._timeout_seconds, most_bytes=self._most_bytes))
            return _read_vectors(answer, len(texts))
        except LanguageModelError as error:
            message = self._redactor.text(str(error))
        raise LanguageModelError(f"embedding model {self._endpoint}: {message}")


def _read_vectors(answer: object, count: int) -> list[list[float]]:
    """Return the vectors in the order of their texts, by their indexes."""
    found = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise LanguageModelError("the answer holds no vectors")
    indexed = [(one.get("index", number), one.get("embedding")) for number, one in enumerate(found)]
    by_index = {index: vector for index, vector in indexed if isinstance(index, int) and isinstance(vector, list)}
    if len(found) != count or by_index.keys() != set(range(count)):
        raise LanguageModelError("the answer does not hold one vector for each text")
    return [by_index[number] for number in range(count)]


class StaticEmbedder:
    """A model that `StaticModel.save_pretrained` of Model2Vec wrote, without torch. Nothing is downloaded.

    Raises:
        SettingsError: the folder does not exist or holds no such model, or the extra `embeddings` is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        path = Path(folder).expanduser()
        # Model2Vec would search a hub for a name that is not a folder.
        if not path.is_dir():
            raise SettingsError(f"model2vec:{folder}: there is no such folder; put the model's files there")
        try:
            from model2vec import StaticModel
        except ImportError as error:
            message = (
                f"model2vec:{folder}: it needs an extra: pip install 'pytest-golden-projects[embeddings]' ({error})"
            )
            raise SettingsError(message) from None
        try:
            self._model: Any = StaticModel.from_pretrained(path.resolve())
            self.model = f"model2vec:{path.resolve().name}@{_digest_model(path)}"
        except Exception as error:
            kind = type(error).__name__
            raise SettingsError(f"model2vec:{folder}: there is no model that can be loaded ({kind}: {error})") from None

    def __repr__(self) -> str:
        """Return the name that its vectors are kept under."""
        return f"StaticEmbedder({self.model!r})"

    def __call__(self, texts: Sequence[str]) -> Any:
        """Return an array with a row for each text; the row of a text without known words is zeros."""
        return self._model.encode(list(texts), use_multiprocessing=False)


def _digest_model(folder: Path) -> str:
    """Return a digest of the model's files, so that another model in the same folder gets vectors of its own."""
    digest = hashlib.sha256()
    for path in sorted({path for part in _PARTS for path in folder.rglob(part)}):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]
