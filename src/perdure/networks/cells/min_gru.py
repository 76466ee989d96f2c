"""The minimal GRU (Feng et al. 2024, "Were RNNs all we needed?"): gates that do not see the state.

z_t = sigmoid(W_z x_t + b_z), c_t = W_ih x_t + b_ih, h_t = (1 - z_t) h_{t-1} + z_t c_t, element by element,
and y_t = tanh(W_ho h_t + b_ho), as in the paper's Elman cell.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field
from torch import Tensor

from perdure.networks.arithmetic import sigmoid
from perdure.networks.cells.input_gated import InputGated
from perdure.networks.layout import Weights


class MinGRU(InputGated):
    """h_t = (1 - z_t) h_{t-1} + z_t (W_ih x_t + b_ih), z_t = sigmoid(W_z x_t + b_z); tanh readout."""

    memory: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The factor 1 - z_t of a unit whose parameters are 0, with no input; 0.5 is the original."""

    def terms(self, candidate: Tensor, gate: Tensor, own: Weights) -> tuple[Tensor, Tensor]:
        """1 - z_t and z_t c_t."""
        del own
        gate = gate - math.log(self.memory / (1 - self.memory))
        return sigmoid(-gate), sigmoid(gate) * candidate
