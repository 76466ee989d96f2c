"""Small networks and data for the tests, and oracles written with torch.nn alone."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from perdure.benchmarks.task import Sequences
from perdure.methods import COMBINATIONS
from perdure.networks.batch import Batch, Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.initialise import initialise
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.randomness import generator
from perdure.registry import methods, pieces
from perdure.targets.bits import Bits
from perdure.targets.finding import all_targets
from perdure.targets.label import Label
from perdure.targets.target import Target
from perdure.targets.value import Value

TARGETS = list(all_targets().values())
"""All that can be asked."""

CELLS = sorted(pieces("cells"))
"""All cells that are found."""

EVERY = [*methods(), *COMBINATIONS, "hnet+si", "coresets+si"]
"""All methods that are found, and combinations of different kinds of pieces."""


def sequences(
    target: Target, count: int, steps: int, inputs: int, outputs: int, *, ragged: bool, seed: int = 0
) -> Sequences:
    """Random sequences of any target; some entries of y are not asked where the target allows it."""
    source = np.random.default_rng(seed)
    pattern = min(2, steps)
    lowest = pattern if target == Bits() else 1
    lengths = source.integers(lowest, steps + 1, count) if ragged else np.full(count, steps)
    x = source.normal(size=(count, steps, inputs))
    if target == Bits():
        y = source.integers(0, 2, (count, pattern, outputs))
        y[source.random(y.shape) < 0.1] = -1
    elif target == Label():
        y = source.integers(0, outputs, count)
    elif target == Value():
        y = source.normal(size=(count, outputs))
        y[source.random(y.shape) < 0.1] = np.nan
    else:
        y = source.integers(0, outputs, (count, steps))
        y[source.random(y.shape) < 0.1] = -1
        y[np.arange(steps) >= lengths[:, None]] = -1
    return Sequences(target, x, y, lengths)


def random_weights(network: Network, seed: int = 0, dtype: torch.dtype = torch.float64) -> Weights:
    """Initial weights of a network in the given precision."""
    drawn = initialise(network.layout, generator(seed, "test"))
    return {name: weight.to(dtype) for name, weight in drawn.items()}


def whole(data: Sequences, dtype: torch.dtype = torch.float64) -> Batch:
    """All sequences as one batch."""
    return Data(data, dtype=dtype).batch(slice(None))


def oracle_logits(network: Network, weights: Weights, x: Tensor, task: int) -> Tensor:
    """Logits [T, outputs] of ONE unpadded sequence x [T, F], by torch.nn modules.

    The task, if the network is told it, is a one-hot input here: W = [W, V], V the tasks' vectors as columns.
    """
    architecture = network.architecture
    assert isinstance(architecture, Recurrent)
    rows = x
    if architecture.task_identity:
        weights = with_one_hot_columns(network, weights)
        identity = torch.zeros(len(x), network.tasks, dtype=x.dtype)
        identity[:, task] = 1
        rows = torch.cat([rows, identity], dim=-1)
    for index in range(len(architecture.input_layers)):
        rows = _linear(weights, f"input_layers.{index}.", "", rows).tanh()
    for index in range(len(architecture.hidden)):
        _, rows = oracle_layer(architecture, weights, index, rows)
    for index in range(len(architecture.output_layers)):
        rows = _linear(weights, f"output_layers.{index}.", "", rows).tanh()
    return _linear(weights, network.head(task) + ".", "", rows)


def with_one_hot_columns(network: Network, weights: Weights) -> Weights:
    """The weights of a network that reads the task as a one-hot input: the tasks' vectors become columns."""
    architecture, result = network.architecture, dict(weights)
    assert isinstance(architecture, Recurrent)
    if architecture.input_layers:
        entrances = {"input_layers.0": ["input_layers.0.weight"]}
    else:
        parts = SECOND.get(architecture.cell.name, [])
        entrances = {
            p.rstrip("."): [p + "weight_ih", *(p + part for part in parts)] for p in architecture.prefixes(0)
        }
    for name, matrices in entrances.items():
        columns = [weights[f"identity.{task}.{name}"] for task in range(network.tasks)]
        shares = torch.stack(columns, dim=1).chunk(len(matrices))
        for matrix, share in zip(matrices, shares, strict=True):
            result[matrix] = torch.cat([weights[matrix], share], dim=1)
    return result


def oracle_layer(
    architecture: Recurrent, weights: Weights, index: int, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """States [T, D H] of one recurrent layer on one sequence [T, F], and what it passes on."""
    cell, units = architecture.cell.name, architecture.hidden[index]
    prefixes = architecture.prefixes(index)
    if cell in STEPS:
        halves = [_states_by_step(cell, weights, prefix, rows) for prefix in prefixes]
    else:
        module = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[cell]
        layer = module(rows.shape[-1], units, bidirectional=architecture.bidirectional).to(rows.dtype)
        for prefix, suffix in zip(prefixes, ("_l0", "_l0_reverse"), strict=False):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                layer.get_parameter(name + suffix).data.copy_(weights[prefix + name])
        halves = layer(rows[:, None])[0][:, 0].split(units, dim=-1)
    if architecture.zero_forward and architecture.bidirectional:
        halves = [torch.zeros_like(halves[0]), *halves[1:]]
    states = torch.cat(list(halves), dim=-1)
    if architecture.cell.passes_states:
        return states, states
    readouts = [_linear(weights, p, "_ho", half).tanh() for p, half in zip(prefixes, halves, strict=True)]
    return states, torch.cat(readouts, dim=-1)


def diagonal(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    """h_t = a h_{t-1} + sqrt(1 - a^2) (W x_t + b) with a = sigmoid(d + log 9)."""
    kept = 1 / (1 + torch.exp(-w["decay_hh"]) / 9)
    entering = (w["weight_ih"] @ x + w["bias_ih"]) + _added(w, 1, 0)
    return kept * h + (1 - kept**2) ** 0.5 * entering


def min_gru(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    """h_t = (1 - z) h_{t-1} + z c."""
    z = (w["gate_weight_hh"] @ x + w["gate_bias_hh"] + _added(w, 2, 1)).sigmoid()
    return (1 - z) * h + z * (w["weight_ih"] @ x + w["bias_ih"] + _added(w, 2, 0))


def selective_diagonal(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    """D = log(1 + e^g), h_t = exp(-D e^A) h_{t-1} + D v, with A shifted so that all zeros give 0.9."""
    span = torch.log1p(torch.exp(w["gate_weight_hh"] @ x + w["gate_bias_hh"] + _added(w, 2, 1)))
    rate = torch.exp(w["decay_hh"]) * -math.log(0.9) / math.log(2)
    return torch.exp(-span * rate) * h + span * (w["weight_ih"] @ x + w["bias_ih"] + _added(w, 2, 0))


def lru(w: Weights, x: Tensor, h: Tensor) -> Tensor:
    """The complex recurrence as a rotation and scaling of (Re, Im)."""
    real, imaginary = h.chunk(2)
    size = torch.exp(-torch.exp(w["modulus_hh"]) * -math.log(0.9))
    cos, sin = torch.cos(w["angle_hh"]), torch.sin(w["angle_hh"])
    scale = (1 - size**2) ** 0.5
    first = w["weight_ih"] @ x + w["bias_ih"] + _added(w, 2, 0)
    second = w["imaginary_weight_ih"] @ x + w["imaginary_bias_ih"] + _added(w, 2, 1)
    return torch.cat(
        [
            size * (cos * real - sin * imaginary) + scale * first,
            size * (sin * real + cos * imaginary) + scale * second,
        ]
    )


def _added(w: Weights, parts: int, number: int) -> Tensor | float:
    """What the task adds to one part of the projected input."""
    return w["added"].chunk(parts)[number] if "added" in w else 0.0


SECOND = {
    "lru": ["imaginary_weight_ih"],
    "min-gru": ["gate_weight_hh"],
    "selective-diagonal": ["gate_weight_hh"],
}
"""Matrices besides W_ih through which a cell reads its input."""

STEPS = {"diagonal": diagonal, "min-gru": min_gru, "selective-diagonal": selective_diagonal, "lru": lru}
"""One step of each cell that torch.nn does not have."""


def _states_by_step(cell: str, weights: Weights, prefix: str, rows: Tensor) -> Tensor:
    """States [T, H] of one sequence, one step after the other."""
    own = {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}
    units = len(own["bias_ih"]) * (2 if cell == "lru" else 1)
    steps = list(rows.flip(0) if prefix.endswith("reverse.") else rows)
    state, states = rows.new_zeros(units), []
    for row in steps:
        state = STEPS[cell](own, row, state)
        states.append(state)
    if prefix.endswith("reverse."):
        states.reverse()
    return torch.stack(states)


def _linear(weights: Weights, prefix: str, suffix: str, rows: Tensor) -> Tensor:
    return rows @ weights[f"{prefix}weight{suffix}"].T + weights[f"{prefix}bias{suffix}"]


@torch.no_grad()
def oracle_answers(network: Network, weights: Weights, data: Sequences, task: int) -> list[Tensor]:
    """For each sequence the logits at the steps that are asked, computed without any padding."""
    answers = []
    for x, length in zip(data.x, data.lengths, strict=True):
        logits = oracle_logits(network, weights, torch.tensor(x[:length]), task)
        count = {"bits": min(2, x.shape[0]), "tags": length}.get(data.target.name, 1)
        answers.append(logits[length - count :])
    return answers


def by_sequence(logits: Tensor, batch: Batch, data: Sequences) -> list[Tensor]:
    """The rows of our logits, sequence by sequence, without padding."""
    padded = batch.answers.unpack(logits)
    if data.target.everywhere:
        return [rows[:length] for rows, length in zip(padded, data.lengths, strict=True)]
    return list(padded)


class Memory:
    """A checkpoint store in memory: the state after each phase."""

    def __init__(self) -> None:
        self.after: list[dict[str, Tensor]] = []

    def load(self) -> None:
        """There is no checkpoint."""

    def save(self, tensors, facts) -> None:
        """Checkpoints are not kept."""

    def keep(self, phase, tensors) -> None:
        self.after.append({name: tensor.clone() for name, tensor in tensors.items()})
