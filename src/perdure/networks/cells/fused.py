"""Torch's fused recurrent kernels, for batches of equally long sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from perdure.networks.cells.cell import LayerInput
from perdure.networks.cells.matrix_cell import MatrixCell
from perdure.networks.layout import Weights
from perdure.networks.native.library import available


def fusible(given: LayerInput) -> bool:
    """Whether plain states of equally long sequences are required, and our own kernels are not available."""
    plain = given.tape is None and given.packing.order is None and not any(given.task_vectors)
    return plain and not available(given.rows)


def fused(
    kernel: Callable[..., Any],
    cell: MatrixCell,
    weights: Weights,
    prefixes: tuple[str, ...],
    given: LayerInput,
) -> Tensor:
    """States [S, D H] of all directions by torch.lstm or torch.gru."""
    flat: list[Tensor] = []
    for prefix in prefixes:
        weight_ih, weight_hh, bias_ih, bias_hh = (
            weights[prefix + name] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        flat += [weight_ih, weight_hh, cell.shifted(bias_ih), bias_hh]
    units, count, packing = flat[1].shape[1], len(prefixes), given.packing
    zero = given.rows.new_zeros(count, packing.batch, units)
    steps = given.rows.view(packing.steps, packing.batch, -1)
    start = (zero, zero) if kernel is torch.lstm else zero
    states: Tensor = kernel(steps, start, flat, True, 1, 0.0, torch.is_grad_enabled(), count == 2, False)[0]
    return states.flatten(0, 1)
