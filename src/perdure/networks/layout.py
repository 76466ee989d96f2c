"""The weights of a network: names, shapes, initial values, and the units that their axes belong to.

A network's weights psi are a mapping from names to tensors. A `Layout` also treats them as one flat
vector, as optimisers, importance values and hypernetworks do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

import torch
from torch import Tensor

from perdure.alignment import aligned

Weights = dict[str, Tensor]
"""psi: the weights of a network by name."""

Vectors = dict[str, Tensor]
"""Named flat vectors: trainable parameters, importance values, anchors."""


def moved(vectors: Vectors, device: str) -> Vectors:
    """The same on another device, each at an aligned address, wherever it came from."""
    return {name: aligned(vector.to(device)) for name, vector in vectors.items()}


@dataclass(frozen=True)
class Axis:
    """One axis of a weight tensor: concatenated groups of units, stacked in `gates` copies.

    The groups determine which part of the network an entry belongs to; masking gathers along them.
    """

    groups: tuple[tuple[str, int], ...]
    gates: int = 1

    @property
    def units(self) -> int:
        """Number of units of one copy."""
        return sum(size for _, size in self.groups)

    @property
    def size(self) -> int:
        """Length of the axis."""
        return self.gates * self.units

    def stacked(self, gates: int) -> Axis:
        """The same units in `gates` copies."""
        return Axis(self.groups, gates)

    def gather(self, kept: Mapping[str, Tensor]) -> Tensor:
        """Positions on this axis that remain if each group in `kept` keeps only those units."""
        positions, start = [], 0
        for group, size in self.groups:
            positions.append(start + kept.get(group, torch.arange(size)))
            start += size
        one = torch.cat(positions)
        return torch.cat([one + gate * self.units for gate in range(self.gates)])


@dataclass(frozen=True)
class Start:
    """How a weight is initialised: U(-bound, bound), or random orthogonal blocks on top of each other."""

    bound: float
    orthogonal_blocks: int = 0
    spread: float = 0.0
    """Standard deviation that a hypernetwork's output should initially have in its place."""


@dataclass(frozen=True)
class InitialisationRule:
    """The rule by which layers choose the bounds of their initial values (following the original)."""

    kind: Literal["original", "torch"] = "original"
    """original: U(+-1/sqrt(fan-in)) per matrix; torch: U(+-1/sqrt(units)) in recurrent layers."""
    orthogonal: bool = False
    """Whether hidden-to-hidden matrices are initialised orthogonal, each gate's block separately."""

    def affine(self, fan_in: int, units: int | None = None) -> Start:
        """For a matrix with `fan_in` columns and its bias; `units` are those of a recurrent layer."""
        size = units if units is not None and self.kind == "torch" else fan_in
        return Start(size**-0.5, spread=(3 * fan_in) ** -0.5)

    def state_to_state(self, units: int, gates: int) -> Start:
        """For W_hh [gates * units, units]; generated ones should have the spread of orthogonal matrices."""
        return Start(units**-0.5, gates if self.orthogonal else 0, spread=units**-0.5)


Weight = tuple[tuple[Axis, ...], Start]
"""The axes of a weight and how it is initialised."""


class Layout:
    """An ordered mapping from weight names to axes and initialisations."""

    def __init__(self, axes: Mapping[str, tuple[Axis, ...]], starts: Mapping[str, Start] | None = None):
        """Store the axes; the order of names is the order in the flat vector."""
        self.axes = dict(axes)
        self.starts = dict(starts or {})

    @classmethod
    def of(cls, weights: Mapping[str, Weight]) -> Layout:
        """A layout of weights with their initialisations."""
        return cls(
            {name: axes for name, (axes, _) in weights.items()},
            {name: start for name, (_, start) in weights.items()},
        )

    def __or__(self, other: Layout) -> Layout:
        """These weights, followed by those of the other."""
        return Layout(self.axes | other.axes, self.starts | other.starts)

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
        """Named views of a flat vector [size]; gradients flow back to it as a whole."""
        # The views are not aligned. Results still do not depend on where a run was resumed: an aligned vector
        # puts each view at the same offset from the alignment, before and after.
        parts = vector.split_with_sizes(self._sizes)  # torch.split is the same, after more checks in Python
        return {
            name: part if len(shape) == 1 else part.view(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
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
