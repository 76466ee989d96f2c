"""A learner is choices: where weights come from, what protects them, and which tasks go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from perdure.networks.layout import Vectors, Weights, moved
from perdure.networks.network import Network
from perdure.penalties.penalty import Penalty
from perdure.rehearsal.rehearsal import Rehearsal
from perdure.weights.source import Chance, WeightSource, take


@dataclass(frozen=True)
class Learner:
    """The composition that a method's name stands for, around one network."""

    network: Network
    source: WeightSource
    penalties: Mapping[str, Penalty] = field(default_factory=dict)
    rehearsal: Rehearsal | None = None
    together: bool = False
    """Whether all tasks are learnt in one phase (multitask)."""

    @property
    def remembering(self) -> list[str]:
        """Names of all that have a memory."""
        return [*self.penalties, *(["rehearsal"] if self.rehearsal else [])]

    @property
    def phases(self) -> list[list[int]]:
        """Which tasks are learnt in each phase."""
        tasks = list(range(self.network.tasks))
        return [tasks] if self.together else [[task] for task in tasks]


@dataclass(frozen=True)
class Knowledge:
    """What a learner has learnt so far: all that must outlive a phase."""

    parameters: Vectors
    buffers: Vectors
    memories: Mapping[str, Vectors]
    """For each penalty, and for the rehearsal, its memory."""

    def weights(self, learner: Learner, task: int) -> tuple[Network, Weights]:
        """The network and psi with which `task` runs now."""
        positions = learner.source.active(learner.network, self.buffers, [task])
        active = take(self.parameters, positions)
        return learner.source.weights(learner.network, self.buffers, active, task)

    def to(self, device: str) -> Knowledge:
        """The same on another device."""
        return replace(
            self,
            parameters=moved(self.parameters, device),
            buffers=moved(self.buffers, device),
            memories={name: moved(memory, device) for name, memory in self.memories.items()},
        )


def newborn(learner: Learner, chance: Chance) -> Knowledge:
    """Knowledge before the first task."""
    parameters, buffers = learner.source.start(learner.network, chance)
    if learner.rehearsal is not None:
        parameters |= learner.rehearsal.start(learner.network, chance)
    return Knowledge(parameters, buffers, {name: {} for name in learner.remembering})
