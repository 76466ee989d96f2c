"""Hidden states h_t of a network on data, for any network and sequences of any length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.tape import Tape
from perdure.targets.target import Target

Moment = Literal["all", "input", "output", "stop", "last"]
"""Steps of a sequence: all; those before the stop bit; the output steps; the stop bit; the last."""


@dataclass(frozen=True)
class States:
    """States of N sequences; zero beyond a sequence's end."""

    target: Target
    hidden: Tensor
    """h_t [N, T, H]; both directions concatenated if there are two."""
    readout: Tensor | None
    """The layer's output, such as y_t = tanh(W_ho h_t + b_ho) [N, T, H]; None if that is h_t itself."""
    lengths: Tensor
    """Length of each sequence [N]."""
    answers: Tensor
    """Number of output steps at the end of each sequence [N]."""

    @property
    def steps(self) -> int:
        """Number of time steps T."""
        return self.hidden.shape[1]

    def running(self) -> list[int]:
        """Number of sequences that have not ended, at each step [T]."""
        return [int((self.lengths > step).sum()) for step in range(self.steps)]

    def at(self, step: int) -> Tensor:
        """h_t of the sequences that are still running at a step (from 0): [n_t, H]."""
        return self.hidden[self.lengths > step, step]

    def during(self, moment: Moment) -> Tensor:
        """h_t of all sequences at all steps of a moment, pooled: [M, H]."""
        return self.hidden[self._steps(moment)]

    def _steps(self, moment: Moment) -> Tensor:
        """Which steps belong to a moment [N, T]."""
        step = torch.arange(self.steps)
        end, first = self.lengths[:, None], (self.lengths - self.answers)[:, None]
        if moment == "last":
            return step == end - 1
        if moment == "output":
            return (step >= first) & (step < end)
        if moment == "all" or (moment == "input" and not self.target.recalled):
            return step < end
        if not self.target.recalled:
            raise PerdureError(
                f"Only sequences with a pattern to recall have a stop bit; these have targets of kind "
                f"'{self.target.name}', so choose all, input, output or last."
            )
        return step == first - 1 if moment == "stop" else step < first - 1

    def spread(self, units: Tensor | None, width: int) -> States:
        """The states at the positions [H] that a sub-network's units have among `width`; 0 elsewhere."""
        if units is None:
            return self
        hidden, readout = (
            None if rows is None else rows.new_zeros(*rows.shape[:2], width).index_copy(2, units, rows)
            for rows in (self.hidden, self.readout)
        )
        assert hidden is not None
        return replace(self, hidden=hidden, readout=readout)


@torch.no_grad()
def hidden_states(
    network: Network,
    weights: Weights,
    data: Sequences | Data,
    task: int = 0,
    *,
    layer: int = -1,
    samples: int | None = None,
    generator: torch.Generator | None = None,
) -> States:
    """States of a recurrent layer (default: the last) on data, for at most `samples` random sequences."""
    data = chosen(as_data(data, weights), samples, generator)
    frozen = {name: weight.detach() for name, weight in weights.items()}
    network.architecture.state_groups(layer)  # raises a helpful error if there is no such layer
    hidden: list[Tensor] = []
    readout: list[Tensor] = []
    steps = data.x.shape[1]
    for batch in data.batches():
        of_batch = traced(network, frozen, batch, task, layer)
        for collected, rows in zip((hidden, readout), of_batch, strict=True):
            if rows is not None:
                padded = batch.packing.unpack(rows)
                collected.append(functional.pad(padded, (0, 0, 0, steps - padded.shape[1])))
    lengths = data.all_lengths
    answered = data.target.answered(data.y)
    answers = torch.full_like(lengths, answered) if answered else lengths
    return States(
        data.target, torch.cat(hidden).cpu(), torch.cat(readout).cpu() if readout else None, lengths, answers
    )


def traced(
    network: Network, weights: Weights, batch: Batch, task: int, layer: int
) -> tuple[Tensor, Tensor | None]:
    """Packed h_t of a layer and, if it differs, the layer's output [S, H]."""
    tape = Tape()
    network.features(weights, batch, task, None, tape)
    states = tape.layers[layer]
    return states.hidden.detach(), None if states.outputs is None else states.outputs.detach()


def as_data(data: Sequences | Data, weights: Weights) -> Data:
    """Sequences as tensors of the weights' precision and device."""
    if isinstance(data, Data):
        return data
    first = next(iter(weights.values()))
    return Data(data, first.device, first.dtype)


def chosen(data: Data, samples: int | None, generator: torch.Generator | None) -> Data:
    """At most `samples` random sequences; all of them, in order, if there are no more."""
    if samples is None or samples >= len(data):
        return data
    if generator is None:
        raise PerdureError(
            "A random subset needs a generator, such as perdure.randomness.generator(seed, 'states')."
        )
    index = torch.randperm(len(data), generator=generator)[:samples]
    where = index.to(data.x.device)
    return data.having(data.x[where], data.y[where], data.all_lengths[index])
