"""Small networks and data for the tests, and oracles written with torch.nn alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from perdure.benchmarks.task import Sequences
from perdure.networks.batch import Batch, Data
from perdure.networks.initialise import initialise
from perdure.networks.layout import Weights
from perdure.networks.network import Architecture, Network
from perdure.randomness import generator
from perdure.targets.bits import Bits
from perdure.targets.finding import all_targets
from perdure.targets.label import Label
from perdure.targets.target import Target
from perdure.targets.value import Value

TARGETS = list(all_targets().values())
"""All that can be asked."""


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
    drawn = initialise(network.layout, network.architecture, generator(seed, "test"))
    return {name: weight.to(dtype) for name, weight in drawn.items()}


def whole(data: Sequences, dtype: torch.dtype = torch.float64) -> Batch:
    """All sequences as one batch."""
    return Data(data, dtype=dtype).batch(slice(None))


def oracle_logits(network: Network, weights: Weights, x: Tensor, task: int) -> Tensor:
    """Logits [T, outputs] of ONE unpadded sequence x [T, F], by torch.nn modules."""
    architecture: Architecture = network.architecture
    rows = x[:, None]
    if architecture.task_identity:
        identity = torch.zeros(len(x), 1, network.tasks, dtype=x.dtype)
        identity[..., task] = 1
        rows = torch.cat([rows, identity], dim=-1)
    for index in range(len(architecture.before)):
        rows = _linear(weights, f"before.{index}.", "", rows).tanh()
    module = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[architecture.cell]
    for index, units in enumerate(architecture.hidden):
        layer = module(rows.shape[-1], units, bidirectional=architecture.bidirectional).to(x.dtype)
        for direction in network.directions:
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                suffix = "_l0_reverse" if direction else "_l0"
                value = weights[f"recurrent.{index}.{direction}{name}"]
                layer.get_parameter(name + suffix).data.copy_(value)
        rows = layer(rows)[0]
        if architecture.cell == "elman":
            halves = rows.split(units, dim=-1)
            rows = torch.cat(
                [
                    _linear(weights, f"recurrent.{index}.{direction}", "_ho", half).tanh()
                    for direction, half in zip(network.directions, halves, strict=True)
                ],
                dim=-1,
            )
    for index in range(len(architecture.after)):
        rows = _linear(weights, f"after.{index}.", "", rows).tanh()
    return _linear(weights, network.head(task) + ".", "", rows)[:, 0]


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
    """A keeper in memory: the knowledge after each phase."""

    def __init__(self) -> None:
        self.after: list[dict[str, Tensor]] = []

    def load(self) -> None:
        """There is no checkpoint."""

    def save(self, tensors, facts) -> None:
        """Checkpoints are not kept."""

    def keep(self, phase, tensors) -> None:
        self.after.append({name: tensor.clone() for name, tensor in tensors.items()})
