"""Score and loss of a network on a split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.networks.batch import Batch, Data
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.networks.targets import negative_log_likelihood, tally
from perdure.targets.target import Target


class Score(NamedTuple):
    """The performance of a network on a split."""

    accuracy: float
    """In percent over everything scored, higher is better; the target's `score_name` says what it is."""
    loss: float
    """Mean negative log-likelihood of a sample."""
    f1: float | None = None
    """Weighted F1 in percent, for classes and bits."""
    error: float | None = None
    """Root mean squared error in the units of the data, for values."""

    @property
    def rank(self) -> tuple[float, float]:
        """By accuracy, then by loss."""
        return self.accuracy, -self.loss

    def improves(self, best: Score) -> bool:
        """Whether it is better than the best so far.

        Compares accuracy; for values the loss, which keeps falling while R^2 is still clipped at 0.
        """
        return self.accuracy > best.accuracy if self.error is None else self.loss < best.loss


def evaluate(network: Network, weights: Weights, data: Data, task: int) -> Score:
    """Score on a whole split."""
    return scored(data.batches(), lambda batch: network(weights, batch, task))


@torch.no_grad()
def scored(batches: Iterable[Batch], answer: Callable[[Batch], Tensor]) -> Score:
    """Score of the outputs [M, outputs] with which each batch of a split is answered."""
    total: Tensor | None = None
    target: Target | None = None
    loss, count = 0.0, 0
    for batch in batches:
        logits = answer(batch)
        loss += float(negative_log_likelihood(logits, batch))
        found = tally(logits, batch)
        total = found if total is None else total + found
        target, count = batch.target, count + len(batch)
    assert target is not None
    assert total is not None
    judged = target.judge(total)
    return Score(judged.accuracy, loss / count, judged.f1, judged.error)


def mean_score(scores: Sequence[Score]) -> Score:
    """The mean over tasks of each number that all of them have."""
    accuracy, loss, f1, error = (_mean(column) for column in zip(*scores, strict=True))
    assert accuracy is not None
    assert loss is not None
    return Score(accuracy, loss, f1, error)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if len(known) == len(values) else None
