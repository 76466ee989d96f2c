"""Initial values of a network's weights, as its layout describes them."""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.layout import Layout, Weights


def initialise(layout: Layout, generator: torch.Generator) -> Weights:
    """Draw the weights one after the other, in the order of the layout.

    A layout that extends another one (a network that has gained a task) therefore begins with exactly the
    same values.
    """
    weights: Weights = {}
    for name, shape in layout.shapes.items():
        start = layout.starts[name]
        weights[name] = (torch.rand(shape, generator=generator) * 2 - 1) * start.bound
        if start.orthogonal_blocks:
            blocks = [orthogonal(shape[1], generator) for _ in range(start.orthogonal_blocks)]
            weights[name] = torch.cat(blocks)
    return weights


def orthogonal(size: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """A uniformly random orthogonal matrix [size, size]: Q of a normal matrix, signs fixed by R."""
    drawn = torch.randn(size, size, generator=generator, dtype=dtype)
    q, r = torch.linalg.qr(drawn.double())  # in double precision, so that all processors round to the same
    signed: Tensor = q * r.diagonal().sign()
    return signed.to(dtype)
