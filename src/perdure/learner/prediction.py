"""Answers of what has been learnt: logits of any task, and which task a sequence belongs to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from perdure.config import Config
from perdure.experiment import learner_of, threads
from perdure.learner.classes import object_array
from perdure.learner.faults import wrong, wrong_type
from perdure.learner.knowledge import Knowledge
from perdure.learner.sequences import Inputs
from perdure.weights.source import TaskNetwork


def known_task(knowledge: Knowledge | None, task: object) -> str:
    """The name of a task that can be asked; anything else is an error that names the argument."""
    if not isinstance(task, str) and task is not None:
        raise wrong_type("task", f"it is a {type(task).__name__}; name a task, such as 'march'.")
    if knowledge is None or not knowledge.formats:
        raise wrong("task", "nothing has been learnt yet; call learn first.")
    if task is None:
        raise wrong_type("task", f"it is missing; name one of {', '.join(knowledge.tasks)}.")
    if task not in knowledge.formats:
        raise wrong("task", f"'{task}' has not been learnt; known are {', '.join(knowledge.tasks)}.")
    if task in knowledge.forgotten:
        raise wrong("task", f"'{task}' was forgotten; learn it again first.")
    return task


def network_of(config: Config, knowledge: Knowledge, task: str) -> TaskNetwork:
    """The network with which a task runs, and its psi."""
    return knowledge.state.weights(learner_of(config, knowledge.inputs), knowledge.number(task))


@torch.no_grad()
def logits_of(config: Config, knowledge: Knowledge, task: str, inputs: Inputs) -> Tensor:
    """Outputs [N, P, outputs] at the answered steps; for tags [N, T, outputs], zero beyond an end."""
    data, number = knowledge.data(task, inputs), knowledge.number(task)
    parts: list[Tensor] = []
    with threads(1):
        network, weights = network_of(config, knowledge, task)
        for batch in data.batches():
            part = batch.answers.unpack(network(weights, batch, number))
            steps = inputs.x.shape[1] if data.target.everywhere else part.shape[1]
            padded = part.new_zeros(len(part), steps, part.shape[2])
            padded[:, : part.shape[1]] = part
            parts.append(padded)
    return torch.cat(parts)


def check_lengths(knowledge: Knowledge, task: str, inputs: Inputs) -> None:
    """Raise if sequences are shorter than the answers that a task gives at their end."""
    steps = knowledge.formats[task].steps
    if inputs.lengths.min() < steps:
        raise wrong(
            "x",
            f"a sequence has {inputs.lengths.min()} steps, but task '{task}' answers at the last {steps}.",
        )


def mixed(answers: dict[str, Any], owners: list[str]) -> Any:
    """One array of answers, each from its sequence's own task."""
    rows = {task: iter(list(found)) for task, found in answers.items()}
    each = [next(rows[owner]) for owner in owners]
    kinds = {type(one) for one in each}
    if len(kinds) == 1 and not isinstance(each[0], tuple) and getattr(each[0], "ndim", 0) == 0:
        import numpy as np

        return np.array(each)
    return object_array(each)
