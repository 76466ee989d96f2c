"""A diagonal linear recurrence with a nonlinear readout: each unit is its own leaky memory.

h_t = a * h_{t-1} + sqrt(1 - a^2) * (W_ih x_t + b_ih) with a = sigmoid(d + c) element by element, and
y_t = tanh(W_ho h_t + b_ho). The factor keeps the variance of h independent of a (Orvieto et al. 2023).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.cells.cell import Cell, LayerInput
from perdure.networks.cells.recurrence import backwards
from perdure.networks.layout import Axis, InitialisationRule, Start, Weight, Weights
from perdure.networks.native.sweeps import Saved, sweeps_for
from perdure.networks.packing import Packing, Sweep
from perdure.networks.tape import Tape, affine, copied_to_rows


class Diagonal(Cell):
    """Leaky memories h_t = a h_{t-1} + sqrt(1 - a^2) (W_ih x_t + b_ih); y_t = tanh(W_ho h_t + b_ho)."""

    passes_states: ClassVar[bool] = False
    continues: ClassVar[bool] = True

    memory: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """The factor a of a unit whose parameter d is 0; 0.9 forgets half of its input in about seven steps."""

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """W_ih [H, F], b_ih, d = decay_hh [H] from U(-2, 2), W_ho [H, H], b_ho."""
        from_input = rule.affine(inputs.size, units.size)
        readout = rule.affine(units.size, units.size)
        return {
            prefix + "weight_ih": ((units, inputs), from_input),
            prefix + "bias_ih": ((units,), from_input),
            prefix + "decay_hh": ((units,), Start(2.0, spread=2 / math.sqrt(3))),
            prefix + "weight_ho": ((units, units), readout),
            prefix + "bias_ho": ((units,), readout),
        }

    def sweep(self, weights: Weights, prefix: str, given: LayerInput, direction: int) -> Tensor:
        """The projection of all rows at once, then one multiplication and addition per step."""
        names = (prefix + "weight_ih", prefix + "bias_ih")
        added = given.task_vectors[direction]
        projected = affine(weights, names, given.rows, given.packing, given.tape, added)
        decay = weights[prefix + "decay_hh"]
        if given.tape is not None:
            rows = len(given.rows)
            decay = copied_to_rows(weights, prefix + "decay_hh", rows, given.packing, given.tape)
        kept = self.kept(decay)
        entering = projected * torch.sqrt(1 - kept.square())
        if given.tape is not None:
            given.tape.projections[prefix] = entering.detach()
        states: Tensor = LinearRecurrence.apply(given.packing, direction == 1, entering, kept)
        return states

    def kept(self, decay: Tensor) -> Tensor:
        """A, the factor by which a state is retained from step to step."""
        return torch.sigmoid(decay + math.log(self.memory / (1 - self.memory)))

    def output(
        self, weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """y_t = tanh(W_ho h_t + b_ho)."""
        return affine(weights, (prefix + "weight_ho", prefix + "bias_ho"), states, packing, tape).tanh()

    def carried(self, weights: Weights, prefix: str, states: Tensor) -> Tensor:
        """A h."""
        return states * self.kept(weights[prefix + "decay_hh"])

    def continued(self, weights: Weights, prefix: str, projected: Tensor, packing: Packing) -> Tensor:
        """The recurrence alone."""
        kept = self.kept(weights[prefix + "decay_hh"])
        states: Tensor = LinearRecurrence.apply(packing, False, projected, kept)
        return states


class PythonSweeps:
    """The two sweeps; `weight` is a [H], or one row per step [S, H]."""

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """h_t = a_t h_{t-1} + u_t."""
        del bias
        states = projection.clone()
        h, factors = states.split(sweep.sizes), weight.expand_as(projection).split(sweep.sizes)
        for step, previous, carried in sweep.moves:
            if carried:
                h[step][:carried].addcmul_(factors[step][:carried], h[previous][:carried])
        return (states,)

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = dL/dh_t + a_{t+1} delta_{t+1}."""
        del saved
        deltas = grad.clone()
        delta, factors = deltas.split(sweep.sizes), weight.expand_as(grad).split(sweep.sizes)
        for step, _, _, following, taken in backwards(sweep):
            if taken:
                delta[step][:taken].addcmul_(factors[following][:taken], delta[following][:taken])
        return deltas, deltas


class LinearRecurrence(torch.autograd.Function):
    """h_t = a * h_{t-1} + u_t over packed rows u [S, H], with a [H], or one row per step [S, H]."""

    @staticmethod
    def forward(ctx: Any, packing: Packing, reverse: bool, entering: Tensor, kept: Tensor) -> Tensor:
        """States h [S, H]."""
        sweep = packing.backward if reverse else packing.forward
        (states,) = (sweeps_for(Diagonal.name, kept) or PythonSweeps).forward(entering, None, kept, sweep)
        ctx.save_for_backward(states, kept)
        ctx.packing, ctx.reverse = packing, reverse
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """delta_t = dL/dh_t + a_{t+1} delta_{t+1}; the gradient of a_t is delta_t h_{t-1}."""
        states, kept = ctx.saved_tensors
        packing: Packing = ctx.packing
        sweep = packing.backward if ctx.reverse else packing.forward
        deltas, _ = (sweeps_for(Diagonal.name, kept) or PythonSweeps).backward(grad, (states,), kept, sweep)
        grad_kept = None
        if ctx.needs_input_grad[3]:
            grad_kept = deltas * packing.before(states, backward=ctx.reverse)
            grad_kept = grad_kept if kept.ndim == 2 else grad_kept.sum(0)
        return None, None, deltas, grad_kept
