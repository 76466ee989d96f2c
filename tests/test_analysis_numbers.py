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
    Number,
    bootstrap_interval,
    mean_and_sem,
    number,
    paired,
    verdict,
)
from perdure.analysis.theory import LinearTasks, capacity, demonstrate, linear_tasks, random_orthogonal
from perdure.errors import PerdureError
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
        drawn = [random_orthogonal(8, source)[:, :3] for _ in range(3)]
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
    pairs=st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=8),
    step=st.floats(0, 5),
)
def test_paired_comparison_equals_scipy(pairs, step):
    first = [round(a, 2) + step for a, _ in pairs]
    second = [round(b, 2) for _, b in pairs]
    differences = np.subtract(first, second)
    if np.ptp(differences) < 1e-6:
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


def test_bootstrap_equals_scipy_and_covers():
    values = np.random.default_rng(0).normal(50, 5, 12).tolist()
    ours = bootstrap_interval(values, np.random.default_rng(1))
    theirs = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(2))
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.1)
    assert bootstrap_interval(values, np.random.default_rng(1)) == ours
    source, covered = np.random.default_rng(3), 0
    for _ in range(400):
        low, high = bootstrap_interval(source.normal(size=25).tolist(), source, resamples=500)
        covered += low <= 0 <= high
    assert 0.89 < covered / 400 < 0.97
    assert bootstrap_interval([1.0], source) is None
    one = number(values, np.random.default_rng(1))
    assert (one.mean, one.sem) == mean_and_sem(values)
    assert (one.low, one.high, one.n) == (*ours, 12)


@pytest.mark.parametrize(
    ("ours", "published", "expected"),
    [
        (Number(99.0), Number(98.5), "agrees"),  # within half a point, whatever the errors
        (Number(99.1), Number(98.5), "higher than published"),
        (Number(97.0), Number(98.5), "lower than published"),
        (Number(95.0, 0.9, 5), Number(98.0, 1.2, 10), "agrees"),  # 3 = two errors of 1.5
        (Number(94.9, 0.9, 5), Number(98.0, 1.2, 10), "lower than published"),
        (Number(98.0, 0.0, 5), Number(95.0, 1.6), "agrees"),
        (Number(98.0, None, 1), Number(95.0, 1.4), "higher than published"),
    ],
)
def test_verdicts(ours, published, expected):
    assert verdict(ours, published) == expected


def test_a_verdict_needs_numbers():
    with pytest.raises(PerdureError, match="not finite"):
        verdict(Number(math.nan), Number(1.0))
    assert verdict(Number(0.2), Number(0.1), margin=0.01) == "higher than published"
