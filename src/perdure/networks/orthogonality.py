"""How far a matrix is from orthogonal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.arithmetic import linear, product


class Deviation(torch.autograd.Function):
    """||W W^T - I||_F^2 of a square matrix; its gradient 4 (W W^T - I) W is one product, not two."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        """The deviation from orthogonality."""
        difference = linear(matrix, matrix)
        difference.diagonal().sub_(1)
        ctx.save_for_backward(difference, matrix)
        return difference.square().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """4 (W W^T - I) W."""
        difference, matrix = ctx.saved_tensors
        gradient: Tensor = 4 * grad * product(difference, matrix)
        return gradient
