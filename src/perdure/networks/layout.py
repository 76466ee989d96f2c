"""Which weights a network has: names, shapes, and the units that their axes belong to.

A network's weights psi are a mapping from names to tensors. A `Layout` also knows them as one flat
vector, which is how optimisers, importance values and hypernetworks see them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from perdure.alignment import aligned

Weights = dict[str, Tensor]
"""psi: weights of a network by name."""

Vectors = dict[str, Tensor]
"""Named flat vectors: trainable parameters, importance values, anchors."""


def moved(vectors: Vectors, device: str) -> Vectors:
    """The same on another device, each at an aligned address whoever made it."""
    return {name: aligned(vector.to(device)) for name, vector in vectors.items()}


@dataclass(frozen=True)
class Axis:
    """One axis of a weight tensor: groups of units side by side, `gates` copies stacked.

    The groups say which part of the network an entry belongs to; masking gathers along them.
    """

    groups: tuple[tuple[str, int], ...]
    gates: int = 1

    @property
    def units(self) -> int:
        """Units of one copy."""
        return sum(size for _, size in self.groups)

    @property
    def size(self) -> int:
        """Length of the axis."""
        return self.gates * self.units

    def gather(self, kept: Mapping[str, Tensor]) -> Tensor:
        """Positions on this axis that remain if each group in `kept` keeps only those units."""
        positions, start = [], 0
        for group, size in self.groups:
            positions.append(start + kept.get(group, torch.arange(size)))
            start += size
        one = torch.cat(positions)
        return torch.cat([one + gate * self.units for gate in range(self.gates)])


class Layout:
    """An ordered mapping from weight names to axes."""

    def __init__(self, axes: Mapping[str, tuple[Axis, ...]]) -> None:
        """Remember the axes; the order of names is the order in the flat vector."""
        self.axes = dict(axes)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight."""
        return {name: tuple(axis.size for axis in axes) for name, axes in self.axes.items()}

    @cached_property
    def _sizes(self) -> list[int]:
        return [prod(shape) for shape in self.shapes.values()]

    @cached_property
    def size(self) -> int:
        """Number of weights."""
        return sum(self._sizes)

    def split(self, vector: Tensor) -> Weights:
        """Named views of a flat vector [size]; gradients flow back in one piece."""
        # The views are not aligned. Results still do not depend on where a run was resumed: an aligned vector
        # puts each view at the same offset from the alignment, before and after.
        parts = torch.split(vector, self._sizes)
        return {
            name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def join(self, weights: Mapping[str, Tensor]) -> Tensor:
        """The flat vector [size] of named weights."""
        return torch.cat([weights[name].reshape(-1) for name in self.axes])

    def gather(self, kept: Mapping[str, Tensor]) -> Tensor:
        """Positions in the flat vector of the weights among the units that are kept."""
        positions, start = [], 0
        for (name, axes), size in zip(self.axes.items(), self._sizes, strict=True):
            where = torch.arange(size).view(self.shapes[name])
            for dimension, axis in enumerate(axes):
                where = where.index_select(dimension, axis.gather(kept))
            positions.append(start + where.reshape(-1))
            start += size
        return torch.cat(positions)
