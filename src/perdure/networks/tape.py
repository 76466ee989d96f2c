"""What a forward pass records: maps for per-sample gradients, states for analyses."""

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
from perdure.networks.packing import BACKWARDS, ITSELF, Packing


class AffineMap(NamedTuple):
    """A map that ran: outputs [S, G] = inputs [S, F] W^T + the biases."""

    weight: str
    biases: tuple[str, ...]
    rows: Tensor
    """Its inputs, or the states [S, F] if it reads those of the preceding step of a sweep."""
    outputs: Tensor
    packing: Packing
    direction: int = ITSELF
    """That sweep's direction."""

    @property
    def inputs(self) -> Tensor:
        """What the map reads at each row [S, F]."""
        if self.direction == ITSELF:
            return self.rows
        return self.packing.before(self.rows, backward=self.direction == BACKWARDS)


class RowParameter(NamedTuple):
    """A parameter that acts on every row separately: `outputs` [S, *shape] is one copy of it per row.

    A sample's gradient is the sum of the copies' gradients over its rows.
    """

    weight: str
    outputs: Tensor
    packing: Packing


Entry = AffineMap | RowParameter


class LayerStates(NamedTuple):
    """States h_t [S, H] of a recurrent layer, all directions concatenated, and its output."""

    hidden: Tensor
    outputs: Tensor | None
    """None if the states themselves are the output."""


@dataclass
class Tape:
    """Records of one forward pass."""

    entries: list[Entry] = field(default_factory=list)
    layers: list[LayerStates] = field(default_factory=list)
    projections: dict[str, Tensor] = field(default_factory=dict)
    """The input of the recurrence [S, G], by the prefix of a recurrent layer and direction."""
    lasting: bool = True
    """Whether the values of projections are kept; otherwise a compiled sweep may use their memory."""

    def maps(self) -> list[list[AffineMap]]:
        """All affine maps, those with a common pre-activation in one group."""
        groups: dict[int, list[AffineMap]] = {}
        for entry in self.entries:
            if isinstance(entry, AffineMap):
                groups.setdefault(id(entry.outputs), []).append(entry)
        return list(groups.values())

    def row_parameters(self) -> list[RowParameter]:
        """All parameters that act on every row separately."""
        return [entry for entry in self.entries if isinstance(entry, RowParameter)]


def watched(outputs: Tensor) -> Tensor:
    """Make sure that a gradient with respect to `outputs` can be computed."""
    return outputs if outputs.requires_grad else outputs.requires_grad_()


def copied_to_rows(weights: Weights, name: str, rows: int, packing: Packing, tape: Tape) -> Tensor:
    """A parameter's value, repeated for each row [rows, *shape], and recorded on the tape."""
    value = weights[name]
    copies = watched(value.expand(rows, *value.shape).clone())
    tape.entries.append(RowParameter(name, copies, packing))
    return copies


class TaskVector(NamedTuple):
    """Task-specific weights added to the outputs of an affine map: the columns of a one-hot input."""

    names: tuple[str, ...]
    """Names of the vectors [G] among the weights, one for each task involved."""
    owner: Tensor | None
    """The index of each row's own name [S]; None if there is only one. A tape needs a single one."""

    def of_rows(self, weights: Weights) -> Tensor:
        """What is added: [G], the same for all rows, or [S, G]."""
        if self.owner is None:
            return weights[self.names[0]]
        return torch.stack([weights[name] for name in self.names]).index_select(0, self.owner)


class NativeAffine(torch.autograd.Function):
    """Rows W^T + b by the compiled library: a row's result does not depend on other rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Outputs [S, G] of rows [S, F]."""
        ctx.save_for_backward(rows, weight)
        outputs = linear(rows, weight, bias)
        assert outputs is not None  # the caller has checked that the library runs
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Delta W, delta^T rows, and the sum of delta."""
        rows, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        of_weight, of_bias = (gradient(grad, rows) if needs[1] or needs[2] else None) or (None, None)
        return linear_back(grad, weight) if needs[0] else None, of_weight, of_bias


def projected(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows W^T + b [S, G] by the compiled library where it runs."""
    if not available(rows):
        return functional.linear(rows, weight, bias)
    outputs: Tensor = NativeAffine.apply(rows, weight, bias)
    return outputs


def affine(
    weights: Weights,
    names: tuple[str, str],
    rows: Tensor,
    packing: Packing,
    tape: Tape | None,
    task_vector: TaskVector | None = None,
) -> Tensor:
    """Inputs W^T + b (plus a task vector), recorded on the tape if there is one."""
    weight, bias = names
    outputs = projected(rows, weights[weight], weights[bias])
    if task_vector is not None:
        outputs = outputs + task_vector.of_rows(weights)
    if tape is not None:
        outputs = watched(outputs)
        biases = (bias, *(task_vector.names if task_vector else ()))
        tape.entries.append(AffineMap(weight, biases, rows, outputs, packing))
    return outputs
