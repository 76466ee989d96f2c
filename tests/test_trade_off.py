"""Fig. 1b: the solutions of two tasks over two weights, against autograd and against brute force."""

from __future__ import annotations

import pytest
import torch

from perdure.analysis.trade_off import (
    BETA,
    EXACT,
    FLAT,
    RATE,
    STEEP,
    best_ewc,
    ewc_solution,
    hypernetwork_paths,
    hypernetwork_start,
    two_tasks,
)

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_is_a_valley_with_its_minimum_at_psi_k(seed: int) -> None:
    tasks = two_tasks(seed)
    for task in range(2):
        assert float(tasks.loss(task, tasks.minima[task])) == 0.0
        eigenvalues = torch.linalg.eigvalsh(tasks.curvatures[task])
        torch.testing.assert_close(eigenvalues, torch.tensor([FLAT, STEEP], dtype=EXACT))


@pytest.mark.parametrize("strength", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_ewc_ends_where_the_gradient_of_its_loss_vanishes(seed: int, strength: float) -> None:
    tasks = two_tasks(seed)
    weights = ewc_solution(tasks, strength).requires_grad_()
    fisher = tasks.curvatures[0].diagonal()
    loss = tasks.loss(1, weights) + strength / 2 * (fisher * (weights - tasks.minima[0]) ** 2).sum()
    (gradient,) = torch.autograd.grad(loss, [weights])
    assert float(gradient.abs().max()) < 1e-12


def test_ewc_is_free_at_strength_zero_and_rigid_at_infinity() -> None:
    tasks = two_tasks(0)
    torch.testing.assert_close(ewc_solution(tasks, 0.0), tasks.minima[1])
    torch.testing.assert_close(ewc_solution(tasks, 1e12), tasks.minima[0], atol=1e-9, rtol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_single_psi_is_better_for_both_tasks_than_their_joint_minimum(seed: int) -> None:
    """EWC's best is a trade-off: above the joint minimum, which no single psi can beat."""
    tasks = two_tasks(seed)
    joint = torch.linalg.solve(
        tasks.curvatures.sum(0), torch.einsum("kij,kj->i", tasks.curvatures, tasks.minima)
    )
    least, found = tasks.total(joint, joint), tasks.total(best_ewc(tasks), best_ewc(tasks))
    assert 0 < least <= found
    assert found <= min(tasks.total(psi, psi) for psi in tasks.minima) + 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hypernetwork_follows_the_gradient_of_equation_2(seed: int) -> None:
    """Both tasks start at psi_1; the first three steps, by autograd."""
    tasks = two_tasks(seed)
    first, second = hypernetwork_paths(tasks, seed)
    matrix, (old, new) = hypernetwork_start(tasks, seed)
    torch.testing.assert_close(first[0], tasks.minima[0])
    torch.testing.assert_close(second[0], tasks.minima[0])
    parameters = [matrix, old, new]
    for step in range(3):
        now = [part.detach().requires_grad_() for part in parameters]
        loss = tasks.loss(1, now[0] @ now[2]) + BETA * (now[0] @ now[1] - tasks.minima[0]).square().sum()
        gradients = torch.autograd.grad(loss, now)
        parameters = [part - RATE * gradient for part, gradient in zip(now, gradients, strict=True)]
        torch.testing.assert_close(parameters[0] @ parameters[1], first[step + 1])
        torch.testing.assert_close(parameters[0] @ parameters[2], second[step + 1])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hypernetwork_has_both_solutions(seed: int) -> None:
    tasks = two_tasks(seed)
    first, second = hypernetwork_paths(tasks, seed)
    assert tasks.total(first[-1], second[-1]) < 1e-6
