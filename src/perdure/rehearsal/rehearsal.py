"""The contract of a rehearsal: like a penalty, but it sees batches and may train vectors of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from perdure.networks.batch import Batch
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Piece
from perdure.penalties.penalty import Situation
from perdure.weights.source import Chance, take


class Replay(Protocol):
    """A rehearsal during one phase."""

    def losses(self, active: Vectors, batches: Mapping[int, Batch]) -> dict[str, Tensor]:
        """Named terms to be added to the loss; `batches` are the current tasks' mini-batches."""

    def state(self) -> Vectors:
        """What a checkpoint within the phase must keep."""

    def restore(self, state: Vectors) -> None:
        """Continue from what `state` gave."""

    def finish(self, active: Vectors) -> Vectors:
        """The rehearsal's memory after the phase, given the trained vectors."""


class Rehearsal(Piece):
    """What is rehearsed: options, vectors of its own, and `begin` for each phase."""

    prefixes: ClassVar[tuple[str, ...]] = ()
    """How the names of its own parameter vectors begin."""

    def start(self, network: Network, chance: Chance) -> Vectors:
        """Parameter vectors that it trains beside the network's."""
        del network, chance
        return {}

    @abstractmethod
    def begin(self, memory: Vectors, situation: Situation) -> Replay:
        """The rehearsal of a phase."""

    def stored(self, memory: Vectors) -> int:
        """How many samples a memory holds."""
        del memory
        return 0

    @abstractmethod
    def examples(
        self, memory: Vectors, situation: Situation, task: int, real: Batch
    ) -> dict[str, list[Tensor]]:
        """What is rehearsed of a task, by kind: as many sequences [T, F] as `real` has."""


def teacher(situation: Situation, task: int) -> tuple[Network, Weights]:
    """The network with which `task` ran before the phase."""
    source, network, buffers = situation.source, situation.network, situation.buffers
    before = take(situation.parameters, source.active(network, buffers, [task]))
    return source.weights(network, buffers, before, task)


def student(situation: Situation, active: Vectors, task: int) -> tuple[Network, Weights]:
    """The network with which `task`, old or new, runs now; what is not trained is as before the phase."""
    vectors = situation.parameters | active
    return situation.source.weights(situation.network, situation.buffers, vectors, task)


def sequences_of(batch: Batch, rows: Tensor) -> list[Tensor]:
    """Packed rows as one [T, F] for each sequence."""
    padded, lengths = batch.packing.unpack(rows), batch.packing.lengths.tolist()
    return [sequence[:length].cpu() for sequence, length in zip(padded, lengths, strict=True)]


def shares(size: int, tasks: list[int], chance: torch.Generator) -> dict[int, int]:
    """A batch of `size` spread over tasks as evenly as possible; who gets one more is drawn anew."""
    order = [tasks[n] for n in torch.randperm(len(tasks), generator=chance).tolist()]
    each, more = divmod(size, len(tasks))
    counts = {task: each + (place < more) for place, task in enumerate(order)}
    return {task: counts[task] for task in tasks if counts[task]}
