"""Lets GEPA improve revenue.sql until all three months pass. Nothing is fetched: the model is a function of a few rules.

A real one is put in its place by `reflection_lm="openai/gpt-5-mini"`, or whatever LiteLLM knows (pip install 'gepa[full]').

Run: python improve.py (prints the query that was found; revenue.sql stays as it is)
"""

from __future__ import annotations

from pathlib import Path

import gepa

from pytest_golden import GoldenAdapter

# What a mistake calls for: what to look for in the feedback, and what to put in place of what in the query.
RULES = {
    "are counted twice": [("FROM orders\n", "FROM (SELECT DISTINCT * FROM orders) AS orders\n")],
    "cancelled orders are counted": [("GROUP BY", "WHERE orders.status <> 'cancelled'\nGROUP BY")],
    "of unknown customers are missing": [
        ("\nJOIN customers", "\nLEFT JOIN customers"),
        ("customers.region AS", "COALESCE(customers.region, 'unknown') AS"),
    ],
}


class Quiet:
    def log(self, message):
        """Leave out what GEPA tells on the way."""


def reflect(prompt):
    """Rewrite the query by the first mistake that the feedback names, as a model would do it in more words."""
    query, feedback = prompt.split("```")[1].strip("\n"), prompt.split("```")[3]
    for mistake, edits in RULES.items():
        if mistake in feedback and all(old in query for old, _new in edits):
            for old, new in edits:
                query = query.replace(old, new)
            break
    return f"```sql\n{query}\n```"


def main():
    with GoldenAdapter(Path(__file__).with_name("golden_projects.yaml"), {"query": "revenue.sql"}) as adapter:
        found = gepa.optimize(
            seed_candidate=adapter.seed_candidate(),
            trainset=adapter.projects(),
            valset=adapter.projects(),
            adapter=adapter,
            reflection_lm=reflect,
            max_metric_calls=40,
            logger=Quiet(),
        )
    scores = found.val_aggregate_scores
    print(f"score before {scores[0]:.2f}, after {scores[found.best_idx]:.2f}, with {found.num_candidates} candidates")
    print(found.best_candidate["query"])


if __name__ == "__main__":
    main()
