"""The contract of a network's body: the layers between the inputs and the output heads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor

from perdure.errors import PerdureError
from perdure.networks.layout import Axis, InitialisationRule, Layout, Weights
from perdure.networks.packing import Packing
from perdure.networks.tape import Tape, TaskVector
from perdure.options import Piece


class BodyPlan(NamedTuple):
    """The weights of a body."""

    layout: Layout
    features: Axis
    """Units that the heads read."""
    entrances: dict[str, tuple[Axis, int]]
    """Entry points of the task's identity as a one-hot input: by name, the units of the first affine maps and
    the number of their inputs."""


class BodyInput(NamedTuple):
    """The input of a body, and the rows at which features are required."""

    rows: Tensor
    """Packed inputs [S, F]."""
    packing: Packing
    asked: slice | Tensor | None
    """Rows at which features are required; None: all."""
    answers: Packing
    """How these rows group into sequences."""
    task_vectors: Mapping[str, TaskVector]
    """What the task adds at each entry point; empty if the network does not know the task."""
    noise: torch.Generator | None = None
    """What drops units at random; None: nothing is dropped."""


class Architecture(Piece):
    """The choices that describe a network: a kind of body, and what all networks have in common."""

    heads: Literal["multi", "single", "growing"] = "multi"
    """One output head per task (multi), one for all (single), or one to which each adds classes (growing)."""
    task_identity: bool = False
    """Provide the task as a one-hot input at every step."""
    initialisation: Literal["original", "torch"] = "original"
    """original: U(+-1/sqrt(fan-in)) per matrix; torch: U(+-1/sqrt(units)) in recurrent layers."""

    @property
    def rule(self) -> InitialisationRule:
        """How layers choose their initial values."""
        return InitialisationRule(self.initialisation)

    @property
    def drops(self) -> bool:
        """Whether units are dropped at random in training."""
        return False

    @property
    def layers(self) -> int:
        """Number of recurrent layers; 0 for bodies without states."""
        return 0

    @property
    def numbers_per_unit(self) -> int:
        """How many numbers the state of a recurrent layer has for each unit."""
        return 1

    @abstractmethod
    def plan(self, inputs: int) -> BodyPlan:
        """The body's weights for this many input features."""

    @abstractmethod
    def features(self, weights: Weights, given: BodyInput, tape: Tape | None) -> Tensor:
        """The heads' inputs, at the required rows [M, H]."""

    @abstractmethod
    def narrowed(self, kept: Mapping[str, int]) -> Self:
        """The same with the numbers of units in `kept` for each group."""

    @abstractmethod
    def numbers_per_step(self, inputs: int) -> int:
        """Numbers that a forward and backward pass store per step, to bound memory."""

    def recurrent_matrices(self, weights: Weights) -> list[Tensor]:
        """Every hidden-to-hidden matrix [H, H]; empty if there are none."""
        del weights
        return []

    def state_groups(self, layer: int) -> tuple[tuple[str, int], ...]:
        """Names and numbers of the units whose states a recurrent layer has, for each direction."""
        raise PerdureError(
            f"A {self.name} body has no recurrent layer {layer}, so there are no states to analyse."
        )

    def from_states(self, weights: Weights, states: Sequence[Tensor]) -> Tensor:
        """Features [M, H] from states of the last recurrent layer, [M, H] for each direction."""
        raise PerdureError(f"A {self.name} body has no recurrent states to read out.")


def dropped(rows: Tensor, fraction: float, noise: torch.Generator | None) -> Tensor:
    """Rows with a random fraction of entries set to 0 and the others scaled up; unchanged without noise."""
    if noise is None or fraction == 0:
        return rows
    kept = torch.rand(rows.shape, generator=noise, dtype=torch.float32) >= fraction
    return rows * kept.to(rows.device, rows.dtype) / (1 - fraction)
