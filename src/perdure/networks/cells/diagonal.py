"""A diagonal linear recurrence with a nonlinear readout: each unit is its own leaky memory.

h_t = a * h_{t-1} + sqrt(1 - a^2) * (W_ih x_t + b_ih) with a = sigmoid(d + c) element by element, and
y_t = tanh(W_ho h_t + b_ho). The factor keeps the variance of h independent of a (Orvieto et al. 2023).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import torch
from pydantic import Field
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.arithmetic import sigmoid, sqrt
from perdure.networks.cells.cell import Cell, LayerInput
from perdure.networks.cells.projecting import FORGETTING, matrix, read_out, readout
from perdure.networks.cells.recurrence import backwards
from perdure.networks.layout import Axis, InitialisationRule, Weight, Weights
from perdure.networks.native.library import ADDRESS, SIZE, WAY, function
from perdure.networks.native.sweeps import CompiledSweeps, Saved, Sweeps, ran, require, sweeps_for
from perdure.networks.packing import Packing, Sweep
from perdure.networks.tape import Tape, affine, copied_to_rows


class NativeDiagonal(CompiledSweeps):
    """h_t = a_t h_{t-1} + given_t, unit by unit, with `weight` a [H], or [S, H] with one per row."""

    prefix = "diagonal"
    numbers: ClassVar[int] = 1
    """Columns of each unit."""
    signatures = (
        (*WAY, ADDRESS, ADDRESS, SIZE, ADDRESS),
        (*WAY, ADDRESS, ADDRESS, SIZE, ADDRESS),
    )

    def forward(
        self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep, *, spare: bool = False
    ) -> Saved:
        """Sweep; see `Sweeps`."""
        del bias
        way, width = sweep.way, weight.shape[-1]
        given, factor = require(projection, weight, way.rows, width), self._factor(weight, way.rows)
        states = given if spare else torch.empty_like(given)
        addresses = given.data_ptr(), factor.data_ptr(), width * (weight.ndim - 1), states.data_ptr()
        ran(self.forwards(*way.addresses, width // self.numbers, *addresses))
        return (states,)

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = dL/dh_t + a_{t+1} delta_{t+1}; the gradient of a_t is delta_t h_{t-1}."""
        del saved
        way, width = sweep.way, weight.shape[-1]
        to_h, factor = require(grad, weight, way.rows, width), self._factor(weight, way.rows)
        delta = torch.empty_like(to_h)
        addresses = to_h.data_ptr(), factor.data_ptr(), width * (weight.ndim - 1), delta.data_ptr()
        ran(self.backwards(*way.addresses, width // self.numbers, *addresses))
        return delta, delta

    @staticmethod
    def _factor(weight: Tensor, rows: int) -> Tensor:
        return require(weight, weight, *([rows] if weight.ndim == 2 else []), weight.shape[-1])


FARTHEST = 60.0
"""Decays are bounded here, where neither a nor 1 - a is 0 in single precision."""


class Diagonal(Cell):
    """Leaky memories h_t = a h_{t-1} + sqrt(1 - a^2) (W_ih x_t + b_ih); y_t = tanh(W_ho h_t + b_ho)."""

    native: ClassVar[type[CompiledSweeps] | None] = NativeDiagonal
    passes_states: ClassVar[bool] = False
    continues: ClassVar[bool] = True

    memory: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """The factor a of a unit whose parameter d is 0; 0.9 forgets half of its input in about seven steps."""

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """W_ih [H, F], b_ih, d = decay_hh [H] from U(-2, 2), W_ho [H, H], b_ho."""
        from_input = matrix(prefix, ("weight_ih", "bias_ih"), units, inputs, rule)
        decay: dict[str, Weight] = {prefix + "decay_hh": ((units,), FORGETTING)}
        return from_input | decay | readout(prefix, units, units, rule)

    def sweep(self, weights: Weights, prefix: str, given: LayerInput, direction: int) -> Tensor:
        """The projection of all rows at once, then one multiplication and addition per step."""
        names = (prefix + "weight_ih", prefix + "bias_ih")
        added = given.task_vectors[direction]
        projected = affine(weights, names, given.rows, given.packing, given.tape, added)
        decay = weights[prefix + "decay_hh"]
        if given.tape is not None:
            rows = len(given.rows)
            decay = copied_to_rows(weights, prefix + "decay_hh", rows, given.packing, given.tape)
        kept, lost = self.kept(decay), self.kept(decay, lost=True)
        entering = projected * sqrt(lost * (1 + kept))  # 1 - a^2, positive even where a rounds to 1
        if given.tape is not None:
            given.tape.projections[prefix] = entering.detach()
        return linear_recurrence(REAL, given.packing, entering, kept, reverse=direction == 1)

    def kept(self, decay: Tensor, *, lost: bool = False) -> Tensor:
        """The factor a by which a state is retained from step to step; or 1 - a, what is `lost` of it."""
        logit = (decay + math.log(self.memory / (1 - self.memory))).clamp(-FARTHEST, FARTHEST)
        return sigmoid(-logit if lost else logit)

    def output(
        self, weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """y_t = tanh(W_ho h_t + b_ho)."""
        return read_out(weights, prefix, states, packing, tape)

    def carried(self, weights: Weights, prefix: str, states: Tensor) -> Tensor:
        """A h."""
        return states * self.kept(weights[prefix + "decay_hh"])

    def continued(self, weights: Weights, prefix: str, projected: Tensor, packing: Packing) -> Tensor:
        """The recurrence alone."""
        return linear_recurrence(REAL, packing, projected, self.kept(weights[prefix + "decay_hh"]))


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


class Products(Protocol):
    """Delta_t times h_{t-1}, in each row."""

    def __call__(self, deltas: Tensor, states: Tensor, packing: Packing, *, reverse: bool) -> Tensor:
        """From dL/du [S, H] and h [S, H]."""


class Numbers(NamedTuple):
    """What the states and factors of a linear recurrence are made of: real or complex numbers."""

    cell: type[Cell]
    """Whose `native` sweeps are used where the library runs."""
    python: Sweeps
    products: Products | None
    """The gradient of the factor in each row; None if the backward sweep returns the factor's own."""

    def sweeps(self, factor: Tensor) -> Sweeps:
        """The compiled sweeps, or those in Python."""
        return sweeps_for(self.cell, factor) or self.python


def linear_recurrence(
    numbers: Numbers, packing: Packing, entering: Tensor, factor: Tensor, *, reverse: bool = False
) -> Tensor:
    """h_t = a * h_{t-1} + u_t over packed rows u [S, H], with a [H], or one row per step [S, H]."""
    states: Tensor = LinearRecurrence.apply(numbers, packing, reverse, entering, factor)
    return states


class LinearRecurrence(torch.autograd.Function):
    """See `linear_recurrence`."""

    @staticmethod
    def forward(
        ctx: Any, numbers: Numbers, packing: Packing, reverse: bool, entering: Tensor, factor: Tensor
    ) -> Tensor:
        """States h [S, H]."""
        sweep = packing.backward if reverse else packing.forward
        (states,) = numbers.sweeps(factor).forward(entering, None, factor, sweep)
        ctx.save_for_backward(states, factor)
        ctx.numbers, ctx.packing, ctx.reverse = numbers, packing, reverse
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """delta_t = dL/dh_t + a_{t+1} delta_{t+1}; the gradient of a_t is delta_t h_{t-1}."""
        states, factor = ctx.saved_tensors
        numbers: Numbers = ctx.numbers
        packing: Packing = ctx.packing
        sweep = packing.backward if ctx.reverse else packing.forward
        deltas, of_factor = numbers.sweeps(factor).backward(grad, (states,), factor, sweep)
        if not ctx.needs_input_grad[4]:
            return None, None, None, deltas, None
        if numbers.products is not None:
            of_factor = numbers.products(deltas, states, packing, reverse=ctx.reverse)
            of_factor = of_factor if factor.ndim == 2 else of_factor.sum(0)
        return None, None, None, deltas, of_factor


def products(deltas: Tensor, states: Tensor, packing: Packing, *, reverse: bool) -> Tensor:
    """delta_t h_{t-1} of each row [S, H], in one pass where the library runs."""
    run = function("diagonal_products", deltas, (*WAY, ADDRESS, ADDRESS, ADDRESS))
    if run is None:
        return deltas * packing.before(states, backward=reverse)
    way, units = (packing.backward if reverse else packing.forward).way, deltas.shape[1]
    left, right = (require(each, deltas, way.rows, units) for each in (deltas, states))
    found = torch.empty_like(left)
    ran(run(*way.addresses, units, left.data_ptr(), right.data_ptr(), found.data_ptr()))
    return found


REAL = Numbers(Diagonal, PythonSweeps, products)
"""Each unit has one number."""
