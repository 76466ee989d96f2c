"""What a method demands of its user: stored samples, or the task of a sequence at test time."""

from __future__ import annotations

from typing import NamedTuple

import torch

from perdure.config import Config
from perdure.experiment import generators_of, learner_of
from perdure.hooks import Hook
from perdure.learning.learner import Learner, grow, init
from perdure.search.problem import TaskShape


class Demands(NamedTuple):
    """What must be allowed, or known."""

    stored_data: bool
    """Samples of old tasks are needed later: some of them, or all, to learn all tasks together."""
    task: bool
    """Which task a sequence belongs to must be told at test time."""


def demands(config: Config, shape: TaskShape) -> Demands:
    """The demands of a config's method on tasks of these sizes."""
    learner = learner_of(config, shape.inputs)
    stores = any(type(hook).stored is not Hook.stored for hook in learner.hooks.values())
    return Demands(stores or learner.together, _needs_task(learner, config, shape))


def _needs_task(learner: Learner, config: Config, shape: TaskShape) -> bool:
    """Whether two tasks run with different networks, or weights, even before anything was learnt."""
    if len(shape.outputs) < 2:
        return False
    state = grow(learner, init(learner), shape.outputs[:2], generators_of(config))
    if state.network.head(0) != state.network.head(1) or getattr(config.network, "task_identity", False):
        return True
    (_, first), (_, second) = (state.weights(learner, task) for task in (0, 1))
    return first.keys() != second.keys() or any(
        first[name].shape != second[name].shape or not torch.equal(first[name], second[name])
        for name in first
    )
