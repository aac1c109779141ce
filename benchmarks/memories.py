"""What it costs to save a memory into a store of 100,000, and to find some there: by rare words, by any words, by meaning.

Run: python benchmarks/memories.py [--memories N] [--searches N] [--store URL]

Their texts are made up of error messages with names from a long tail, as pipelines leave them. Beside the search by meaning
stands the bare product of matrix and vector, and beside saving a bare fdatasync.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import tempfile
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import VectorsError
from pytest_golden.storage.search import count_indexed
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DIMENSION = 256
AT_ONCE = 1_000
SUBJECTS = (
    "orders",
    "customers",
    "invoices",
    "shipments",
    "prices",
    "accounts",
    "events",
    "sessions",
    "stock",
    "claims",
)
STEPS = ("extract", "load", "validate", "transform", "join", "aggregate", "publish", "export", "merge", "clean")
ERRORS = (
    "KeyError: column {name} is not in the frame of {subject}",
    "duckdb.CatalogException: Table with name {name} does not exist; did you mean {other}?",
    "sqlalchemy.exc.OperationalError: connection to server at {name} failed: timeout expired",
    "ValueError: could not convert string to float in {subject}.{name}",
    "requests.exceptions.HTTPError: 503 Server Error for url https://{name}.example/{subject}",
    "dbt: model {name} depends on a node named {other} which was not found",
    "FileNotFoundError: no such file or directory {subject}/{name}.parquet",
    "pandas.errors.MergeError: merge keys are not unique in {subject} on {name}",
    "odibi: validation of {subject} failed, {number} rows of {name} are null",
    "the rows of {subject} were loaded in {number} seconds by way of {name} and {other}",
)


class WordVectors:
    """A stand-in for a model: each word is a direction, and a text the mean of its words."""

    model = "words"

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __call__(self, texts: Sequence[str]) -> Any:
        """Return a vector for each text."""
        return np.stack([np.mean([self._direction(word) for word in text.split()], axis=0) for text in texts])

    def _direction(self, word: str) -> Any:
        if word not in self._known:
            self._known[word] = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSION)
        return self._known[word]


def name(chance: random.Random) -> str:
    """Return a name from a long tail: a few are everywhere, most are rare."""
    return f"tbl{int(chance.paretovariate(0.5)) % 50_000}"


def memories(amount: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    for number in range(amount):
        subject, step = chance.choice(SUBJECTS), chance.choice(STEPS)
        message = chance.choice(ERRORS).format(
            name=name(chance), other=name(chance), subject=subject, number=chance.randrange(10_000)
        )
        task = f"{step} {subject} of one day"
        value = {
            "task_description": task,
            "error_message": message,
            "execution_path": ["extract", step],
            "success": False,
        }
        yield {"namespace": ("outcomes", f"agent{number % 7}"), "key": f"outcome_{number:08}", "value": value}


def fill(store: MemoryStore, amount: int) -> None:
    waiting = memories(amount, random.Random(1))
    while some := list(itertools.islice(waiting, AT_ONCE)):
        store.save_memories(some)


def percentile(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def tell(what: str, actions: Sequence[Callable[[], object]], promised: float | None = None) -> None:
    """Print median and 95th percentile; the processor's own time is told too, since a busy machine takes longer."""
    taken, busy = [], []
    for action in actions:
        start, worked = time.perf_counter(), time.thread_time()
        action()
        taken.append((time.perf_counter() - start) * 1000)
        busy.append((time.thread_time() - worked) * 1000)
    limit = "" if promised is None else f" (promised: {promised:g} ms)"
    own = f"processor {statistics.median(busy):.1f} and {percentile(busy):.1f} ms"
    print(f"{what}: median {statistics.median(taken):.1f} ms, p95 {percentile(taken):.1f} ms{limit}; {own}", flush=True)


def sync(file: BinaryIO) -> Callable[[], None]:
    """Return what writes four pages and waits until they are on the disk."""

    def write() -> None:
        file.write(b"x" * 16_384)
        file.flush()
        os.fdatasync(file.fileno())

    return write


def queries(amount: int) -> dict[str, list[str]]:
    chance = random.Random(2)
    rare = [f"tbl{chance.randrange(5_000, 50_000)} tbl{chance.randrange(5_000, 50_000)}" for _ in range(amount)]
    common = [" ".join(chance.sample((*SUBJECTS, *STEPS, "error", "failed"), 3)) for _ in range(amount)]
    failures = [one["value"]["error_message"] for one in memories(amount, chance)]
    return {"rare words": rare, "words that stand in thousands": common, "whole error messages": failures}


def bench(store: Store, amount: int, searches: int) -> None:
    embedder = WordVectors()
    with MemoryStore(store, embedder, embedder_seconds=60) as memory_store:
        with store.read() as connection:
            there = count_indexed(connection)
        fill(memory_store, amount - there)
        if store.path is None:
            # A server does so by itself, within minutes.
            with store.write() as connection:
                connection.exec_driver_sql("ANALYZE")
        fresh = memories(searches, random.Random(3))
        saved = [lambda one=one: memory_store.save_memory(("new",), one["key"], one["value"]) for one in fresh]
        tell(f"save_memory, {amount:,} memories there", saved, 5)
        with tempfile.TemporaryFile(dir=".") as file:
            tell("a bare write and fdatasync", [sync(file)] * searches)
        asked = queries(searches)
        for what, texts in asked.items():
            for place in ((), ("outcomes", "agent3")):
                actions = [lambda text=text, place=place: memory_store.search_memories(place, text) for text in texts]
                where = "everywhere" if not place else "one agent's"
                tell(f"search_memories, {what}, {where}", actions, 20 if what == "rare words" else 60)
        start = time.perf_counter()
        try:
            made = memory_store.embed_memories()
        except VectorsError as error:
            print(f"by meaning: {error}")
            return
        print(f"embed_memories: {made:,} vectors of {DIMENSION} in {time.perf_counter() - start:.1f} s", flush=True)
        bench_hybrid(memory_store, asked["whole error messages"], amount)


def bench_hybrid(memory_store: MemoryStore, texts: Sequence[str], amount: int) -> None:
    start = time.perf_counter()
    print(
        f"first hybrid_search: {memory_store.hybrid_search((), texts[0]).method}, {time.perf_counter() - start:.2f} s"
    )
    tell("hybrid_search everywhere", [partial(memory_store.hybrid_search, (), text) for text in texts])
    one = ("outcomes", "agent3")
    tell("hybrid_search, one agent's", [partial(memory_store.hybrid_search, one, text) for text in texts])
    matrix = np.random.default_rng(1).standard_normal((amount, DIMENSION)).astype(np.float32)
    tell("bare product of matrix and vector", [lambda: matrix @ matrix[0] for _ in texts])


def main() -> None:
    parser = argparse.ArgumentParser(description="What memories cost.")
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--store", help="an empty store; a SQLite file of its own otherwise")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder, Store.open(chosen.store or Path(folder, "store.db")) as store:
        bench(store, chosen.memories, chosen.searches)


if __name__ == "__main__":
    main()
