"""A learner is a set of choices: where weights come from, what protects them, which tasks go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from perdure.hooks import Hook
from perdure.networks.bodies.body import Architecture
from perdure.networks.layout import Vectors, Weights, moved
from perdure.networks.network import Network
from perdure.penalties.penalty import Penalty
from perdure.rehearsal.rehearsal import Rehearsal
from perdure.weights.source import GeneratorFactory, Stock, WeightSource, take

REHEARSAL = "rehearsal"
"""Name of the rehearsal among the hooks; penalties have their own names."""


@dataclass(frozen=True)
class Learner:
    """The composition that a method's name refers to, for sequences with a given number of features."""

    architecture: Architecture
    inputs: int
    source: WeightSource
    penalties: Mapping[str, Penalty] = field(default_factory=dict)
    rehearsal: Rehearsal | None = None
    together: bool = False
    """Whether all tasks are learnt in one phase (multitask)."""

    @property
    def hooks(self) -> dict[str, Hook]:
        """Everything that accompanies a phase, by name, in the order in which losses are added."""
        hooks: dict[str, Hook] = dict(self.penalties)
        return hooks if self.rehearsal is None else hooks | {REHEARSAL: self.rehearsal}

    def phases(self, tasks: int) -> list[list[int]]:
        """The tasks learnt in each phase, out of this many."""
        return [list(range(tasks))] if self.together else [[task] for task in range(tasks)]


@dataclass(frozen=True)
class LearnerState:
    """What a learner has learnt so far: everything that must outlive a phase."""

    network: Network
    """The network for the tasks that have arrived."""
    parameters: Vectors
    buffers: Vectors
    memories: Mapping[str, Vectors]
    """The memory of each hook."""

    def weights(self, learner: Learner, task: int) -> tuple[Network, Weights]:
        """The network and psi with which `task` currently runs."""
        positions = learner.source.active(self.network, self.buffers, [task])
        active = take(self.parameters, positions)
        network, weights = learner.source.weights(self.network, self.buffers, active, task)
        for name, hook in learner.hooks.items():
            weights = hook.answering(self.memories[name], network, weights, task)
        return network, weights

    def to(self, device: str) -> LearnerState:
        """The same state on another device."""
        return replace(
            self,
            parameters=moved(self.parameters, device),
            buffers=moved(self.buffers, device),
            memories={name: moved(memory, device) for name, memory in self.memories.items()},
        )


def init(learner: Learner) -> LearnerState:
    """The state before any task has arrived."""
    network = Network(learner.architecture, learner.inputs, [])
    return LearnerState(network, {}, {}, {name: {} for name in learner.hooks})


def grow(
    learner: Learner, state: LearnerState, outputs: Sequence[int], generators: GeneratorFactory
) -> LearnerState:
    """The state after more tasks have arrived: new heads, embeddings, masks for these numbers of outputs."""
    if not outputs:
        return state
    network, known = state.network.grown(outputs), state.network.tasks
    parameters, buffers = dict(state.parameters), dict(state.buffers)
    growing: list[WeightSource | Hook] = [learner.source, *learner.hooks.values()]
    for piece in growing:
        new = piece.grow(network, known, Stock(parameters, buffers), generators)
        parameters |= new.parameters
        buffers |= new.buffers
    device = str(next(iter(parameters.values())).device)
    return replace(state, network=network, parameters=parameters, buffers=buffers).to(device)
