"""What passes through the affine maps of a network: second moments of their inputs and of their outputs.

Maps that add to the same pre-activation, such as W_ih and W_hh of a recurrent layer, count as one map of all
their inputs side by side: z = [W_ih b_ih W_hh b_hh] (x_t, 1, h_{t-1}, 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.networks.arithmetic import linear, transposed_product
from perdure.networks.batch import Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.tape import Tape

FORWARD_BATCH = 250
"""Sequences per forward pass."""

Names = tuple[tuple[str, str], ...]
"""Weight and bias of each part of a map."""


@dataclass(frozen=True)
class Moments:
    """Second moments of a map, as means over all rows."""

    names: Names
    inputs: Tensor
    """E[a a^T] [F, F], a the inputs of all parts, each followed by a 1 for its bias."""
    outputs: Tensor
    """E[z z^T] [G, G], z = W a."""


def joined(weights: Weights, names: Names) -> Tensor:
    """The matrix of a map [G, F]: of each part the weight, then the bias as one more column."""
    return torch.cat([part for w, b in names for part in (weights[w], weights[b][:, None])], dim=1)


def separated(matrix: Tensor, names: Names, like: Weights) -> Weights:
    """The inverse of `joined`."""
    result: Weights = {}
    start = 0
    for weight, bias in names:
        end = start + like[weight].shape[1]
        result |= {weight: matrix[:, start:end], bias: matrix[:, end]}
        start = end + 1
    return result


@torch.no_grad()
def moments(network: Network, weights: Weights, data: Data, index: Tensor, task: int) -> list[Moments]:
    """Moments of all maps on the samples at `index`, in the order in which they run."""
    frozen = {name: weight.detach() for name, weight in weights.items()}
    sums: dict[Names, tuple[Tensor, Tensor]] = {}
    rows: dict[Names, int] = {}
    for part in index.split(FORWARD_BATCH):
        tape = Tape()
        network(frozen, data.batch(part), task, tape)
        for maps in tape.maps():
            names = tuple((each.weight, each.biases[0]) for each in maps)
            ones = maps[0].inputs.new_ones(len(maps[0].inputs), 1)
            a = torch.cat([column for each in maps for column in (each.inputs.detach(), ones)], dim=1)
            z = linear(a, joined(frozen, names))
            found = [transposed_product(each, each) for each in (a.double(), z.double())]
            before = sums.get(names)
            sums[names] = (
                (found[0], found[1]) if before is None else (before[0] + found[0], before[1] + found[1])
            )
            rows[names] = rows.get(names, 0) + len(a)
    return [Moments(names, a / rows[names], z / rows[names]) for names, (a, z) in sums.items()]
