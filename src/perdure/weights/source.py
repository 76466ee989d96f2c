"""The contract of a weight source.

A source owns named flat vectors of parameters (and buffers that are not trained). While a task is
learnt, only its active entries are trained; `weights` makes the network's psi from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Piece

Positions = dict[str, Tensor | None]
"""For each vector that is trained the positions of its trained entries (None: all)."""


class Chance(Protocol):
    """Random generators of a run by role."""

    def __call__(self, *role: object) -> torch.Generator:
        """A fresh generator that depends on the run's seed and on the role alone."""


class WeightSource(Piece):
    """Where psi comes from: options, and pure functions of explicit vectors."""

    generates: ClassVar[bool] = False
    """Whether psi is made from other parameters instead of being trained itself."""

    @abstractmethod
    def start(self, network: Network, chance: Chance) -> tuple[Vectors, Vectors]:
        """Parameters and buffers at the start of a run."""

    def begin(
        self, network: Network, buffers: Vectors, parameters: Vectors, tasks: Sequence[int], chance: Chance
    ) -> Vectors:
        """Parameters as training of these tasks begins: a new task may start from what is known."""
        del network, buffers, tasks, chance
        return parameters

    @abstractmethod
    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """What is trained while tasks are learnt and others rehearsed; what the tasks need is part of it."""

    @abstractmethod
    def weights(
        self, network: Network, buffers: Vectors, active: Vectors, task: int
    ) -> tuple[Network, Weights]:
        """The network that runs for `task` and its psi, differentiable in the active vectors."""

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors | None:
        """The inverse of `weights` for values given per weight, such as a Fisher.

        `network` is the one that `weights` returned. None if psi is not itself what is trained.
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
