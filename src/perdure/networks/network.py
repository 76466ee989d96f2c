"""The main network f(x, lengths, psi): dense layers, recurrent layers, dense layers, heads.

A `Network` holds no weights. It knows their layout, and maps (weights, batch, task) to logits. Shared
tensors, masked ones and the output of a hypernetwork look the same to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from perdure.errors import PerdureError
from perdure.networks.batch import Batch
from perdure.networks.cells import CELLS, Unroll
from perdure.networks.layout import Axis, Layout, Weights
from perdure.networks.packing import Packing, uniform
from perdure.options import Options, Sizes, SomeSizes


class Architecture(Options):
    """The choices that describe a network."""

    cell: Literal["elman", "lstm", "gru"] = "elman"
    """Kind of recurrent cell; elman has the tanh readout y = tanh(W_ho h + b_ho)."""
    hidden: SomeSizes = (256,)
    """Units of each recurrent layer."""
    bidirectional: bool = False
    """Read each sequence in both directions."""
    before: Sizes = ()
    """Units of dense tanh layers before the recurrent ones."""
    after: Sizes = ()
    """Units of dense tanh layers after the recurrent ones."""
    heads: Literal["multi", "single"] = "multi"
    """One output head per task, or one for all."""
    task_identity: bool = False
    """Give the task as a one-hot input at every step."""
    initialisation: Literal["original", "torch"] = "original"
    """original: U(+-1/sqrt(fan-in)) per matrix; torch: U(+-1/sqrt(units)) in recurrent layers."""
    orthogonal: bool = False
    """Start with orthogonal hidden-to-hidden matrices (each gate's block for itself)."""


class Entry(NamedTuple):
    """An affine map that ran: outputs = inputs W^T + b, and how its rows group into sequences."""

    weight: str
    bias: str
    inputs: Tensor
    outputs: Tensor
    packing: Packing


Tape = list[Entry]


class Network:
    """A network for tasks with the given numbers of inputs and outputs."""

    def __init__(self, architecture: Architecture, inputs: int, outputs: Sequence[int]) -> None:
        """Derive the weight layout; `outputs` has one number per task."""
        if architecture.heads == "single" and len(set(outputs)) > 1:
            raise PerdureError(
                f"network.heads: a single head needs tasks of equal output size, found "
                f"{sorted(set(outputs))}; use --network.heads multi."
            )
        self.architecture = architecture
        self.inputs = inputs
        self.outputs = tuple(outputs)
        self.cell = CELLS[architecture.cell]
        self._narrow: dict[tuple[tuple[int, ...], ...], Network] = {}

    @property
    def tasks(self) -> int:
        """Number of tasks K."""
        return len(self.outputs)

    @property
    def directions(self) -> tuple[str, ...]:
        """Name prefixes within a recurrent layer."""
        return ("", "reverse.") if self.architecture.bidirectional else ("",)

    def head(self, task: int) -> str:
        """Name of the output head that a task uses."""
        return "head.0" if self.architecture.heads == "single" else f"head.{task}"

    @property
    def body(self) -> Layout:
        """All weights but those of the heads."""
        return self._body[0]

    @cached_property
    def _body(self) -> tuple[Layout, Axis]:
        """The body's layout, and the axis of the units that the heads read."""
        axes: dict[str, tuple[Axis, ...]] = {}
        width = self.inputs + (self.tasks if self.architecture.task_identity else 0)
        current = Axis((("input", width),))
        for index, units in enumerate(self.architecture.before):
            current = _dense(axes, f"before.{index}", current, units)
        for index, units in enumerate(self.architecture.hidden):
            groups: tuple[tuple[str, int], ...] = ()
            for direction in self.directions:
                prefix = f"recurrent.{index}.{direction}"
                out = Axis(((prefix.rstrip("."), units),))
                stacked = Axis(out.groups, self.cell.gates)
                axes[prefix + "weight_ih"] = (stacked, current)
                axes[prefix + "bias_ih"] = (stacked,)
                axes[prefix + "weight_hh"] = (stacked, out)
                axes[prefix + "bias_hh"] = (stacked,)
                if self.architecture.cell == "elman":
                    axes[prefix + "weight_ho"] = (out, out)
                    axes[prefix + "bias_ho"] = (out,)
                groups += out.groups
            current = Axis(groups)
        for index, units in enumerate(self.architecture.after):
            current = _dense(axes, f"after.{index}", current, units)
        return Layout(axes), current

    @cached_property
    def heads(self) -> dict[str, Layout]:
        """The layout of each head's weights, by head name."""
        heads: dict[str, Layout] = {}
        for task, outputs in enumerate(self.outputs):
            axes: dict[str, tuple[Axis, ...]] = {}
            _dense(axes, self.head(task), self._body[1], outputs)
            heads[self.head(task)] = Layout(axes)
        return heads

    @cached_property
    def layout(self) -> Layout:
        """All weights psi: the body, then every head."""
        axes = dict(self.body.axes)
        for head in self.heads.values():
            axes.update(head.axes)
        return Layout(axes)

    @cached_property
    def units(self) -> dict[str, int]:
        """Number of hidden units of each group that a mask may gate."""
        named = [group for axes in self.layout.axes.values() for axis in axes for group in axis.groups]
        return {name: size for name, size in named if not name.startswith(("input", "head"))}

    def narrowed(self, kept: Mapping[str, int]) -> Network:
        """The sub-network in which each layer has as many units as `kept` says."""
        parts = {"before": "before", "hidden": "recurrent", "after": "after"}
        sizes = {
            field: tuple(
                kept.get(f"{part}.{index}", units)
                for index, units in enumerate(getattr(self.architecture, field))
            )
            for field, part in parts.items()
        }
        key = tuple(sizes.values())
        if key not in self._narrow:
            architecture = self.architecture.model_copy(update=sizes)
            self._narrow[key] = Network(architecture, self.inputs, self.outputs)
        return self._narrow[key]

    def recurrent_matrices(self, weights: Weights) -> list[Tensor]:
        """Every hidden-to-hidden matrix [H, H]; an LSTM or GRU has one for each gate."""
        return [
            block
            for name, weight in weights.items()
            if name.endswith("weight_hh")
            for block in weight.split(weight.shape[1])
        ]

    def __call__(self, weights: Weights, batch: Batch, task: int, tape: Tape | None = None) -> Tensor:
        """Logits [M, outputs] at the rows that the batch asks for.

        A tape, if given, receives each affine map; the weights must then not require gradients.
        """
        features = self.features(weights, batch, task, batch.asked, tape)
        return _affine(weights, self.head(task) + ".", "", features, batch.answers, tape)

    def features(
        self,
        weights: Weights,
        batch: Batch,
        task: int | Tensor,
        asked: slice | Tensor | None = None,
        tape: Tape | None = None,
    ) -> Tensor:
        """What the heads read, at the asked rows [M, H] or at all [S, H].

        `task` is one for all sequences, or one for each row [S].
        """
        rows = batch.rows
        if self.architecture.task_identity:
            tasks = task if isinstance(task, Tensor) else torch.full((len(rows),), task, device=rows.device)
            rows = torch.cat([rows, functional.one_hot(tasks, self.tasks).to(rows)], dim=1)
        for index in range(len(self.architecture.before)):
            rows = _affine(weights, f"before.{index}.", "", rows, batch.packing, tape).tanh()
        layers = len(self.architecture.hidden)
        for index in range(layers):
            here = asked if index == layers - 1 else None
            rows = self._recurrent(weights, f"recurrent.{index}.", rows, batch, here, tape)
        return self._after(weights, rows, batch.packing if asked is None else batch.answers, tape)

    def read_out(self, weights: Weights, states: Sequence[Tensor], task: int) -> Tensor:
        """Logits [M, outputs] from states of the last recurrent layer, [M, H] for each direction.

        The part f_out of the network, which treats each step by itself (SM "Determining task-relevant
        intrinsic dimensionality").
        """
        packing = uniform(len(states[0]), 1)
        last = f"recurrent.{len(self.architecture.hidden) - 1}."
        rows = self._after(weights, self._readout(weights, last, states, packing, None), packing, None)
        return self.answer(weights, rows, task)

    def answer(self, weights: Weights, features: Tensor, task: int) -> Tensor:
        """Logits [M, outputs] of a task's head from features [M, H]."""
        return _affine(weights, self.head(task) + ".", "", features, uniform(len(features), 1), None)

    @property
    def width(self) -> int:
        """Number of features that the heads read."""
        return self._body[1].size

    def _recurrent(
        self,
        weights: Weights,
        prefix: str,
        rows: Tensor,
        batch: Batch,
        asked: slice | Tensor | None,
        tape: Tape | None,
    ) -> Tensor:
        """Output of one recurrent layer, at the asked rows only; the readout costs nothing elsewhere."""
        outputs = self._unrolled(weights, prefix, rows, batch.packing, tape)
        packing = batch.packing if asked is None else batch.answers
        if isinstance(asked, slice):
            outputs = [states[asked] for states in outputs]
        elif asked is not None:
            outputs = [states.index_select(0, asked) for states in outputs]
        return self._readout(weights, prefix, outputs, packing, tape)

    def _readout(
        self, weights: Weights, prefix: str, outputs: Sequence[Tensor], packing: Packing, tape: Tape | None
    ) -> Tensor:
        """What a recurrent layer passes on of its states: y_t = tanh(W_ho h_t + b_ho), or h_t itself."""
        if self.architecture.cell == "elman":
            outputs = [
                _affine(weights, prefix + direction, "_ho", states, packing, tape).tanh()
                for direction, states in zip(self.directions, outputs, strict=True)
            ]
        return outputs[0] if len(outputs) == 1 else torch.cat(list(outputs), dim=1)

    def _after(self, weights: Weights, rows: Tensor, packing: Packing, tape: Tape | None) -> Tensor:
        """The dense layers between the recurrent ones and the heads."""
        for index in range(len(self.architecture.after)):
            rows = _affine(weights, f"after.{index}.", "", rows, packing, tape).tanh()
        return rows

    def _unrolled(
        self, weights: Weights, prefix: str, rows: Tensor, packing: Packing, tape: Tape | None
    ) -> list[Tensor]:
        """States [S, H] of each direction."""
        if tape is None and packing.order is None and self.architecture.cell != "elman":
            return self._fused(weights, prefix, rows, packing)
        return [
            self._swept(weights, prefix + direction, rows, packing, bool(direction), tape)
            for direction in self.directions
        ]

    def _swept(
        self,
        weights: Weights,
        prefix: str,
        rows: Tensor,
        packing: Packing,
        reverse: bool,
        tape: Tape | None,
    ) -> Tensor:
        """One direction by our own sweeps: ragged rows, per-sample gradients, and all Elman cells."""
        weight_hh, bias_ih, bias_hh = (weights[prefix + name] for name in ("weight_hh", "bias_ih", "bias_hh"))
        bias = bias_ih if self.cell.hidden_bias else bias_ih + bias_hh
        projection = functional.linear(rows, weights[prefix + "weight_ih"], bias)
        hidden_bias = bias_hh if self.cell.hidden_bias else None
        if tape is not None:
            projection = _watched(projection)
            if hidden_bias is not None:
                hidden_bias = _watched(hidden_bias.expand(len(rows), -1).clone())
        states: Tensor = Unroll.apply(self.cell, packing, reverse, projection, hidden_bias, weight_hh)
        if tape is not None:
            before = packing.before(states.detach(), backward=reverse)
            hidden = projection if hidden_bias is None else hidden_bias
            tape.append(Entry(prefix + "weight_ih", prefix + "bias_ih", rows, projection, packing))
            tape.append(Entry(prefix + "weight_hh", prefix + "bias_hh", before, hidden, packing))
        return states

    def _fused(self, weights: Weights, prefix: str, rows: Tensor, packing: Packing) -> list[Tensor]:
        """All directions by torch's fused kernels, which need equally long sequences."""
        flat = [
            weights[f"{prefix}{direction}{name}"]
            for direction in self.directions
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        units = flat[1].shape[1]
        count = len(self.directions)
        zero = rows.new_zeros(count, packing.batch, units)
        steps = rows.view(packing.steps, packing.batch, -1)
        settings = (True, 1, 0.0, torch.is_grad_enabled(), count == 2, False)
        if self.architecture.cell == "lstm":
            states = torch.lstm(steps, (zero, zero), flat, *settings)[0]
        else:
            states = torch.gru(steps, zero, flat, *settings)[0]
        return list(states.flatten(0, 1).split(units, dim=1))


def _dense(axes: dict[str, tuple[Axis, ...]], name: str, current: Axis, units: int) -> Axis:
    """Add a dense layer's weights; return the axis of its units."""
    out = Axis(((name, units),))
    axes[f"{name}.weight"] = (out, current)
    axes[f"{name}.bias"] = (out,)
    return out


def _watched(outputs: Tensor) -> Tensor:
    """Make sure that a gradient with respect to `outputs` can be asked for."""
    return outputs if outputs.requires_grad else outputs.requires_grad_()


def _affine(
    weights: Weights, prefix: str, suffix: str, rows: Tensor, packing: Packing, tape: Tape | None
) -> Tensor:
    """Inputs W^T + b, noted on the tape if there is one."""
    names = f"{prefix}weight{suffix}", f"{prefix}bias{suffix}"
    outputs = functional.linear(rows, weights[names[0]], weights[names[1]])
    if tape is not None:
        outputs = _watched(outputs)
        tape.append(Entry(*names, rows, outputs, packing))
    return outputs
