"""Forgetting a task on purpose: possible where a task has a part of its own without which it is lost."""

from __future__ import annotations

from dataclasses import replace

import torch

from perdure.config import Config
from perdure.experiment import learner_of
from perdure.learner.faults import wrong
from perdure.learner.knowledge import Knowledge
from perdure.randomness import generator
from perdure.weights.source import Stock

OWN = ("network", "embedding", "head")
"""Vectors that belong to one task: its whole network, its embedding, its separate head."""


def forgotten(config: Config, knowledge: Knowledge, task: str) -> Knowledge:
    """The knowledge without a task: its own vectors are drawn again, as if it had just arrived.

    Its place stays empty, so that the other tasks keep their numbers; learning it again fills it.
    """
    learner, number, state = learner_of(config, knowledge.inputs), knowledge.number(task), knowledge.state
    reason = None
    needed = set(learner.source.active(state.network, state.buffers, [number]))
    own = {f"{name}.{number}" for name in OWN} & set(state.parameters)
    if learner.together:
        reason = "all tasks were learnt together, from data that are kept"
    elif any(state.memories.values()):
        reason = "its memory of old tasks cannot be taken apart"
    elif not learner.source.generates and not needed <= own:
        reason = "all tasks share the same weights"
    if reason:
        raise wrong(
            "task",
            f"'{task}' cannot be forgotten by {config.method}: {reason}; teach a new learner the others, "
            f"or use from-scratch or hnet.",
        )

    def generators(*role: object) -> torch.Generator:
        return generator(config.seed, "forgotten", len(knowledge.visits), *role)

    others = {name: vector for name, vector in state.parameters.items() if name not in own}
    drawn = learner.source.grow(state.network, number, Stock(others, state.buffers), generators).parameters
    parameters = state.parameters | {name: drawn[name] for name in own}
    return replace(
        knowledge,
        state=replace(state, parameters=parameters),
        forgotten=knowledge.forgotten | {task},
    )
