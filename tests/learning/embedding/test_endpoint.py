from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.vectors.embedders import EmbeddingEndpoint
from pytest_golden.redaction.redactor import Redactor
from tests.learning.language_model.server import answers, breaks_off, drips, drips_headers, drops, hangs
from tests.patience import without_hanging

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.learning.language_model.server import Exchange, ModelServer

KEY = "key-Zq81LmPx55vTnQ27"


def embeds(exchange: Exchange) -> None:
    """Return a vector for each text, in another order."""
    texts = exchange.server.requests[-1][2]["input"]
    data = [{"object": "embedding", "index": place, "embedding": [len(text), 1.0]} for place, text in enumerate(texts)]
    exchange.send(200, json.dumps({"object": "list", "data": data[::-1], "model": "m", "usage": {}}).encode())


def replies(value: object) -> Callable[[Exchange], object]:
    return answers(200, json.dumps(value).encode())


def make(server: ModelServer, **more: Any) -> EmbeddingEndpoint:
    return EmbeddingEndpoint("text-embedding-3-small", f"{server.address}/v1", KEY, **{"timeout_seconds": 60.0, **more})


def test_texts_are_posted_and_vectors_come_back_in_their_order(server: ModelServer) -> None:
    server.behave(embeds)
    embedder = make(server)
    assert embedder(["a", "bbb"]) == [[1, 1.0], [3, 1.0]]
    ((path, headers, body),) = server.requests
    assert path == "/v1/embeddings"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {"model": "text-embedding-3-small", "input": ["a", "bbb"], "encoding_format": "float"}
    assert embedder.model == "openai:text-embedding-3-small"
    assert KEY not in repr(embedder)


def test_vectors_without_indexes_stand_in_order(server: ModelServer) -> None:
    server.behave(replies({"data": [{"embedding": [1]}, {"embedding": [2]}]}))
    assert EmbeddingEndpoint("m", f"{server.address}/v1/embeddings/")(["a", "b"]) == [[1], [2]]
    assert server.requests[0][0] == "/v1/embeddings"
    assert "authorization" not in server.requests[0][1]


def test_nothing_is_asked_for_no_text(server: ModelServer) -> None:
    assert make(server)([]) == []
    assert server.requests == []


def test_secrets_and_half_characters_are_not_sent(server: ModelServer) -> None:
    server.behave(embeds)
    make(server, redactor=Redactor(("Vq7Lx92mPzR4",)))([f"password=hunter2secret9 {KEY} Vq7Lx92mPzR4 \ud800"])
    sent = str(server.requests[0][2])
    assert "hunter2secret9" not in sent
    assert KEY not in sent
    assert "Vq7Lx92mPzR4" not in sent
    assert "REDACTED" in sent


@pytest.mark.parametrize(
    ("behave", "told"),
    [
        (answers(500), "status 500, twice"),
        (answers(401), "status 401"),
        (answers(400, b'{"error": {"message": "input is too long"}}'), "input is too long"),
        (answers(302, location="http://127.0.0.1:1/"), "redirects are not followed"),
        (answers(200, b"<html>"), "no JSON"),
        (answers(200, b"\xff\xfe\0"), "no JSON"),
        (replies([]), "holds no vectors"),
        (replies({"data": 3}), "holds no vectors"),
        (replies({"data": [3]}), "holds no vectors"),
        (replies({"data": []}), "one vector for each text"),
        (replies({"data": [{"embedding": "AAAA"}]}), "one vector for each text"),
        (replies({"data": [{"embedding": [1], "index": 1}]}), "one vector for each text"),
        (replies({"data": [{"embedding": [1], "index": []}]}), "one vector for each text"),
        (replies({"data": [{"embedding": [1]}, {"embedding": [1]}]}), "one vector for each text"),
        (drops, "the connection broke"),
        (breaks_off, "the connection broke"),
    ],
)
def test_answer_that_is_of_no_use_is_an_error_without_the_key(
    server: ModelServer, behave: Callable[[Exchange], object], told: str
) -> None:
    server.behave(behave)
    with pytest.raises(LanguageModelError, match=told) as caught:
        make(server)(["x"])
    assert KEY not in str(caught.value)
    assert str(caught.value).startswith("embedding model openai:text-embedding-3-small at http://127.0.0.1:")


@pytest.mark.parametrize("behave", [hangs, drips, drips_headers])
def test_deadline_holds_whatever_the_server_does(server: ModelServer, behave: Callable[[Exchange], object]) -> None:
    server.behave(behave)
    with without_hanging(), pytest.raises(LanguageModelError, match=r"no answer within 0\.4 s"):
        make(server, timeout_seconds=0.4)(["x"])


def test_answer_has_a_cap(server: ModelServer) -> None:
    embedder = make(server, most_bytes=2_000_000)
    server.behave(answers(200, b" " * 2_000_001), answers(200, b" " * 1_900_000 + b'{"data": [{"embedding": [1]}]}'))
    with pytest.raises(LanguageModelError, match="more than 2,000,000 bytes"):
        embedder(["x"])
    assert embedder(["x"]) == [[1]]


def test_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LanguageModelError, match="connection"):
        EmbeddingEndpoint("m", "http://127.0.0.1:1/v1")(["x"])


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_timeout_is_above_zero(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        EmbeddingEndpoint("m", "http://127.0.0.1:1/v1", timeout_seconds=seconds)


def test_openais_own_service_wants_a_key() -> None:
    with pytest.raises(SettingsError, match="GOLDEN_EMBEDDING_API_KEY"):
        EmbeddingEndpoint("m")
    assert "api.openai.com" in repr(EmbeddingEndpoint("m", api_key=KEY))


def test_hybrid_search_by_an_endpoint(server: ModelServer) -> None:
    server.behave(embeds)
    with MemoryStore.open(":memory:", embedder=make(server)) as memories:
        memories.save_memory(("a",), "k", {"text": "orders"})
        assert memories.hybrid_search((), "customers").method == "hybrid"
        server.behave(answers(503))
        answer = memories.hybrid_search((), "orders")
    assert (answer.method, len(answer.hits)) == ("words", 1)
    assert "status 503, twice" in (answer.notice or "")


def test_missing_extra_is_named() -> None:
    code = """
import sys
sys.modules["httpx2"] = None
from pytest_golden.learning.vectors.embedders import EmbeddingEndpoint
try:
    EmbeddingEndpoint("m", "http://127.0.0.1:1/v1")
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("SettingsError ")
    assert "pip install 'pytest-golden-projects[embeddings]'" in done.stdout
