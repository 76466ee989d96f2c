"""Masking, also called context-dependent gating (paper Sec. 3, SM "Masking").

Each task keeps a random subset of the units of every hidden layer and silences the rest. A silent unit has
no output and receives no gradient, so the task runs and trains as the gathered sub-network: with 80 % masked
that is about 1/25 of the arithmetic of the full one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from perdure.networks.layout import Vectors
from perdure.networks.network import Network
from perdure.options import Composition, Fraction
from perdure.weights.shared import joined_parts, new_parts, split_parts
from perdure.weights.source import GeneratorFactory, Positions, Stock, TaskNetwork, WeightSource


class Masked(WeightSource):
    """A random sub-network per task, cut out of one shared set of weights."""

    fraction: Fraction = 0.8
    """Fraction of each hidden layer's units that are silenced."""

    @classmethod
    def refusal(cls, method: Composition) -> str | None:
        """Rehearsal, distillation and joint training would have to run several sub-networks at once.

        A rehearsal counts even if it only compares gradients and trains nothing again, as a-gem does.
        """
        needing = [
            piece.name
            for section, piece in method.companions.items()
            if section == "rehearsal" or getattr(piece, "rehearses", False)
        ]
        if method.together:
            return "masking trains one task's sub-network at a time, but these tasks are learnt together"
        if not needing:
            return None
        return (
            f"masking trains one task's sub-network at a time, but {needing[0]} needs those of old tasks too"
        )

    def grow(self, network: Network, known: int, stock: Stock, generators: GeneratorFactory) -> Stock:
        """Shared weights, and for each task and layer the units that are kept (sorted)."""
        masks: Vectors = {}
        for task in range(known, network.tasks):
            source = generators("mask", task)
            for group, units in network.units.items():
                silent = int(units * self.fraction)
                kept = torch.randperm(units, generator=source)[silent:]
                masks[f"kept.{task}.{group}"] = kept.sort().values
        return Stock(new_parts(network, stock.parameters, generators), masks)

    def active(
        self, network: Network, buffers: Vectors, tasks: Sequence[int], rehearsed: Sequence[int] = ()
    ) -> Positions:
        """The entries of body and head between units that the task keeps."""
        del rehearsed
        (task,) = tasks
        kept = self._kept(buffers, task)
        device = next(iter(buffers.values())).device
        return {part: network.layouts[part].gather(kept).to(device) for part in network.parts(task)}

    def weights(self, network: Network, buffers: Vectors, active: Vectors, task: int) -> TaskNetwork:
        """The narrowed network; psi is the gathered vectors."""
        kept = self._kept(buffers, task)
        narrow = network.narrowed({group: len(units) for group, units in kept.items()})
        return narrow, split_parts(narrow, active, task)

    def vectors(self, network: Network, weights: Mapping[str, Tensor], task: int) -> Vectors:
        """Values per weight of the narrowed network as gathered vectors."""
        return joined_parts(network, weights, task)

    @staticmethod
    def _kept(buffers: Vectors, task: int) -> dict[str, Tensor]:
        prefix = f"kept.{task}."
        return {
            name.removeprefix(prefix): units.cpu()
            for name, units in buffers.items()
            if name.startswith(prefix)
        }
