"""The linear theory to 1e-10 and against its bounds; statistics against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.analysis.statistics import (
    AGREES,
    ALPHA,
    HIGHER,
    LOWER,
    MARGIN,
    NOT_DECIDED,
    Number,
    mean_and_sem,
    number,
    order,
    paired,
    seeds_needed,
    verdict,
)
from perdure.analysis.theory import LinearTasks, capacity, demonstrate, linear_tasks
from perdure.errors import PerdureError
from perdure.networks.initialise import orthogonal
from perdure.randomness import generator

# Theory


@settings(max_examples=25, deadline=None)
@given(
    dimensions=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    spare=st.integers(0, 4),
    seed=st.integers(0, 99),
)
def test_tasks_that_fit_do_not_interfere(dimensions, spare, seed):
    total = sum(dimensions)
    tasks = linear_tasks(total + spare, dimensions, generator(seed))
    found = demonstrate(tasks)
    assert max(found.interference, found.overlap, found.error, *found.errors) < 1e-10
    assert found.floor == found.least_overlap == 0
    assert found.needed == total
    # In the basis of the subspaces W_hh is block-diagonal, and the heads U_k^T read what is asked.
    basis, weight = torch.cat(tasks.subspaces, dim=1), tasks.recurrent()
    torch.testing.assert_close(basis.T @ basis, torch.eye(total, dtype=torch.float64), atol=1e-12, rtol=0)
    expected = torch.block_diag(*tasks.dynamics)
    torch.testing.assert_close(basis.T @ weight @ basis, expected, atol=1e-10, rtol=0)
    x = torch.randn(max(dimensions), generator=generator(seed, "x"), dtype=torch.float64)
    state = tasks.start() @ x
    wanted = [content @ x for content in tasks.content]
    for _ in range(8):
        state = weight @ state
        wanted = [block @ value for block, value in zip(tasks.dynamics, wanted, strict=True)]
        for subspace, value in zip(tasks.subspaces, wanted, strict=True):
            torch.testing.assert_close(subspace.T @ state, value, atol=1e-10, rtol=0)


def test_tasks_beyond_the_capacity_interfere():
    found = capacity(12, 3, 7, generator(0))
    for one in found:
        fits = one.total <= 12
        assert one.needed == one.total
        assert (one.error < 1e-10) == (one.interference < 1e-10) == (one.floor == 0) == fits
        assert one.overlap >= one.least_overlap - 1e-10
        assert one.error >= one.floor
    assert [one.floor for one in found] == sorted(one.floor for one in found)
    assert found[-1].error > 0.1
    assert found[-1].floor > 1e-3
    with pytest.raises(PerdureError, match="dimensions"):
        linear_tasks(4, [2, 5], generator(0))


def test_no_other_network_beats_the_floor():
    """Random subspaces instead of the constructed ones, and fewer units than needed: still above."""
    tasks = linear_tasks(8, [3, 3, 3], generator(1))
    floor = demonstrate(tasks).floor
    assert floor > 0
    for seed in range(20):
        source = generator(seed, "subspaces")
        drawn = [orthogonal(8, source, torch.float64)[:, :3] for _ in range(3)]
        other = demonstrate(LinearTasks(drawn, tasks.dynamics))
        assert other.floor == pytest.approx(floor)
        assert other.error >= floor
        assert other.overlap >= other.least_overlap - 1e-10


# Statistics

VALUES = st.lists(st.floats(-100, 100).map(lambda value: round(value, 3)), min_size=2, max_size=15)


@settings(max_examples=50, deadline=None)
@given(values=VALUES)
def test_mean_and_sem_equal_scipy(values):
    mean, sem = mean_and_sem(values)
    assert mean == pytest.approx(np.mean(values), abs=1e-10)
    assert sem == pytest.approx(scipy.stats.sem(values), abs=1e-10)
    assert mean_and_sem(values[:1]) == (values[0], None)


@settings(max_examples=25, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 800), st.integers(0, 800)), min_size=2, max_size=8),
    step=st.integers(0, 40),
)
def test_paired_comparison_equals_scipy(pairs, step):
    # Eighths have no rounding errors, so that equally large means of flipped signs are equal here too.
    first = [(a + step) / 8 for a, _ in pairs]
    second = [b / 8 for _, b in pairs]
    differences = np.subtract(first, second)
    if np.ptp(differences) == 0:
        return
    ours = paired(first, second, np.random.default_rng(0))
    theirs = scipy.stats.ttest_rel(first, second)
    assert ours.t == pytest.approx(theirs.statistic, rel=1e-6)
    assert ours.p_t == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-9)
    flips = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", alternative="two-sided", n_resamples=np.inf
    )
    centre = np.abs(np.asarray(flips.null_distribution)) >= abs(differences.mean()) - 1e-9
    assert ours.p_signs == pytest.approx(centre.mean())


def test_paired_comparison_at_its_limits():
    source = np.random.default_rng(0)
    same = paired([1, 2, 3], [1, 2, 3], source)
    assert (same.difference, same.t, same.p_t, same.p_signs) == (0, 0, 1, 1)
    shifted = paired([2, 3, 4], [1, 2, 3], source)
    assert (shifted.t, shifted.p_t, shifted.p_signs) == (math.inf, 0, 0.25)
    # Many pairs: random flips come close to the normal approximation.
    first = source.normal(0.3, 1, 40)
    many = paired(first.tolist(), [0.0] * 40, np.random.default_rng(1))
    assert many.p_signs == pytest.approx(many.p_t, abs=0.02)
    with pytest.raises(PerdureError, match="same two or more seeds"):
        paired([1, 2], [1, 2, 3], source)


def test_intervals_equal_scipy_and_cover_however_few_seeds():
    values = np.random.default_rng(0).normal(50, 5, 12).tolist()
    one = number(values)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (one.low, one.high) == pytest.approx((theirs.low, theirs.high))
    assert (one.mean, one.sem, one.n) == (*mean_and_sem(values), 12)
    assert number([3.0]) == Number(3.0, None, 1)
    source = np.random.default_rng(3)
    for n in (2, 3, 5):  # a percentile bootstrap covers 50, 75 and 83 % here
        drawn = [number(source.normal(7, 2, n).tolist()) for _ in range(1500)]
        covered = np.mean([one.low <= 7 <= one.high for one in drawn])
        assert 0.935 < covered < 0.965


def made(source, mean, spread, n):
    return number(source.normal(mean, spread, n).tolist())


def verdicts(source, difference, spread, n, times=600, margin=MARGIN):
    """Verdicts of n seeds against ten published ones, whose truth is `difference` lower."""
    found = [
        verdict(made(source, 90 + difference, spread, n), made(source, 90, spread, 10), margin=margin)
        for _ in range(times)
    ]
    return {kind: found.count(kind) / times for kind in (AGREES, HIGHER, LOWER, NOT_DECIDED)}


@pytest.mark.parametrize("spread", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
def test_a_draw_from_the_published_population_is_rarely_called_different(n, spread):
    shares = verdicts(np.random.default_rng([n, int(10 * spread)]), 0.0, spread, n)
    nominal = 0.05 if n > 3 else 0.07  # Welch's approximation
    assert shares[HIGHER] + shares[LOWER] <= nominal + 0.03  # three standard errors of 600 draws
    if n < 3:
        assert shares[NOT_DECIDED] == 1


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("side", [-1, 1])
def test_what_differs_by_the_margin_is_rarely_called_equal(n, side):
    for spread in (0.3, 1.0):
        shares = verdicts(np.random.default_rng([n, side + 1]), side * MARGIN, spread, n)
        assert shares[AGREES] <= 0.05 + 0.03


def test_enough_seeds_decide():
    source = np.random.default_rng(0)
    assert verdicts(source, 0.0, 0.3, 5, times=100)[AGREES] > 0.95
    assert verdicts(source, 4.0, 1.0, 5, times=100)[HIGHER] > 0.95
    assert verdicts(source, -4.0, 1.0, 5, times=100)[LOWER] > 0.95
    assert verdicts(source, 0.0, 5.0, 5, times=100)[NOT_DECIDED] > 0.9


@settings(max_examples=60, deadline=None)
@given(
    difference=st.floats(-3, 3),
    sems=st.tuples(st.floats(0.01, 2), st.floats(0.01, 2)),
    counts=st.tuples(st.integers(3, 12), st.integers(2, 12)),
)
def test_verdicts_are_those_of_two_tests_of_scipy(difference, sems, counts):
    ours, published = Number(90 + difference, sems[0], counts[0]), Number(90.0, sems[1], counts[1])

    def p(shift, alternative):
        spreads = [sem * math.sqrt(n) for sem, n in zip(sems, counts, strict=True)]
        return scipy.stats.ttest_ind_from_stats(
            ours.mean - shift, spreads[0], counts[0], 90.0, spreads[1], counts[1],
            equal_var=False, alternative=alternative,
        ).pvalue  # fmt: skip

    same = max(p(-MARGIN, "greater"), p(MARGIN, "less"))
    other = p(0.0, "two-sided")
    if min(abs(same - ALPHA), abs(other - ALPHA)) < 1e-9:
        return
    expected = NOT_DECIDED if other >= ALPHA else HIGHER if difference > 0 else LOWER
    assert verdict(ours, published) == (AGREES if same < ALPHA else expected)


@settings(max_examples=60, deadline=None)
@given(
    difference=st.floats(-3, 3),
    sems=st.tuples(st.floats(0.01, 2), st.floats(0.01, 0.8)),
    n=st.integers(1, 6),
)
def test_the_seeds_that_would_decide_do_and_fewer_do_not(difference, sems, n):
    published = Number(90.0, sems[1], 10)
    ours = Number(90 + difference, sems[0] if n > 1 else None, n)
    if verdict(ours, published) != NOT_DECIDED:
        return
    needed = seeds_needed(ours, published)
    spread = sems[0] * math.sqrt(n) if n > 1 else sems[1] * math.sqrt(10)

    def decided(count):
        return verdict(Number(ours.mean, spread / math.sqrt(count), count), published) != NOT_DECIDED

    if needed is None:
        assert not any(decided(count) for count in (n + 1, 10, 100, 1000) if count > 2)
    else:
        assert decided(needed)
        assert not any(decided(count) for count in range(max(n + 1, 3), min(needed, n + 40)))


def test_verdicts_at_their_limits():
    assert verdict(Number(99.0), Number(98.9, 0.1, 10)) == NOT_DECIDED  # one seed
    assert verdict(Number(99.0, 0.1, 5), Number(98.9)) == NOT_DECIDED  # no published error
    assert seeds_needed(Number(99.0, 0.1, 5), Number(98.9)) is None
    assert verdict(Number(100.0, 0.0, 5), Number(100.0, 0.0, 10)) == AGREES  # no spread at all
    assert verdict(Number(100.0, 0.0, 5), Number(97.0, 0.0, 10)) == HIGHER
    assert verdict(Number(0.2, 0.001, 5), Number(0.1, 0.001, 5), margin=0.01) == HIGHER
    with pytest.raises(PerdureError, match="not finite"):
        verdict(Number(math.nan), Number(1.0))


def test_the_order_of_two_methods():
    published = Number(4.0, 1.0, 10)
    assert order(Number(3.0, 0.5, 5), published) == "as published"
    assert order(Number(-3.0, 0.5, 5), published) == "the other way round"
    assert order(Number(-0.1, 0.05, 5), published) == "too close to call"
    assert order(Number(3.0, 2.0, 5), published) == NOT_DECIDED
    assert order(Number(3.0), published) == NOT_DECIDED
    assert order(Number(3.0, 0.5, 5), Number(0.0)) == ""


def test_linear_tasks_that_share_dimensions_need_fewer_units():
    """K tasks of p dimensions, s of them shared, need s + K (p - s) units: the rank of the Hankel matrix."""
    for shared, fitting in ((0, 4), (2, 7), (3, 13)):
        found = capacity(16, 4, 14, generator(0, "theory"), shared=shared)
        for demonstration in found:
            assert demonstration.needed == shared + demonstration.tasks * (4 - shared)
        solved = [demonstration.tasks for demonstration in found if demonstration.error < 1e-6]
        assert solved == list(range(1, fitting + 1))
    with pytest.raises(PerdureError, match="Tasks can share 0 to 3"):
        capacity(16, 4, 2, generator(0, "theory"), shared=4)
