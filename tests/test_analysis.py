"""Analyses that need no run: against library routines, independent formulas and data of known rank."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import CELLS, TARGETS, oracle_layer, random_weights, sequences, whole
from perdure.analysis.dimensionality import (
    dimension,
    dimension_per_step,
    explained_by,
    explained_variance,
    kernel_variance,
    shared_dimensions,
)
from perdure.analysis.distances import distances, weight_distances
from perdure.analysis.importance import mean_importance
from perdure.analysis.states import States, hidden_states
from perdure.analysis.steps import accuracy_per_step
from perdure.analysis.subspaces import principal_angles, readout_basis, similarities, similarity
from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.initialise import orthogonal
from perdure.networks.network import Network
from perdure.randomness import generator
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.value import Value


def oracle_states(network, weights, x, layer):
    """h and, if that is not passed on, y [T, D H] of ONE unpadded sequence, by torch.nn modules."""
    architecture, rows = network.architecture, x
    for index in range(len(architecture.input_layers)):
        name = f"input_layers.{index}"
        rows = (rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]).tanh()
    for index in range(layer + 1):
        hidden, rows = (part.detach() for part in oracle_layer(architecture, weights, index, rows))
    return hidden, rows if f"recurrent.{layer}.weight_ho" in weights else None


@settings(max_examples=60, deadline=None)
@given(
    cell=st.sampled_from(CELLS),
    hidden=st.sampled_from([(4,), (3, 5)]),
    bidirectional=st.booleans(),
    input_layers=st.sampled_from([(), (3,)]),
    output_layers=st.sampled_from([(), (2,)]),
    kind=st.sampled_from(TARGETS),
    ragged=st.booleans(),
    layer=st.sampled_from([0, -1]),
)
def test_states_equal_torch_nn(cell, hidden, bidirectional, input_layers, output_layers, kind, ragged, layer):
    architecture = Recurrent(
        cell=cell,
        hidden=hidden,
        bidirectional=bidirectional,
        input_layers=input_layers,
        output_layers=output_layers,
    )
    network = Network(architecture, 3, (2, 2))
    data = sequences(kind, 7, 5, 3, 2, ragged=ragged, seed=len(hidden))
    weights = random_weights(network, 3)
    found = hidden_states(network, weights, data, 1, layer=layer)
    index = layer % len(hidden)
    width = architecture.numbers_per_unit * hidden[index] * (1 + bidirectional)
    assert found.hidden.shape == (7, 5, width)
    assert (found.readout is None) == (cell in ("lstm", "gru"))
    for row, (x, length) in enumerate(zip(data.x, data.lengths, strict=True)):
        h, y = oracle_states(network, weights, torch.tensor(x[:length]), index)
        torch.testing.assert_close(found.hidden[row, :length], h, rtol=1e-9, atol=1e-11)
        assert (found.hidden[row, length:] == 0).all()
        if y is not None:
            torch.testing.assert_close(found.readout[row, :length], y, rtol=1e-9, atol=1e-11)
    # f_out of the last layer's states is the network.
    last = hidden_states(network, weights, data, 1).hidden
    batch = whole(data)
    rows = batch.packing.pack(last) if batch.asked is None else batch.packing.pack(last)[batch.asked]
    logits = network.read_out(weights, rows.chunk(len(architecture.directions), dim=1), 1)
    torch.testing.assert_close(logits, network(weights, batch, 1), rtol=1e-9, atol=1e-11)


def test_moments_are_the_right_steps():
    """States that say which sequence and step they are, so that pooling can be read off."""
    lengths = torch.tensor([6, 4, 5])
    names = torch.tensor([[10 * n + t for t in range(6)] for n in range(3)])
    hidden = torch.where(torch.arange(6) < lengths[:, None], names, -1)[:, :, None].float()
    pattern = States(Bits(), hidden, None, lengths, torch.tensor([2, 2, 2]))
    told = {m: pattern.during(m)[:, 0].tolist() for m in ("all", "input", "stop", "output", "last")}
    assert told["input"] == [0, 1, 2, 10, 20, 21]
    assert told["stop"] == [3, 11, 22]
    assert told["output"] == [4, 5, 12, 13, 23, 24]
    assert told["last"] == [5, 13, 24]
    assert sorted(told["all"]) == sorted(told["input"] + told["stop"] + told["output"])
    assert pattern.at(5)[:, 0].tolist() == [5]
    tags = States(Tags(), hidden, None, lengths, lengths)
    assert tags.during("output").tolist() == tags.during("input").tolist() == tags.during("all").tolist()
    with pytest.raises(PerdureError, match="stop bit"):
        tags.during("stop")


def test_a_subset_of_samples_is_random_and_needs_a_generator():
    network = Network(Recurrent(hidden=(4,)), 3, (2,))
    data, weights = sequences(Tags(), 20, 5, 3, 2, ragged=True), random_weights(network)
    every = hidden_states(network, weights, data).hidden
    some = hidden_states(network, weights, data, samples=6, generator=generator(1)).hidden
    assert len(some) == 6
    assert all(any(torch.allclose(row, other, atol=1e-12) for other in every) for row in some)
    with pytest.raises(PerdureError, match="generator"):
        hidden_states(network, weights, data, samples=6)


# Dimensionality


@settings(max_examples=30, deadline=None)
@given(
    rank=st.integers(1, 6), count=st.integers(8, 40), threshold=st.floats(0.05, 0.999), seed=st.integers(0, 9)
)
def test_dimension_equals_a_singular_value_decomposition(rank, count, threshold, seed):
    source = np.random.default_rng(seed)
    activity = source.normal(size=(count, rank)) @ source.normal(size=(rank, 9)) + source.normal(size=9)
    squares = scipy.linalg.svdvals(activity - activity.mean(0)) ** 2
    ratios = squares / squares.sum()
    ours = explained_variance(torch.tensor(activity)).numpy()
    size = min(len(ratios), 9)
    np.testing.assert_allclose(ours[:size], ratios[:size], atol=1e-12)
    reached = next(n for n in range(1, 10) if ratios[:n].sum() >= threshold)
    assert dimension(torch.tensor(activity), threshold) == reached
    assert dimension(torch.tensor(activity), 1.0) == min(rank, count - 1)
    assert (ours[min(rank, count - 1) :] == 0).all()


def test_dimension_is_the_true_count():
    """Four independent directions of equal variance: three are needed for 75 %, exactly."""
    square = torch.cat([torch.eye(4), -torch.eye(4)])
    assert dimension(square) == 3
    assert dimension(square, 0.25) == 1
    assert dimension(square, 0.76) == 4
    assert dimension(torch.ones(5, 3)) == 0
    assert dimension(torch.cat([torch.ones(1, 2), torch.zeros(3, 2)])) == 1
    with pytest.raises(PerdureError, match="between 0 and 1"):
        dimension(square, 0)


def test_kernel_variance_equals_the_kernel_matrix():
    source = np.random.default_rng(0)
    activity = source.normal(size=(30, 5)) + 1
    activity[3] = 0  # a silent state has cosine 0 with all
    norms = np.linalg.norm(activity, axis=1)
    norms[3] = 1
    kernel = activity @ activity.T / norms[:, None] / norms
    centring = np.eye(30) - 1 / 30
    values = np.sort(scipy.linalg.eigvalsh(centring @ kernel @ centring))[::-1]
    np.testing.assert_allclose(
        kernel_variance(torch.tensor(activity)), (values / values.sum())[:5], atol=1e-12
    )
    scaled = activity * source.uniform(0.1, 10, (30, 1))
    assert dimension(torch.tensor(scaled), kernel=True) == dimension(torch.tensor(activity), kernel=True)


def test_dimension_per_step_respects_lengths():
    """A network without recurrence whose inputs fill t + 1 dimensions at step t, and then end."""
    source = torch.Generator().manual_seed(0)
    hidden = torch.zeros(50, 4, 6, dtype=torch.float64)
    lengths = torch.tensor([4] + [3] * 49)
    for step in range(4):
        hidden[:, step, : step + 1] = torch.randn(50, step + 1, generator=source, dtype=torch.float64)
    hidden[torch.arange(4) >= lengths[:, None]] = 0
    states = States(Tags(), hidden, None, lengths, lengths)
    assert states.running() == [50, 50, 50, 1]
    assert dimension_per_step(states, 1.0) == [1, 2, 3]  # at step 4 one sequence alone does not vary
    assert dimension(states.during("last"), 1.0) == 4  # 49 times three dimensions, once four
    with pytest.raises(PerdureError, match="no readout"):
        dimension_per_step(states, readout=True)


def test_variance_within_another_tasks_components():
    basis = orthogonal(6, generator(0), torch.float64)
    source = torch.Generator().manual_seed(0)
    first = torch.randn(400, 2, generator=source, dtype=torch.float64) @ basis[:, :2].T
    inside = torch.randn(400, 2, generator=source, dtype=torch.float64) @ basis[:, :2].T + 5
    outside = torch.randn(400, 3, generator=source, dtype=torch.float64) @ basis[:, 2:5].T
    assert explained_by(first, inside, [2, 6]) == pytest.approx([1, 1])
    assert explained_by(first, outside, [2]) == pytest.approx([0], abs=1e-12)
    half = inside + outside * (inside - inside.mean(0)).norm() / (outside - outside.mean(0)).norm()
    assert explained_by(first, half, [2])[0] == pytest.approx(0.5, abs=0.05)
    assert explained_by(first, first, [1])[0] == pytest.approx(float(explained_variance(first)[0]))
    shares = shared_dimensions([first, inside - inside.mean(0), outside], 0.999)
    assert shares == ([2, 2, 3], 5)
    assert shares.total == 7


# Importance, subspaces, distances


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_mean_importance_equals_a_loop(cell, bidirectional):
    network = Network(Recurrent(cell=cell, hidden=(3, 2), bidirectional=bidirectional), 2, (2,))
    data = sequences(Tags(), 6, 4, 2, 2, ragged=True)
    values = fisher(network, random_weights(network), data)
    sums = {"_hh": [0.0, 0], "_ho": [0.0, 0]}
    for name, value in values.items():
        for entry in value.flatten().tolist():
            if name[-3:] in sums:
                sums[name[-3:]][0] += entry
                sums[name[-3:]][1] += 1
    means = mean_importance(values)
    assert means.recurrent == pytest.approx(sums["_hh"][0] / sums["_hh"][1], rel=1e-12)
    ways = 1 + bidirectional
    gates = {"elman": 1, "lstm": 4, "gru": 3}
    gate = 3 * 2 + 3 + 2 * 3 * ways + 2  # reads the input of its layer
    own = {"diagonal": 5, "lru": 10, "min-gru": gate, "selective-diagonal": gate + 5}
    each = own[cell] if cell in own else gates[cell] * (3 * 3 + 3 + 2 * 2 + 2)
    assert sums["_hh"][1] == ways * each
    if cell == "elman" or cell in own:
        assert means.readout == pytest.approx(sums["_ho"][0] / sums["_ho"][1], rel=1e-12)
    else:
        assert means.readout is None
    with pytest.raises(PerdureError, match="no recurrent weights"):
        mean_importance({"head.0.weight": torch.ones(2)})


def test_similarity_equals_principal_angles():
    source = torch.Generator().manual_seed(0)
    heads = [torch.randn(3, 8, generator=source, dtype=torch.float64) for _ in range(3)]
    bases = [readout_basis(head) for head in heads]
    table = similarities(bases)
    for k, first in enumerate(heads):
        for n, second in enumerate(heads):
            angles = scipy.linalg.subspace_angles(first.T.numpy(), second.T.numpy())
            assert table[k][n] ** 2 == pytest.approx((np.cos(angles) ** 2).sum(), abs=1e-12)
            assert principal_angles(bases[k], bases[n]) == pytest.approx(sorted(np.degrees(angles)), abs=1e-6)
    # The same space in another basis and at another scale; then a space apart, a space within.
    mixed = readout_basis(orthogonal(3, generator(0), torch.float64) @ heads[0] * 7)
    assert similarity(bases[0], mixed) == pytest.approx(math.sqrt(3))
    apart = readout_basis(torch.linalg.svd(heads[0])[2][3:])
    assert similarity(bases[0], apart) == pytest.approx(0, abs=1e-12)
    doubled = torch.cat([heads[0][:1], heads[0][:1] * 2, heads[0][1:2] * 1e-3])
    assert readout_basis(doubled).shape == (2, 8)
    assert readout_basis(doubled, threshold=0.1).shape == (1, 8)


def test_distances_keep_the_digits_of_close_vectors():
    vectors = [torch.tensor([1e4, 0.0]), torch.tensor([1e4, 1e-3]), torch.tensor([1e4 + 3, 4.0])]
    table = distances(vectors)
    assert table[0][1] == pytest.approx(1e-3, rel=1e-6)
    assert table[0][2] == table[2][0] == pytest.approx(5)
    assert [table[n][n] for n in range(3)] == [0, 0, 0]
    wide, narrow = (Network(Recurrent(hidden=(n,)), 2, (2,)) for n in (4, 3))
    with pytest.raises(PerdureError, match="masked"):
        weight_distances([random_weights(wide), random_weights(narrow)], wide.body)


# Accuracy per step


@pytest.mark.parametrize("kind", TARGETS)
def test_accuracy_per_step_equals_a_loop(kind):
    network = Network(Recurrent(hidden=(4,)), 3, (3,))
    data, weights = sequences(kind, 40, 6, 3, 3, ragged=True), random_weights(network)
    right: dict[int, list[bool]] = {}
    numbers: list[tuple[float, float]] = []
    for x, y, length in zip(data.x, data.y, data.lengths, strict=True):
        states = oracle_states(network, weights, torch.tensor(x[:length]), 0)[1]
        logits = (states @ weights["head.0.weight"].T + weights["head.0.bias"]).numpy()
        if kind == Bits():
            for step, (row, bits) in enumerate(zip(logits[-2:], y, strict=True)):
                hits = [(z >= 0) == (bit == 1) for z, bit in zip(row, bits, strict=True) if bit >= 0]
                right.setdefault(step + 1, []).extend(hits)
        elif kind == Value():
            numbers += [(z, value) for z, value in zip(logits[-1], y, strict=True) if not np.isnan(value)]
        else:
            wanted = (
                [(0, logits[-1], y)]
                if kind == Label()
                else list(zip(range(length), logits, y[:length], strict=True))
            )
            for step, row, label in wanted:
                if label >= 0:
                    right.setdefault(step + 1, []).append(row.argmax() == label)
    found = accuracy_per_step(network, weights, data)
    if numbers:
        assert [(score.step, score.asked) for score in found] == [(1, len(numbers))]
        return
    assert {s.step: s.asked for s in found} == {step: len(hits) for step, hits in right.items()}
    for score in found:
        assert score.accuracy == pytest.approx(100 * np.mean(right[score.step]))


def test_states_of_own_data_may_be_of_one_step():
    network = Network(Recurrent(cell="gru", hidden=(3,)), 2, (2,))
    data = Sequences(Label(), np.ones((4, 1, 2)), np.zeros(4, dtype=int), np.ones(4, dtype=int))
    states = hidden_states(network, random_weights(network), data)
    assert dimension_per_step(states) == [0]
