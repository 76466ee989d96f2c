"""The contract of a penalty.

A penalty is options. At the start of a phase it makes a `Term` from its memory (named vectors that
outlive phases); the term gives a loss at each step; at the end it returns the new memory.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from perdure.networks.batch import Data
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Piece
from perdure.weights.source import Chance, Positions, WeightSource

Watched = Literal["task", "total"] | None


@dataclass(frozen=True)
class Situation:
    """What a penalty may know of the phase that begins: one task, or several learnt together."""

    network: Network
    source: WeightSource
    buffers: Vectors
    parameters: Vectors
    """All parameter vectors as they are before the phase."""
    positions: Positions
    start: Vectors
    """The active entries of `parameters`."""
    tasks: Sequence[int]
    data: Callable[[int], Data]
    """Training data of a task of this phase."""
    chance: Chance


Running = Sequence[tuple[Network, Weights]]
"""For each task of the phase the network that runs and its psi."""


class Term(Protocol):
    """A penalty during one phase."""

    watches: Watched
    """Whether to `observe` the gradient of the task loss alone, of the total, or none."""

    def loss(self, active: Vectors, running: Running) -> Tensor | None:
        """The term to be added to the loss at this step; None where there is nothing to protect."""

    def observe(self, gradients: Vectors, step: Callable[[], Vectors]) -> None:
        """See a gradient; `step()` tells by how much the optimiser would move for it."""

    def state(self) -> Vectors:
        """What a checkpoint within the phase must keep."""

    def restore(self, state: Vectors) -> None:
        """Continue from what `state` gave."""

    def finish(self, active: Vectors) -> Vectors:
        """The penalty's memory after the phase, given the trained vectors."""


class Penalty(Piece):
    """What protects old knowledge: options, and `begin` for each phase."""

    @abstractmethod
    def begin(self, memory: Vectors, situation: Situation) -> Term:
        """The penalty's term for a phase."""


class PlainTerm:
    """A term without running state; a base for those that only have a loss."""

    watches: Watched = None

    def observe(self, gradients: Vectors, step: Callable[[], Vectors]) -> None:
        """Nothing to see."""

    def state(self) -> Vectors:
        """Nothing to keep."""
        return {}

    def restore(self, state: Vectors) -> None:
        """Nothing to restore."""

    def finish(self, active: Vectors) -> Vectors:
        """Nothing to remember."""
        return {}
