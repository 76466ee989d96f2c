"""Statistics over seeds: mean, standard error, t-interval, paired comparison, and verdicts.

scipy.stats takes a second or two to load, so it is imported where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perdure.errors import PerdureError

LEVEL = 0.95
"""Coverage of intervals."""
ALPHA = 0.05
"""How often a test may call two equal numbers different, or two that differ by the margin equal."""
RESAMPLES = 9_999
"""Number of sign flips tried: all of them if there are no more, otherwise this many at random."""
LEAST_SEEDS = 3
"""Seeds that a verdict needs. In simulations Welch's test, whose 5 % are approximate, calls two equal
numbers different in 10 % of cases with two seeds against ten, in 7 % with three, in 5 % with five or more."""
MARGIN = 1.0
"""Percentage points below which a difference does not matter."""
MOST_SEEDS = 1_000
"""Largest number of seeds considered when estimating how many would decide."""

AGREES, HIGHER, LOWER = "agrees", "higher than published", "lower than published"
NOT_DECIDED = "not decided"
BETTER, WORSE = "better", "worse"
AS_PUBLISHED, REVERSED, TOO_CLOSE = "as published", "the other way round", "too close to call"


@dataclass(frozen=True)
class Number:
    """A mean over n seeds (0: unknown) and its standard error (None if n is 1 or none was published)."""

    mean: float
    sem: float | None = None
    n: int = 1
    low: float | None = None
    """Lower end of the 95 % t-interval of the mean."""
    high: float | None = None
    """Upper end."""

    @property
    def sd(self) -> float:
        """Sample standard deviation over seeds; 0 if it is unknown."""
        return (self.sem or 0.0) * math.sqrt(self.n)


def mean_and_sem(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard error (sample standard deviation / sqrt(n)); no error for one value."""
    if not values:
        raise PerdureError("A mean needs at least one value.")
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def number(values: Sequence[float]) -> Number:
    """Values of several seeds as one number: mean, SEM, n and t-interval, mean ± t(n - 1) SEM."""
    mean, sem = mean_and_sem(values)
    if sem is None:
        return Number(mean, None, len(values))
    from scipy.stats import t

    reach = float(t.ppf((1 + LEVEL) / 2, len(values) - 1)) * sem
    return Number(mean, sem, len(values), mean - reach, mean + reach)


@dataclass(frozen=True)
class PairedComparison:
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
    first: Sequence[float], second: Sequence[float], generator: np.random.Generator
) -> PairedComparison:
    """Compare values of two methods, pair by pair (the same seed at the same index)."""
    if len(first) != len(second) or len(first) < 2:
        raise PerdureError(
            f"A paired comparison needs the same two or more seeds for both methods "
            f"(given: {len(first)} and {len(second)} values)."
        )
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean, sem = mean_and_sem(differences.tolist())
    assert sem is not None
    t, p = _t_test(mean, sem, differences)
    return PairedComparison(mean, sem, len(first), t, p, _sign_flips(differences, generator))


def _t_test(mean: float, sem: float, differences: NDArray[np.float64]) -> tuple[float, float]:
    if sem == 0:  # the t-test would divide by 0
        return (0.0, 1.0) if mean == 0 else (math.copysign(math.inf, mean), 0.0)
    from scipy.stats import ttest_1samp

    found = ttest_1samp(differences, 0.0)
    return float(found.statistic), float(found.pvalue)


def _sign_flips(differences: NDArray[np.float64], generator: np.random.Generator) -> float:
    """Fraction of all sign flips that give a mean at least as far from 0; of random ones if they are many."""
    from scipy.stats import permutation_test

    found = permutation_test(
        (differences,),
        lambda values, axis: np.abs(values.mean(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=generator,
    )
    return float(found.pvalue)


def verdict(ours: Number, published: Number, *, margin: float = MARGIN) -> str:
    """How our number compares with a published one, from the difference of the two means.

    - "agrees": an equivalence test (two one-sided Welch tests at 5 %) says that the means differ by less than
      the margin, 1 percentage point. Numbers that are not in percent need a different margin.
    - "higher than published", "lower than published": they are not shown to agree, and a Welch test at
      5 % says that they differ.
    - "not decided": neither; always so with fewer than three seeds, or if no standard error was published.
    """
    if not math.isfinite(ours.mean - published.mean):
        raise PerdureError(f"Numbers that are not finite cannot be compared ({ours.mean}, {published.mean}).")
    if ours.sem is None or ours.n < LEAST_SEEDS or published.sem is None:
        return NOT_DECIDED
    error, freedom = _welch(np.array([ours.sem]), np.array([ours.n]), published.sem, published.n)
    same, other = _tested(ours.mean - published.mean, error, freedom, margin)
    if same[0]:
        return AGREES
    if other[0]:
        return HIGHER if ours.mean > published.mean else LOWER
    return NOT_DECIDED


def seeds_needed(ours: Number, published: Number, *, margin: float = MARGIN) -> int | None:
    """The smallest number of our seeds with which `verdict` would decide, if mean and spread stay the same.

    The spread is unknown for one seed; that of the published number is used instead. None if even MOST_SEEDS
    would not suffice, because the published standard error alone is too large or is not known.
    """
    known = ours if ours.sem is not None else published
    if known.sem is None or published.sem is None or known.n < 1:
        return None
    counts = np.arange(max(ours.n + 1, LEAST_SEEDS), MOST_SEEDS + 1)
    sems = known.sem * math.sqrt(known.n) / np.sqrt(counts)
    error, freedom = _welch(sems, counts, published.sem, published.n)
    same, other = _tested(ours.mean - published.mean, error, freedom, margin)
    decided = counts[same | other]
    return int(decided[0]) if len(decided) else None


def order(ours: Number, published: Number, *, margin: float = MARGIN) -> str:
    """Whether two methods are in the published order, from our difference and the published one.

    "as published" or "the other way round", by the two signs, if a paired t-test at 5 % says that our methods
    differ; "too close to call" if an equivalence test says that they differ by less than the margin; else
    "not decided", as always for one seed. Empty if the published numbers are equal, so there is no order.
    """
    if published.mean == 0:
        return ""
    found = paired_verdict(ours, margin=margin)
    if found in (TOO_CLOSE, NOT_DECIDED):
        return found
    return AS_PUBLISHED if ours.mean * published.mean > 0 else REVERSED


def paired_verdict(difference: Number, *, margin: float = MARGIN) -> str:
    """What paired differences over seeds say of two methods, first minus second.

    "better" or "worse", "too close to call", or "not decided", as `sign` tells them apart.
    """
    found = sign(difference, margin=margin)
    return NOT_DECIDED if found is None else {SAME: TOO_CLOSE, 1: BETTER, -1: WORSE}[found]


SAME = 0
"""The sign of a contrast that is shown to be smaller than the margin."""


def sign(contrast: Number, *, margin: float = MARGIN) -> int | None:
    """1 or -1 if a contrast over seeds is shown to be above or below 0, SAME if it is within the margin.

    A contrast that is shown to be within the margin is SAME, even if it is also shown not to be 0. None if
    nothing is shown, as always with fewer than three seeds.
    """
    if contrast.sem is None or contrast.n < LEAST_SEEDS:
        return None
    same, other = _tested(contrast.mean, np.array([contrast.sem]), np.array([contrast.n - 1.0]), margin)
    if same[0]:
        return SAME
    return (1 if contrast.mean > 0 else -1) if other[0] else None


def beyond(contrast: Number, *, margin: float = MARGIN) -> bool:
    """Whether a contrast over seeds is shown to be larger than the margin: its interval is outside."""
    if contrast.sem is None or contrast.n < LEAST_SEEDS:
        return False
    error, freedom = np.array([contrast.sem]), np.array([contrast.n - 1.0])
    return bool(_beyond(contrast.mean, error, freedom, margin)[0])


def pairs_needed(contrast: Number, *, margin: float = MARGIN, alike: bool = False) -> int | None:
    """The smallest number of seeds with which `sign` would decide, if mean and spread stay the same.

    If it is asked whether two things are `alike`: with which it is shown to be within the margin, or beyond.
    None if even MOST_SEEDS would not suffice, or if the spread is unknown, as with one seed.
    """
    if contrast.sem is None:
        return None
    counts = np.arange(max(contrast.n + 1, LEAST_SEEDS), MOST_SEEDS + 1)
    sems = contrast.sem * math.sqrt(contrast.n) / np.sqrt(counts)
    freedom = (counts - 1).astype(np.float64)
    same, other = _tested(contrast.mean, sems, freedom, margin)
    decided = counts[same | (_beyond(contrast.mean, sems, freedom, margin) if alike else other)]
    return int(decided[0]) if len(decided) else None


Values = NDArray[np.float64]


def _welch(sems: Values, counts: NDArray[np.int64], other_sem: float, other_n: int) -> tuple[Values, Values]:
    """Standard error of a difference of two means, and Welch's degrees of freedom, for each of our SEMs.

    An unknown published number of seeds counts as the smallest that has a spread, two.
    """
    ours, theirs = sems**2, other_sem**2
    total = ours + theirs
    shares = ours**2 / (counts - 1) + theirs**2 / (max(other_n, 2) - 1)
    with np.errstate(invalid="ignore", divide="ignore"):  # unused if there is no spread
        return np.sqrt(total), total**2 / shares


def _tested(
    difference: float, error: Values, freedom: Values, margin: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a difference is shown to be within the margin, and whether it is shown to be non-zero."""
    from scipy.stats import t

    size, known = abs(difference), error > 0
    scale, freedom = np.where(known, error, 1.0), np.where(known, freedom, 1.0)
    # The larger of the two one-sided p-values belongs to the nearer end of the margin.
    same = np.where(known, t.sf((margin - size) / scale, freedom) < ALPHA, size <= margin)
    other = np.where(known, 2 * t.sf(size / scale, freedom) < ALPHA, size > 0)
    return same, other


def _beyond(difference: float, error: Values, freedom: Values, margin: float) -> NDArray[np.bool_]:
    """Whether a difference is shown to be larger than the margin, in either direction."""
    from scipy.stats import t

    over, known = abs(difference) - margin, error > 0
    scale, freedom = np.where(known, error, 1.0), np.where(known, freedom, 1.0)
    shown: NDArray[np.bool_] = np.where(known, 2 * t.sf(over / scale, freedom) < ALPHA, over > 0)
    return shown & (over > 0)
