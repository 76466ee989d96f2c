"""Start values of a network's weights (facts of the original: every rule is uniform)."""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.layout import Layout, Weights
from perdure.networks.network import Architecture


def initialise(layout: Layout, architecture: Architecture, generator: torch.Generator) -> Weights:
    """Weights drawn by the architecture's rule.

    `original`: each matrix and its bias from U(+-1/sqrt(fan-in of the matrix)), recurrent layers
    included. `torch`: recurrent layers from U(+-1/sqrt(units)), as torch.nn.RNN and LSTM do.
    """
    weights: Weights = {}
    for name, axes in layout.axes.items():
        matrix = layout.axes[name.replace("bias", "weight")]
        recurrent = name.startswith("recurrent.")
        by_units = recurrent and architecture.initialisation == "torch"
        fan = axes[0].units if by_units else matrix[1].size
        shape = tuple(axis.size for axis in axes)
        weights[name] = (torch.rand(shape, generator=generator) * 2 - 1) * fan**-0.5
        if architecture.orthogonal and name.endswith("weight_hh"):
            blocks = [orthogonal(axes[1].size, generator) for _ in range(axes[0].gates)]
            weights[name] = torch.cat(blocks)
    return weights


def orthogonal(size: int, generator: torch.Generator) -> Tensor:
    """A uniformly random orthogonal matrix [size, size]: Q of a normal matrix, signs fixed by R."""
    q, r = torch.linalg.qr(torch.randn(size, size, generator=generator))
    signed: Tensor = q * r.diagonal().sign()
    return signed
