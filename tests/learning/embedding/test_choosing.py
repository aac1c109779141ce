from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.learning.vectors.embedders import EmbeddingEndpoint, embedder_from_env
from tests.learning.embedding.test_static import folder
from tests.learning.language_model.server import answers

if TYPE_CHECKING:
    from pathlib import Path

    from tests.learning.language_model.server import ModelServer

__all__ = ["folder"]

KEY, OTHER_KEY = "key-Zq81LmPx55vTnQ27", "key-Hr39BnWd71cKsE64"
ANSWER = answers(200, json.dumps({"data": [{"embedding": [1.0]}]}).encode())


def test_nothing_named_is_none() -> None:
    assert embedder_from_env({}) is None
    assert embedder_from_env({"GOLDEN_EMBEDDING_MODEL": " ", "GOLDEN_LLM_MODEL": "openai:m"}) is None


@pytest.mark.parametrize("said", ["model", "openai:", "openai", "model2vec:", "anthropic:x", ":x", "x:y"])
def test_what_names_no_embedder_is_refused(said: str) -> None:
    with pytest.raises(SettingsError, match="write openai:NAME or model2vec:FOLDER"):
        embedder_from_env({"GOLDEN_EMBEDDING_MODEL": said})


def test_model_in_a_folder_is_loaded(folder: Path) -> None:
    embedder = embedder_from_env({"GOLDEN_EMBEDDING_MODEL": f"model2vec:{folder}"})
    assert embedder is not None
    assert embedder.model.startswith("model2vec:small-model@")


def test_own_address_and_key_come_first(server: ModelServer) -> None:
    server.behave(ANSWER)
    own = {
        "GOLDEN_EMBEDDING_MODEL": "OpenAI: small ",
        "GOLDEN_EMBEDDING_BASE_URL": f"{server.address}/own",
        "GOLDEN_EMBEDDING_API_KEY": KEY,
        "GOLDEN_LLM_BASE_URL": "http://127.0.0.1:1/v1",
        "GOLDEN_LLM_API_KEY": OTHER_KEY,
        "APP_PASSWORD": "Vq7Lx92mPzR4",
    }
    embedder = embedder_from_env(own)
    assert isinstance(embedder, EmbeddingEndpoint)
    assert embedder.model == "openai:small"
    embedder([f"{OTHER_KEY} Vq7Lx92mPzR4"])
    path, headers, body = server.requests[0]
    assert (path, headers["authorization"]) == ("/own/embeddings", f"Bearer {KEY}")
    assert OTHER_KEY not in str(body)
    assert "Vq7Lx92mPzR4" not in str(body)


@pytest.mark.parametrize("model", ["", "openai:big"])
def test_those_of_the_language_model_stand_in(server: ModelServer, model: str) -> None:
    server.behave(ANSWER)
    shared = {
        "GOLDEN_EMBEDDING_MODEL": "openai:small",
        "GOLDEN_LLM_MODEL": model,
        "GOLDEN_LLM_BASE_URL": f"{server.address}/v1",
        "GOLDEN_LLM_API_KEY": OTHER_KEY,
    }
    for more, key in (({}, OTHER_KEY), ({"GOLDEN_EMBEDDING_API_KEY": KEY}, KEY)):
        embedder = embedder_from_env({**shared, **more})
        assert embedder is not None
        embedder(["x"])
        path, headers, _ = server.requests[-1]
        assert (path, headers["authorization"]) == ("/v1/embeddings", f"Bearer {key}")


def test_key_of_the_language_model_goes_to_no_other_address(server: ModelServer) -> None:
    server.behave(ANSWER)
    embedder = embedder_from_env(
        {
            "GOLDEN_EMBEDDING_MODEL": "openai:small",
            "GOLDEN_EMBEDDING_BASE_URL": f"{server.address}/v1",
            "GOLDEN_LLM_API_KEY": OTHER_KEY,
        }
    )
    assert embedder is not None
    embedder(["x"])
    assert "authorization" not in server.requests[0][1]


def test_address_and_key_of_another_provider_are_not_taken() -> None:
    environ = {
        "GOLDEN_EMBEDDING_MODEL": "openai:small",
        "GOLDEN_LLM_MODEL": "anthropic:m",
        "GOLDEN_LLM_API_KEY": OTHER_KEY,
    }
    with pytest.raises(SettingsError, match="wants a key: set GOLDEN_EMBEDDING_API_KEY"):
        embedder_from_env(environ)


def test_address_that_is_none_is_named() -> None:
    environ = {"GOLDEN_EMBEDDING_MODEL": "openai:small", "GOLDEN_EMBEDDING_BASE_URL": "ftp://x"}
    with pytest.raises(SettingsError, match=r"GOLDEN_EMBEDDING_MODEL .* base_url must be an address"):
        embedder_from_env(environ)
