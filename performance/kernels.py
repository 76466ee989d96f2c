"""The native recurrent sweeps against torch's own layers: forward, backward and all weight gradients.

Torch gets each batch padded to its longest sequence, as anyone would give it; the sweeps get the packed rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.networks.native.library import describe
from perdure.networks.native.products import gradient, linear, recurrent_gradient
from perdure.networks.native.sweeps import sweeps_for
from perdure.networks.packing import Packing, pack_lengths
from perdure.registry import find
from performance.clock import Job, line, peak, seconds


@dataclass(frozen=True)
class Case:
    """A recurrent layer and its batch; lengths have the given mean and standard deviation."""

    name: str
    cell: str
    units: int
    directions: int
    batch: int
    inputs: int
    mean: float
    spread: float
    bound: float

    @property
    def gates(self) -> int:
        """Rows of the weights for each unit."""
        return {"elman": 1, "lstm": 4}[self.cell]

    def packing(self) -> Packing:
        """Lengths from a gamma distribution, which has few long sequences, as real data have."""
        if not self.spread:
            return pack_lengths(torch.full((self.batch,), int(self.mean)))
        shape = torch.full((self.batch,), (self.mean / self.spread) ** 2)
        drawn = torch._standard_gamma(shape, generator=torch.Generator().manual_seed(0))
        return pack_lengths((drawn * self.spread**2 / self.mean).round().long().clamp(min=1))

    def operations(self, packing: Packing) -> float:
        """Multiplications and additions of a forward and a backward pass over the rows."""
        recurrent = 3 * self.units * (packing.offsets[-1] - packing.batch)
        projected = 2 * self.inputs * packing.offsets[-1]
        return 2.0 * self.directions * self.gates * self.units * (recurrent + projected)


CASES = (
    Case("A: LSTM 64, batch 32, 64 inputs, mean length 8", "lstm", 64, 1, 32, 64, 8, 2.5, 0.55),
    Case("B: BiLSTM 32, batch 64, 64 inputs, mean length 18", "lstm", 32, 2, 64, 64, 18, 10, 0.40),
    Case("C: LSTM 256, batch 128, 4 inputs, mean length 40", "lstm", 256, 1, 128, 4, 40, 11, 0.50),
    Case("D: Elman 256, batch 128, 8 inputs, 11 steps", "elman", 256, 1, 128, 8, 11, 0, 0.80),
)


def draws(case: Case, packing: Packing) -> tuple[Tensor, Tensor, list[list[Tensor]]]:
    """Inputs [S, F], a gradient of the states [S, D H], and W_ih, W_hh, b_ih, b_hh of each direction."""
    source = torch.Generator().manual_seed(1)
    rows, wide = packing.offsets[-1], case.gates * case.units

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=source)

    weights = [
        [
            weight * 0.05
            for weight in (draw(wide, case.inputs), draw(wide, case.units), draw(wide), draw(wide))
        ]
        for _ in range(case.directions)
    ]
    return draw(rows, case.inputs), draw(rows, case.directions * case.units), weights


def by_torch(case: Case, packing: Packing) -> Job:
    """torch.lstm or torch.rnn_tanh, padded."""
    rows, grad, weights = draws(case, packing)
    x, cotangent = (packing.unpack(part).transpose(0, 1).contiguous() for part in (rows, grad))
    flat = [weight.requires_grad_() for direction in weights for weight in direction]
    settings = (True, 1, 0.0, True, case.directions == 2, False)

    def run() -> None:
        zero = torch.zeros(case.directions, case.batch, case.units)
        if case.cell == "lstm":
            states = torch.lstm(x, (zero, zero), flat, *settings)[0]
        else:
            states = torch.rnn_tanh(x, zero, flat, *settings)[0]
        torch.autograd.grad(states, flat, cotangent)

    return run


def by_sweeps(case: Case, packing: Packing) -> Job:
    """Projection, both sweeps, and the gradients of W_ih, W_hh and the biases."""
    rows, grad, weights = draws(case, packing)
    sweeps = sweeps_for(find("cells", case.cell), rows)
    assert sweeps is not None, f"there are no native kernels: {describe()}"

    def run() -> None:
        parts = grad.split(case.units, dim=1)
        for direction, (weight_ih, weight_hh, bias_ih, bias_hh) in enumerate(weights):
            sweep = packing.backward if direction else packing.forward
            projection = linear(rows, weight_ih, bias_ih + bias_hh)
            assert projection is not None
            saved = sweeps.forward(projection, None, weight_hh, sweep)
            delta, _ = sweeps.backward(parts[direction], saved, weight_hh, sweep)
            gradient(delta, rows)
            recurrent_gradient(delta, saved[0], sweep)

    return run


def report() -> list[bool]:
    """Print each ratio and the share of the arithmetic peak; returns which of them keep their bounds."""
    print(f"kernels: {describe()}")
    results = []
    for case in CASES:
        packing = case.packing()
        times = seconds({"torch": by_torch(case, packing), "ours": by_sweeps(case, packing)}, rounds=25)
        share = case.operations(packing) / times["ours"] / peak()
        ours, theirs = 1e3 * times["ours"], 1e3 * times["torch"]
        what = f"{case.name}: {theirs:.2f} -> {ours:.2f} ms, {share:.0%} of peak"
        results.append(line(what, ours / theirs, case.bound))
    return results
