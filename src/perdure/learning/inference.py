"""Which task a sequence belongs to, if nobody says: the one whose network is most certain.

That is the one with the least entropy, as a fraction of the largest possible, since heads can have different
numbers of classes. Methods with weights of their own for each task need this in the class and domain
scenarios (von Oswald et al. 2020, "Continual learning with hypernetworks").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.learning.evaluate import Score, scored
from perdure.networks.batch import Batch, Data
from perdure.targets.classes import UNLIKELY
from perdure.weights.source import TaskNetwork


class Inferred(NamedTuple):
    """What was answered without knowing the task."""

    logits: Tensor
    """Of the chosen tasks [M, outputs of the widest]."""
    tasks: Tensor
    """The task chosen for each sequence [B]."""


@torch.no_grad()
def infer(running: Mapping[int, TaskNetwork], batch: Batch) -> Inferred:
    """Run all tasks on a batch, and answer for each sequence as the most certain one."""
    assert batch.target is not None
    tasks = list(running)
    answers = [network(weights, batch, task) for task, (network, weights) in running.items()]
    doubts = torch.stack(
        [batch.answers.unpack(batch.target.uncertainty(logits)).sum(1) for logits in answers]
    )
    chosen = doubts.argmin(0)  # the place of the task, for each sequence
    of_row = batch.answers.pack(chosen[:, None].expand(-1, batch.answers.steps))
    widest = max(logits.shape[1] for logits in answers)
    result = answers[0].new_full((len(answers[0]), widest), UNLIKELY)
    for place, logits in enumerate(answers):
        own = of_row == place
        result[own, : logits.shape[1]] = logits[own]
    return Inferred(result, torch.tensor(tasks, device=chosen.device)[chosen])


def evaluate_inferred(running: Mapping[int, TaskNetwork], data: Data, outputs: int) -> Score:
    """Score on a split whose task is not told; `outputs` is the number of the split's own task."""

    def answer(batch: Batch) -> Tensor:
        logits = infer(running, batch).logits
        if logits.shape[1] < outputs:  # classes that have not arrived cannot be answered
            missing = logits.new_full((len(logits), outputs - logits.shape[1]), UNLIKELY)
            logits = torch.cat([logits, missing], dim=1)
        return logits

    return scored(data.batches(), answer)
