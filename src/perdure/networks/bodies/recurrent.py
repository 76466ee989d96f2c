"""Dense layers, recurrent layers, dense layers: the networks of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor
from torch.nn import functional

from perdure.networks.arithmetic import tanh
from perdure.networks.bodies.body import Architecture, BodyInput, BodyPlan, dropped
from perdure.networks.cells.cell import CellChoice, LayerInput, side_by_side
from perdure.networks.layout import Axis, InitialisationRule, Layout, Weight, Weights
from perdure.networks.packing import Packing, uniform
from perdure.networks.tape import LayerStates, Tape, TaskVector, affine
from perdure.options import Fraction, Sizes, SomeSizes


class Recurrent(Architecture):
    """Recurrent layers of one kind of cell, with dense tanh layers before and after them."""

    later: ClassVar[tuple[str, ...]] = ("zero_forward", "norm", "dropout", "input_norm")

    cell: CellChoice
    """Kind of recurrent cell; perdure list pieces shows them."""
    hidden: SomeSizes = (256,)
    """Units of each recurrent layer."""
    bidirectional: bool = False
    """Read each sequence in both directions."""
    input_layers: Sizes = ()
    """Units of dense tanh layers between the input and the recurrent layers."""
    output_layers: Sizes = ()
    """Units of dense tanh layers between the recurrent layers and the heads."""
    orthogonal: bool = False
    """Initialise hidden-to-hidden matrices orthogonally (each gate's block separately)."""
    zero_forward: bool = False
    """Zero the forward half of a bidirectional network, as a slip of the original does (PoS tagging)."""

    norm: Literal["none", "layer"] = "none"
    """layer: what each dense and recurrent layer passes on has mean 0 and variance 1 over its units."""
    dropout: Fraction = 0.0
    """Fraction of the units of each dense and recurrent layer that are dropped at random in training."""

    input_norm: bool = False
    """Whether the features of each step are brought to mean 0 and variance 1 first."""

    @property
    def drops(self) -> bool:
        """Whether units are dropped at random in training."""
        return self.dropout > 0

    def passed(self, rows: Tensor, noise: torch.Generator | None) -> Tensor:
        """What a layer passes on [S, H]: normalised, and in training with some units dropped."""
        if self.norm == "layer":
            rows = functional.layer_norm(rows, rows.shape[1:])
        return dropped(rows, self.dropout, noise)

    @property
    def rule(self) -> InitialisationRule:
        """How layers choose their initial values."""
        return InitialisationRule(self.initialisation, self.orthogonal)

    @property
    def layers(self) -> int:
        """Number of recurrent layers."""
        return len(self.hidden)

    @property
    def numbers_per_unit(self) -> int:
        """How many numbers the state has for each unit."""
        return self.cell.numbers_per_unit

    @property
    def directions(self) -> tuple[str, ...]:
        """Name prefixes within a recurrent layer."""
        return ("", "reverse.") if self.bidirectional else ("",)

    def prefixes(self, layer: int) -> tuple[str, ...]:
        """Prefixes of the names of a recurrent layer's weights, one per direction."""
        return tuple(f"recurrent.{layer}.{direction}" for direction in self.directions)

    def plan(self, inputs: int) -> BodyPlan:
        """Weights in the order in which data pass through them."""
        weights: dict[str, Weight] = {}
        entrances: dict[str, tuple[Axis, int]] = {}
        current = Axis((("input", inputs),))
        for index, units in enumerate(self.input_layers):
            entrance, current = current, dense(weights, f"input_layers.{index}", current, units, self.rule)
            if index == 0:
                entrances["input_layers.0"] = current, entrance.size
        for layer, units in enumerate(self.hidden):
            groups: tuple[tuple[str, int], ...] = ()
            for prefix in self.prefixes(layer):
                out = Axis(((prefix.rstrip("."), units),))
                weights |= self.cell.weights(prefix, current, out, self.rule)
                if layer == 0 and not self.input_layers:
                    entrances[prefix.rstrip(".")] = out.stacked(self.cell.gates), current.size
                groups += out.groups
            current = Axis(groups)
        for index, units in enumerate(self.output_layers):
            current = dense(weights, f"output_layers.{index}", current, units, self.rule)
        return BodyPlan(Layout.of(weights), current, entrances)

    def features(self, weights: Weights, given: BodyInput, tape: Tape | None) -> Tensor:
        """The heads' inputs, at the required rows; the last readout is not computed elsewhere."""
        rows = given.rows
        if self.input_norm:
            rows = functional.layer_norm(rows, rows.shape[1:])
        for index in range(len(self.input_layers)):
            added = given.task_vectors.get(f"input_layers.{index}")
            rows = _dense_tanh(weights, f"input_layers.{index}", rows, given.packing, tape, added)
            rows = self.passed(rows, given.noise)
        for layer in range(self.layers):
            last = layer == self.layers - 1
            rows = self._recurrent(
                weights, layer, rows, given, asked=given.asked if last else None, tape=tape
            )
        packing = given.packing if given.asked is None else given.answers
        return self._output_layers(weights, rows, packing, tape, given.noise)

    def _recurrent(
        self,
        weights: Weights,
        layer: int,
        rows: Tensor,
        given: BodyInput,
        *,
        asked: slice | Tensor | None,
        tape: Tape | None,
    ) -> Tensor:
        """Output of one recurrent layer, at the required rows only."""
        prefixes = self.prefixes(layer)
        vectors = tuple(
            given.task_vectors.get(prefix.rstrip(".")) if layer == 0 else None for prefix in prefixes
        )
        states = self.cell.run(weights, prefixes, LayerInput(rows, given.packing, vectors, tape))
        if self.zero_forward and self.bidirectional:
            forward, backward = states.chunk(2, dim=1)
            states = side_by_side([forward * 0, backward])  # a factor, so that gradients are not missing
        hidden = states
        if isinstance(asked, slice):
            states = states[asked]
        elif asked is not None:
            states = states.index_select(0, asked)
        outputs = self._read(weights, layer, states, given.packing if asked is None else given.answers, tape)
        if tape is not None:
            passed = None if self.cell.passes_states else outputs
            tape.layers.append(LayerStates(hidden, passed))
        return self.passed(outputs, given.noise)

    def _read(
        self, weights: Weights, layer: int, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """A recurrent layer's output from its states [M, D H] of all directions side by side."""
        if self.cell.passes_states:
            return states
        parts = states.split(self.numbers_per_unit * self.hidden[layer], dim=1)
        return side_by_side(
            [
                self.cell.output(weights, prefix, each, packing, tape)
                for prefix, each in zip(self.prefixes(layer), parts, strict=True)
            ]
        )

    def _output_layers(
        self,
        weights: Weights,
        rows: Tensor,
        packing: Packing,
        tape: Tape | None,
        noise: torch.Generator | None,
    ) -> Tensor:
        for index in range(len(self.output_layers)):
            rows = self.passed(_dense_tanh(weights, f"output_layers.{index}", rows, packing, tape), noise)
        return rows

    def from_states(self, weights: Weights, states: Sequence[Tensor]) -> Tensor:
        """The part f_out of the network, which treats each step separately.

        See SM "Determining task-relevant intrinsic dimensionality".
        """
        packing = uniform(len(states[0]), 1)
        rows = self._read(weights, self.layers - 1, side_by_side(states), packing, None)
        return self._output_layers(weights, self.passed(rows, None), packing, None, None)

    def narrowed(self, kept: Mapping[str, int]) -> Self:
        """The sub-network with the numbers of units in `kept` for each layer."""
        fields = {"input_layers": "input_layers", "hidden": "recurrent", "output_layers": "output_layers"}
        sizes = {
            field: tuple(
                kept.get(f"{group}.{index}", units) for index, units in enumerate(getattr(self, field))
            )
            for field, group in fields.items()
        }
        return self.model_copy(update=sizes)

    def numbers_per_step(self, inputs: int) -> int:
        """A few copies of gates and states, dense layers with their gradients, and the input."""
        recurrent = len(self.directions) * sum(self.hidden) * (4 * self.cell.gates + 4)
        return recurrent + 2 * (sum(self.input_layers) + sum(self.output_layers)) + 2 * inputs

    def recurrent_matrices(self, weights: Weights) -> list[Tensor]:
        """Every hidden-to-hidden matrix [H, H]; cells with gates have one per gate."""
        return [
            matrix
            for layer in range(self.layers)
            for prefix in self.prefixes(layer)
            for matrix in self.cell.recurrent_matrices(weights, prefix)
        ]

    def state_groups(self, layer: int) -> tuple[tuple[str, int], ...]:
        """Names and numbers of a layer's units, for each direction."""
        layer = range(self.layers)[layer]
        return tuple((prefix.rstrip("."), self.hidden[layer]) for prefix in self.prefixes(layer))


def dense(weights: dict[str, Weight], name: str, current: Axis, units: int, rule: InitialisationRule) -> Axis:
    """Add a dense layer's weights; return the axis of its units."""
    out = Axis(((name, units),))
    start = rule.affine(current.size)
    weights[f"{name}.weight"] = (out, current), start
    weights[f"{name}.bias"] = (out,), start
    return out


def _dense_tanh(
    weights: Weights,
    name: str,
    rows: Tensor,
    packing: Packing,
    tape: Tape | None,
    added: TaskVector | None = None,
) -> Tensor:
    return tanh(affine(weights, (f"{name}.weight", f"{name}.bias"), rows, packing, tape, added))
