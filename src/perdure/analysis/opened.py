"""A finished run, opened for analysis: its tasks, and the network and weights after each phase."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from perdure.analysis.states import States, hidden_states
from perdure.config import from_json
from perdure.errors import PerdureError
from perdure.experiment import assemble, on_device
from perdure.learning.engine import unpack
from perdure.learning.learner import Knowledge
from perdure.learning.splits import Splits
from perdure.learning.tables import reading
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.randomness import generator
from perdure.storage.record import Record
from perdure.storage.store import RunFolder


class OpenedRun:
    """A run from its folder and record; phases and tasks are counted from 0."""

    def __init__(self, folder: RunFolder, record: Record) -> None:
        """Build the tasks and the learner again; weights are read when they are asked for."""
        self.folder, self.record = folder, record
        self.config = from_json(record.config)
        tasks, self.learner = assemble(self.config)
        self._data = on_device(tasks, "cpu")
        self.knowledge = cache(self._knowledge)

    @property
    def title(self) -> str:
        """What the run was."""
        return f"{self.record.benchmark}, {self.record.method}, seed {self.record.seed}"

    @property
    def phases(self) -> list[list[int]]:
        """Tasks of each phase."""
        return self.learner.phases

    def phase(self, after: int | None) -> int:
        """The phase (from 0) that `after` names, counted from 1; None is the last."""
        count = len(self.phases)
        if after is not None and not 1 <= after <= count:
            raise PerdureError(
                f"Run {self.record.hash} has phases 1 to {count}; there is nothing after phase {after}."
            )
        return count - 1 if after is None else after - 1

    def phase_of(self, task: int) -> int:
        """The phase in which a task was learnt."""
        return next(number for number, tasks in enumerate(self.phases) if task in tasks)

    def learnt(self, phase: int) -> list[int]:
        """Tasks that were learnt up to the end of a phase."""
        return [task for tasks in self.phases[: phase + 1] for task in tasks]

    def _knowledge(self, phase: int) -> Knowledge:
        """What was known after a phase."""
        return unpack(self.folder.knowledge(phase), self.learner)

    def data(self, phase: int) -> list[Splits]:
        """The tasks' data, read as they were after a phase (word vectors may have been trained)."""
        return reading(self._data, self.knowledge(phase).parameters)

    def running(self, phase: int, task: int) -> tuple[Network, Weights]:
        """The network and psi with which a task runs after a phase."""
        return self.knowledge(phase).weights(self.learner, task)

    def chance(self, *role: object) -> torch.Generator:
        """A generator for an analysis of this run; the run itself used none of these roles."""
        return generator(self.record.seed, "analysis", *role)

    def states(self, phase: int, task: int, samples: int | None, layer: int = -1) -> States:
        """States on a task's test data after a phase, at most `samples`, among all units of the network."""
        network, weights = self.running(phase, task)
        chance = self.chance("states", task)
        test = self.data(phase)[task].test
        found = hidden_states(network, weights, test, task, layer=layer, samples=samples, generator=chance)
        return found.spread(self.units(phase, task, layer), self.width(layer))

    def width(self, layer: int = -1) -> int:
        """States of a recurrent layer, all directions."""
        architecture = self.learner.network.architecture
        return architecture.hidden[layer] * len(self.learner.network.directions)

    def units(self, phase: int, task: int, layer: int = -1) -> Tensor | None:
        """Which states of a recurrent layer a task's sub-network has; None: all."""
        index = range(len(self.learner.network.architecture.hidden))[layer]
        names = [f"recurrent.{index}.{way}bias_hh" for way in self.learner.network.directions]
        return self._kept(phase, task, names)

    def features(self, phase: int, task: int) -> Tensor | None:
        """Which of the features that heads read a task's sub-network has; None: all."""
        after = len(self.learner.network.architecture.after)
        if after:
            return self._kept(phase, task, [f"after.{after - 1}.bias"])
        return self.units(phase, task)

    def _kept(self, phase: int, task: int, biases: list[str]) -> Tensor | None:
        """Units whose biases the task trains, side by side; None if it trains all weights."""
        learner, knowledge = self.learner, self.knowledge(phase)
        where = learner.source.active(learner.network, knowledge.buffers, [task]).get("body")
        if where is None:
            return None
        body = learner.network.body
        marks = body.split(torch.zeros(body.size).index_fill(0, where.cpu(), 1))
        parts = []
        for name in biases:
            units = body.axes[name][0].units  # of one gate; all gates of a unit stay or go together
            parts.append(marks[name][:units] > 0)
        return torch.cat(parts).nonzero()[:, 0]
