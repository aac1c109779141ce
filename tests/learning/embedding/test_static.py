from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.vectors.embedders import StaticEmbedder
from tests.learning.vectors.embedders import MEANINGS

if TYPE_CHECKING:
    from pathlib import Path


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


def test_missing_extra_is_named(tmp_path: Path) -> None:
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
