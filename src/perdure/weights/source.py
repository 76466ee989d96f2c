"""The contract of a weight source.

A source owns named flat vectors of parameters (and buffers that are not trained). It gains more when tasks
arrive. While a task is learnt, only its active entries are trained; `weights` computes psi from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Piece

Positions = dict[str, Tensor | None]
"""For each trained vector, the positions of its trained entries (None: all)."""

TaskNetwork = tuple[Network, Weights]
"""The network that runs for a task, and its psi."""


class GeneratorFactory(Protocol):
    """Random generators of a run, by role."""

    def __call__(self, *role: object) -> torch.Generator:
        """A new generator that depends only on the run's seed and the role."""


class Stock(NamedTuple):
    """What a source owns: parameters, which are trained, and buffers, which are not."""

    parameters: Vectors
    buffers: Vectors


class Generated(NamedTuple):
    """Numbers of weights of something that is generated, and of what generates it, embeddings included."""

    what: str
    """network, decoder, ..."""
    generated: int
    generating: int


class WeightSource(Piece):
    """Where psi comes from: options, and pure functions of explicit vectors."""

    generates: ClassVar[bool] = False
    """Whether psi is computed from other parameters instead of being trained itself."""
    shares_heads: ClassVar[bool] = False
    """Whether a task can read the heads of others, as a growing head requires."""

    @abstractmethod
    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """What is added for the network's tasks with index `known` and above, given the stock so far.

        Initially nothing is known. Nothing may depend on tasks that have not arrived.
        """

    @abstractmethod
    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """What is trained while tasks are learnt and others rehearsed; it includes all the tasks need."""

    @abstractmethod
    def weights(self, network: Network, buffers: Vectors, active: Vectors, task: int) -> TaskNetwork:
        """The network that runs for `task` and its psi, differentiable in the active vectors."""

    def count(self, network: Network) -> int:
        """Number of trained weights for the tasks of a network; by making them, unless a source can tell."""
        made = self.grow(network, 0, Stock({}, {}), lambda *role: torch.Generator())
        return sum(vector.numel() for vector in made.parameters.values())

    def running(
        self, network: Network, buffers: Vectors, active: Vectors, tasks: Iterable[int]
    ) -> dict[int, TaskNetwork]:
        """`weights` of several tasks. Tensors that tasks share are the same objects, to run in one pass."""
        return {task: self.weights(network, buffers, active, task) for task in tasks}

    def generated(self, network: Network) -> Generated | None:
        """How large the generated network is, and what generates it; None if psi itself is trained."""
        del network
        return None

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors | None:
        """The inverse of `weights` for values given per weight, such as a Fisher.

        `network` is the one that `weights` returned. None if psi itself is not what is trained.
        """
        return None


def take(vectors: Vectors, positions: Positions) -> Vectors:
    """The active entries of full vectors, as copies."""
    return {
        name: vectors[name].clone() if where is None else vectors[name][where]
        for name, where in positions.items()
    }


def put(vectors: Vectors, active: Vectors, positions: Positions) -> Vectors:
    """Full vectors with their active entries replaced."""
    result = dict(vectors)
    for name, where in positions.items():
        if where is None:
            result[name] = active[name].clone()
        else:
            result[name] = vectors[name].clone()
            result[name][where] = active[name]
    return result
