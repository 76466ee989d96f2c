"""Numbers over seeds: mean, standard error, bootstrap interval, paired comparison, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perdure.errors import PerdureError

LEVEL = 0.95
"""Coverage of intervals."""
RESAMPLES = 10_000
"""Draws of a bootstrap, or of a random permutation test."""
EXACT_UP_TO = 12
"""Pairs up to which all 2^n changes of sign are tried."""
SPREAD = 2.0
"""Standard errors of a difference that still count as agreement."""
MARGIN = 0.5
"""Percentage points of difference that count as agreement, however small the standard errors are."""


@dataclass(frozen=True)
class Number:
    """A mean over n seeds (0: not known) and its standard error (None where n is 1 or none was published)."""

    mean: float
    sem: float | None = None
    n: int = 1
    low: float | None = None
    """Lower end of the 95 % bootstrap interval of the mean."""
    high: float | None = None
    """Upper end."""


def mean_and_sem(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard error (sample standard deviation / sqrt(n)); no error for one value."""
    if not values:
        raise PerdureError("A mean needs at least one value.")
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def bootstrap_interval(
    values: Sequence[float],
    generator: np.random.Generator,
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the mean; None for fewer than two values.

    With a handful of seeds it is too short (it covers about 83 % for n = 5); read it with n.
    """
    if len(values) < 2:
        return None
    drawn = generator.integers(0, len(values), (resamples, len(values)))
    low, high = np.quantile(np.asarray(values)[drawn].mean(1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def number(values: Sequence[float], generator: np.random.Generator) -> Number:
    """Values of several seeds as one number: mean, SEM, n and bootstrap interval."""
    mean, sem = mean_and_sem(values)
    low, high = bootstrap_interval(values, generator) or (None, None)
    return Number(mean, sem, len(values), low, high)


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same seeds: first minus second."""

    difference: float
    sem: float
    n: int
    t: float
    """The difference in standard errors; infinite if all differences are equal and not 0."""
    p_t: float
    """Two-sided p-value of the paired t-test."""
    p_signs: float
    """Two-sided p-value of the sign-flip permutation test; with n pairs never below 2 / 2^n."""


def paired(
    first: Sequence[float],
    second: Sequence[float],
    generator: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare values of two methods, pair by pair (the same seed at the same place)."""
    if len(first) != len(second) or len(first) < 2:
        raise PerdureError(
            f"A paired comparison needs the same two or more seeds of both methods "
            f"(given: {len(first)} and {len(second)} values)."
        )
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean, sem = mean_and_sem(differences.tolist())
    assert sem is not None
    t, p = _t_test(mean, sem, len(first))
    return Comparison(mean, sem, len(first), t, p, _sign_flips(differences, generator, resamples))


def _t_test(mean: float, sem: float, n: int) -> tuple[float, float]:
    if sem == 0:
        return (0.0, 1.0) if mean == 0 else (math.copysign(math.inf, mean), 0.0)
    from scipy.special import stdtr  # scipy.stats would take two seconds to load

    t = mean / sem
    return t, float(2 * stdtr(n - 1, -abs(t)))


def _sign_flips(differences: NDArray[np.float64], generator: np.random.Generator, resamples: int) -> float:
    """Part of all changes of sign that give a mean at least as far from 0."""
    n, observed = len(differences), abs(differences.mean())
    slack = 1e-12 * np.abs(differences).max()  # sums in another order are the same mean
    if n <= EXACT_UP_TO:
        numbers = np.arange(2**n)[:, None] >> np.arange(n)
        means = ((1 - 2 * (numbers & 1)) * differences).mean(1)
        return float((np.abs(means) >= observed - slack).mean())
    signs = 1 - 2 * generator.integers(0, 2, (resamples, n))
    beyond = int((np.abs((signs * differences).mean(1)) >= observed - slack).sum())
    return (beyond + 1) / (resamples + 1)


def verdict(ours: Number, published: Number, *, margin: float = MARGIN) -> str:
    """How our number compares with a published one.

    "agrees" if they differ by at most the margin (0.5 percentage points), or by at most two standard errors
    of the difference, sqrt(sem_ours^2 + sem_published^2); an SEM that is not known counts as 0. Otherwise
    "higher than published" or "lower than published". Numbers that are not in percent need another margin.
    """
    difference = ours.mean - published.mean
    if not math.isfinite(difference):
        raise PerdureError(f"Numbers that are not finite cannot be compared ({ours.mean}, {published.mean}).")
    error = math.hypot(ours.sem or 0.0, published.sem or 0.0)
    if abs(difference) <= max(margin, SPREAD * error):
        return "agrees"
    return "higher than published" if difference > 0 else "lower than published"


def order(ours: Number, published: Number, *, margin: float = MARGIN) -> str:
    """Whether two methods stand in the published order, from our and the published difference of the two.

    "too close to call" if ours is at most the margin (0.5 percentage points) or two standard errors, whatever
    its sign; otherwise "as published" or "the other way round" by the two signs. Empty if the published
    numbers are equal: then there is no order.
    """
    if published.mean == 0:
        return ""
    if abs(ours.mean) <= max(margin, SPREAD * (ours.sem or 0.0)):
        return "too close to call"
    return "as published" if ours.mean * published.mean > 0 else "the other way round"
