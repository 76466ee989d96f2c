"""Whole training iterations of small and ragged networks, ours against the same step with torch.nn.LSTM.

By hand means: a padded batch cut to its longest sequence, torch.nn.LSTM, a linear head, clipping, fused Adam.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional

from perdure.benchmarks.task import Sequences
from perdure.learning.engine import begin_phase
from perdure.learning.learner import Learner, init
from perdure.learning.splits import Splits
from perdure.learning.training import Training
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.native.library import describe
from perdure.registry import chosen
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.target import Target
from perdure.weights.shared import Shared
from performance.clock import Job, line, peak, seconds
from performance.training import generators

SAMPLES = 2000


@dataclass(frozen=True)
class Case:
    """A network, a batch size, and data of random lengths."""

    name: str
    target: Target
    units: int
    batch: int
    inputs: int
    mean_length: int
    longest: int
    outputs: int
    bidirectional: bool
    bound: float | None
    spread: float | None = None
    """Standard deviation of the lengths; None: Poisson's, the root of their mean."""

    @property
    def products(self) -> float:
        """Floating-point operations of an iteration's matrix products, without the head's."""
        directions = 2 if self.bidirectional else 1
        forward = 2 * 4 * self.units * (self.units + self.inputs)
        steps = self.batch * self.mean_length
        backward = (
            2 * 4 * self.units * (2 * self.units + self.inputs)
        )  # delta W_hh, and both weight gradients
        return directions * steps * (forward + backward)


CASES = (
    Case("A: LSTM 64, batch 32, 64 inputs, mean length 8", Label(), 64, 32, 64, 8, 24, 10, False, 0.55),
    Case(
        "B: BiLSTM 32, batch 64, 64 inputs, mean length 18, tags", Tags(), 32, 64, 64, 18, 60, 17, True, 0.40
    ),
    Case("C: LSTM 256, batch 128, 4 inputs, mean length 40", Label(), 256, 128, 4, 40, 117, 2, False, 0.50),
)
SPREAD = tuple(
    replace(
        case, name=f"{case.name[0]}, lengths spread as in treebanks and strokes", bound=None, spread=spread
    )
    for case, spread in zip(CASES[1:], (10.0, 11.0), strict=True)
)
"""The same with the standard deviations of real data, where padding costs more; printed without a bound."""


def data_of(case: Case) -> Sequences:
    """Random sequences; lengths are Poisson around their mean, or from a gamma distribution if `spread`."""
    source = np.random.default_rng(0)
    if case.spread is None:
        drawn = source.poisson(case.mean_length, SAMPLES)
    else:
        shape = (case.mean_length / case.spread) ** 2
        drawn = source.gamma(shape, case.mean_length / shape, SAMPLES).round().astype(np.int64)
    lengths = np.clip(drawn, 1, case.longest)
    x = source.normal(size=(SAMPLES, case.longest, case.inputs)).astype(np.float32)
    y = source.integers(0, case.outputs, (SAMPLES, case.longest))
    y[np.arange(case.longest) >= lengths[:, None]] = -1
    return Sequences(case.target, x, y if case.target.everywhere else y[:, 0], lengths)


def ours(case: Case, data: Sequences) -> Job:
    """An iteration of fine-tuning."""
    architecture = Recurrent(
        cell=chosen("cells", "lstm"), hidden=(case.units,), bidirectional=case.bidirectional
    )
    learner = Learner(architecture, case.inputs, Shared())
    training = Training(iterations=10**6, batch_size=case.batch, validate_every=10**9, clip=1.0)
    splits = Splits("random", case.outputs, *[Data(data)] * 3)
    return begin_phase(learner, init(learner), [0], [splits], training, generators).step


def by_hand(case: Case, data: Sequences) -> Job:
    """The same with torch's modules."""
    lstm = torch.nn.LSTM(case.inputs, case.units, bidirectional=case.bidirectional, batch_first=True)
    head = torch.nn.Linear(case.units * (2 if case.bidirectional else 1), case.outputs)
    parameters = [*lstm.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(parameters, fused=True)
    x, y, lengths = (torch.from_numpy(array) for array in (data.x, data.y, data.lengths))
    source = torch.Generator().manual_seed(0)

    def step() -> None:
        index = torch.randint(SAMPLES, (case.batch,), generator=source)
        ends = lengths[index]
        longest = int(ends.max())
        states, _ = lstm(x[index][:, :longest])
        if case.target.everywhere:
            logits, wanted = head(states).flatten(0, 1), y[index][:, :longest].flatten()
        else:
            logits, wanted = head(states[torch.arange(case.batch), ends - 1]), y[index]
        loss = functional.cross_entropy(logits, wanted, ignore_index=-1, reduction="sum") / case.batch
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()

    return step


def report() -> list[bool]:
    """Print all ratios; returns which of them are within their bounds."""
    kept = []
    fastest = peak()
    print(f"kernels: {describe()}; arithmetic peak {fastest / 1e9:.0f} GFLOP/s")
    for case in (*CASES, *SPREAD):
        data = data_of(case)
        rounds = 12 if case.units > 100 else 60
        times = seconds({"ours": ours(case, data), "by hand": by_hand(case, data)}, rounds=rounds)
        share = case.products / fastest / times["ours"]
        what = f"{case.name}: {1e3 * times['ours']:.2f} ms, {100 * share:.0f} % of peak; ours / by hand"
        ratio = times["ours"] / times["by hand"]
        if case.bound is None:
            print(f"    {what:<68} {ratio:6.2f}", flush=True)
        else:
            kept.append(line(what, ratio, case.bound))
    return kept
