"""The batched Fisher against a loop of single-sample backward passes written with torch.nn."""

from __future__ import annotations

import resource
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from perdure.benchmarks.task import Sequences
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.initialise import initialise
from perdure.networks.network import Network
from perdure.randomness import generator
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.target import Target
from performance.clock import Job, line, peak, seconds


@dataclass(frozen=True)
class Case:
    """A network and its data."""

    name: str
    cell: str
    target: Target
    inputs: int
    units: int
    steps: int
    outputs: int
    samples: int
    bound: float

    @property
    def products(self) -> float:
        """Floating-point operations of the products for one sample: forward, backward, and its gradients."""
        gates, answers = (1, 5) if self.cell == "elman" else (4, 1)
        from_input = 2 * gates * self.units * self.inputs * 2 * self.steps  # nothing flows back to the input
        from_state = 2 * gates * self.units * self.units * 3 * self.steps
        readout = 2 * self.units * self.units * 3 * answers if self.cell == "elman" else 0
        return from_input + from_state + readout + 2 * self.units * self.outputs * 3 * answers


CASES = (
    Case("RNN 256, 8 inputs, 11 steps (Permuted Copy)", "elman", Bits(), 8, 256, 11, 7, 1024, 15),
    Case("LSTM 32, 128 inputs, 10 steps (AudioSet)", "lstm", Label(), 128, 32, 10, 10, 1024, 40),
    Case("LSTM 256, 4 inputs, 40 steps (Stroke MNIST)", "lstm", Label(), 4, 256, 40, 2, 320, 6),
)
LOOPED = 24
"""Samples for which the loop is timed."""


def data_of(case: Case, samples: int) -> Sequences:
    """Random sequences."""
    source = np.random.default_rng(0)
    x = source.normal(size=(samples, case.steps, case.inputs)).astype(np.float32)
    shape = (samples, 5, case.outputs) if case.target == Bits() else (samples,)
    y = source.integers(0, 2, shape)
    return Sequences(case.target, x, y, np.full(samples, case.steps))


def loop(case: Case) -> Job:
    """Sample by sample, as every other correct toolkit does it."""
    module = {"elman": nn.RNN, "lstm": nn.LSTM}[case.cell](case.inputs, case.units, batch_first=True)
    layers = nn.ModuleList([module, nn.Linear(case.units, case.outputs)])
    if case.cell == "elman":
        layers.append(nn.Linear(case.units, case.units))
    parameters = list(layers.parameters())
    data = data_of(case, LOOPED)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)

    def run() -> None:
        totals = [torch.zeros_like(parameter) for parameter in parameters]
        for n in range(LOOPED):
            states = module(x[n : n + 1])[0]
            if case.target == Bits():
                logits = layers[1](layers[2](states[:, -5:]).tanh())
                loss = functional.binary_cross_entropy_with_logits(
                    logits, y[n : n + 1].float(), reduction="sum"
                )
            else:
                loss = functional.cross_entropy(layers[1](states[:, -1]), y[n : n + 1])
            gradients = torch.autograd.grad(loss, parameters)
            for total, gradient in zip(totals, gradients, strict=True):
                total.addcmul_(gradient, gradient)

    return run


def report() -> list[bool]:
    """Print the memory that a Fisher of many samples takes, and the speed-ups."""
    results = [memory()]  # first, while the process is still small
    fastest = peak()
    for case in CASES:
        architecture = Recurrent(cell=case.cell, hidden=(case.units,))
        network = Network(architecture, case.inputs, (case.outputs,))
        weights = initialise(network.layout, generator(0, "weights"))
        data = data_of(case, case.samples)
        times = seconds({"loop": loop(case), "ours": lambda: fisher(network, weights, data)}, rounds=7)  # noqa: B023
        ours, theirs = times["ours"] / case.samples, times["loop"] / LOOPED
        share = case.products / fastest / ours
        what = f"Fisher, {case.name}: {1e6 * theirs:.0f} -> {1e6 * ours:.1f} us a sample, {share:.0%} of peak"
        results.append(line(what, theirs / ours, case.bound, at_least=True))
    return results


def memory() -> bool:
    """Peak memory of a Fisher of 600 long sequences (several passes), above what was in use before."""
    case = Case("", "lstm", Label(), 4, 256, 117, 2, 0, 0)
    architecture = Recurrent(cell="lstm", hidden=(case.units,))
    network = Network(architecture, case.inputs, (case.outputs,))
    weights = initialise(network.layout, generator(0, "weights"))
    data = data_of(case, 600)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fisher(network, weights, data)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return line("Fisher, LSTM 256, 600 sequences of 117 steps: MB above what was in use", used, 300)
