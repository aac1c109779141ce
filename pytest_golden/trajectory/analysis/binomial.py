"""The exact upper tail of the binomial distribution, in logarithms, so that ten thousand trials neither overflow nor vanish."""

from __future__ import annotations

import math

# What is smaller than this beside the sum changes no digit of it.
_NEGLIGIBLE = 1e-18


def binomial_tail(count: int, trials: int, rate: float) -> float:
    """Give the probability of `count` or more successes in `trials` independent trials of probability `rate`.

    The terms are those of the definition, C(n, k) p^k (1-p)^(n-k), the first by the log-gamma function, each next one
    by its ratio to the one before. A probability below about 1e-308 is 0.0.
    """
    if count <= 0:
        return 1.0
    if count > trials or rate <= 0.0:
        return 0.0
    if rate >= 1.0:
        return 1.0
    if count <= trials * rate:
        # Below the mean the other tail is the shorter one, and the sum loses no digits by being taken from 1.
        return 1.0 - binomial_tail(trials - count + 1, trials, 1.0 - rate)
    odds = rate / (1.0 - rate)
    ratio, ratios = 1.0, [1.0]
    for successes in range(count, trials):
        ratio *= (trials - successes) / (successes + 1) * odds
        if ratio < _NEGLIGIBLE:
            break
        ratios.append(ratio)
    logarithm = _log_probability(count, trials, rate) + math.log(math.fsum(ratios))
    return min(1.0, math.exp(logarithm))


def _log_probability(count: int, trials: int, rate: float) -> float:
    choices = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    return choices + count * math.log(rate) + (trials - count) * math.log1p(-rate)
