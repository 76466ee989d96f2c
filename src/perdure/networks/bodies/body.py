"""The contract of a network's body: the layers between the inputs and the output heads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Self

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
    """Where the task's identity, as a one-hot input, would come in: by name, the units of the first affine
    maps, and the number of their inputs."""


class BodyInput(NamedTuple):
    """What a body reads, and where it is asked for features."""

    rows: Tensor
    """Packed inputs [S, F]."""
    packing: Packing
    asked: slice | Tensor | None
    """Rows at which features are wanted; None: all."""
    answers: Packing
    """How the asked rows group into sequences."""
    task_vectors: Mapping[str, TaskVector]
    """What the task adds at each entrance; empty if the network is not told the task."""


class Architecture(Piece):
    """The choices that describe a network: a kind of body, and what all networks have."""

    heads: Literal["multi", "single"] = "multi"
    """One output head per task, or one for all."""
    task_identity: bool = False
    """Give the task as a one-hot input at every step."""
    initialisation: Literal["original", "torch"] = "original"
    """original: U(+-1/sqrt(fan-in)) per matrix; torch: U(+-1/sqrt(units)) in recurrent layers."""

    @property
    def rule(self) -> InitialisationRule:
        """How layers choose their start values."""
        return InitialisationRule(self.initialisation)

    @property
    def layers(self) -> int:
        """Number of recurrent layers; 0 for bodies that have no states."""
        return 0

    @abstractmethod
    def plan(self, inputs: int) -> BodyPlan:
        """The body's weights for so many input features."""

    @abstractmethod
    def features(self, weights: Weights, given: BodyInput, tape: Tape | None) -> Tensor:
        """What the heads read, at the asked rows [M, H]."""

    @abstractmethod
    def narrowed(self, kept: Mapping[str, int]) -> Self:
        """The same with as many units in each group as `kept` says."""

    @abstractmethod
    def numbers_per_step(self, inputs: int) -> int:
        """Numbers that a forward and backward pass keep for each step, for bounding memory."""

    def recurrent_matrices(self, weights: Weights) -> list[Tensor]:
        """Every hidden-to-hidden matrix [H, H]; none if there is no such thing."""
        del weights
        return []

    def state_groups(self, layer: int) -> tuple[tuple[str, int], ...]:
        """Names and numbers of the units whose states a recurrent layer has, direction by direction."""
        raise PerdureError(
            f"A {self.name} body has no recurrent layer {layer}, so there are no states to look at."
        )

    def from_states(self, weights: Weights, states: Sequence[Tensor]) -> Tensor:
        """Features [M, H] from states of the last recurrent layer, [M, H] for each direction."""
        raise PerdureError(f"A {self.name} body has no recurrent states to read out.")
