"""The gated recurrent unit."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from perdure.networks.cells.cell import LayerInput
from perdure.networks.cells.fused import fused, fusible
from perdure.networks.cells.matrix_cell import MatrixCell
from perdure.networks.cells.recurrence import backwards, first, recur
from perdure.networks.layout import Weights
from perdure.networks.native.library import ADDRESS, SIZE, WAY
from perdure.networks.native.sweeps import CompiledSweeps, Saved, ran, require
from perdure.networks.packing import Sweep


class NativeGRU(CompiledSweeps):
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""

    prefix = "gru"
    signatures = (
        (*WAY, ADDRESS, ADDRESS, SIZE, *[ADDRESS] * 4),
        (*WAY, *[ADDRESS] * 7),
    )

    def forward(
        self, projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep, *, spare: bool = False
    ) -> Saved:
        """Sweep; see `Sweeps`. The bias is [3 H], or [S, 3 H] with one per row."""
        assert bias is not None
        way, units = sweep.way, weight.shape[1]
        given = require(projection, weight, way.rows, 3 * units)
        each = bias.ndim == 2
        extra = require(bias, weight, *([way.rows] if each else []), 3 * units)
        factor = require(weight, weight, 3 * units, units)
        gates = given if spare else torch.empty_like(given)
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


class GRU(MatrixCell):
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""

    native: ClassVar[type[CompiledSweeps] | None] = NativeGRU
    torch_layer: ClassVar[type[nn.RNNBase] | None] = nn.GRU
    gates: ClassVar[int] = 3
    hidden_bias: ClassVar[bool] = True

    def run(self, weights: Weights, prefixes: tuple[str, ...], given: LayerInput) -> Tensor:
        """By torch's fused kernel if all sequences are equally long; otherwise by our sweeps."""
        if not fusible(given):
            return super().run(weights, prefixes, given)
        return fused(torch.gru, self, weights, prefixes, given)

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """Sweep; see `MatrixCell`."""
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
            recur(hidden, extra[step], h[previous], carried, transposed)
            torch.add(given[step][:, : 2 * n], hidden[:, : 2 * n], out=gate[step][:, : 2 * n])
            gate[step][:, : 2 * n].sigmoid_()
            r, z, candidate = gate[step].split(n, dim=1)
            inside[step].copy_(hidden[:, 2 * n :])
            torch.addcmul(given[step][:, 2 * n :], r, inside[step], out=candidate)
            candidate.tanh_()
            torch.addcmul(candidate, z, candidate, value=-1, out=h[step])
            if carried:
                first(h[step], carried).addcmul_(first(z, carried), first(h[previous], carried))
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
        direct: Tensor | None = None  # dL/dh_t that bypasses the gates: z_{t+1} dL/dh_{t+1}
        for step, previous, carried, following, taken in backwards(sweep):
            d_h = torch.empty_like(to_h[step])
            recur(d_h, to_h[step], delta_hidden[following], taken, weight)
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
