from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.vectors.embedders import EmbeddingEndpoint, StaticEmbedder, embedder_from_env
from pytest_golden.redaction.redactor import Redactor
from tests.learning.language_model.server import answers, breaks_off, drips, drips_headers, drops, hangs
from tests.learning.vectors.embedders import MEANINGS
from tests.patience import without_hanging

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.learning.language_model.server import Exchange, ModelServer


KEY = "key-Zq81LmPx55vTnQ27"

KEY, OTHER_KEY = "key-Zq81LmPx55vTnQ27", "key-Hr39BnWd71cKsE64"
ANSWER = answers(200, json.dumps({"data": [{"embedding": [1.0]}]}).encode())


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
        (answers(200, b"<html>"), "not JSON"),
        (answers(200, b"\xff\xfe\0"), "not JSON"),
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
    with pytest.raises(SettingsError, match="needs a key: set GOLDEN_EMBEDDING_API_KEY"):
        embedder_from_env(environ)


def test_address_that_is_none_is_named() -> None:
    environ = {"GOLDEN_EMBEDDING_MODEL": "openai:small", "GOLDEN_EMBEDDING_BASE_URL": "ftp://x"}
    with pytest.raises(SettingsError, match=r"GOLDEN_EMBEDDING_MODEL .* base_url must be an address"):
        embedder_from_env(environ)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A real model, in which words of one meaning have one direction."""
    from model2vec import StaticModel  # noqa: PLC0415 - slow to load
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: PLC0415 - slow to load

    groups = [sorted(group) for group in MEANINGS]
    words = ["[UNK]", *(word for group in groups for word in group)]
    vectors = np.zeros((len(words), 8), np.float32)
    for place, group in enumerate(groups):
        for word in group:
            vectors[words.index(word), place] = 1
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    made = tmp_path / "small-model"
    StaticModel(vectors, tokenizer).save_pretrained(str(made))
    return made


def test_model_in_a_folder_embeds_without_network(folder: Path) -> None:
    embedder = StaticEmbedder(folder)
    vectors = embedder(["the column", "a FIELD", "timeout", "unheard of"])
    assert vectors.shape == (4, 8)
    assert np.allclose(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])
    assert not vectors[3].any()
    assert "small-model@" in repr(embedder)


def test_hybrid_search_by_a_model_in_a_folder(folder: Path, tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path / "golden.db", embedder=StaticEmbedder(folder)) as memories:
        memories.save_memory(("a",), "renamed", {"text": "column lost"})
        memories.save_memory(("a",), "slow", {"text": "timeout"})
        answer = memories.hybrid_search((), "attribute missing")
        assert (answer.method, [hit.memory.key for hit in answer.hits]) == ("hybrid", ["renamed"])
        answer = memories.hybrid_search((), "unheard of")
    assert answer.method == "words"
    assert "gave a vector of zeros for the query" in (answer.notice or "")


def test_name_follows_what_is_in_the_folder_and_not_where_it_is(folder: Path, tmp_path: Path) -> None:
    one = StaticEmbedder(folder)
    moved = tmp_path / "elsewhere" / "small-model"
    shutil.copytree(folder, moved)
    assert StaticEmbedder(str(moved)).model == one.model
    with (moved / "config.json").open("a", encoding="utf-8") as config:
        config.write("\n")
    assert StaticEmbedder(moved).model != one.model


def test_what_is_no_folder_is_refused_and_nothing_is_fetched(tmp_path: Path) -> None:
    for wrong in ("minishlab/potion-base-8M", tmp_path / "missing"):
        with pytest.raises(SettingsError, match="there is no such folder"):
            StaticEmbedder(wrong)


def test_folder_without_a_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no model that can be loaded"):
        StaticEmbedder(tmp_path)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match="no model that can be loaded"):
        StaticEmbedder(folder)


def test_missing_extra_of_a_static_model_is_named(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["model2vec"] = None
from pytest_golden.learning.vectors.embedders import StaticEmbedder
try:
    StaticEmbedder({str(tmp_path)!r})
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("SettingsError ")
    assert "pip install 'pytest-golden-projects[embeddings]'" in done.stdout
