"""An embedder at an OpenAI-compatible endpoint: texts out, redacted; a vector for each back, or an error.

Source: https://platform.openai.com/docs/api-reference/embeddings, which many servers speak.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import utc_now
from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.learning.language_model.endpoint import BASE_URL_VARIABLE, KEY_VARIABLE, make_endpoint
from pytest_golden.learning.language_model.protocols import Request
from pytest_golden.learning.language_model.transport import exchange, refuse_missing_extra
from pytest_golden.learning.limits import check_timeout
from pytest_golden.settings import MODEL_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.learning.language_model.endpoint import Endpoint
    from pytest_golden.redaction import Redactor

# A number is written with some twenty characters: 256 vectors of 4,096 fit.
_MOST_BYTES = 32 * 1024 * 1024


class EmbeddingEndpoint:
    """A model of embeddings at an endpoint. It holds no connection; calls may come from several threads.

    Args:
        name: the model's name there.
        base_url: texts go to `BASE/embeddings`, so it ends in /v1; None is OpenAI's own service.
        api_key: sent as a bearer token; None sends none.
        timeout_seconds: for one call in all: connecting, both tries and the body.
        redactor: knows further secrets, which are taken out of the texts.
        most_bytes: what an answer may have; more is an error.

    Raises:
        SettingsError: name, address or key cannot be used, or the extra `embeddings` is not installed.
        ValueError: the timeout is no number of seconds above 0.
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
        self._endpoint = _make_endpoint(name, base_url, api_key)
        if self._endpoint.is_default and self._endpoint.api_key is None:
            raise SettingsError(
                f"{self._endpoint.base_url} wants a key: set GOLDEN_EMBEDDING_API_KEY, or give the address"
            )
        refuse_missing_extra("an embedder", "embeddings")
        self._redactor = self._endpoint.make_redactor(redactor)

    @property
    def model(self) -> str:
        """The name that its vectors are kept under."""
        return f"openai:{self._endpoint.name}"

    def __repr__(self) -> str:
        """Give model and address, never the key."""
        return f"EmbeddingEndpoint({str(self._endpoint)!r})"

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """Give a vector for each text. Not to be called where an event loop runs.

        Raises:
            LanguageModelError: no vectors came in time, or something else.
        """
        if not texts:
            return []
        try:
            return _read_vectors(asyncio.run(self._post(texts)), len(texts))
        except TimeoutError:
            message = f"no answer within {self._timeout_seconds:g} s"
        except LanguageModelError as error:
            message = self._redactor.text(str(error))
        raise LanguageModelError(f"embedding model {self._endpoint}: {message}")

    async def _post(self, texts: Sequence[str]) -> Any:
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        async with asyncio.timeout_at(deadline):
            return await exchange(self._write(texts), deadline=deadline, clock=utc_now, most_bytes=self._most_bytes)

    def _write(self, texts: Sequence[str]) -> Request:
        # Half characters are taken by no server.
        sent = [self._redactor.text(text).encode("utf-8", "replace").decode() for text in texts]
        body = {"model": self._endpoint.name, "input": sent, "encoding_format": "float"}
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        if self._endpoint.api_key is not None:
            headers["authorization"] = f"Bearer {self._endpoint.api_key}"
        return Request(f"{self._endpoint.base_url}/embeddings", headers, json.dumps(body).encode())


def _make_endpoint(name: str, base_url: str | None, api_key: str | None) -> Endpoint:
    base = None if base_url is None else base_url.strip().rstrip("/").removesuffix("/embeddings")
    try:
        return make_endpoint(f"openai:{name}", base, api_key)
    except SettingsError as error:
        told = str(error)
    # In the words of who calls this: the variables are those of the language model.
    for variable, argument in ((MODEL_VARIABLE, "name"), (BASE_URL_VARIABLE, "base_url"), (KEY_VARIABLE, "api_key")):
        told = told.replace(variable, argument)
    raise SettingsError(told)


def _read_vectors(answer: object, count: int) -> list[list[float]]:
    """Give the vectors in the order of their texts, which their indexes tell."""
    found = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise LanguageModelError("the answer holds no vectors")
    told = [(one.get("index", place), one.get("embedding")) for place, one in enumerate(found)]
    by_index = {index: vector for index, vector in told if isinstance(index, int) and isinstance(vector, list)}
    if len(found) != count or by_index.keys() != set(range(count)):
        raise LanguageModelError("the answer does not hold one vector for each text")
    return [by_index[place] for place in range(count)]
