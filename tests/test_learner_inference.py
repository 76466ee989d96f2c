"""The task unknown at prediction: inferred where inputs differ, refused where they do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from perdure import ContinualLearner
from perdure.learner.looks import Look
from perdure.learner.recogniser import STRENGTHS, _ridge
from perdure.learner.sequences import read_inputs


def task(number: int, count: int = 120, late: int = 0):
    """Sequences around a level of their own after `late` steps; the class is the sign of a feature."""
    random = np.random.RandomState(number)
    x = random.randn(count, 8, 4).astype(np.float32)
    x[:, late:, number % 4] += 4
    return x, np.where(x[:, -1, (number + 1) % 4] > 0, f"{number} high", f"{number} low")


def learnt(method: str, tasks: int = 3, late: int = 0, **more) -> ContinualLearner:
    learner = ContinualLearner(
        method, network={"cell": "lstm", "hidden": 16}, training={"iterations": 60}, verbose=0, **more
    )
    for number in range(tasks):
        learner.learn(f"task {number}", *task(number, late=late))
    return learner


@pytest.mark.parametrize("method", ["coresets", "hnet+r"])
def test_tasks_with_inputs_of_their_own_are_told_apart(method):
    learner = learnt(method, 2 if method == "hnet+r" else 3)
    found = [learner.infer_task(task(number)[0]) == f"task {number}" for number in range(len(learner.tasks))]
    assert np.mean(found) > 0.9
    answers = learner.predict(task(1)[0])
    assert np.mean([answer.startswith("1") for answer in answers]) > 0.9


def test_a_prefix_tells_the_task_only_after_tasks_differ():
    learner = learnt("coresets", late=4)
    given = {f"task {number}": task(number, late=4)[0] for number in range(3)}
    curve = learner.inference_curve(given, [2, 8])
    assert curve[2] < 60  # chance is 33 %
    assert curve[8] > 90


def test_entropy_chooses_the_most_certain_task():
    learner = learnt("from-scratch", 2)
    x, _ = task(1)
    entropy = []
    for name in learner.tasks:
        chance = learner.predict_proba(x, task=name)
        entropy.append(-(chance * np.log(chance)).sum(1))
    wanted = np.array(learner.tasks)[np.argmin(entropy, axis=0)]
    assert (learner.infer_task(x) == wanted).all()


def test_tasks_that_share_their_inputs_are_refused():
    learner = ContinualLearner("coresets", network={"hidden": 6}, training={"iterations": 4}, verbose=0)
    x, _ = task(0)
    random = np.random.RandomState(5)
    learner.learn("a", x, random.choice(["p", "q"], len(x)))
    assert set(learner.infer_task(x)) == {"a"}
    with pytest.raises(ValueError, match=r"by: coresets does not offer 'reconstruction', but head, entropy"):
        learner.infer_task(x, by="reconstruction")
    learner.learn("b", task(0, late=0)[0][::-1].copy(), random.choice(["r", "s"], len(x)))
    with pytest.raises(ValueError, match="task: the inputs of 'a' and 'b' look alike"):
        learner.predict(x)


def test_looks_differ_if_and_only_if_inputs_do():
    wrong = 0
    for seed in range(50):
        random = np.random.RandomState(seed)
        one, other = (random.randn(200, 6, 3) for _ in range(2))
        wrong += Look.of(read_inputs(one)).differs(Look.of(read_inputs(other)))
        assert Look.of(read_inputs(one)).differs(Look.of(read_inputs(other + np.array([0, 1, 0]))))
        assert Look.of(read_inputs(one)).differs(Look.of(read_inputs(2 * other)))
    assert wrong <= 1
    look = Look.of(read_inputs(one))
    assert Look.from_json(look.json()) == look


def test_the_ridge_head_is_the_best_by_leaving_out_one_sample_at_a_time():
    """Against solving the normal equations once for each sample left out."""
    random = np.random.RandomState(0)
    rows = torch.from_numpy(random.randn(30, 5))
    targets = torch.from_numpy((rows[:, 0].numpy() + random.randn(30) > 0).astype(int))
    asked = torch.from_numpy(random.randn(7, 5))
    z = ((rows - rows.mean(0)) / rows.std(0)).numpy()
    new = ((asked - rows.mean(0)) / rows.std(0)).numpy()
    wanted = np.eye(2)[targets.numpy()]

    def solved(keep, strength):
        """With an unpenalised intercept and the strength of all samples."""
        design = np.concatenate([np.ones((len(z), 1)), z], axis=1)
        penalty = np.diag([0.0] + [strength * len(z)] * z.shape[1])
        return np.linalg.solve(design[keep].T @ design[keep] + penalty, design[keep].T @ wanted[keep])

    missed = []
    for strength in STRENGTHS:
        wrong = 0
        for left in range(len(z)):
            weights = solved(np.arange(len(z)) != left, strength)
            wrong += (np.concatenate([[1.0], z[left]]) @ weights).argmax() != targets[left]
        missed.append(wrong)
    weights = solved(np.full(len(z), True), STRENGTHS[int(np.argmin(missed))])
    expected = np.concatenate([np.ones((7, 1)), new], axis=1) @ weights
    assert np.allclose(_ridge(rows, targets, 2, asked).numpy(), expected, atol=1e-8)
