"""How strongly outputs depend on recurrent weights, independently of the residual loss.

The Fisher contains the derivative of the log-likelihood by the outputs z, which vanishes as they become
certain: of two networks with the same function up to the scale of z, the one that was trained longer has far
smaller values. Here that factor is left out. With outputs k at all scored steps, and N samples,

    S_i = 1/N sum_n sum_k (dz_k(x_n) / dpsi_i)^2 / mean of z_k(x_n)^2 over n and k,

which does not change with the scale of z. Like the Fisher it grows with the number of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from perdure.analysis.importance import mean_importance
from perdure.analysis.states import as_data
from perdure.benchmarks.task import Sequences
from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.sample_gradients import mean_sample_gradients


def sensitivity(
    network: Network, weights: Weights, data: Sequences | Data, task: int = 0, samples: int | None = None
) -> float:
    """Mean of S_i over all entries of the recurrent weights, from the first `samples` sequences (or all).

    It takes as many backward sweeps as there are outputs times output steps.
    """
    data = as_data(data, weights)
    index = torch.arange(len(data) if samples is None else min(samples, len(data)))
    squares, count = 0.0, 0

    def cotangents(logits: Tensor, batch: Batch) -> Iterator[Tensor]:
        nonlocal squares, count
        scored = _scored(logits, batch)
        squares += float((logits * scored).double().square().sum())
        count += int(scored.sum())
        return _one_by_one(scored, batch)

    moved = mean_importance(mean_sample_gradients(network, weights, data, index, task, cotangents))
    return moved.recurrent / (squares / count)


def _scored(logits: Tensor, batch: Batch) -> Tensor:
    """1 for each output [M, outputs] that is scored, otherwise 0."""
    scored = torch.ones_like(logits)
    if batch.mask is not None:
        scored *= batch.mask.reshape(len(logits), -1)
    return scored


def _one_by_one(scored: Tensor, batch: Batch) -> Iterator[Tensor]:
    """For each output of each output step, that output alone [M, outputs]."""
    for step in range(batch.answers.steps):
        rows = slice(*batch.answers.offsets[step : step + 2])
        for output in range(scored.shape[1]):
            alone = torch.zeros_like(scored)
            alone[rows, output] = scored[rows, output]
            yield alone
