"""Shared by cells that project their inputs by several matrices, and read their states out through tanh."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from perdure.networks.arithmetic import exp, tanh
from perdure.networks.cells.cell import LayerInput
from perdure.networks.layout import Axis, InitialisationRule, Start, Weight, Weights
from perdure.networks.packing import Packing
from perdure.networks.tape import Tape, TaskVector, affine, copied_to_rows

READOUT = ("weight_ho", "bias_ho")
"""The map from states to outputs."""
RATES = (-12.0, 4.0)
"""Logarithms of the smallest and the largest rate of forgetting: factors between 2e-24 and 1 - 6e-6."""

FORGETTING = Start(2.0, spread=2 / math.sqrt(3))
"""How the parameters of rates of forgetting start: U(-2, 2), and with its deviation where generated."""


def matrix(
    prefix: str, names: tuple[str, str], rows: Axis, columns: Axis, rule: InitialisationRule
) -> dict[str, Weight]:
    """A matrix [rows, columns] and its bias [rows]."""
    start = rule.affine(columns.size, rows.units)
    return {prefix + names[0]: ((rows, columns), start), prefix + names[1]: ((rows,), start)}


def projected(
    weights: Weights,
    prefix: str,
    maps: Sequence[tuple[str, str]],
    given: LayerInput,
    direction: int,
    scale: Tensor | None = None,
) -> Tensor:
    """The inputs through each matrix, side by side [S, G], plus what the task adds, times a scale [G].

    The scale has one row per row of inputs [S, G] if there is a tape.
    """
    added = given.task_vectors[direction]
    if given.tape is None:
        return _at_once(weights, prefix, maps, given, added, scale)
    parts = [
        affine(weights, (prefix + weight, prefix + bias), given.rows, given.packing, given.tape)
        for weight, bias in maps
    ]
    whole = torch.cat(parts, dim=1)
    if added is not None:
        whole = whole + copied_to_rows(weights, added.names[0], len(whole), given.packing, given.tape)
    return whole if scale is None else whole * scale


def _at_once(
    weights: Weights,
    prefix: str,
    maps: Sequence[tuple[str, str]],
    given: LayerInput,
    added: TaskVector | None,
    scale: Tensor | None,
) -> Tensor:
    """The same by one matrix: scaling and joining weights is much less work than scaling and joining rows."""
    weight, bias = (torch.cat([weights[prefix + names[part]] for names in maps]) for part in (0, 1))
    if scale is not None:
        weight, bias = weight * scale[:, None], bias * scale
    whole = affine({"weight": weight, "bias": bias}, ("weight", "bias"), given.rows, given.packing, None)
    if added is None:
        return whole
    more = added.of_rows(weights)
    return whole + (more if scale is None else more * scale)


def on_rows(weights: Weights, name: str, given: LayerInput) -> Tensor:
    """A parameter as it is, or one copy per row if there is a tape to record it."""
    if given.tape is None:
        return weights[name]
    return copied_to_rows(weights, name, len(given.rows), given.packing, given.tape)


def rate(parameter: Tensor, factor: float) -> Tensor:
    """Factor * e^parameter, a positive rate of forgetting, kept where e^-rate is neither 0 nor 1.

    Beyond, gradients would be 0 times infinity; a hypernetwork's first weights can be there.
    """
    return exp((parameter + math.log(factor)).clamp(*RATES))


def readout(prefix: str, units: Axis, states: Axis, rule: InitialisationRule) -> dict[str, Weight]:
    """W_ho [units, states] and b_ho [units]."""
    return matrix(prefix, READOUT, units, states, rule)


def read_out(weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None) -> Tensor:
    """y_t = tanh(W_ho h_t + b_ho)."""
    weight, bias = READOUT
    return tanh(affine(weights, (prefix + weight, prefix + bias), states, packing, tape))
