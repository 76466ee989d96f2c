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

from perdure.networks.packing import Move, Packing

Saved = tuple[Tensor, ...]


class Cell(Protocol):
    """The two sweeps of one kind of cell."""

    gates: ClassVar[int]
    """Rows of W_ih and W_hh are gates * H."""
    hidden_bias: ClassVar[bool]
    """Whether b_hh acts elsewhere than b_ih, so that it cannot be added to the projection."""

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, moves: tuple[Move, ...]) -> Saved:
        """From projection [S, G], b_hh [G] or [S, G] and W_hh [G, H] to (h [S, H], what else is kept)."""

    @staticmethod
    def backward(
        grad: Tensor, saved: Saved, weight: Tensor, moves: tuple[Move, ...]
    ) -> tuple[Tensor, Tensor]:
        """From dL/dh [S, H] to delta of the input part and of the hidden part, both [S, G]."""


def _incoming(grad: Tensor, delta: Tensor, weight: Tensor, moves: tuple[Move, ...], position: int) -> Tensor:
    """dL/dh of one step: from the output and, through W_hh, from the following step."""
    start, size, _, _ = moves[position]
    if position + 1 == len(moves):
        return grad[start : start + size].clone()
    follower, _, _, carried = moves[position + 1]
    total = torch.empty_like(grad[start : start + size])
    torch.addmm(
        grad[start : start + carried],
        delta[follower : follower + carried],
        weight,
        out=total[:carried],
    )
    if carried < size:
        total[carried:] = grad[start + carried : start + size]
    return total


class Elman:
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)."""

    gates: ClassVar[int] = 1
    hidden_bias: ClassVar[bool] = False

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, moves: tuple[Move, ...]) -> Saved:
        """Sweep; see `Cell`."""
        del bias
        states = torch.empty_like(projection)
        transposed = weight.t()
        for start, size, previous, carried in moves:
            now = states[start : start + size]
            if carried:
                torch.addmm(
                    projection[start : start + carried],
                    states[previous : previous + carried],
                    transposed,
                    out=now[:carried],
                )
                now[:carried].tanh_()
            if carried < size:
                torch.tanh(projection[start + carried : start + size], out=now[carried:])
        return (states,)

    @staticmethod
    def backward(
        grad: Tensor, saved: Saved, weight: Tensor, moves: tuple[Move, ...]
    ) -> tuple[Tensor, Tensor]:
        """delta_t = (dL/dh_t + W_hh^T delta_{t+1}) * (1 - h_t^2)."""
        (states,) = saved
        slope = torch.addcmul(states.new_ones(()), states, states, value=-1)
        delta = torch.empty_like(states)
        for position in reversed(range(len(moves))):
            start, size, _, _ = moves[position]
            end = start + size
            carried = 0
            if position + 1 < len(moves):
                follower, _, _, carried = moves[position + 1]
                torch.addmm(
                    grad[start : start + carried],
                    delta[follower : follower + carried],
                    weight,
                    out=delta[start : start + carried],
                )
                delta[start : start + carried].mul_(slope[start : start + carried])
            if carried < size:
                torch.mul(
                    grad[start + carried : end],
                    slope[start + carried : end],
                    out=delta[start + carried : end],
                )
        return delta, delta


class LSTM:
    """Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""

    gates: ClassVar[int] = 4
    hidden_bias: ClassVar[bool] = False

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, moves: tuple[Move, ...]) -> Saved:
        """Sweep; see `Cell`."""
        del bias
        n = weight.shape[1]
        gates = torch.empty_like(projection)
        states, memory, squashed = (projection.new_empty(len(projection), n) for _ in range(3))
        transposed = weight.t()
        for start, size, previous, carried in moves:
            end, went_on = start + size, start + carried
            before = slice(previous, previous + carried)
            if carried:
                torch.addmm(projection[start:went_on], states[before], transposed, out=gates[start:went_on])
            if carried < size:
                gates[went_on:end] = projection[went_on:end]
            gate = gates[start:end]
            gate[:, : 2 * n].sigmoid_()
            gate[:, 2 * n : 3 * n].tanh_()
            gate[:, 3 * n :].sigmoid_()
            i, f, g, o = gate.split(n, dim=1)
            now = memory[start:end]
            torch.mul(i, g, out=now)
            if carried:
                now[:carried].addcmul_(f[:carried], memory[before])
            torch.tanh(now, out=squashed[start:end])
            torch.mul(o, squashed[start:end], out=states[start:end])
        return states, gates, memory, squashed

    @staticmethod
    def backward(
        grad: Tensor, saved: Saved, weight: Tensor, moves: tuple[Move, ...]
    ) -> tuple[Tensor, Tensor]:
        """Back through h_t = o tanh(c_t) and c_t = f c_{t-1} + i g, step by step."""
        states, gates, memory, squashed = saved
        n = states.shape[1]
        delta = torch.empty_like(gates)
        to_memory: Tensor | None = None  # dL/dc_t that arrives from the following step
        for position in reversed(range(len(moves))):
            start, size, previous, carried = moves[position]
            rows = slice(start, start + size)
            to_state = _incoming(grad, delta, weight, moves, position)
            i, f, g, o = gates[rows].split(n, dim=1)
            d_i, d_f, d_g, d_o = delta[rows].split(n, dim=1)
            tanh_c = squashed[rows]
            torch.mul(to_state, tanh_c, out=d_o)
            to_state.mul_(o)
            total = torch.addcmul(to_state, to_state * tanh_c, tanh_c, value=-1)
            if to_memory is not None:
                total[: len(to_memory)].add_(to_memory)
            torch.mul(total, g, out=d_i)
            torch.mul(total, i, out=d_g)
            torch.mul(total[:carried], memory[previous : previous + carried], out=d_f[:carried])
            d_f[carried:] = 0
            to_memory = total[:carried] * f[:carried]
            # Slopes of the gates: s (1 - s) for the sigmoids, 1 - g^2 for the candidate.
            slope = torch.addcmul(gates[rows], gates[rows], gates[rows], value=-1)
            torch.addcmul(g.new_ones(()), g, g, value=-1, out=slope[:, 2 * n : 3 * n])
            delta[rows].mul_(slope)
        return delta, delta


class GRU:
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""

    gates: ClassVar[int] = 3
    hidden_bias: ClassVar[bool] = True

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, moves: tuple[Move, ...]) -> Saved:
        """Sweep; see `Cell`."""
        assert bias is not None
        n = weight.shape[1]
        gates = torch.empty_like(projection)
        states, inner = (projection.new_empty(len(projection), n) for _ in range(2))
        transposed = weight.t()
        spread = bias.expand(len(projection), -1)
        for start, size, previous, carried in moves:
            end = start + size
            hidden = spread[start:end].clone()
            if carried:
                hidden[:carried].addmm_(states[previous : previous + carried], transposed)
            gate = gates[start:end]
            torch.add(projection[start:end, : 2 * n], hidden[:, : 2 * n], out=gate[:, : 2 * n])
            gate[:, : 2 * n].sigmoid_()
            r, z, candidate = gate.split(n, dim=1)
            inner[start:end] = hidden[:, 2 * n :]
            torch.addcmul(projection[start:end, 2 * n :], r, hidden[:, 2 * n :], out=candidate)
            candidate.tanh_()
            now = states[start:end]
            torch.addcmul(candidate, z, candidate, value=-1, out=now)
            if carried:
                now[:carried].addcmul_(z[:carried], states[previous : previous + carried])
        return states, gates, inner

    @staticmethod
    def backward(
        grad: Tensor, saved: Saved, weight: Tensor, moves: tuple[Move, ...]
    ) -> tuple[Tensor, Tensor]:
        """Back through h_t = (1 - z) n + z h_{t-1}; only the candidate's two deltas differ."""
        states, gates, inner = saved
        n = states.shape[1]
        delta_input, delta_hidden = torch.empty_like(gates), torch.empty_like(gates)
        direct: Tensor | None = None  # dL/dh_t that arrives past the gates: z_{t+1} dL/dh_{t+1}
        for position in reversed(range(len(moves))):
            start, size, previous, carried = moves[position]
            rows = slice(start, start + size)
            to_state = _incoming(grad, delta_hidden, weight, moves, position)
            if direct is not None:
                to_state[: len(direct)].add_(direct)
            r, z, candidate = gates[rows].split(n, dim=1)
            difference = -candidate
            difference[:carried].add_(states[previous : previous + carried])
            d_r, d_z, d_n = delta_input[rows].split(n, dim=1)
            d_z.copy_(to_state * difference * z * (1 - z))
            d_n.copy_(to_state * (1 - z) * (1 - candidate * candidate))
            d_r.copy_(d_n * inner[rows] * r * (1 - r))
            delta_hidden[rows] = delta_input[rows]
            delta_hidden[rows, 2 * n :].mul_(r)
            direct = (to_state * z)[:carried]
        return delta_input, delta_hidden


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
        moves = packing.backward if reverse else packing.forward
        saved = cell.forward(projection, bias, weight, moves)
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
        moves = packing.backward if ctx.reverse else packing.forward
        delta, delta_hidden = ctx.cell.backward(grad, tuple(saved), weight, moves)
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
