"""What a recurrent cell promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from perdure.benchmarks.task import Sequences
from perdure.networks.batch import Batch, Data, unlabelled
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.cells.cell import Cell, LayerInput
from perdure.networks.initialise import initialise
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.packing import pack_lengths, uniform
from perdure.networks.sample_gradients import mean_sample_gradients
from perdure.networks.tape import Tape
from perdure.networks.targets import negative_log_likelihood, score
from perdure.randomness import generator
from perdure.registry import chosen
from perdure.targets.tags import Tags
from perdure.testing.methods import check_resumes, small

UNITS, INPUTS, OUTPUTS = 3, 2, 2
METHODS = ("online-ewc", "masking+si", "hnet", "rtf")
"""Methods that ask different things of a cell: per-sample gradients, sub-networks, generated weights."""


def check_cell(cell: str, **values: Any) -> None:
    """All promises that a cell makes: numerics in double precision, and runs that are resumed."""
    made = chosen("cells", cell)
    assert isinstance(made, Cell)
    check_names(made)
    for bidirectional in (False, True):
        network = Network(
            Recurrent(cell=made, hidden=(UNITS, UNITS), bidirectional=bidirectional), INPUTS, [OUTPUTS]
        )
        check_lengths(network)
        check_gradients(network)
        check_sample_gradients(network)
        check_cell_device(network)
    check_directions(made)
    if made.continues:
        check_continues(made)
    for method in METHODS:
        choices = {"network.cell": cell} | ({"rehearsal.cell": cell} if method == "rtf" else {})
        check_resumes(small(method, **(choices | values)))


def check_names(cell: Cell) -> None:
    """Names of weights begin with the prefix, and each weight says how it starts."""
    layout = Recurrent(cell=cell, hidden=(UNITS,)).plan(INPUTS).layout
    assert set(layout.starts) == set(layout.axes)
    for name in layout.axes:
        assert name.startswith("recurrent.0."), f"{name}: names of weights begin with the prefix"
        assert layout.starts[name].spread > 0, f"{name}: what spread is it to have where it is generated?"


def check_lengths(network: Network) -> None:
    """A batch of sequences of different lengths gives what each gives alone; padding changes nothing."""
    weights, data = _weights(network), _sequences()
    batch = Data(data, dtype=torch.float64).batch(slice(None))
    padded = batch.answers.unpack(network(weights, batch, 0))
    for number, length in enumerate(data.lengths):
        alone = network(weights, _alone(data, number), 0)
        _assert_close(padded[number, :length], alone, f"the answers to a sequence of {length} steps")
    for x, length in zip(data.x, data.lengths, strict=True):
        x[length:] = 1e6
    dirty = Data(data, dtype=torch.float64).batch(slice(None))
    assert torch.equal(network(weights, dirty, 0), network(weights, batch, 0)), "padding is read"


def check_gradients(network: Network) -> None:
    """Gradients of the weights and of the inputs are those of finite differences."""
    batch = Data(_sequences(), dtype=torch.float64).batch(slice(None))
    flat = network.layout.join(_weights(network))

    def loss(vector: Tensor, rows: Tensor) -> Tensor:
        given = Batch(batch.target, rows, batch.packing, None, batch.answers, batch.targets, batch.mask)
        return network(network.layout.split(vector), given, 0).square().sum()

    inputs = (flat.requires_grad_(), batch.rows.clone().requires_grad_())
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True, rtol=1e-4)


def check_sample_gradients(network: Network) -> None:
    """What the cell notes on a tape gives the squared gradient of each sample, and changes no answer."""
    weights, data = _weights(network), _sequences()
    whole = Data(data, dtype=torch.float64)
    batch = whole.batch(slice(None))
    _assert_close(network(weights, batch, 0, Tape()), network(weights, batch, 0), "answers with a tape")
    ours = mean_sample_gradients(
        network, weights, whole, torch.arange(len(whole)), 0, lambda logits, given: [score(logits, given)]
    )
    leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    expected = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    for number in range(len(data)):
        alone = _alone(data, number)
        loss = negative_log_likelihood(network(leaves, alone, 0), alone)
        for name, gradient in zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True):
            expected[name] += gradient.square() / len(data)
    for name, value in expected.items():
        _assert_close(ours[name], value, f"the mean squared gradient of {name}")


def check_cell_device(network: Network) -> None:
    """All that a cell makes is where its inputs are; torch's meta device stands for a GPU."""
    weights = {name: weight.to("meta") for name, weight in _weights(network).items()}
    batch = Data(_sequences(), "meta", torch.float64).batch(slice(None))
    for tape in (None, Tape()):
        assert network(weights, batch, 0, tape).device.type == "meta"


def check_directions(cell: Cell) -> None:
    """The second direction reads each sequence from its own end to its start."""
    architecture = Recurrent(cell=cell, hidden=(UNITS,), bidirectional=True)
    weights = _weights(Network(architecture, INPUTS, [OUTPUTS]))
    forwards, backwards = architecture.prefixes(0)
    ahead = {
        forwards + name.removeprefix(backwards): weight
        for name, weight in weights.items()
        if name.startswith(backwards)
    }
    lengths = torch.tensor([4, 2, 3])
    packing = pack_lengths(lengths)
    steps = torch.randn(3, 4, INPUTS, generator=generator(0, "steps"), dtype=torch.float64)
    turned = torch.zeros_like(steps)
    for number, length in enumerate(lengths.tolist()):
        turned[number, :length] = steps[number, :length].flip(0)
    there, back = (
        packing.unpack(cell.sweep(which, prefix, LayerInput(packing.pack(x), packing, (None, None), None), n))
        for n, (which, prefix, x) in enumerate(((ahead, forwards, turned), (weights, backwards, steps)))
    )
    for number, length in enumerate(lengths.tolist()):
        _assert_close(back[number, :length], there[number, :length].flip(0), "the states of the way back")


def check_continues(cell: Cell) -> None:
    """From a state h alone a cell goes on as if it had never stopped."""
    architecture = Recurrent(cell=cell, hidden=(UNITS,))
    network, (prefix,) = Network(architecture, INPUTS, [OUTPUTS]), architecture.prefixes(0)
    weights, packing = _weights(network), uniform(4, 6)
    rows = torch.randn(24, INPUTS, generator=generator(0, "rows"), dtype=torch.float64)
    tape = Tape()
    network.features(weights, unlabelled(rows, packing), 0, None, tape)
    states, entering = tape.layers[0].hidden.detach(), tape.projections[prefix].clone()
    rest = entering[2 * 4 :]
    rest[:4] += cell.carried(weights, prefix, states[4 : 2 * 4])
    _assert_close(
        cell.continued(weights, prefix, rest, uniform(4, 4)), states[2 * 4 :], "states that are continued"
    )


def _weights(network: Network) -> Weights:
    drawn = initialise(network.layout, generator(0, "cell"))
    return {name: weight.double() for name, weight in drawn.items()}


def _sequences() -> Sequences:
    """Five ragged sequences with a tag at each step, some of them not asked."""
    source = np.random.default_rng(0)
    lengths = np.array([4, 1, 5, 3, 3])
    y = source.integers(-1, OUTPUTS, (5, 5))
    y[np.arange(5) >= lengths[:, None]] = -1
    return Sequences(Tags(), source.normal(size=(5, 5, INPUTS)), y, lengths)


def _alone(data: Sequences, number: int) -> Batch:
    """One of the sequences, cut where it ends."""
    length = int(data.lengths[number])
    x, y = data.x[number : number + 1, :length], data.y[number : number + 1, :length]
    one = Sequences(data.target, x.copy(), y.copy(), data.lengths[number : number + 1].copy())
    return Data(one, dtype=torch.float64).batch(slice(None))


def _assert_close(ours: Tensor, expected: Tensor, what: str) -> None:
    assert ours.shape == expected.shape, f"{what}: {tuple(ours.shape)} instead of {tuple(expected.shape)}"
    assert torch.allclose(ours, expected, rtol=1e-9, atol=1e-11), f"{what} differ"
