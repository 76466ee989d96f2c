"""A recurrent layer in one direction as a single differentiable operation.

One node of autograd's graph for projection, sweep and their gradients instead of five, and no product in the
shapes that torch is slow at: with few input columns its projection and the gradient of W_ih take many times
as long as ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.native.products import gradient, linear, linear_back, recurrent_gradient
from perdure.networks.native.sweeps import Sweeps
from perdure.networks.packing import Sweep

FEW = 16
"""Up to so many columns our product is faster than torch's; beyond, torch's by up to a fifth."""


class Layer(torch.autograd.Function):
    """States h [S, H] from rows x [S, F], W_ih [G, F], b_ih [G], W_hh [G, H] and b_hh [G].

    `hidden_bias` says whether b_hh acts within the recurrence, as in a GRU, or can be added to b_ih.
    """

    @staticmethod
    def forward(
        ctx: Any,
        sweeps: Sweeps,
        sweep: Sweep,
        hidden_bias: bool,
        rows: Tensor,
        weight_ih: Tensor,
        bias_ih: Tensor,
        weight_hh: Tensor,
        bias_hh: Tensor,
    ) -> Tensor:
        """Project all rows at once, then sweep."""
        bias = bias_ih if hidden_bias else bias_ih + bias_hh
        projection = linear(rows, weight_ih, bias) if rows.shape[1] <= FEW else None
        if projection is None:
            projection = torch.addmm(bias, rows, weight_ih.t())
        saved = sweeps.forward(projection, bias_hh if hidden_bias else None, weight_hh, sweep)
        ctx.save_for_backward(rows, weight_ih, weight_hh, *saved)
        ctx.sweeps, ctx.sweep, ctx.hidden_bias = sweeps, sweep, hidden_bias
        return saved[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """One backward sweep; all gradients are products with its deltas."""
        rows, weight_ih, weight_hh, *saved = ctx.saved_tensors
        needs = ctx.needs_input_grad[3:]
        delta, delta_hidden = ctx.sweeps.backward(grad, tuple(saved), weight_hh, ctx.sweep)
        of_rows = linear_back(delta, weight_ih) if needs[0] else None
        of_weight_ih = gradient(delta, rows) if needs[1] else None
        of_bias_ih = delta.sum(0) if needs[2] or needs[4] else None
        of_weight_hh = recurrent_gradient(delta_hidden, saved[0], ctx.sweep) if needs[3] else None
        of_bias_hh = delta_hidden.sum(0) if ctx.hidden_bias and needs[4] else of_bias_ih
        return None, None, None, of_rows, of_weight_ih, of_bias_ih, of_weight_hh, of_bias_hh
