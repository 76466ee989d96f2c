"""Convolutions over time, then the mean over time: the 1D-CNN that TSCIL publishes its numbers with.

Each block is a convolution, ReLU, layer normalisation over channels, max pooling and dropout (Qiao et al.
2024, "Class-incremental learning for time series"; four blocks of 64, 128, 256, 128 channels there). A
convolution is an affine map of `kernel` neighbouring rows, so that everything that holds for affine maps
holds for it, per-sample gradients included. Sequences may have different lengths; beyond an end there are
zeros, which nothing pools over.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal, Self

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor
from torch.nn import functional

from perdure.errors import PerdureError
from perdure.networks.bodies.body import Architecture, BodyInput, BodyPlan, dropped
from perdure.networks.bodies.recurrent import dense
from perdure.networks.layout import Axis, Layout, Start, Weight, Weights
from perdure.networks.packing import Packing
from perdure.networks.tape import Tape, affine, copied_to_rows
from perdure.options import Fraction, SomeSizes

GENERATED_GAIN = 0.01
"""Spread of a generated gain around 1."""


class Convolutional(Architecture):
    """Blocks of convolution, ReLU, normalisation and max pooling, then the mean over time; for labels."""

    channels: SomeSizes = (64, 128, 256, 128)
    """Channels of each block."""
    kernel: Annotated[int, Field(ge=1, le=31)] = 5
    """Neighbouring steps that a convolution sees; odd."""
    pooling: PositiveInt = 2
    """Steps of which each block keeps the largest."""
    norm: Literal["none", "layer"] = "layer"
    """layer: the channels of a step have mean 0 and variance 1, then their own gain and shift."""
    input_norm: bool = True
    """Whether the features of each step are brought to mean 0 and variance 1 first."""
    dropout: Fraction = 0.3
    """Fraction of the numbers dropped at random after each block in training."""

    @property
    def drops(self) -> bool:
        """Whether units are dropped at random in training."""
        return self.dropout > 0

    def plan(self, inputs: int) -> BodyPlan:
        """Of each block the convolution [C', kernel C], its bias, and the gain and shift of its channels."""
        if self.kernel % 2 == 0:
            raise PerdureError(
                f"network.kernel: must be odd, so that a step is in the middle, not {self.kernel}."
            )
        weights: dict[str, Weight] = {}
        entrances: dict[str, tuple[Axis, int]] = {}
        current = Axis((("input", inputs),))
        for block, units in enumerate(self.channels):
            seen = current.stacked(self.kernel)
            current = dense(weights, f"blocks.{block}", seen, units, self.rule)
            if block == 0:
                entrances["blocks.0"] = current, seen.size
            if self.norm == "layer":
                start = Start(0.0, spread=GENERATED_GAIN)
                weights[f"blocks.{block}.gain"] = (current,), start
                weights[f"blocks.{block}.shift"] = (current,), start
        return BodyPlan(Layout.of(weights), current, entrances)

    def features(self, weights: Weights, given: BodyInput, tape: Tape | None) -> Tensor:
        """The mean over time of the last block, for each sequence that is asked at its last step [M, C]."""
        ranks = _asked_ranks(given)
        rows, packing = given.rows, given.packing
        if self.input_norm:
            rows = functional.layer_norm(rows, rows.shape[1:])
        for block in range(len(self.channels)):
            seen = neighbours(rows, packing, self.kernel)
            names = (f"blocks.{block}.weight", f"blocks.{block}.bias")
            rows = affine(
                weights, names, seen, packing, tape, given.task_vectors.get(f"blocks.{block}")
            ).relu()
            if self.norm == "layer":
                rows = self._normalised(weights, f"blocks.{block}", rows, packing, tape)
            rows, packing = pooled(rows, packing, self.pooling)
            rows = dropped(rows, self.dropout, given.noise)
        means = mean_over_time(rows, packing)
        return means if ranks is None else means.index_select(0, ranks)

    @staticmethod
    def _normalised(weights: Weights, name: str, rows: Tensor, packing: Packing, tape: Tape | None) -> Tensor:
        """(1 + gain) (x - mean) / sd + shift over the channels of each row."""
        gain, shift = (
            weights[f"{name}.{part}"]
            if tape is None
            else copied_to_rows(weights, f"{name}.{part}", len(rows), packing, tape)
            for part in ("gain", "shift")
        )
        return functional.layer_norm(rows, rows.shape[1:]) * (1 + gain) + shift

    def narrowed(self, kept: Mapping[str, int]) -> Self:
        """The sub-network with the numbers of channels in `kept` for each block."""
        sizes = (kept.get(f"blocks.{block}", units) for block, units in enumerate(self.channels))
        return self.model_copy(update={"channels": tuple(sizes)})

    def numbers_per_step(self, inputs: int) -> int:
        """Neighbours and channels of each block, which has fewer steps than the one before."""
        total, before = 2 * inputs, inputs
        for block, units in enumerate(self.channels):
            total += (self.kernel * before + 8 * units) // self.pooling**block + 1
            before = units
        return total


def _asked_ranks(given: BodyInput) -> Tensor | None:
    """For each row that is asked, its sequence's place among those sorted by length; None: 0, 1, 2, ...

    Raises an error unless all are last steps.
    """
    sizes, last = given.packing.sizes, given.packing.offsets[-1] - given.packing.batch
    if isinstance(given.asked, slice) and given.packing.order is None and given.asked.start == last:
        return None
    if isinstance(given.asked, Tensor):
        steps, ranks = _places(sizes)
        rows = given.asked.cpu()
        ends = torch.from_numpy(_lengths(sizes))[ranks[rows]] - 1
        if bool((steps[rows] == ends).all()):
            return ranks[rows].to(given.rows.device)
    raise PerdureError(
        "A convolutional body gives one answer per sequence; use it for labels, and --network.body recurrent "
        "for targets at several steps."
    )


@lru_cache(maxsize=64)
def _places(sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The step of each row [S], and the place of its sequence among those sorted by length [S]."""
    steps = np.repeat(np.arange(len(sizes)), sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return torch.from_numpy(steps), torch.from_numpy(np.arange(len(steps)) - offsets[steps])


def _lengths(sizes: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The length of each sequence, longest first [B]."""
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = (np.array(sizes)[:, None] > np.arange(sizes[0])).sum(
        0
    )
    return found


def neighbours(rows: Tensor, packing: Packing, kernel: int) -> Tensor:
    """For each row the `kernel` rows around it in its sequence, side by side [S, kernel F]; zeros outside."""
    half = kernel // 2
    if packing.order is None:
        steps = rows.view(packing.steps, packing.batch, -1)
        padded = functional.pad(steps, (0, 0, 0, 0, half, half))
        parts = [padded[tap : tap + packing.steps] for tap in range(kernel)]
        return torch.cat(parts, dim=2).flatten(0, 1)
    padded = torch.cat([rows, rows.new_zeros(1, rows.shape[1])])
    index = _neighbour_index(packing.sizes, kernel).to(rows.device)
    return padded.index_select(0, index.flatten()).view(len(rows), -1)


@lru_cache(maxsize=64)
def _neighbour_index(sizes: tuple[int, ...], kernel: int) -> Tensor:
    """The rows around each row [S, kernel]; S where there is none."""
    steps, ranks = _places(sizes)
    count = torch.tensor(sizes)
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)[:-1]])
    around = steps[:, None] + torch.arange(kernel) - kernel // 2
    inside = (around >= 0) & (around < len(sizes))
    clamped = around.clamp(0, len(sizes) - 1)
    inside &= ranks[:, None] < count[clamped]
    return torch.where(inside, offsets[clamped] + ranks[:, None], len(steps))


def pooled(rows: Tensor, packing: Packing, width: int) -> tuple[Tensor, Packing]:
    """The largest of each `width` steps [S', F]; a rest at the end is left out, unless it is all there is."""
    if width == 1:
        return rows, packing
    if packing.order is None:
        steps = max(packing.steps // width, 1)
        taken = min(steps * width, packing.steps)
        groups = rows.view(packing.steps, packing.batch, -1)[:taken].unflatten(0, (steps, -1))
        return groups.amax(1).flatten(0, 1), Packing((packing.batch,) * steps)
    index, sizes = _pool_index(packing.sizes, width)
    chosen = rows.index_select(0, index.flatten().to(rows.device)).view(len(index), width, -1)
    return chosen.amax(1), Packing(sizes, packing.order)


@lru_cache(maxsize=64)
def _pool_index(sizes: tuple[int, ...], width: int) -> tuple[Tensor, tuple[int, ...]]:
    """The rows [S', width] of each pooled row, some twice in short sequences, and the new sizes."""
    lengths = _lengths(sizes)
    shorter = np.maximum(lengths // width, 1)
    new = tuple(int((shorter > step).sum()) for step in range(int(shorter.max())))
    steps, ranks = _places(new)
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), torch.tensor(sizes).cumsum(0)[:-1]])
    last = torch.from_numpy(lengths)[ranks] - 1
    taken = torch.minimum(steps[:, None] * width + torch.arange(width), last[:, None])
    return offsets[taken] + ranks[:, None], new


def mean_over_time(rows: Tensor, packing: Packing) -> Tensor:
    """The mean of each sequence's rows [B, F], longest sequence first."""
    if packing.order is None:
        return rows.view(packing.steps, packing.batch, -1).mean(0)
    _, ranks = _places(packing.sizes)
    sums = rows.new_zeros(packing.batch, rows.shape[1]).index_add(0, ranks.to(rows.device), rows)
    lengths = torch.from_numpy(_lengths(packing.sizes)).to(rows.device, rows.dtype)
    return sums / lengths[:, None]
