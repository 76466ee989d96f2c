"""A diagonal state space whose steps the input chooses, in the manner of S6 (Gu & Dao 2023, "Mamba").

Each unit is a system dh/dt = -e^A h + v, followed for a time Delta_t that the input selects:
Delta_t = softplus(W_D x_t + b_D), a_t = exp(-Delta_t e^A), h_t = a_t h_{t-1} + Delta_t (W_ih x_t + b_ih), and
y_t = tanh(W_ho h_t + b_ho). Each unit has one state; S6's B and C, which follow the input there, are fixed.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field
from torch import Tensor

from perdure.networks.arithmetic import exp, softplus
from perdure.networks.cells.cell import LayerInput
from perdure.networks.cells.input_gated import InputGated
from perdure.networks.cells.projecting import FORGETTING, on_rows, rate
from perdure.networks.layout import Axis, InitialisationRule, Weight, Weights


class SelectiveDiagonal(InputGated):
    """h_t = e^(-D_t e^A) h_{t-1} + D_t (W_ih x_t + b_ih), D_t = softplus(W_D x_t + b_D); tanh readout."""

    memory: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """The factor a_t of a unit whose parameters are 0, with no input."""

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """In addition A = decay_hh [H], from U(-2, 2)."""
        found = super().weights(prefix, inputs, units, rule)
        return found | {prefix + "decay_hh": ((units,), FORGETTING)}

    def own(self, weights: Weights, prefix: str, given: LayerInput | None) -> Weights:
        """A."""
        name = prefix + "decay_hh"
        return {"decay": weights[name] if given is None else on_rows(weights, name, given)}

    def terms(self, candidate: Tensor, gate: Tensor, own: Weights) -> tuple[Tensor, Tensor]:
        """exp(-Delta e^A) and Delta v; A is shifted so that a_t is `memory` where everything is 0."""
        chosen = softplus(gate)
        forgetting = rate(own["decay"], -math.log(self.memory) / math.log(2))
        return exp(-chosen * forgetting), chosen * candidate
