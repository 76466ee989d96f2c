"""A finished run, opened for analysis: its tasks, and the network and weights after each phase."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

import torch
from torch import Tensor

from perdure.analysis.states import States, hidden_states
from perdure.config import Config, from_json
from perdure.errors import PerdureError
from perdure.experiment import assemble, generators_of, on_device
from perdure.files import Damaged
from perdure.identity import stands_for
from perdure.learning.embedding_tables import all_read_through
from perdure.learning.learner import Learner, LearnerState
from perdure.learning.packing import unpack
from perdure.learning.resuming import check_state
from perdure.learning.splits import Splits, outputs_of
from perdure.networks.layout import Weights
from perdure.networks.network import BODY, Network
from perdure.randomness import generator
from perdure.storage.record import Record
from perdure.storage.store import RunFolder
from perdure.weights.source import GeneratorFactory


def config_of(record: Record) -> Config:
    """The config of a record, which must be the one that its hash stands for."""
    config = from_json(record.config)
    if not stands_for(record.hash, config.json):
        raise PerdureError(
            f"The config of run {record.hash} is not one that this version would write; run it again."
        )
    return config


def state_of(
    folder: RunFolder, phase: int, learner: Learner, outputs: Sequence[int], generators: GeneratorFactory
) -> LearnerState:
    """The learner's state after a phase, from its file; names, shapes, types and numbers are checked."""
    tensors = folder.knowledge(phase)
    try:
        state = unpack(tensors, learner, outputs)
        check_state(state, learner, outputs, generators)
    except Damaged as error:
        raise folder.unusable(phase, error) from None
    return state


class OpenedRun:
    """A run from its folder and record; phases and tasks are counted from 0."""

    def __init__(self, folder: RunFolder, record: Record) -> None:
        """Rebuild the tasks and the learner; weights are read when needed."""
        self.folder, self.record = folder, record
        self.config = config_of(record)
        tasks, self.learner = assemble(self.config)
        if len(tasks) != len(record.tasks):
            raise PerdureError(
                f"Run {record.hash} has {len(record.tasks)} tasks, but its benchmark now makes {len(tasks)}; "
                f"run it again."
            )
        self._data = on_device(tasks, "cpu")
        self.state = cache(self._state)

    @property
    def title(self) -> str:
        """A description of the run."""
        return f"{self.record.benchmark}, {self.record.method}, seed {self.record.seed}"

    @property
    def phases(self) -> list[list[int]]:
        """Tasks of each phase."""
        return self.learner.phases(len(self._data))

    def phase(self, after: int | None) -> int:
        """The phase (from 0) for `after`, which is counted from 1; None is the last."""
        count = len(self.phases)
        if after is not None and not 1 <= after <= count:
            raise PerdureError(f"Run {self.record.hash} has phases 1 to {count}; there is no phase {after}.")
        return count - 1 if after is None else after - 1

    def phase_of(self, task: int) -> int:
        """The phase in which a task was learnt."""
        return next(number for number, tasks in enumerate(self.phases) if task in tasks)

    def learnt(self, phase: int) -> list[int]:
        """Tasks learnt up to the end of a phase."""
        return [task for tasks in self.phases[: phase + 1] for task in tasks]

    @cached_property
    def network(self) -> Network:
        """The network with all tasks."""
        return Network(self.config.network, self.learner.inputs, outputs_of(self._data))

    def _state(self, phase: int) -> LearnerState:
        """The learner's state after a phase."""
        outputs = outputs_of([self._data[task] for task in self.learnt(phase)])
        return state_of(self.folder, phase, self.learner, outputs, generators_of(self.config))

    def data(self, phase: int) -> list[Splits]:
        """The tasks' data as they were read after a phase (word vectors may have been trained)."""
        vectors = self.state(phase).parameters
        return [all_read_through(splits, task, vectors) for task, splits in enumerate(self._data)]

    def running(self, phase: int, task: int) -> tuple[Network, Weights]:
        """The network and psi with which a task runs after a phase."""
        return self.state(phase).weights(self.learner, task)

    def chance(self, *role: object) -> torch.Generator:
        """A generator for an analysis of this run; the run itself uses none of these roles."""
        return generator(self.record.seed, "analysis", *role)

    def states(self, phase: int, task: int, samples: int | None, layer: int = -1) -> States:
        """States on test data of a task after a phase, of at most `samples`, among all units."""
        network, weights = self.running(phase, task)
        chance = self.chance("states", task)
        test = self.data(phase)[task].test
        found = hidden_states(network, weights, test, task, layer=layer, samples=samples, generator=chance)
        return found.spread(self.units(phase, task, layer), self.width(layer))

    def width(self, layer: int = -1) -> int:
        """Number of states of a recurrent layer, over all directions."""
        network = self.config.network
        return network.numbers_per_unit * sum(units for _, units in network.state_groups(layer))

    def units(self, phase: int, task: int, layer: int = -1) -> Tensor | None:
        """Which states of a recurrent layer belong to a task's sub-network; None: all."""
        groups, numbers = self.config.network.state_groups(layer), self.config.network.numbers_per_unit
        kept = [self._kept(phase, task, [group]) for group in groups]
        if kept[0] is None:
            return None
        parts, start = [], 0
        for units, (_, size) in zip(kept, groups, strict=True):
            assert units is not None
            parts += [start + number * size + units for number in range(numbers)]
            start += numbers * size
        return torch.cat(parts)

    def features(self, phase: int, task: int) -> Tensor | None:
        """Which of the heads' input features belong to a task's sub-network; None: all."""
        return self._kept(phase, task, self.network.feature_groups)

    def _kept(self, phase: int, task: int, groups: Sequence[tuple[str, int]]) -> Tensor | None:
        """Units of the groups, concatenated, whose weights the task trains; None if it trains all weights."""
        state = self.state(phase)
        where = self.learner.source.active(state.network, state.buffers, [task]).get(BODY)
        if where is None:
            return None
        body = state.network.body
        marks = body.split(torch.zeros(body.size).index_fill(0, where.cpu(), 1))
        parts = []
        for group, units in groups:
            # Any weight into these units will do; all gates of a unit are kept or dropped together.
            name = next(name for name, axes in body.axes.items() if axes[0].groups == ((group, units),))
            parts.append(marks[name][:units].reshape(units, -1).sum(1) > 0)
        return torch.cat(parts).nonzero()[:, 0]
