"""How flat the solutions are: mean Fisher after each task (SM "Discussion on task-specific solutions in CL").

F^(k) is the diagonal empirical Fisher of task k's weights right after it was learnt, on its training data.
For task-specific solutions (from-scratch, hnet) it is all that matters. A single set of weights for all tasks
(online EWC) has to account for all tasks so far, so there the running sum matters.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from perdure.benchmarks.task import Sequences
from perdure.networks.batch import Data
from perdure.networks.fisher import fisher
from perdure.networks.layout import Weights
from perdure.networks.network import Network


class Flatness(NamedTuple):
    """Mean Fisher of one task."""

    task: int
    own: float
    """Mean of F^(k)."""
    accumulated: float
    """Sum of the means of F^(1), ..., F^(k)."""


def mean_fisher(
    network: Network,
    weights: Weights,
    data: Sequences | Data,
    task: int = 0,
    *,
    samples: int | None = None,
    generator: torch.Generator | None = None,
) -> float:
    """Mean of the diagonal Fisher over the weights that a task uses: the body and its own weights."""
    values = fisher(network, weights, data, task=task, samples=samples, generator=generator)
    used = network.layout_of(task).axes
    return float(torch.cat([values[name].reshape(-1).double() for name in used]).mean())


def accumulated(means: list[float]) -> list[Flatness]:
    """Each task's mean Fisher and the running sum."""
    return [Flatness(task, own, sum(means[: task + 1])) for task, own in enumerate(means)]
