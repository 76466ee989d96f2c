"""What a forward pass records: maps for per-sample gradients, states for analyses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.networks.arithmetic import linear
from perdure.networks.layout import Weights
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
    outputs = linear(rows, weights[weight], weights[bias])
    if task_vector is not None:
        outputs = outputs + task_vector.of_rows(weights)
    if tape is not None:
        outputs = watched(outputs)
        biases = (bias, *(task_vector.names if task_vector else ()))
        tape.entries.append(AffineMap(weight, biases, rows, outputs, packing))
    return outputs
