"""Accuracy and loss of a network on a split."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from perdure.networks.batch import Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.targets import confusion, negative_log_likelihood

EVALUATION_BATCH = 500
"""Sequences of one forward pass: large enough to be fast, small enough for the cache."""


class Score(NamedTuple):
    """Accuracy and weighted F1 in percent over all that is asked, and mean loss per sample."""

    accuracy: float
    loss: float
    f1: float


@torch.no_grad()
def evaluate(network: Network, weights: Weights, data: Data, task: int) -> Score:
    """Score on a whole split."""
    table: Tensor | None = None
    loss = 0.0
    for start in range(0, len(data), EVALUATION_BATCH):
        batch = data.batch(slice(start, start + EVALUATION_BATCH))
        logits = network(weights, batch, task)
        loss += float(negative_log_likelihood(logits, batch))
        found = confusion(logits, batch)
        table = found if table is None else table + found
    assert table is not None
    asked = max(int(table.sum()), 1)
    return Score(100 * int(table.trace()) / asked, loss / len(data), 100 * weighted_f1(table))


def weighted_f1(table: Tensor) -> float:
    """Mean over classes, weighted by how often they are asked, of F1 = 2 TP / (2 TP + FP + FN).

    `table` [C, C] says how often class i was asked and j answered.
    """
    right, asked, answered = table.diagonal().double(), table.sum(1).double(), table.sum(0).double()
    f1 = 2 * right / (asked + answered).clamp(min=1)
    return float((f1 * asked).sum() / asked.sum().clamp(min=1))
