"""How flat the solutions are: mean Fisher after each task (SM "Discussion on task-specific solutions in CL").

F^(k) is the diagonal empirical Fisher of task k's weights right after it was learnt, on its training data.
For task-specific solutions (from-scratch, hnet) it is all that matters. A single set of weights for all tasks
(online EWC) has to account for all tasks so far, so there the running sum matters.

The Laplace approximation of the posterior has the precision I / sigma^2 + N_k F^(k) for a task's own weights,
and I / sigma^2 + sum over the tasks so far of N_k F^(k) for a single set of weights, with a Gaussian prior of
standard deviation sigma and N_k training samples of task k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from perdure.benchmarks.task import Sequences
from perdure.networks.batch import Data
from perdure.networks.fisher import fisher
from perdure.networks.layout import Weights
from perdure.networks.network import Network
from perdure.options import Estimator


class Flatness(NamedTuple):
    """Mean Fisher of one task."""

    task: int
    own: float
    """Mean of F^(k)."""
    accumulated: float
    """Sum of the means of F^(1), ..., F^(k)."""
    precision: float
    """Mean diagonal of the Laplace approximation's precision, from this task alone."""
    joint_precision: float
    """The same from all tasks so far."""


def mean_fisher(
    network: Network,
    weights: Weights,
    data: Sequences | Data,
    task: int = 0,
    *,
    samples: int | None = None,
    generator: torch.Generator | None = None,
    estimator: Estimator = "empirical",
) -> float:
    """Mean of the diagonal Fisher over the weights that a task uses: the body and its own weights."""
    values = fisher(
        network, weights, data, task=task, samples=samples, generator=generator, estimator=estimator
    )
    used = network.layout_of(task).axes
    return float(torch.cat([values[name].reshape(-1).double() for name in used]).mean())


def accumulated(means: Sequence[float], samples: Sequence[int], prior: float = 1.0) -> list[Flatness]:
    """Each task's mean Fisher and precision, and the running sums.

    `samples` are the training samples N_k of each task, `prior` is the standard deviation sigma.
    """
    found, rigid = [], 1 / prior**2
    scaled = [count * mean for count, mean in zip(samples, means, strict=True)]
    for task, own in enumerate(means):
        past = slice(0, task + 1)
        found.append(Flatness(task, own, sum(means[past]), rigid + scaled[task], rigid + sum(scaled[past])))
    return found
