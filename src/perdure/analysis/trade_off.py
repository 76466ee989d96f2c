"""Fig. 1b in numbers: two weights, two tasks, a quadratic penalty against a hypernetwork.

The loss of task k is L_k(psi) = 1/2 (psi - psi_k)^T A_k (psi - psi_k) with psi in R^2, a valley of random
direction. EWC minimises L_2 + lambda/2 sum_i F_i (psi_i - psi_1,i)^2 with F = diag(A_1), which is exact here.
A linear hypernetwork psi^(k) = W e_k minimises L_2(W e_2) + beta ||W e_1 - psi_1||^2 (paper Eq. 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.randomness import generator

EXACT = torch.float64
STEEP, FLAT = 1.0, 0.1
"""Curvatures across a valley and along it."""
STRENGTHS = tuple(10.0 ** (exponent / 4) for exponent in range(-16, 17))
"""Strengths lambda among which EWC has its best, 1e-4 to 1e4."""
BETA, RATE, STEPS = 10.0, 0.01, 10000
"""The hypernetwork's strength, and the rate and number of its steps of gradient descent."""


@dataclass(frozen=True)
class TwoTasks:
    """Two quadratic losses over two weights: minima psi_k [2, 2] and Hessians A_k [2, 2, 2]."""

    minima: Tensor
    curvatures: Tensor

    def loss(self, task: int, weights: Tensor) -> Tensor:
        """L_k at weights [..., 2]: [...]."""
        away = weights - self.minima[task]
        return 0.5 * torch.einsum("...i,ij,...j->...", away, self.curvatures[task], away)

    def total(self, first: Tensor, second: Tensor) -> float:
        """L_1 at the weights used for task 1, plus L_2 at those used for task 2."""
        return float(self.loss(0, first) + self.loss(1, second))


def two_tasks(seed: int) -> TwoTasks:
    """Minima from a normal distribution, and valleys in random directions."""
    source = generator(seed, "two tasks")
    minima = torch.randn(2, 2, generator=source, dtype=EXACT)
    angles = math.pi * torch.rand(2, generator=source, dtype=EXACT)
    along = torch.stack([angles.cos(), angles.sin()], dim=1)
    across = torch.stack([-angles.sin(), angles.cos()], dim=1)
    outer = [torch.einsum("ki,kj->kij", axis, axis) for axis in (across, along)]
    return TwoTasks(minima, STEEP * outer[0] + FLAT * outer[1])


def ewc_solution(tasks: TwoTasks, strength: float) -> Tensor:
    """The minimum of L_2 + lambda/2 sum_i F_i (psi_i - psi_1,i)^2: a linear equation, psi [2]."""
    held = strength * torch.diag(tasks.curvatures[0].diagonal())
    required = tasks.curvatures[1] @ tasks.minima[1] + held @ tasks.minima[0]
    solution: Tensor = torch.linalg.solve(tasks.curvatures[1] + held, required)
    return solution


def ewc_path(tasks: TwoTasks) -> Tensor:
    """The solutions of all strengths, from free to rigid: [strengths, 2]."""
    return torch.stack([ewc_solution(tasks, strength) for strength in STRENGTHS])


def best_ewc(tasks: TwoTasks) -> Tensor:
    """The solution whose strength is best for both tasks together, chosen with hindsight: psi [2]."""
    solutions: list[Tensor] = [*ewc_path(tasks)]
    return min(solutions, key=lambda weights: tasks.total(weights, weights))


def hypernetwork_start(tasks: TwoTasks, seed: int) -> tuple[Tensor, Tensor]:
    """W [2, 2] and the embeddings of both tasks [2, 2] before task 2 is learnt.

    Task 1 has been learnt, W e_1 = psi_1. Task 2 starts from the same solution, with e_2 = e_1; the column of
    W that e_1 does not use is random.
    """
    unused = torch.randn(2, generator=generator(seed, "unused column"), dtype=EXACT)
    matrix = torch.stack([tasks.minima[0], unused], dim=1)
    return matrix, torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=EXACT)


def hypernetwork_paths(tasks: TwoTasks, seed: int) -> tuple[Tensor, Tensor]:
    """W e_1 and W e_2 at every step of learning task 2, each [STEPS + 1, 2]."""
    matrix, embeddings = hypernetwork_start(tasks, seed)
    paths = [embeddings @ matrix.t()]
    for _ in range(STEPS):
        old, new = paths[-1]
        pull = 2 * BETA * (old - tasks.minima[0])
        task = tasks.curvatures[1] @ (new - tasks.minima[1])
        slopes = torch.stack([pull, task])
        matrix, embeddings = matrix - RATE * slopes.t() @ embeddings, embeddings - RATE * slopes @ matrix
        paths.append(embeddings @ matrix.t())
    made = torch.stack(paths)
    return made[:, 0], made[:, 1]
