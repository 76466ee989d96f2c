"""What each step contributes to the Fisher: against a copy of the weight for each step, and the Fisher."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from helpers import CELLS, random_weights
from perdure.analysis.step_importance import StepImportance, step_importance
from perdure.benchmarks.task import Sequences
from perdure.cli import main
from perdure.config import build
from perdure.experiment import run
from perdure.networks.batch import Data
from perdure.networks.bodies.convolutional import Convolutional
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.network import Network
from perdure.targets.label import Label


def some_data(lengths):
    random = np.random.default_rng(0)
    x = random.normal(size=(len(lengths), max(lengths), 3))
    return Data(
        Sequences(Label(), x, random.integers(0, 2, len(lengths)), np.array(lengths)), dtype=torch.float64
    )


def exact_weights(network):
    return {name: weight.double() for name, weight in random_weights(network).items()}


def test_each_step_is_that_of_a_weight_which_acts_there_alone():
    network, data = Network(Recurrent(hidden=(4,)), 3, [2]), some_data([5] * 6)
    weights = exact_weights(network)
    found = step_importance(network, weights, data)
    matrix, bias = weights["recurrent.0.weight_hh"], weights["recurrent.0.bias_hh"]
    alone, whole = torch.zeros(5, dtype=torch.float64), 0.0
    for x, y in zip(data.x, data.y, strict=True):
        copies = [part.clone().requires_grad_() for _ in range(5) for part in (matrix, bias)]
        h = torch.zeros(4, dtype=torch.float64)
        for step in range(5):
            fed = weights["recurrent.0.weight_ih"] @ x[step] + weights["recurrent.0.bias_ih"]
            h = torch.tanh(fed + copies[2 * step] @ h + copies[2 * step + 1])
        out = torch.tanh(weights["recurrent.0.weight_ho"] @ h + weights["recurrent.0.bias_ho"])
        logits = weights["head.0.weight"] @ out + weights["head.0.bias"]
        gradients = torch.autograd.grad(functional.cross_entropy(logits[None], y.long()[None]), copies)
        by_step = torch.stack(
            [torch.cat([g.reshape(-1) for g in gradients[2 * s : 2 * s + 2]]) for s in range(5)]
        )
        alone += by_step.square().sum(1)
        whole += float(by_step.sum(0).square().sum())
    scale = 6 * (16 + 4)
    np.testing.assert_allclose(found.steps, (alone / scale).numpy(), rtol=1e-9)
    assert found.fisher == pytest.approx(whole / scale, rel=1e-9)
    assert found.coherence == pytest.approx(whole / float(alone.sum()), rel=1e-9)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_all_steps_together_are_the_fisher_of_every_cell(cell, bidirectional):
    network = Network(Recurrent(cell=cell, hidden=(4,), bidirectional=bidirectional), 3, [2])
    data, weights = some_data([5, 2, 4, 5, 1]), exact_weights(network)
    values = fisher(network, weights, data, task=0)
    recurrent = torch.cat([value.reshape(-1) for name, value in values.items() if name.endswith("_hh")])
    found = step_importance(network, weights, data)
    assert found.fisher == pytest.approx(float(recurrent.mean()), rel=1e-9)
    assert len(found.steps) == 5
    assert all(value >= 0 for value in found.steps)


def test_coherence_is_one_for_unrelated_steps_and_their_number_for_equal_ones():
    assert StepImportance([1.0, 1.0, 2.0], 4.0).coherence == 1.0
    assert StepImportance([1.0, 1.0, 1.0], 9.0).coherence == 3.0


def test_networks_without_recurrence_are_told():
    network = Network(Convolutional(), 3, [2])
    with pytest.raises(Exception, match="no recurrent weights"):
        step_importance(network, exact_weights(network), some_data([8, 8]))


def test_the_command_shows_a_column_for_each_task(tmp_path, capsys):
    found = run(build("permuted-copy", "online-ewc", scale="smoke"), tmp_path).record
    assert main(["analyse", "step-importance", found.hash, "--runs", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "contribution of each step" in told
    assert "task 2" in told
