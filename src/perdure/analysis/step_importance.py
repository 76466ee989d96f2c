"""What each step of a sequence contributes to the importance of recurrent weights.

The gradient of a recurrent weight for one sample is a sum over its steps, g = sum_t g_t, where g_t is that of
a copy of the weight which acts at step t alone. The Fisher is the mean over samples of g^2; the contribution
of a step is that of g_t^2. If steps are unrelated, the contributions add up to the Fisher; if all T are the
same, the Fisher is T times their sum, and if they cancel, it is less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.analysis.importance import RECURRENT
from perdure.analysis.states import as_data
from perdure.benchmarks.task import Sequences
from perdure.errors import PerdureError
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.packing import Packing
from perdure.networks.tape import Tape
from perdure.networks.targets import score

SAMPLES_PER_PASS = 100
"""Sequences per forward and backward pass."""


@dataclass(frozen=True)
class StepImportance:
    """Means over samples and over all entries of the recurrent weights."""

    steps: list[float]
    """The contribution of each step alone, mean g_t^2."""
    fisher: float
    """The empirical Fisher, mean g^2."""

    @property
    def coherence(self) -> float:
        """The Fisher over the sum of contributions: 1 for unrelated steps, at most their number."""
        return self.fisher / sum(self.steps) if any(self.steps) else math.nan


def step_importance(
    network: Network, weights: Weights, data: Sequences | Data, task: int = 0, samples: int | None = None
) -> StepImportance:
    """The contributions of all steps, from the first `samples` sequences (default: all)."""
    data = as_data(data, weights)
    count = len(data) if samples is None else min(samples, len(data))
    frozen = {name: weight.detach() for name, weight in weights.items()}
    entries = sum(weight.numel() for name, weight in frozen.items() if name.endswith(RECURRENT))
    if not entries:
        raise PerdureError("This network has no recurrent weights, such as recurrent.0.weight_hh.")
    steps = torch.zeros(data.x.shape[1], dtype=torch.float64)
    whole = 0.0
    for start in range(0, count, SAMPLES_PER_PASS):
        batch = data.batch(slice(start, min(start + SAMPLES_PER_PASS, count)))
        for alone, together in _gradients(network, frozen, batch, task):
            steps[: len(alone)] += alone.double().cpu()
            whole += float(together)
    scale = count * entries
    return StepImportance((steps / scale).tolist(), whole / scale)


def _gradients(network: Network, weights: Weights, batch: Batch, task: int) -> list[tuple[Tensor, Tensor]]:
    """For each recurrent map: sum over samples and entries of g_t^2 for each step, and of g^2."""
    tape = Tape()
    with torch.enable_grad():
        logits = network(weights, batch, task, tape)
    groups = [maps for maps in tape.maps() if any(each.weight.endswith(RECURRENT) for each in maps)]
    parameters = [each for each in tape.row_parameters() if each.weight.endswith(RECURRENT)]
    outputs = [*(maps[0].outputs for maps in groups), *(each.outputs for each in parameters)]
    deltas = torch.autograd.grad(logits, outputs, score(logits.detach(), batch))
    found = []
    for maps, delta in zip(groups, deltas, strict=False):
        for each in maps:
            if each.weight.endswith(RECURRENT):
                biases = sum(name.endswith(RECURRENT) for name in each.biases)
                found.append(_of_map(delta, each.inputs.detach(), each.packing, biases))
    for parameter, delta in zip(parameters, deltas[len(groups) :], strict=True):
        rows = parameter.packing.unpack(delta.flatten(1))
        found.append((rows.square().sum((0, 2)), rows.sum(1).square().sum()))
    return found


def _of_map(delta: Tensor, inputs: Tensor, packing: Packing, biases: int) -> tuple[Tensor, Tensor]:
    """Of z = W a + b: g_t = delta_t (a_t, 1)^T, so that g_t . g_s = (delta_t . delta_s) (a_t . a_s + 1)."""
    deltas, activities = packing.unpack(delta).double(), packing.unpack(inputs).double()
    products = (deltas @ deltas.transpose(1, 2)) * (activities @ activities.transpose(1, 2) + biases)
    return products.diagonal(dim1=1, dim2=2).sum(0), products.sum()
