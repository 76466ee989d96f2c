"""Cells with matrices W_ih [G, F] and W_hh [G, H], as forward and backward sweeps over packed rows.

Such a cell turns a projected input, W_ih x_t + biases for all rows at once [S, G], into states h_t [S, H].
The backward sweep returns delta, the gradient with respect to the pre-activations, which is all that
weight gradients, and per-sample gradients for the Fisher, require.

Writing the sweeps by hand instead of leaving them to autograd saves one pass over memory per step and
turns the gradient of W_hh into a single matrix product.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.arithmetic import linear
from perdure.networks.cells.cell import Cell, LayerInput
from perdure.networks.cells.layer import PARTS, Layer
from perdure.networks.layout import Axis, InitialisationRule, Weight, Weights
from perdure.networks.native.products import recurrent_gradient
from perdure.networks.native.sweeps import Saved, Sweeps, sweeps_for
from perdure.networks.packing import Packing, Sweep
from perdure.networks.tape import AffineMap, watched


class MatrixCell(Cell):
    """A cell whose state acts through one matrix W_hh."""

    hidden_bias: ClassVar[bool] = False
    """Whether b_hh acts in a different place from b_ih, so that it cannot be added to the projection."""

    @staticmethod
    @abstractmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """From projection [S, G], b_hh [G] or [S, G] and W_hh [G, H] to (h [S, H], what else is saved)."""

    @staticmethod
    @abstractmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """From dL/dh [S, H] to delta of the input part and of the hidden part, both [S, G]."""

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """W_ih, b_ih, W_hh, b_hh; each matrix is followed by its bias."""
        stacked = units.stacked(self.gates)
        from_input = rule.affine(inputs.size, units.size)
        from_state = rule.affine(units.size, units.size)
        return {
            prefix + "weight_ih": ((stacked, inputs), from_input),
            prefix + "bias_ih": ((stacked,), from_input),
            prefix + "weight_hh": ((stacked, units), rule.state_to_state(units.size, self.gates)),
            prefix + "bias_hh": ((stacked,), from_state),
        }

    def run(self, weights: Weights, prefixes: tuple[str, ...], given: LayerInput) -> Tensor:
        """All of it in the compiled library if plain states are required; otherwise sweep by sweep."""
        if given.tape is not None or any(given.task_vectors) or not self.compiled(given.rows):
            return super().run(weights, prefixes, given)
        parts = (weights[prefix + name] for prefix in prefixes for name in PARTS)
        states: Tensor = Layer.apply(self, given.packing, given.rows, *parts)
        return states

    def sweep(self, weights: Weights, prefix: str, given: LayerInput, direction: int) -> Tensor:
        """The projection of all rows at once, then the recurrence."""
        added = given.task_vectors[direction]
        bias_ih, bias_hh = weights[prefix + "bias_ih"], weights[prefix + "bias_hh"]
        bias = self.shifted(bias_ih if self.hidden_bias else bias_ih + bias_hh)
        projection = linear(given.rows, weights[prefix + "weight_ih"], bias)
        if added is not None:
            projection = projection + added.of_rows(weights)
        hidden_bias = bias_hh if self.hidden_bias else None
        if given.tape is not None:
            projection = watched(projection)
            if hidden_bias is not None:
                hidden_bias = watched(hidden_bias.expand(len(given.rows), -1).clone())
        arguments = (projection, hidden_bias, weights[prefix + "weight_hh"])
        spare = given.tape is not None and not given.tape.lasting
        states: Tensor = Unroll.apply(type(self), given.packing, direction == 1, spare, *arguments)
        if given.tape is not None:
            self._note(prefix, given, direction, states.detach(), projection, hidden_bias)
        return states

    def _note(
        self,
        prefix: str,
        given: LayerInput,
        direction: int,
        states: Tensor,
        projection: Tensor,
        hidden_bias: Tensor | None,
    ) -> None:
        """Record both affine maps on the tape."""
        assert given.tape is not None
        packing, added = given.packing, given.task_vectors[direction]
        hidden = projection if hidden_bias is None else hidden_bias
        biases = (prefix + "bias_ih", *(added.names if added else ()))
        if given.tape.lasting:
            given.tape.projections[prefix] = projection.detach()
        given.tape.entries += [
            AffineMap(prefix + "weight_ih", biases, given.rows, projection, packing),
            AffineMap(prefix + "weight_hh", (prefix + "bias_hh",), states, hidden, packing, direction),
        ]

    @classmethod
    def compiled(cls, like: Tensor) -> bool:
        """Whether tensors like this one run in the compiled library."""
        return sweeps_for(cls, like) is not None

    @classmethod
    def sweeps(cls, like: Tensor) -> Sweeps:
        """The sweeps for tensors like this one: in C if that is compiled, otherwise those above."""
        return sweeps_for(cls, like) or cls

    def shifted(self, bias: Tensor) -> Tensor:
        """The bias of the projected input [G]; a cell may add a constant to it."""
        return bias

    def recurrent_matrices(self, weights: Weights, prefix: str) -> list[Tensor]:
        """One [H, H] per gate."""
        weight = weights[prefix + "weight_hh"]
        return list(weight.split(weight.shape[1]))

    def continued(self, weights: Weights, prefix: str, projected: Tensor, packing: Packing) -> Tensor:
        """The recurrence alone."""
        bias = weights[prefix + "bias_hh"] if self.hidden_bias else None
        states: Tensor = Unroll.apply(
            type(self), packing, False, False, projected, bias, weights[prefix + "weight_hh"]
        )
        return states


class Unroll(torch.autograd.Function):
    """A cell over packed rows as one differentiable operation."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: type[MatrixCell],
        packing: Packing,
        reverse: bool,
        spare: bool,
        projection: Tensor,
        bias: Tensor | None,
        weight: Tensor,
    ) -> Tensor:
        """States h [S, H] from the input [S, G], b_hh and W_hh; a `spare` input may be overwritten."""
        sweep = packing.backward if reverse else packing.forward
        # Without gates the states would take the input's place, and the result be the input.
        compiled = sweeps_for(cell, projection) if spare and cell.gates > 1 else None
        if compiled is None:
            saved = cell.sweeps(projection).forward(projection, bias, weight, sweep)
        else:
            saved = compiled.forward(projection, bias, weight, sweep, spare=True)
        ctx.save_for_backward(weight, *saved)
        ctx.cell, ctx.packing, ctx.reverse = cell, packing, reverse
        ctx.bias_per_row = bias is not None and bias.ndim == 2
        return saved[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Gradients of projection, bias and W_hh from one backward sweep."""
        weight, *saved = ctx.saved_tensors
        packing: Packing = ctx.packing
        sweep = packing.backward if ctx.reverse else packing.forward
        delta, delta_hidden = ctx.cell.sweeps(grad).backward(grad, tuple(saved), weight, sweep)
        grad_bias = grad_weight = None
        if ctx.needs_input_grad[5]:
            grad_bias = delta_hidden if ctx.bias_per_row else delta_hidden.sum(0)
        if ctx.needs_input_grad[6]:
            grad_weight = recurrent_gradient(delta_hidden, saved[0], sweep)
            if grad_weight is None:
                grad_weight = _recurrent_gradient(delta_hidden, saved[0], packing, reverse=ctx.reverse)
        return None, None, None, None, delta, grad_bias, grad_weight


def _recurrent_gradient(delta: Tensor, states: Tensor, packing: Packing, *, reverse: bool) -> Tensor:
    """The gradient of W_hh [G, H], sum of delta_t h_{t-1}^T, as one product."""
    if packing.order is None and not reverse:  # no copy is needed if rows line up
        return delta[packing.batch :].t() @ states[: -packing.batch]
    return delta.t() @ packing.before(states, backward=reverse)
