"""Networks equal torch.nn modules run on each sequence by itself, gradients too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from helpers import (
    CELLS,
    TARGETS,
    by_sequence,
    oracle_answers,
    random_weights,
    sequences,
    whole,
    with_one_hot_columns,
)
from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.initialise import initialise
from perdure.networks.network import Network
from perdure.networks.packing import pack_lengths
from perdure.networks.tape import Tape
from perdure.networks.targets import negative_log_likelihood, tally
from perdure.randomness import generator
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.value import Value

architectures = st.builds(
    Recurrent,
    cell=st.sampled_from(CELLS),
    hidden=st.lists(st.integers(1, 5), min_size=1, max_size=2).map(tuple),
    bidirectional=st.booleans(),
    zero_forward=st.booleans(),
    input_layers=st.lists(st.integers(1, 4), max_size=1).map(tuple),
    output_layers=st.lists(st.integers(1, 4), max_size=2).map(tuple),
    heads=st.sampled_from(["multi", "single"]),
    task_identity=st.booleans(),
)


def test_zero_forward_leaves_only_the_backward_half():
    """As in the original's PoS tagging: a step's output depends on this step and later ones only."""
    network = Network(Recurrent(cell="lstm", hidden=4, bidirectional=True, zero_forward=True), 3, (2,))
    data = sequences(Tags(), 2, 5, 3, 2, ragged=False)
    weights = random_weights(network)
    batch = whole(data)
    before = by_sequence(network(weights, batch, 0), batch, data)
    data.x[:, 0] += 1
    after = by_sequence(network(weights, whole(data), 0), batch, data)
    for one, other in zip(before, after, strict=True):
        assert torch.equal(one[1:], other[1:])
        assert not torch.equal(one[0], other[0])
    plain = Recurrent(cell="lstm", hidden=4, bidirectional=True)
    assert "zero_forward" not in plain.plain()


@settings(max_examples=60, deadline=None)
@given(
    architecture=architectures,
    kind=st.sampled_from(TARGETS),
    ragged=st.booleans(),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4)),
    seed=st.integers(0, 99),
)
def test_logits_and_gradients_equal_torch_nn(architecture, kind, ragged, shape, seed):
    count, steps, inputs = shape
    network = Network(architecture, inputs, (3, 3))
    data = sequences(kind, count, steps, inputs, 3, ragged=ragged, seed=seed)
    weights = random_weights(network, seed)
    for weight in weights.values():
        weight.requires_grad_()
    batch = whole(data)
    ours = by_sequence(network(weights, batch, 1), batch, data)
    theirs = oracle_answers(network, {n: w.detach() for n, w in weights.items()}, data, 1)
    for mine, oracle in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, oracle, rtol=1e-9, atol=1e-11)
    # Finite differences of the loss, in a random direction of weight space.
    source = generator(seed, "direction")
    direction = {n: torch.randn(w.shape, generator=source, dtype=w.dtype) for n, w in weights.items()}
    loss = negative_log_likelihood(network(weights, batch, 1), batch)
    assert loss.requires_grad
    gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    slope = sum(
        float((g * d).sum()) for g, d in zip(gradients, direction.values(), strict=True) if g is not None
    )

    def at(step: float) -> float:
        moved = {n: (w + step * direction[n]).detach() for n, w in weights.items()}
        return float(negative_log_likelihood(network(moved, batch, 1), batch))

    numeric = (at(1e-5) - at(-1e-5)) / 2e-5
    assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("where", [{}, {"bidirectional": True}, {"input_layers": (4,)}])
@pytest.mark.parametrize("ragged", [False, True])
def test_telling_the_task_is_a_one_hot_input(cell, where, ragged):
    """One-hot inputs with W = [W, V] in a network that is told nothing: equal answers, gradients, Fisher."""
    choices = {"cell": cell, "hidden": (5,), "heads": "single"} | where
    told = Network(Recurrent(task_identity=True, **choices), 3, (2, 2, 2))
    plain = Network(Recurrent(**choices), 3 + 3, (2, 2, 2))
    weights, task = random_weights(told), 1
    columns = with_one_hot_columns(told, weights)
    columns = {name: columns[name] for name in plain.layout.axes}
    assert {name: tuple(weight.shape) for name, weight in columns.items()} == plain.layout.shapes
    data = sequences(Tags(), 6, 5, 3, 2, ragged=ragged)
    one_hot = np.zeros((6, 5, 3))
    one_hot[..., task] = 1
    spelled_out = type(data)(data.target, np.concatenate([data.x, one_hot], axis=2), data.y, data.lengths)
    found = []
    for network, values, source in ((told, weights, data), (plain, columns, spelled_out)):
        leaves = {name: value.clone().requires_grad_() for name, value in values.items()}
        batch = whole(source)
        logits = network(leaves, batch, task)
        negative_log_likelihood(logits, batch).backward()
        slopes = {n: torch.zeros_like(v) if v.grad is None else v.grad for n, v in leaves.items()}
        found.append((logits.detach(), slopes, fisher(network, values, source, task=task)))
    (logits, slopes, values), (expected, its_slopes, its_values) = found
    torch.testing.assert_close(logits, expected, rtol=1e-10, atol=1e-12)
    for ours, theirs in ((slopes, its_slopes), (values, its_values)):
        ours = with_one_hot_columns(told, ours)
        for name, value in theirs.items():
            torch.testing.assert_close(ours[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_single_precision_equals_torch_nn(cell, bidirectional):
    network = Network(Recurrent(cell=cell, hidden=(32,), bidirectional=bidirectional), 8, (7,))
    data = sequences(Bits(), 16, 11, 8, 7, ragged=False)
    weights = random_weights(network, dtype=torch.float32)
    batch = whole(data, torch.float32)
    ours = by_sequence(network(weights, batch, 0), batch, data)
    data32 = type(data)(data.target, data.x.astype("float32"), data.y, data.lengths)
    for mine, oracle in zip(ours, oracle_answers(network, weights, data32, 0), strict=True):
        torch.testing.assert_close(mine, oracle, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_fused_kernels_equal_our_sweeps(cell, bidirectional):
    """Uniform batches take torch's kernels; a tape forces our sweeps."""
    network = Network(Recurrent(cell=cell, hidden=(6, 5), bidirectional=bidirectional), 4, (3,))
    weights = random_weights(network)
    batch = whole(sequences(Tags(), 5, 7, 4, 3, ragged=False))
    torch.testing.assert_close(
        network(weights, batch, 0), network(weights, batch, 0, Tape()), rtol=1e-10, atol=1e-12
    )


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_packing_keeps_every_valid_step_and_nothing_else(lengths):
    packing = pack_lengths(torch.tensor(lengths))
    padded = torch.arange(1, 1 + len(lengths) * max(lengths)).view(len(lengths), -1)
    rows = packing.pack(padded)
    assert len(rows) == sum(lengths) == packing.offsets[-1]
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    assert torch.equal(packing.unpack(rows), padded * valid)
    last = rows[packing.last(1)]
    assert last.tolist() == [padded[n, length - 1].item() for n, length in enumerate(lengths)]


@pytest.mark.parametrize("kind", TARGETS)
def test_loss_and_hits_equal_a_loop(kind):
    network = Network(Recurrent(cell="gru", hidden=(4,)), 3, (4,))
    data = sequences(kind, 9, 6, 3, 4, ragged=True)
    weights, batch = random_weights(network), whole(data)
    logits = network(weights, batch, 0)
    loss, right, asked, numbers = 0.0, 0, 0, []
    for n, answer in enumerate(oracle_answers(network, weights, data, 0)):
        target = torch.tensor(data.y[n])
        if kind == Bits():
            for z, y in zip(answer.flatten(), target.flatten(), strict=True):
                if y >= 0:
                    chance = torch.sigmoid(z)
                    loss -= float(torch.log(chance if y == 1 else 1 - chance))
                    right += int((z >= 0) == (y == 1))
                    asked += 1
        elif kind == Value():
            numbers += [(float(z), float(y)) for z, y in zip(answer[0], target, strict=True) if not y.isnan()]
        else:
            for z, y in zip(answer, target.reshape(-1)[: len(answer)], strict=True):
                if y >= 0:
                    loss += float(functional.cross_entropy(z, y))
                    right += int(z.argmax() == y)
                    asked += 1
    loss += sum((z - y) ** 2 / 2 for z, y in numbers)
    assert float(negative_log_likelihood(logits, batch)) == pytest.approx(loss, rel=1e-10)
    judged = kind.judge(tally(logits, batch))
    assert judged.asked == asked + len(numbers)
    if numbers:
        assert judged.error == pytest.approx(np.sqrt(np.mean([(z - y) ** 2 for z, y in numbers])), rel=1e-10)
    else:
        assert judged.accuracy == pytest.approx(100 * right / asked)


def test_parameter_counts_are_the_papers():
    """Counts that the original reports for its main networks."""

    def count(inputs, outputs, **choices):
        return Network(Recurrent(**choices), inputs, outputs).layout.size

    assert count(8, (7,) * 5) == 142_883
    assert count(8, (7,) * 5, heads="single") == 135_687
    assert count(8, (7,) * 10) == 151_878
    assert count(4, (2,) * 5, cell="lstm") == 270_858
    assert count(128, (10,) * 10, cell="lstm", hidden=32) == 24_036
    assert count(64, (17,) * 20, cell="lstm", hidden=32, bidirectional=True) == 47_188


def test_initialisations():
    for rule, bound in (("original", 0.5), ("torch", 1 / 16)):
        architecture = Recurrent(cell="lstm", initialisation=rule)
        network = Network(architecture, 4, (2,))
        weights = initialise(network.layout, generator(0, "w"))
        weight = weights["recurrent.0.weight_ih"]
        assert bound * 0.98 < weight.abs().max() <= bound
        assert weights["recurrent.0.bias_ih"].abs().max() <= bound
        assert weights["head.0.weight"].abs().max() <= 1 / 16
    architecture = Recurrent(cell="lstm", hidden=(20,), orthogonal=True)
    network = Network(architecture, 4, (2,))
    weights = initialise(network.layout, generator(0, "w"))
    for block in network.recurrent_matrices(weights):
        torch.testing.assert_close(block @ block.T, torch.eye(20), rtol=0, atol=1e-5)
    assert len(network.recurrent_matrices(weights)) == 4


def test_layout_splits_and_joins():
    network = Network(Recurrent(cell="gru", hidden=(3, 2), output_layers=(4,)), 5, (2, 3))
    vector = torch.arange(network.layout.size, dtype=torch.float64)
    weights = network.layout.split(vector)
    assert {n: tuple(w.shape) for n, w in weights.items()} == network.layout.shapes
    assert torch.equal(network.layout.join(weights), vector)


def test_single_head_needs_equal_outputs():
    with pytest.raises(PerdureError, match="single head"):
        Network(Recurrent(heads="single"), 3, (2, 4))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("ragged", [False, True])
def test_all_lengths_are_whole_numbers_whatever_the_inputs_are(dtype, ragged):
    lengths = np.array([300, 7 if ragged else 300], dtype=np.int32)
    data = Data(Sequences(Label(), np.zeros((2, 300, 1), dtype), np.array([0, 1]), lengths))
    assert data.all_lengths.dtype == torch.int64
    assert data.all_lengths.tolist() == lengths.tolist()
    assert data.joined(data).all_lengths.tolist() == lengths.tolist() * 2
