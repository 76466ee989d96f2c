"""Cells whose state is a linear recurrence h_t = a_t h_{t-1} + u_t, with a_t and u_t made of the input alone.

The weights of the factor a_t are named `gate_..._hh`: with no matrix between states, they are what takes
h_{t-1} to h_t, though they read the input.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor

from perdure.networks.cells.cell import Cell, LayerInput
from perdure.networks.cells.diagonal import REAL, linear_recurrence
from perdure.networks.cells.projecting import matrix, projected, read_out, readout
from perdure.networks.layout import Axis, InitialisationRule, Weight, Weights
from perdure.networks.packing import Packing
from perdure.networks.tape import Tape

MAPS = (("weight_ih", "bias_ih"), ("gate_weight_hh", "gate_bias_hh"))


class InputGated(Cell):
    """h_t = a_t h_{t-1} + u_t; y_t = tanh(W_ho h_t + b_ho)."""

    gates: ClassVar[int] = 2
    passes_states: ClassVar[bool] = False

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """W_ih [H, F], b_ih of the candidate; the same of the gate; W_ho [H, H], b_ho."""
        found: dict[str, Weight] = {}
        for names in MAPS:
            found |= matrix(prefix, names, units, inputs, rule)
        return found | readout(prefix, units, units, rule)

    @abstractmethod
    def terms(self, candidate: Tensor, gate: Tensor, own: Weights) -> tuple[Tensor, Tensor]:
        """The factor a_t and the input u_t of all rows, both [S, H]."""

    def own(self, weights: Weights, prefix: str, given: LayerInput | None) -> Weights:
        """Parameters besides the matrices, by their names; one copy per row if there is a tape."""
        del weights, prefix, given
        return {}

    def sweep(self, weights: Weights, prefix: str, given: LayerInput, direction: int) -> Tensor:
        """Both projections of all rows at once, then one multiplication and addition per step."""
        whole = projected(weights, prefix, MAPS, given, direction)
        if given.tape is not None:
            given.tape.projections[prefix] = whole.detach()
        own = self.own(weights, prefix, given)
        return self._states(whole, own, given.packing, reverse=direction == 1)

    def _states(self, whole: Tensor, own: Weights, packing: Packing, *, reverse: bool) -> Tensor:
        candidate, gate = whole.split(whole.shape[1] // 2, dim=1)
        kept, entering = self.terms(candidate, gate, own)
        return linear_recurrence(REAL, packing, entering.contiguous(), kept.contiguous(), reverse=reverse)

    def output(
        self, weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """y_t = tanh(W_ho h_t + b_ho)."""
        return read_out(weights, prefix, states, packing, tape)

    def continued(self, weights: Weights, prefix: str, projected: Tensor, packing: Packing) -> Tensor:
        """The recurrence alone."""
        return self._states(projected, self.own(weights, prefix, None), packing, reverse=False)
