"""The contract of a recurrent cell: its weights, how it runs over packed rows, and its output.

Weights of a cell are named after what they connect: `..._ih` input to state, `..._hh` state to state,
`..._ho` state to output. Analyses of recurrent weights rely on these suffixes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, ClassVar, NamedTuple

import torch
from pydantic import BeforeValidator, Field, PlainSerializer
from torch import Tensor, nn

from perdure.errors import PerdureError
from perdure.networks.cells import DEFAULT
from perdure.networks.layout import Axis, InitialisationRule, Weight, Weights
from perdure.networks.native.sweeps import CompiledSweeps
from perdure.networks.packing import Packing
from perdure.networks.tape import Tape, TaskVector
from perdure.options import Piece
from perdure.registry import Choice, chosen, said


class LayerInput(NamedTuple):
    """The input of a recurrent layer."""

    rows: Tensor
    """Inputs of all steps [S, F]."""
    packing: Packing
    task_vectors: tuple[TaskVector | None, ...]
    """What the task adds to the projected input, for each direction."""
    tape: Tape | None


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """Rows of each direction [S, H] next to each other [S, D H]."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)


class Cell(Piece):
    """One kind of recurrent cell; its fields are its options."""

    gates: ClassVar[int] = 1
    """The projected input has gates * H columns."""
    numbers_per_unit: ClassVar[int] = 1
    """How many numbers h has for each unit: its columns are H for the first, then H for the second."""
    passes_states: ClassVar[bool] = True
    """Whether a layer's output is h_t itself."""
    native: ClassVar[type[CompiledSweeps] | None] = None
    """Its sweeps in the compiled library, if there are any; those in Python are always there."""
    torch_layer: ClassVar[type[nn.RNNBase] | None] = None
    """Torch's layer with the same recurrence, if there is one: networks of such cells can be exported.

    As for `native`, only a cell's own counts, since a derived class may have other equations."""
    continues: ClassVar[bool] = False
    """Whether its state is h alone and acts only through `carried`."""

    @abstractmethod
    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """All weights of one layer and direction, with names that start with the prefix."""

    @abstractmethod
    def sweep(self, weights: Weights, prefix: str, given: LayerInput, direction: int) -> Tensor:
        """States h [S, H] of one direction (0: forwards, 1: backwards), recorded on any tape."""

    def run(self, weights: Weights, prefixes: tuple[str, ...], given: LayerInput) -> Tensor:
        """States [S, D H] of all directions side by side."""
        return side_by_side(
            [self.sweep(weights, prefix, given, direction) for direction, prefix in enumerate(prefixes)]
        )

    def output(
        self, weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """The layer's output from its states [M, H]."""
        del weights, prefix, packing, tape
        return states

    def recurrent_matrices(self, weights: Weights, prefix: str) -> list[Tensor]:
        """The hidden-to-hidden matrices [H, H], one per gate; a cell may have none."""
        del weights, prefix
        return []

    def carried(self, weights: Weights, prefix: str, states: Tensor) -> Tensor:
        """What states [B, H] add to the projected input of the following step [B, G], if it `continues`."""
        raise PerdureError(f"A {self.name} cell cannot be continued from h alone.")

    @abstractmethod
    def continued(self, weights: Weights, prefix: str, projected: Tensor, packing: Packing) -> Tensor:
        """States [S, H] from a projected input [S, G] and the zero state."""


CellChoice = Annotated[
    Cell,
    BeforeValidator(lambda value: chosen("cells", value)),
    PlainSerializer(said),
    Choice("cells"),
    Field(default=DEFAULT, validate_default=True),
]
"""An option that names a cell; the cell's own options are below it, as in network.cell.NAME."""
