"""Statistics of per-sample gradients, from batched products.

The gradient of a matrix W of an affine map z = W a + b for one sample is the sum over its time steps of
delta_t a_t^T, with delta = dL/dz. One forward and one backward sweep over a whole batch give every a and
delta; the per-sample sums are then batched matrix products, in blocks small enough to stay in the cache,
squared and added up. No sample needs its own backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from perdure.networks.arithmetic import transposed_product
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.native.products import MeasuredMap, add_measures
from perdure.networks.network import Network
from perdure.networks.tape import AffineMap, Tape

Measure = Literal["square", "absolute"]
"""What is averaged over samples: the squared gradient, or its absolute value."""

Cotangents = Callable[[Tensor, Batch], Iterable[Tensor]]
"""From logits [M, outputs] and their batch to the gradients dL/dlogits whose effect is to be measured."""

BLOCK = 2**18
"""Number of entries of the per-sample gradients held at once: 1 MB, about a core's cache."""
PASS = 2**24
"""Numbers that one forward and backward pass may store; this bounds the memory.

With twice as many, a tensor may pass 32 MB, and from there on the system's allocator returns memory at once
and gets it back page by page, which takes longer than the arithmetic of a small layer."""
FEW = 8
"""Up to this many large gradients are squared one by one (one pass over memory instead of three)."""
WIDEST = 512
"""Maximum number of samples per pass; more would not be faster."""


def mean_sample_gradients(
    network: Network,
    weights: Weights,
    data: Data,
    index: Tensor,
    task: int,
    cotangents: Cotangents,
    measure: Measure = "square",
) -> Weights:
    """Mean over the samples at `index` of the squared (or absolute) gradient of each sample, per weight.

    Contributions of several cotangents are added. Weights that the task does not use,
    such as other heads, get 0. The result has the shapes of `weights`.
    """
    if data.lengths is not None:  # similar lengths together, longest first
        index = index[torch.argsort(data.lengths[index], descending=True, stable=True)]
    frozen = {name: weight.detach() for name, weight in weights.items()}
    totals = {name: torch.zeros_like(weight, dtype=torch.float64) for name, weight in frozen.items()}
    for part in index.split(_samples_per_pass(network, data)):
        _add_pass(totals, network, frozen, data.batch(part), task, cotangents, measure)
    return {name: (total / len(index)).to(weights[name].dtype) for name, total in totals.items()}


def _samples_per_pass(network: Network, data: Data) -> int:
    """As many as keep the sweeps' buffers below PASS numbers."""
    per_step = network.architecture.numbers_per_step(network.inputs)
    return max(1, min(WIDEST, PASS // (per_step * data.x.shape[1])))


def _add_pass(
    totals: Weights,
    network: Network,
    weights: Weights,
    batch: Batch,
    task: int,
    cotangents: Cotangents,
    measure: Measure,
) -> None:
    """Add the measured gradients of a batch's samples to the totals, for each cotangent."""
    tape = Tape(lasting=False)
    with torch.enable_grad():
        logits = network(weights, batch, task, tape)
    groups, parameters = tape.maps(), tape.row_parameters()
    outputs = [*(maps[0].outputs for maps in groups), *(each.outputs for each in parameters)]
    for cotangent in cotangents(logits.detach(), batch):
        deltas = torch.autograd.grad(logits, outputs, cotangent, retain_graph=True)
        for maps, delta in zip(groups, deltas, strict=False):
            _add_maps(totals, maps, delta, measure)
        for parameter, delta in zip(parameters, deltas[len(groups) :], strict=True):
            sums = parameter.packing.unpack(delta).sum(1)
            totals[parameter.weight] += _measured(sums, measure).sum(0)


def _add_maps(totals: Weights, maps: Sequence[AffineMap], delta: Tensor, measure: Measure) -> None:
    """Add each sample's measured gradient of the weights of maps to the same outputs to the totals."""
    packing = maps[0].packing
    of_biases = torch.zeros(delta.shape[1], dtype=torch.float64, device=delta.device)
    if packing.steps == 1:
        # One step each: |delta a^T|^p = |delta|^p (|a|^p)^T, a single matrix product.
        sizes = _measured(delta, measure)
        for each in maps:
            totals[each.weight] += transposed_product(sizes, _measured(each.inputs.detach(), measure))
        of_biases += sizes.sum(0)
    elif not add_measures(
        [MeasuredMap(each.rows.detach(), each.direction, totals[each.weight]) for each in maps],
        of_biases,
        delta,
        packing,
        magnitudes=measure == "absolute",
    ):
        deltas = packing.unpack(delta)
        of_biases += _measured(deltas.sum(1), measure).sum(0)
        for each in maps:
            activities = packing.unpack(each.inputs.detach())
            totals[each.weight] += _summed_products(deltas, activities, packing.lengths, measure)
    for bias in (name for each in maps for name in each.biases):
        totals[bias] += of_biases


def _summed_products(deltas: Tensor, activities: Tensor, lengths: Tensor, measure: Measure) -> Tensor:
    """sum_n |sum_t delta_nt a_nt^T|^p [G, F] from padded deltas [N, T, G] and activities [N, T, F]."""
    total = deltas.new_zeros(deltas.shape[2], activities.shape[2])
    width = max(1, min(len(deltas), BLOCK // total.numel()))
    buffer = deltas.new_empty(width, *total.shape)  # reused, so that it stays in the cache
    for block, steps in _blocks(lengths, width):
        gradients = buffer[: block.stop - block.start]
        torch.bmm(deltas[block, :steps].transpose(1, 2), activities[block, :steps], out=gradients)
        if measure == "absolute":
            total += gradients.abs_().sum(0)
        elif width > FEW:
            total += gradients.square_().sum(0)
        else:
            for gradient in gradients:
                total.addcmul_(gradient, gradient)
    return total


def _measured(gradients: Tensor, measure: Measure) -> Tensor:
    return gradients.square() if measure == "square" else gradients.abs()


def _blocks(lengths: Tensor, width: int) -> Iterator[tuple[slice, int]]:
    """Blocks of `width` samples, each with its longest length."""
    for start in range(0, len(lengths), width):
        block = slice(start, min(start + width, len(lengths)))
        yield block, int(lengths[block].max())
