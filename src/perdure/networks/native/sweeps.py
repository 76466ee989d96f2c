"""The recurrent sweeps of the compiled library, with the arguments and results of those in Python.

A forward sweep saves the same in both, so that either's backward sweep can follow. In single and double
precision; each sum is in a fixed order, so that the states of a sequence do not depend on other sequences.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from perdure.networks.native.library import Function, function
from perdure.networks.packing import Sweep

Saved = tuple[Tensor, ...]


class Sweeps(Protocol):
    """The two sweeps of a cell, as in Python."""

    def forward(self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """From projection [S, G], b_hh [G] or [S, G] and W_hh [G, H] to (h [S, H], what else is saved)."""

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """From dL/dh [S, H] to delta of the input part and of the hidden part, both [S, G]."""


def require(tensor: Tensor, like: Tensor, *shape: int) -> Tensor:
    """The tensor as the library reads it, contiguous; anything unexpected is an error, not a crash."""
    if tensor.shape != shape or tensor.dtype != like.dtype or tensor.device != like.device:
        raise ValueError(
            f"native sweep: expected {list(shape)} of {like.dtype} on {like.device}, "
            f"got {list(tensor.shape)} of {tensor.dtype} on {tensor.device}."
        )
    return tensor.contiguous()


def ran(done: int) -> None:
    """Raise an error if the library ran out of memory."""
    if not done:
        raise MemoryError("native sweep: not enough memory for its buffers.")


class NativeElman(NamedTuple):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)."""

    forwards: Function
    backwards: Function

    def forward(self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Sweeps`."""
        del bias
        way, units = sweep.way, weight.shape[1]
        given = require(projection, weight, way.rows, units)
        factor = require(weight, weight, units, units)
        states = torch.empty_like(given)
        ran(self.forwards(*way.addresses, units, given.data_ptr(), factor.data_ptr(), states.data_ptr()))
        return (states,)

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = (dL/dh_t + W_hh^T delta_{t+1}) * (1 - h_t^2)."""
        way, units = sweep.way, weight.shape[1]
        to_h, states = (require(rows, weight, way.rows, units) for rows in (grad, saved[0]))
        factor = require(weight, weight, units, units)
        delta = torch.empty_like(states)
        addresses = (tensor.data_ptr() for tensor in (to_h, factor, states, delta))
        ran(self.backwards(*way.addresses, units, *addresses))
        return delta, delta


class NativeLSTM(NamedTuple):
    """Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""

    forwards: Function
    backwards: Function

    def forward(self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Sweeps`."""
        del bias
        way, units = sweep.way, weight.shape[1]
        given = require(projection, weight, way.rows, 4 * units)
        factor = require(weight, weight, 4 * units, units)
        gates = torch.empty_like(given)
        states, memory, squashed = (given.new_empty(way.rows, units) for _ in range(3))
        addresses = (tensor.data_ptr() for tensor in (given, factor, states, gates, memory, squashed))
        ran(self.forwards(*way.addresses, units, *addresses))
        return states, gates, memory, squashed

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Back through h_t = o tanh(c_t) and c_t = f c_{t-1} + i g."""
        way, units = sweep.way, weight.shape[1]
        gates = require(saved[1], weight, way.rows, 4 * units)
        to_h, memory, squashed = (
            require(rows, weight, way.rows, units) for rows in (grad, saved[2], saved[3])
        )
        factor = require(weight, weight, 4 * units, units)
        delta = torch.empty_like(gates)
        addresses = (tensor.data_ptr() for tensor in (to_h, factor, gates, memory, squashed, delta))
        ran(self.backwards(*way.addresses, units, *addresses))
        return delta, delta


class NativeGRU(NamedTuple):
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""

    forwards: Function
    backwards: Function

    def forward(self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Sweeps`. The bias is [3 H], or [S, 3 H] with one per row."""
        assert bias is not None
        way, units = sweep.way, weight.shape[1]
        given = require(projection, weight, way.rows, 3 * units)
        each = bias.ndim == 2
        extra = require(bias, weight, *([way.rows] if each else []), 3 * units)
        factor = require(weight, weight, 3 * units, units)
        gates = torch.empty_like(given)
        states, inner = (given.new_empty(way.rows, units) for _ in range(2))
        addresses = (tensor.data_ptr() for tensor in (factor, states, gates, inner))
        stride = 3 * units if each else 0
        ran(self.forwards(*way.addresses, units, given.data_ptr(), extra.data_ptr(), stride, *addresses))
        return states, gates, inner

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Back through h_t = (1 - z) n + z h_{t-1}; only the candidate's two deltas differ."""
        way, units = sweep.way, weight.shape[1]
        gates = require(saved[1], weight, way.rows, 3 * units)
        to_h, states, inner = (require(rows, weight, way.rows, units) for rows in (grad, saved[0], saved[2]))
        factor = require(weight, weight, 3 * units, units)
        of_input, of_hidden = torch.empty_like(gates), torch.empty_like(gates)
        tensors = (to_h, factor, states, gates, inner, of_input, of_hidden)
        ran(self.backwards(*way.addresses, units, *(tensor.data_ptr() for tensor in tensors)))
        return of_input, of_hidden


class NativeDiagonal(NamedTuple):
    """h_t = a_t h_{t-1} + given_t, unit by unit, with `weight` a [H], or [S, H] with one per row."""

    forwards: Function
    backwards: Function

    def forward(self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `Sweeps`."""
        del bias
        way, units = sweep.way, weight.shape[-1]
        given, factor = require(projection, weight, way.rows, units), self._factor(weight, way.rows)
        states = torch.empty_like(given)
        addresses = given.data_ptr(), factor.data_ptr(), units * (weight.ndim - 1), states.data_ptr()
        ran(self.forwards(*way.addresses, units, *addresses))
        return (states,)

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = dL/dh_t + a_{t+1} delta_{t+1}; the gradient of a_t is delta_t h_{t-1}."""
        del saved
        way, units = sweep.way, weight.shape[-1]
        to_h, factor = require(grad, weight, way.rows, units), self._factor(weight, way.rows)
        delta = torch.empty_like(to_h)
        addresses = to_h.data_ptr(), factor.data_ptr(), units * (weight.ndim - 1), delta.data_ptr()
        ran(self.backwards(*way.addresses, units, *addresses))
        return delta, delta

    @staticmethod
    def _factor(weight: Tensor, rows: int) -> Tensor:
        return require(weight, weight, *([rows] if weight.ndim == 2 else []), weight.shape[-1])


CELLS: dict[str, type[NativeElman | NativeLSTM | NativeGRU | NativeDiagonal]] = {
    "elman": NativeElman,
    "lstm": NativeLSTM,
    "gru": NativeGRU,
    "diagonal": NativeDiagonal,
}


def sweeps_for(cell: str, tensor: Tensor) -> Sweeps | None:
    """The native sweeps of a cell for tensors like this one; None if those in Python are to be used."""
    if cell not in CELLS:
        return None
    forwards, backwards = function(f"{cell}_forward", tensor), function(f"{cell}_backward", tensor)
    if forwards is None or backwards is None:
        return None
    return CELLS[cell](forwards, backwards)
