"""Intrinsic dimensionality of hidden states (paper Sec. 4; kernel PCA is its footnote).

The number of principal components needed to explain a given fraction of the variance, 75 % in the paper.
This is the true count; the original reports the index of the last component needed, which is one less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from perdure.analysis.states import States
from perdure.errors import PerdureError

THRESHOLD = 0.75
"""Fraction of the variance to be explained (paper Sec. 4)."""
ROUNDING = 1e-9
"""A sum of ratios that misses the threshold by no more than this has reached it."""
FEWEST = 2
"""Minimum number of sequences for a variance."""


def explained_variance(activity: Tensor) -> Tensor:
    """Fraction of the variance of activity [N, H] along each principal component [H], descending; or 0."""
    values = _components(activity)[0]
    return values / values.sum() if values.sum() > 0 else values


def kernel_variance(activity: Tensor) -> Tensor:
    """Kernel PCA with the cosine kernel: its normalised eigenvalues, descending; those beyond H are 0.

    The cosine of two states is the inner product of the states scaled to length 1, so the eigenvalues of
    the centred kernel matrix [N, N] are those of the scaled states' scatter matrix [H, H].
    """
    return explained_variance(torch.nn.functional.normalize(activity.double(), dim=1))


def dimension(activity: Tensor, threshold: float = THRESHOLD, *, kernel: bool = False) -> int:
    """The smallest number of components that explain `threshold` of the variance; 0 if nothing varies."""
    if not 0 < threshold <= 1:
        raise PerdureError(
            f"The fraction of variance to explain must be between 0 and 1 (given: {threshold})."
        )
    ratios = kernel_variance(activity) if kernel else explained_variance(activity)
    if ratios.sum() == 0:
        return 0
    short = ratios.cumsum(0) < threshold - ROUNDING
    return min(int(short.sum()) + 1, len(ratios))


def dimension_per_step(
    states: States, threshold: float = THRESHOLD, *, kernel: bool = False, readout: bool = False
) -> list[int]:
    """Intrinsic dimensionality of h_t (or y_t) at each step that at least two sequences reach."""
    rows = states.readout if readout else states.hidden
    if rows is None:
        raise PerdureError(
            "This layer passes on its states and has no readout y_t; look at the states h_t instead."
        )
    running = [states.lengths > step for step in range(states.steps)]
    return [
        dimension(rows[mask, step], threshold, kernel=kernel)
        for step, mask in enumerate(running)
        if int(mask.sum()) >= FEWEST
    ]


def explained_by(reference: Tensor, activity: Tensor, counts: Sequence[int]) -> list[float]:
    """Fraction of the variance of activity [N, H] in the first principal components of a reference [M, H].

    One number per count of components: how much of a later task lies in the first task's space.
    """
    axes = _components(reference)[1]
    centred = activity.double() - activity.double().mean(0)
    along = (centred @ axes).square().sum(0)
    total = centred.square().sum()
    if total == 0:
        return [0.0 for _ in counts]
    return [float(along[:count].sum() / total) for count in counts]


class Shares(NamedTuple):
    """Dimensions of several tasks' activity."""

    separate: list[int]
    """Dimensions of each task separately."""
    joint: int
    """Dimensions of all tasks together; less than the sum if tasks share dimensions."""

    @property
    def total(self) -> int:
        """The sum over the separate tasks."""
        return sum(self.separate)


def shared_dimensions(
    activities: Sequence[Tensor], threshold: float = THRESHOLD, *, kernel: bool = False
) -> Shares:
    """Dimensions of each task's activity [N_k, H], and of all tasks together."""
    separate = [dimension(activity, threshold, kernel=kernel) for activity in activities]
    return Shares(separate, dimension(torch.cat(list(activities)), threshold, kernel=kernel))


def _components(activity: Tensor) -> tuple[Tensor, Tensor]:
    """Variances along the principal axes, descending, and the axes as columns [H, H]; in double precision."""
    centred = activity.double() - activity.double().mean(0)
    values, axes = torch.linalg.eigh(centred.t() @ centred / max(len(activity) - 1, 1))
    values = values.flip(0).clamp(min=0)
    # Rounding errors in directions without variation are not variance.
    values[values <= values[0] * len(values) * torch.finfo(values.dtype).eps] = 0
    return values, axes.flip(1)
