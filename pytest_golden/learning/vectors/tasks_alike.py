"""Find the earlier tasks that mean the same as a new one, in other words.

The stored vectors give candidates, and their tasks alone decide. Cosines of two models cannot be compared, so each model is first asked
about pairs of tasks of which we know whether they mean the same. That gives its threshold, and a model that cannot tell them apart is not used.

Errors are not compared by meaning: words of one error in two libraries are less alike than two errors of one library
(docs/explanation/lessons.md has figures), and wrong advice is worse than none.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import numpy as np

from pytest_golden.learning.lessons.store import LESSONS
from pytest_golden.learning.outcomes import EVERYBODY, PLANS
from pytest_golden.learning.plans import LEAST_LIKENESS, find_outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_golden.learning.model import Memory
    from pytest_golden.learning.vectors.hybrid import HybridSearch
    from pytest_golden.storage.store import Store

_log = logging.getLogger(__name__)
_NOT_APART = "the embedding model does not tell tasks that mean the same from others about the same thing"
_MOST_CANDIDATES = 15
_MOST_OF_TASK = 1_000
#: Pairs of tasks that mean the same. No two pairs do.
SAME_TASKS = (
    ("Convert the timestamps of the event log to UTC", "Event log entries should carry their time in universal time"),
    ("Send an invoice by mail after each purchase", "Customers want a bill in their inbox when they buy something"),
    ("Speed up the nightly backup", "The backup that runs every night takes too long"),
    ("Delete accounts that nobody has used for a year", "Remove users who were inactive for twelve months"),
    ("Handle missing values in the weather data", "Weather measurements have gaps that must be filled"),
    ("Upgrade the web server to the latest release", "Move our HTTP server to its newest version"),
    ("Parse phone numbers of other countries", "International telephone numbers are not understood"),
    ("Make the dbt models incremental", "Models of dbt should only process new rows"),
    ("Round prices to two decimals", "Amounts must have two digits after the point"),
    ("Retry requests when the weather service times out", "Try again if the forecast provider does not answer in time"),
    ("Deduplicate the mailing list", "Some subscribers are on the list of addresses twice"),
    ("Encrypt the passwords in the configuration file", "Credentials are stored as plain text in the settings"),
)
#: Pairs of tasks about one thing that do not mean the same.
NEAR_TASKS = (
    ("Fix the totals of the orders report", "Delete orders that are older than a year"),
    ("Load the customers CSV into the warehouse", "Rename a column of the customers table"),
    ("Upgrade pandas to version 3", "The pandas import of the sales data is slow"),
    ("Make the nightly build pass on Python 3.13", "Shorten the nightly build by caching"),
    ("Export the stock levels to Parquet", "Stock levels may not be negative"),
    ("Mask email addresses in the export", "Send the export by email"),
    ("Partition the clickstream table by day", "Drop bots from the clickstream"),
    ("Document the tables of the warehouse", "Move the warehouse to another region"),
    ("Rotate the database password", "The database is slow in the morning"),
    ("Fix the failing test of the tax module", "Add a tax rate for Norway"),
    ("Move the scheduler to Airflow 3", "An Airflow task hangs without a log"),
    ("Join shipments with carriers", "Shipments arrive twice in the feed"),
)


class TaskSearch:
    """A search for tasks with one model over one store. Threads may share it."""

    def __init__(self, store: Store, hybrid: HybridSearch) -> None:
        self._store = store
        self._hybrid = hybrid
        self._threshold: float | None = None

    def find(self, task: str) -> Mapping[str, float]:
        """Return the ids of lessons and plans from tasks that mean the same, with their likeness, 0.5 at the threshold and up to 1.

        Nothing if the model does not tell tasks apart, which is logged once.

        Raises:
            VectorsError: the model is late, or fails.
        """
        if self._threshold is None:
            self._threshold = find_threshold(self._hybrid)
            if self._threshold == math.inf:
                _log.warning("%s; tasks are found by words alone", _NOT_APART)
        if self._threshold == math.inf:
            return {}
        candidates = self._hybrid.find_nearest(((LESSONS,), (PLANS, EVERYBODY)), task, _MOST_CANDIDATES)
        tasks = self._read_tasks(candidates)
        if not tasks:
            return {}
        asked, *others = self._hybrid.embed_texts([task[:_MOST_OF_TASK], *dict.fromkeys(tasks.values())])
        cosines = dict(zip(dict.fromkeys(tasks.values()), (float(asked @ other) for other in others), strict=True))
        return {
            key: _scale(cosines[text], self._threshold)
            for key, text in tasks.items()
            if cosines[text] > self._threshold
        }

    def _read_tasks(self, memories: Sequence[Memory]) -> dict[str, str]:
        """Return the tasks that lessons and plans were learned in, by the ids of these."""
        tasks = {one.key: one.value.get("context") for one in memories if one.namespace[0] == LESSONS}
        plans = [one for one in memories if one.namespace[0] == PLANS]
        with self._store.read() as connection:
            outcomes = find_outcomes(connection, plans)
        for plan in plans:
            outcome = outcomes.get(str(plan.value.get("outcome_id")))
            tasks[plan.key] = None if outcome is None else outcome.value.get("task_description")
        return {key: text[:_MOST_OF_TASK] for key, text in tasks.items() if isinstance(text, str) and text.strip()}


def find_threshold(hybrid: HybridSearch) -> float:
    """Return the greatest cosine of two tasks that do not mean the same: what is above it means the same.

    It is infinite if fewer than half of the pairs that mean the same are above it.

    Raises:
        VectorsError: the model is late, or fails.
    """
    units = np.asarray(hybrid.embed_texts([task for pair in (*SAME_TASKS, *NEAR_TASKS) for task in pair]))
    same, near = np.split(units, [2 * len(SAME_TASKS)])
    cosines = same[0::2] @ same[1::2].T
    is_same = np.eye(len(cosines), dtype=bool)
    threshold = float(max(cosines[~is_same].max(), (near[0::2] * near[1::2]).sum(axis=1).max()))
    return threshold if float(np.median(cosines[is_same])) > threshold else math.inf


def _scale(cosine: float, threshold: float) -> float:
    return min(1.0, LEAST_LIKENESS + (1 - LEAST_LIKENESS) * (cosine - threshold) / max(1 - threshold, 1e-6))
