"""What a forward pass notes for those who look inside: maps for per-sample gradients, states for analyses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from perdure.networks.layout import Weights
from perdure.networks.native.library import available
from perdure.networks.native.products import gradient, linear, linear_back
from perdure.networks.packing import Packing


class AffineMap(NamedTuple):
    """A map that ran: outputs [S, G] = inputs [S, F] W^T + the biases."""

    weight: str
    biases: tuple[str, ...]
    inputs: Tensor
    outputs: Tensor
    packing: Packing


class RowParameter(NamedTuple):
    """A parameter that acts at every row by itself: `outputs` [S, *shape] is one copy of it for each row.

    A sample's gradient is the sum over its rows of the gradient of the copies.
    """

    weight: str
    outputs: Tensor
    packing: Packing


Entry = AffineMap | RowParameter


class LayerStates(NamedTuple):
    """States h_t [S, H] of a recurrent layer, all directions side by side, and what it passed on."""

    hidden: Tensor
    outputs: Tensor | None
    """None where the states themselves are passed on."""


@dataclass
class Tape:
    """Notes of one forward pass."""

    entries: list[Entry] = field(default_factory=list)
    layers: list[LayerStates] = field(default_factory=list)
    projections: dict[str, Tensor] = field(default_factory=dict)
    """By the prefix of a recurrent layer and direction, what enters its recurrence [S, G]."""


def watched(outputs: Tensor) -> Tensor:
    """Make sure that a gradient with respect to `outputs` can be asked for."""
    return outputs if outputs.requires_grad else outputs.requires_grad_()


def copied_to_rows(weights: Weights, name: str, rows: int, packing: Packing, tape: Tape) -> Tensor:
    """A parameter's value, once for each row [rows, *shape], noted on the tape."""
    value = weights[name]
    copies = watched(value.expand(rows, *value.shape).clone())
    tape.entries.append(RowParameter(name, copies, packing))
    return copies


class TaskVector(NamedTuple):
    """Weights of tasks that are added to the outputs of an affine map: the columns of a one-hot input."""

    names: tuple[str, ...]
    """Names of the vectors [G] among the weights, one for each task that takes part."""
    owner: Tensor | None
    """For each row [S] which of the names is its own; None: the only one. A tape needs a single one."""

    def of_rows(self, weights: Weights) -> Tensor:
        """What is added: [G] for all rows alike, or [S, G]."""
        if self.owner is None:
            return weights[self.names[0]]
        return torch.stack([weights[name] for name in self.names]).index_select(0, self.owner)


class NativeAffine(torch.autograd.Function):
    """Rows W^T + b by the compiled library: a row's result depends on nothing around it."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Outputs [S, G] of rows [S, F]."""
        ctx.save_for_backward(rows, weight)
        outputs = linear(rows, weight, bias)
        assert outputs is not None  # the caller made sure that the library runs
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Delta W, delta^T rows, and the sum of delta."""
        rows, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            linear_back(grad, weight) if needs[0] else None,
            gradient(grad, rows) if needs[1] else None,
            grad.sum(0) if needs[2] else None,
        )


def affine(
    weights: Weights,
    names: tuple[str, str],
    rows: Tensor,
    packing: Packing,
    tape: Tape | None,
    task_vector: TaskVector | None = None,
) -> Tensor:
    """Inputs W^T + b (and a task's own vector), noted on the tape if there is one."""
    weight, bias = names
    if tape is None and available(rows):
        outputs: Tensor = NativeAffine.apply(rows, weights[weight], weights[bias])
    else:
        outputs = functional.linear(rows, weights[weight], weights[bias])
    if task_vector is not None:
        outputs = outputs + task_vector.of_rows(weights)
    if tape is not None:
        outputs = watched(outputs)
        biases = (bias, *(task_vector.names if task_vector else ()))
        tape.entries.append(AffineMap(weight, biases, rows, outputs, packing))
    return outputs
