"""Masking, also called context-dependent gating (paper Sec. 3, SM "Masking").

Each task keeps a random subset of the units of every hidden layer and silences the rest. A silent unit
passes nothing on and receives no gradient, so the task runs, and trains, as the gathered sub-network:
with 80 % masked that is about 1/25 of the arithmetic of the full one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from perdure.networks.initialise import initialise
from perdure.networks.layout import Vectors, Weights
from perdure.networks.network import Network
from perdure.options import Fraction
from perdure.weights.shared import body_and_head, joined, split
from perdure.weights.source import Chance, Positions, WeightSource


class Masked(WeightSource):
    """A random sub-network per task, cut out of one shared set of weights."""

    fraction: Fraction = 0.8
    """Fraction of each hidden layer's units that are silenced."""

    def start(self, network: Network, chance: Chance) -> tuple[Vectors, Vectors]:
        """Shared weights, and for each task and layer the units that stay (sorted)."""
        parameters = joined(network, initialise(network.layout, network.architecture, chance("weights")))
        masks: Vectors = {}
        for task in range(network.tasks):
            source = chance("mask", task)
            for group, units in network.units.items():
                silent = int(units * self.fraction)
                kept = torch.randperm(units, generator=source)[silent:]
                masks[f"kept.{task}.{group}"] = kept.sort().values
        return parameters, masks

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """The entries of body and head between units that the task keeps."""
        assert not rehearsed, "refused when a method is composed"
        (task,) = tasks
        kept = self._kept(buffers, task)
        head = network.head(task)
        device = next(iter(buffers.values())).device
        return {
            "body": network.body.gather(kept).to(device),
            head: network.heads[head].gather(kept).to(device),
        }

    def weights(
        self, network: Network, buffers: Vectors, active: Vectors, task: int
    ) -> tuple[Network, Weights]:
        """The narrowed network; psi is the gathered vectors."""
        kept = self._kept(buffers, task)
        narrow = network.narrowed({group: len(units) for group, units in kept.items()})
        return narrow, split(narrow, active, task)

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
        """Values per weight of the narrowed network as gathered vectors."""
        return body_and_head(network, weights, task)

    @staticmethod
    def _kept(buffers: Vectors, task: int) -> dict[str, Tensor]:
        prefix = f"kept.{task}."
        return {
            name.removeprefix(prefix): units.cpu()
            for name, units in buffers.items()
            if name.startswith(prefix)
        }
