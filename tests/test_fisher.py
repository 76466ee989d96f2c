"""The batched Fisher equals a brute-force loop in float64, for every network, target and estimator."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from helpers import CELLS, TARGETS, oracle_logits, random_weights, sequences, whole
from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.network import Network
from perdure.networks.targets import draw
from perdure.randomness import generator
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.value import Value
from test_networks import architectures


def answers_of(network, weights, data, n, task):
    """Differentiable logits [P, outputs] of sequence n, by our network on it alone (tested elsewhere)."""
    one = type(data)(
        data.target, data.x[n : n + 1, : data.lengths[n]], data.y[n : n + 1], data.lengths[n : n + 1]
    )
    if data.target.everywhere:
        one = type(data)(one.target, one.x, one.y[:, : data.lengths[n]], one.lengths)
    return network(weights, whole(one), task), torch.tensor(one.y[0])


def log_likelihood(kind, logits, y):
    """log p(y | x) of one sequence, up to a constant; what is not asked does not count."""
    if kind == Value():
        return -((logits[0] - y)[~y.isnan()] ** 2).sum() / 2
    if kind == Bits():
        losses = functional.binary_cross_entropy_with_logits(
            logits, y.clamp(min=0).to(logits.dtype), reduction="none"
        )
        return -(losses * (y >= 0)).sum()
    return -functional.cross_entropy(logits, y.reshape(-1), ignore_index=-1, reduction="sum")


def brute_force(network, weights, data, task, estimator):
    """Mean of squared gradients, sample by sample; the expectation by listing all joint targets."""
    leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    totals = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    for n in range(len(data)):
        logits, y = answers_of(network, leaves, data, n, task)
        for chance, target in targets(data.target, logits.detach(), y, estimator):
            value = log_likelihood(data.target, logits, target)
            gradients = torch.autograd.grad(
                value, list(leaves.values()), retain_graph=True, allow_unused=True
            )
            for name, gradient in zip(leaves, gradients, strict=True):
                if gradient is not None:
                    totals[name] += chance * gradient.square() / len(data)
    return totals


def targets(kind, logits, y, estimator):
    """(probability, y): the true one, or every joint assignment of the asked bits or classes.

    For values, whose squared score is of degree 2 in y, three Gauss-Hermite nodes for each asked output
    give the expectation without any error.
    """
    if estimator == "empirical":
        yield 1.0, y
        return
    flat = y.reshape(-1)
    if kind == Value():
        asked = (~flat.isnan()).nonzero()[:, 0].tolist()
        nodes = [(-(3**0.5), 1 / 6), (0.0, 2 / 3), (3**0.5, 1 / 6)]
        for choice in itertools.product(nodes, repeat=len(asked)):
            target = flat.clone()
            for place, (node, _) in zip(asked, choice, strict=True):
                target[place] = logits[0, place] + node
            yield math.prod(weight for _, weight in choice), target
        return
    asked = (flat >= 0).nonzero()[:, 0].tolist()
    options = range(2) if kind == Bits() else range(logits.shape[1])
    for choice in itertools.product(options, repeat=len(asked)):
        target = flat.clone()
        target[asked] = torch.tensor(choice, dtype=target.dtype)
        target = target.view(y.shape)
        yield float(log_likelihood(kind, logits, target).exp()), target


@settings(max_examples=80, deadline=None)
@given(
    architecture=architectures,
    kind=st.sampled_from(TARGETS),
    ragged=st.booleans(),
    shape=st.tuples(st.integers(1, 7), st.integers(1, 6), st.integers(1, 4)),
    seed=st.integers(0, 99),
)
def test_empirical_equals_the_loop(architecture, kind, ragged, shape, seed):
    count, steps, inputs = shape
    network = Network(architecture, inputs, (3, 3))
    data = sequences(kind, count, steps, inputs, 3, ragged=ragged, seed=seed)
    weights = random_weights(network, seed)
    ours = fisher(network, weights, data, task=1)
    oracle = brute_force(network, weights, data, 1, "empirical")
    for name, value in ours.items():
        torch.testing.assert_close(value, oracle[name], rtol=1e-10, atol=1e-14)


@settings(max_examples=40, deadline=None)
@given(
    architecture=architectures,
    kind=st.sampled_from(TARGETS),
    ragged=st.booleans(),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    seed=st.integers(0, 99),
)
def test_exact_equals_the_expectation_over_all_joint_targets(architecture, kind, ragged, shape, seed):
    count, steps, inputs = shape
    network = Network(architecture, inputs, (2, 2))
    data = sequences(kind, count, steps, inputs, 2, ragged=ragged, seed=seed)
    weights = random_weights(network, seed)
    ours = fisher(network, weights, data, task=1, estimator="exact")
    oracle = brute_force(network, weights, data, 1, "exact")
    for name, value in ours.items():
        torch.testing.assert_close(value, oracle[name], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("cell", CELLS)
def test_sampled_equals_the_loop_on_the_drawn_targets_and_tends_to_exact(kind, cell):
    network = Network(Recurrent(cell=cell, hidden=(3,)), 2, (2,))
    data = sequences(kind, 3, 4, 2, 2, ragged=True, seed=1)
    order = np.argsort(-data.lengths, kind="stable")  # the order in which the Fisher looks at samples
    data = type(data)(kind, data.x[order], data.y[order], data.lengths[order])
    weights = random_weights(network)
    batch = whole(data)
    targets = draw(network(weights, batch, 0), batch, generator(4, "fisher"))
    if batch.mask is not None:
        targets = targets.masked_fill(~batch.mask, float("nan") if kind == Value() else -1)
    y = batch.answers.unpack(targets).numpy()
    y = y if kind == Value() else y.astype(int)
    y = y[:, 0] if kind in (Label(), Value()) else y
    if kind == Tags():
        y[np.arange(y.shape[1]) >= data.lengths[:, None]] = -1
        y = np.pad(y, ((0, 0), (0, data.x.shape[1] - y.shape[1])), constant_values=-1)
    drawn_data = type(data)(kind, data.x, y, data.lengths)
    ours = fisher(network, weights, data, estimator="sampled", generator=generator(4, "fisher"))
    for name, value in brute_force(network, weights, drawn_data, 0, "empirical").items():
        torch.testing.assert_close(ours[name], value, rtol=1e-10, atol=1e-14)
    exact = fisher(network, weights, data, estimator="exact")
    rounds = 600
    mean = {name: torch.zeros_like(value) for name, value in exact.items()}
    chance = generator(0, "fisher")
    for _ in range(rounds):
        drawn = fisher(network, weights, data, estimator="sampled", generator=chance)
        for name, value in drawn.items():
            mean[name] += value / rounds
    largest = max(float(value.max()) for value in exact.values())
    for name, value in exact.items():
        assert float((mean[name] - value).abs().max()) < 0.15 * largest


def test_many_samples_in_several_passes_and_blocks(monkeypatch):
    """Cut into passes and blocks at every size, the result stays the same."""
    network = Network(Recurrent(cell="lstm", hidden=(4,), output_layers=(3,)), 2, (3,))
    data = sequences(Tags(), 23, 5, 2, 3, ragged=True)
    weights = random_weights(network)
    whole = fisher(network, weights, data)
    for block, widest in ((1, 1), (40, 3), (10_000, 7)):
        monkeypatch.setattr("perdure.networks.sample_gradients.BLOCK", block)
        monkeypatch.setattr("perdure.networks.sample_gradients.WIDEST", widest)
        for name, value in fisher(network, weights, data).items():
            torch.testing.assert_close(value, whole[name], rtol=1e-12, atol=1e-16)


def test_a_subset_is_the_fisher_of_those_samples():
    network = Network(Recurrent(hidden=(4,)), 2, (3,))
    data = sequences(Label(), 20, 5, 2, 3, ragged=True)
    weights = random_weights(network)
    ours = fisher(network, weights, data, samples=6, generator=generator(3, "fisher"))
    chosen = torch.randperm(20, generator=generator(3, "fisher"))[:6].numpy()
    part = type(data)(data.target, data.x[chosen], data.y[chosen], data.lengths[chosen])
    for name, value in fisher(network, weights, part).items():
        torch.testing.assert_close(ours[name], value)


def test_unused_heads_are_zero_and_faults_are_named():
    network = Network(Recurrent(hidden=(4,)), 2, (3, 3))
    data = sequences(Label(), 4, 5, 2, 3, ragged=False)
    weights = random_weights(network)
    values = fisher(network, weights, data, task=1)
    assert not values["head.0.weight"].any()
    assert values["head.1.weight"].any()
    with pytest.raises(PerdureError, match="did you mean 'empirical'"):
        fisher(network, weights, data, estimator="empirial")
    with pytest.raises(PerdureError, match="generator"):
        fisher(network, weights, data, estimator="sampled")


def test_the_loop_itself_agrees_with_torch_nn():
    """The oracle's logits come from our network; check them once more against torch.nn."""
    network = Network(Recurrent(cell="gru", hidden=(4,), bidirectional=True), 3, (2,))
    data = sequences(Tags(), 3, 5, 3, 2, ragged=True)
    weights = random_weights(network)
    for n, length in enumerate(data.lengths):
        ours, _ = answers_of(network, weights, data, n, 0)
        oracle = oracle_logits(network, weights, torch.tensor(data.x[n, :length]), 0)
        torch.testing.assert_close(ours, oracle)


def given_to_fisher(**changes):
    """The Fisher for four sequences of 2 features and 3 classes, with changes, and a network of two tasks."""
    parts = {"x": np.ones((4, 5, 2)), "y": np.array([0, 1, 2, 1]), "lengths": np.full(4, 5)}
    options = {name: changes.pop(name) for name in ("task", "estimator", "samples") if name in changes}
    network = Network(Recurrent(hidden=(3,)), 2, (3, 3))
    data = changes.pop("data") if "data" in changes else Sequences(Label(), **(parts | changes))
    return fisher(network, random_weights(network), data, generator=generator(0, "fisher"), **options)


@pytest.mark.parametrize("estimator", ["empirical", "sampled", "exact"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.array([0, 1, 5, 1])}, "y must contain integers from 0 to 2"),
        ({"y": np.array([0.0, 1, 2, 1])}, "y must contain integers from 0 to 2"),
        ({"x": np.full((4, 5, 2), np.nan)}, "x holds NaN"),
        ({"x": np.full((4, 5, 2), "a")}, "x must hold real numbers, but holds <U1"),
        ({"x": np.ones((4, 5))}, r"x must be \[N, T, F\]"),
        ({"x": np.ones((4, 5, 3))}, "x has 3 features, but the network reads 2"),
        ({"x": np.ones((0, 5, 2)), "y": np.arange(0), "lengths": np.arange(0)}, "N > 0"),
        ({"lengths": np.array([0, 5, 5, 5])}, "lengths must be .* between 1 and T = 5"),
        ({"lengths": np.full(4, 5.0)}, "lengths must be .* whole numbers"),
        ({"task": 3}, r"task must be .* from 0 to 1 \(given: 3\)"),
        ({"task": -1}, r"task must be .* from 0 to 1 \(given: -1\)"),
        ({"samples": 0}, "at least one sample is needed"),
        ({"data": [[1.0]]}, r"data must be perdure\.Sequences \(given: a list\)"),
    ],
)
def test_data_that_a_network_cannot_read_are_refused(changes, message, estimator):
    with pytest.raises(PerdureError, match=f"^fisher: .*{message}"):
        given_to_fisher(estimator=estimator, **changes)


def test_sequences_are_arrays_with_an_entry_each():
    assert given_to_fisher()
    for changes in ({"y": np.array([0])}, {"lengths": np.full(3, 5)}):
        with pytest.raises(
            PerdureError, match=r"^Sequences: .* an entry for each sequence \(given: x: 4, y: "
        ):
            given_to_fisher(**changes)
    for name in ("x", "y", "lengths"):
        for wrong, kind in (([1, 2, 3, 4], "list"), (None, "NoneType"), (torch.ones(4), "Tensor")):
            with pytest.raises(PerdureError, match=rf"^Sequences: {name} must be a numpy array.* a {kind}\)"):
                given_to_fisher(**{name: wrong})


def test_moved_data_are_checked_as_far_as_they_can_be_at_once():
    data = Data(sequences(Label(), 4, 5, 2, 3, ragged=False), dtype=torch.float64)
    assert given_to_fisher(data=data)
    with pytest.raises(PerdureError, match="at least one sample"):
        given_to_fisher(data=data.without_samples())
