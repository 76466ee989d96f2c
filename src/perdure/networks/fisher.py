"""The diagonal of the Fisher information, from batched per-sample gradients.

The gradient that one sample gives to a matrix W of an affine map z = W a + b is the sum over its time
steps of delta_t a_t^T, with delta = dL/dz. One forward and one backward sweep over a whole batch give
every a and delta; the per-sample sums are then batched matrix products, in blocks small enough to stay
in the cache, squared and added up. No sample ever needs a backward pass of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError, unknown
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.network import Entry, Network, Tape
from perdure.networks.targets import draw, exact_scores, score

Estimator = Literal["empirical", "sampled", "exact"]

BLOCK = 2**18
"""Entries of the per-sample gradients that are held at once: 1 MB, about a core's cache."""
PASS = 2**25
"""Numbers that one forward and backward pass may keep: this bounds the memory."""
FEW = 8
"""Up to so many large gradients are squared one by one (one pass over memory instead of three)."""
WIDEST = 256
"""Samples of a pass at the most; more would not be faster."""


def fisher(
    network: Network,
    weights: Weights,
    data: Sequences | Data,
    *,
    task: int = 0,
    estimator: Estimator = "empirical",
    samples: int | None = None,
    generator: torch.Generator | None = None,
) -> Weights:
    """Mean over samples of the squared gradient of the sample's log-likelihood, per weight.

    F_i = 1/N sum_n E_y [ (d log p(y | x_n, psi) / d psi_i)^2 ], where the expectation is

    - `empirical`: the value at the true targets (what the paper uses),
    - `sampled`: the value at targets drawn from the model (needs `generator`),
    - `exact`: taken over the model's own prediction, output by output; as many backward
      sweeps as there are outputs times answered steps.

    `samples` limits the estimate to that many random ones (needs `generator`; default: all). Weights
    that the task does not use, such as other heads, get 0. The result has the shapes of `weights`.
    """
    if estimator not in get_args(Estimator):
        raise unknown("Fisher estimator", str(estimator), get_args(Estimator))
    if isinstance(data, Sequences):
        first = next(iter(weights.values()))
        data = Data(data, first.device, first.dtype)
    subset = samples is not None and samples < len(data)
    if generator is None and (subset or estimator == "sampled"):
        raise PerdureError(
            "fisher: a random subset or sampled targets need a generator, "
            "for instance perdure.randomness.generator(seed, 'fisher')."
        )
    index = torch.randperm(len(data), generator=generator)[:samples] if subset else torch.arange(len(data))
    if data.lengths is not None:  # similar lengths together, longest first
        index = index[torch.argsort(data.lengths[index], descending=True, stable=True)]
    frozen = {name: weight.detach() for name, weight in weights.items()}
    totals = {name: torch.zeros_like(weight, dtype=torch.float64) for name, weight in frozen.items()}
    for part in index.split(_samples_per_pass(network, data)):
        for entry, delta in _swept(network, frozen, data.batch(part), task, estimator, generator):
            _add_squares(totals, entry, delta)
    return {name: (total / len(index)).to(weights[name].dtype) for name, total in totals.items()}


def _samples_per_pass(network: Network, data: Data) -> int:
    """So many that the sweeps' buffers stay below PASS numbers."""
    architecture = network.architecture
    layers = len(network.directions) * sum(architecture.hidden) * (4 * network.cell.gates + 4)
    per_step = layers + 2 * (sum(architecture.before) + sum(architecture.after)) + 2 * network.inputs
    return max(1, min(WIDEST, PASS // (per_step * data.x.shape[1])))


def _swept(
    network: Network,
    weights: Weights,
    batch: Batch,
    task: int,
    estimator: Estimator,
    generator: torch.Generator | None,
) -> Iterator[tuple[Entry, Tensor]]:
    """Every affine map of the network with a delta for it; several deltas for `exact`."""
    tape: Tape = []
    with torch.enable_grad():
        logits = network(weights, batch, task, tape)
    outputs = [entry.outputs for entry in tape]
    for cotangent in _cotangents(logits.detach(), batch, estimator, generator):
        deltas = torch.autograd.grad(logits, outputs, cotangent, retain_graph=estimator == "exact")
        yield from zip(tape, deltas, strict=True)


def _cotangents(
    logits: Tensor, batch: Batch, estimator: Estimator, generator: torch.Generator | None
) -> Iterator[Tensor]:
    """Gradients of log p with respect to the logits (up to sign) whose squares are to be added."""
    if estimator == "exact":
        yield from exact_scores(logits, batch)
        return
    if estimator == "sampled":
        assert generator is not None
        batch = replace(batch, targets=draw(logits, batch, generator))
    yield score(logits, batch)


def _add_squares(totals: Weights, entry: Entry, delta: Tensor) -> None:
    """Add each sample's squared gradient of the map's weight and bias to the totals."""
    packing, inputs = entry.packing, entry.inputs.detach()
    if packing.steps == 1:
        # One step each: (delta a^T)^2 = delta^2 (a^2)^T, a single matrix product.
        squares = delta.square()
        totals[entry.weight] += squares.t() @ inputs.square()
        totals[entry.bias] += squares.sum(0)
        return
    deltas, activities = packing.unpack(delta), packing.unpack(inputs)
    totals[entry.bias] += deltas.sum(1).square().sum(0)
    total = torch.zeros_like(totals[entry.weight], dtype=delta.dtype)
    width = max(1, min(len(deltas), BLOCK // total.numel()))
    buffer = delta.new_empty(width, *total.shape)  # used again and again, so that it stays in the cache
    for block, steps in _blocks(packing.lengths, width):
        gradients = buffer[: block.stop - block.start]
        torch.bmm(deltas[block, :steps].transpose(1, 2), activities[block, :steps], out=gradients)
        if width > FEW:
            total += gradients.square_().sum(0)
        else:
            for gradient in gradients:
                total.addcmul_(gradient, gradient)
    totals[entry.weight] += total


def _blocks(lengths: Tensor, width: int) -> Iterator[tuple[slice, int]]:
    """Blocks of `width` samples, each with its longest length."""
    for start in range(0, len(lengths), width):
        block = slice(start, min(start + width, len(lengths)))
        yield block, int(lengths[block].max())
