"""Fisher's exact test for two rates of failure, one-sided. Exact in whole numbers until the last division."""

from __future__ import annotations

from math import comb


def fisher_worse(base_passed: int, base_failed: int, head_passed: int, head_failed: int) -> float:
    """Give the probability that chance alone lets the head fail as often as it did, or more often.

    All runs and all failures are taken as given; if base and head are equally good, the number of failures that fall
    on the head is distributed hypergeometrically, and its upper tail is the p-value. 1.0 where nothing has run.

    Source: R. A. Fisher, "The Logic of Inductive Inference", Journal of the Royal Statistical Society 98 (1935), pp.
    39-82; the tail as in A. Agresti, "Categorical Data Analysis", 3rd ed. (2013), section 3.5.1.

    Raises:
        ValueError: a count is negative.
    """
    counts = (base_passed, base_failed, head_passed, head_failed)
    if min(counts) < 0:
        raise ValueError(f"counts of runs cannot be negative, and these are {counts}")
    base, head, failed = base_passed + base_failed, head_passed + head_failed, base_failed + head_failed
    tail = sum(comb(head, count) * comb(base, failed - count) for count in range(head_failed, min(head, failed) + 1))
    return tail / comb(base + head, failed)
