"""Accuracy and loss of a network on a split."""

from __future__ import annotations

from typing import NamedTuple

import torch

from perdure.networks.batch import Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.targets import hits, negative_log_likelihood

EVALUATION_BATCH = 500
"""Sequences of one forward pass: large enough to be fast, small enough for the cache."""


class Score(NamedTuple):
    """Accuracy in percent over all that is asked, and mean loss per sample."""

    accuracy: float
    loss: float


@torch.no_grad()
def evaluate(network: Network, weights: Weights, data: Data, task: int) -> Score:
    """Score on a whole split."""
    right = asked = 0
    loss = 0.0
    for start in range(0, len(data), EVALUATION_BATCH):
        batch = data.batch(slice(start, start + EVALUATION_BATCH))
        logits = network(weights, batch, task)
        loss += float(negative_log_likelihood(logits, batch))
        hit, total = hits(logits, batch)
        right, asked = right + hit, asked + total
    return Score(100 * right / max(asked, 1), loss / len(data))
