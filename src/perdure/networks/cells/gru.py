"""The gated recurrent unit."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from perdure.networks.cells.cell import LayerInput
from perdure.networks.cells.fused import fused, fusible
from perdure.networks.cells.matrix_cell import MatrixCell
from perdure.networks.cells.recurrence import backwards, first, recur
from perdure.networks.layout import Weights
from perdure.networks.native.sweeps import Saved
from perdure.networks.packing import Sweep


class GRU(MatrixCell):
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""

    gates: ClassVar[int] = 3
    hidden_bias: ClassVar[bool] = True

    def run(self, weights: Weights, prefixes: tuple[str, ...], given: LayerInput) -> list[Tensor]:
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
