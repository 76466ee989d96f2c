"""Recurrent cells as forward and backward sweeps over packed rows.

A cell turns a projected input, W_ih x_t + biases for all rows at once [S, G], into states h_t [S, H].
The backward sweep returns delta, the gradient with respect to the pre-activations: it is all that
weight gradients, and per-sample gradients for the Fisher, are made of.

Writing the sweeps by hand instead of leaving them to autograd saves one pass over memory per step and
turns the gradient of W_hh into a single matrix product; `torch.rnn_tanh` needs 1.2 times as long.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from perdure.networks.packing import Packing, Sweep

Saved = tuple[Tensor, ...]


class Cell(Protocol):
    """The two sweeps of one kind of cell."""

    gates: ClassVar[int]
    """Rows of W_ih and W_hh are gates * H."""
    hidden_bias: ClassVar[bool]
    """Whether b_hh acts elsewhere than b_ih, so that it cannot be added to the projection."""

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """From projection [S, G], b_hh [G] or [S, G] and W_hh [G, H] to (h [S, H], what else is kept)."""

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """From dL/dh [S, H] to delta of the input part and of the hidden part, both [S, G]."""


def _first(rows: Tensor, count: int) -> Tensor:
    """The first rows; all of them is the usual case, and needs no new view."""
    return rows if count == len(rows) else rows[:count]


def _recur(out: Tensor, given: Tensor, before: Tensor, carried: int, weight: Tensor) -> None:
    """Out = given + before W for the rows that are carried on, out = given for those that begin."""
    if carried:
        torch.addmm(_first(given, carried), _first(before, carried), weight, out=_first(out, carried))
    if carried < len(out):
        out[carried:] = given[carried:]


def _backwards(sweep: Sweep) -> list[tuple[int, int, int, int, int]]:
    """The moves from the last to the first, each with the step that follows and what it took over.

    (step, previous, carried, following, taken)
    """
    moves = sweep.moves
    after = [(move.step, move.carried) for move in moves[1:]] + [(moves[-1].step, 0)]
    return [(*move, *following) for move, following in zip(moves, after, strict=True)][::-1]


class Elman:
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)."""

    gates: ClassVar[int] = 1
    hidden_bias: ClassVar[bool] = False

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Cell`."""
        del bias
        states = torch.empty_like(projection)
        given, h = projection.split(sweep.sizes), states.split(sweep.sizes)
        transposed = weight.t()
        for step, previous, carried in sweep.moves:
            _recur(h[step], given[step], h[previous], carried, transposed)
            h[step].tanh_()
        return (states,)

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = (dL/dh_t + W_hh^T delta_{t+1}) * (1 - h_t^2)."""
        (states,) = saved
        slopes = torch.addcmul(states.new_ones(()), states, states, value=-1)
        deltas = torch.empty_like(states)
        to_h, slope, delta = (rows.split(sweep.sizes) for rows in (grad, slopes, deltas))
        for step, _, _, following, taken in _backwards(sweep):
            _recur(delta[step], to_h[step], delta[following], taken, weight)
            delta[step].mul_(slope[step])
        return deltas, deltas


class LSTM:
    """Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""

    gates: ClassVar[int] = 4
    hidden_bias: ClassVar[bool] = False

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Cell`."""
        del bias
        n = weight.shape[1]
        gates = torch.empty_like(projection)
        states, memory, squashed = (projection.new_empty(len(projection), n) for _ in range(3))
        given, gate, h, c, tanh_c = (
            rows.split(sweep.sizes) for rows in (projection, gates, states, memory, squashed)
        )
        transposed = weight.t()
        for step, previous, carried in sweep.moves:
            _recur(gate[step], given[step], h[previous], carried, transposed)
            gate[step][:, : 2 * n].sigmoid_()
            gate[step][:, 2 * n : 3 * n].tanh_()
            gate[step][:, 3 * n :].sigmoid_()
            i, f, g, o = gate[step].split(n, dim=1)
            torch.mul(i, g, out=c[step])
            if carried:
                _first(c[step], carried).addcmul_(_first(f, carried), _first(c[previous], carried))
            torch.tanh(c[step], out=tanh_c[step])
            torch.mul(o, tanh_c[step], out=h[step])
        return states, gates, memory, squashed

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Back through h_t = o tanh(c_t) and c_t = f c_{t-1} + i g, step by step."""
        states, gates, memory, squashed = saved
        n = states.shape[1]
        deltas = torch.empty_like(gates)
        to_h, gate, c, tanh_c, delta = (
            rows.split(sweep.sizes) for rows in (grad, gates, memory, squashed, deltas)
        )
        to_c: Tensor | None = None  # dL/dc_t that arrives from the following step
        for step, previous, carried, following, taken in _backwards(sweep):
            d_h = torch.empty_like(to_h[step])
            _recur(d_h, to_h[step], delta[following], taken, weight)
            i, f, g, o = gate[step].split(n, dim=1)
            d_i, d_f, d_g, d_o = delta[step].split(n, dim=1)
            torch.mul(d_h, tanh_c[step], out=d_o)
            d_h.mul_(o)
            d_c = torch.addcmul(d_h, d_h * tanh_c[step], tanh_c[step], value=-1)
            if to_c is not None:
                d_c[: len(to_c)].add_(to_c)
            torch.mul(d_c, g, out=d_i)
            torch.mul(d_c, i, out=d_g)
            torch.mul(d_c[:carried], c[previous][:carried], out=d_f[:carried])
            d_f[carried:] = 0
            to_c = d_c[:carried] * f[:carried]
            # Slopes of the gates: s (1 - s) for the sigmoids, 1 - g^2 for the candidate.
            slope = torch.addcmul(gate[step], gate[step], gate[step], value=-1)
            torch.addcmul(g.new_ones(()), g, g, value=-1, out=slope[:, 2 * n : 3 * n])
            delta[step].mul_(slope)
        return deltas, deltas


class GRU:
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""

    gates: ClassVar[int] = 3
    hidden_bias: ClassVar[bool] = True

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Cell`."""
        assert bias is not None
        n = weight.shape[1]
        gates = torch.empty_like(projection)
        states, inner = (projection.new_empty(len(projection), n) for _ in range(2))
        spread = bias.expand(len(projection), -1)
        given, gate, h, inside, extra = (
            rows.split(sweep.sizes) for rows in (projection, gates, states, inner, spread)
        )
        transposed = weight.t()
        for step, previous, carried in sweep.moves:
            hidden = torch.empty_like(gate[step])
            _recur(hidden, extra[step], h[previous], carried, transposed)
            torch.add(given[step][:, : 2 * n], hidden[:, : 2 * n], out=gate[step][:, : 2 * n])
            gate[step][:, : 2 * n].sigmoid_()
            r, z, candidate = gate[step].split(n, dim=1)
            inside[step].copy_(hidden[:, 2 * n :])
            torch.addcmul(given[step][:, 2 * n :], r, inside[step], out=candidate)
            candidate.tanh_()
            torch.addcmul(candidate, z, candidate, value=-1, out=h[step])
            if carried:
                _first(h[step], carried).addcmul_(_first(z, carried), _first(h[previous], carried))
        return states, gates, inner

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Back through h_t = (1 - z) n + z h_{t-1}; only the candidate's two deltas differ."""
        states, gates, inner = saved
        n = states.shape[1]
        of_input, of_hidden = torch.empty_like(gates), torch.empty_like(gates)
        to_h, h, gate, inside, delta, delta_hidden = (
            rows.split(sweep.sizes) for rows in (grad, states, gates, inner, of_input, of_hidden)
        )
        direct: Tensor | None = None  # dL/dh_t that arrives past the gates: z_{t+1} dL/dh_{t+1}
        for step, previous, carried, following, taken in _backwards(sweep):
            d_h = torch.empty_like(to_h[step])
            _recur(d_h, to_h[step], delta_hidden[following], taken, weight)
            if direct is not None:
                d_h[: len(direct)].add_(direct)
            r, z, candidate = gate[step].split(n, dim=1)
            difference = -candidate
            difference[:carried].add_(h[previous][:carried])
            d_r, d_z, d_n = delta[step].split(n, dim=1)
            d_z.copy_(d_h * difference * z * (1 - z))
            d_n.copy_(d_h * (1 - z) * (1 - candidate * candidate))
            d_r.copy_(d_n * inside[step] * r * (1 - r))
            delta_hidden[step].copy_(delta[step])
            delta_hidden[step][:, 2 * n :].mul_(r)
            direct = (d_h * z)[:carried]
        return of_input, of_hidden


class Unroll(torch.autograd.Function):
    """A cell over packed rows as one differentiable operation."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: type[Cell],
        packing: Packing,
        reverse: bool,
        projection: Tensor,
        bias: Tensor | None,
        weight: Tensor,
    ) -> Tensor:
        """States h [S, H] from the projected input [S, G], b_hh and W_hh."""
        saved = cell.forward(projection, bias, weight, packing.backward if reverse else packing.forward)
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
        delta, delta_hidden = ctx.cell.backward(grad, tuple(saved), weight, sweep)
        grad_bias = grad_weight = None
        if ctx.needs_input_grad[4]:
            grad_bias = delta_hidden if ctx.bias_per_row else delta_hidden.sum(0)
        if ctx.needs_input_grad[5]:
            states = saved[0]
            if packing.order is None and not ctx.reverse:  # no copy where rows line up
                now, before = delta_hidden[packing.batch :], states[: -packing.batch]
            else:
                now, before = delta_hidden, packing.before(states, backward=ctx.reverse)
            grad_weight = now.t() @ before
        return None, None, None, delta, grad_bias, grad_weight


CELLS: dict[str, type[Cell]] = {"elman": Elman, "lstm": LSTM, "gru": GRU}
"""The kinds of cells by name."""
