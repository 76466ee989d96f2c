"""Sensitivity: against a derivative of every output by autograd, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from helpers import CELLS, random_weights
from perdure.analysis.sensitivity import sensitivity
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
from perdure.targets.tags import Tags


def some_data(target, lengths):
    random = np.random.default_rng(0)
    x = random.normal(size=(len(lengths), max(lengths), 3))
    shape = (len(lengths), max(lengths)) if target.everywhere else len(lengths)
    y = random.integers(0, 2, shape)
    if target.everywhere:
        y[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = -1
        y[0, 0] = -1  # one step inside that is not scored
    return Data(Sequences(target, x, y, np.array(lengths)), dtype=torch.float64)


def exact_weights(network):
    return {name: weight.double() for name, weight in random_weights(network).items()}


@pytest.mark.parametrize("target", [Label(), Tags()])
@pytest.mark.parametrize("cell", CELLS)
def test_it_is_the_sum_of_squared_derivatives_of_all_outputs(cell, target):
    network, lengths = Network(Recurrent(cell=cell, hidden=(4,)), 3, [2]), [5, 2, 4]
    data, weights = some_data(target, lengths), exact_weights(network)
    recurrent = [name for name in weights if name.endswith("_hh")]
    moved, squares, outputs = 0.0, 0.0, 0
    for number in range(len(lengths)):
        traced = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
        logits = network(traced, data.batch(torch.tensor([number])), 0)
        scored = data.y[number].reshape(-1)[: len(logits)] >= 0
        for logit in logits[scored].reshape(-1):
            gradients = torch.autograd.grad(logit, [traced[name] for name in recurrent], retain_graph=True)
            moved += sum(float(each.square().sum()) for each in gradients)
            squares, outputs = squares + float(logit.detach() ** 2), outputs + 1
    entries = sum(weights[name].numel() for name in recurrent)
    expected = moved / len(lengths) / entries / (squares / outputs)
    assert sensitivity(network, weights, data) == pytest.approx(expected, rel=1e-9)


def test_certainty_changes_the_fisher_but_not_the_sensitivity():
    """Outputs ten times as large are far more certain; relative to their size weights move them as before."""
    network, data = Network(Recurrent(hidden=(4,)), 3, [2]), some_data(Label(), [5] * 6)
    weights = exact_weights(network)
    certain = weights | {name: 100 * weights[name] for name in ("head.0.weight", "head.0.bias")}
    assert sensitivity(network, certain, data) == pytest.approx(sensitivity(network, weights, data), rel=1e-9)
    fishers = [
        float(fisher(network, each, data, estimator="exact")["recurrent.0.weight_hh"].mean())
        for each in (weights, certain)
    ]
    assert fishers[1] < fishers[0] / 10


def test_the_first_samples_can_be_enough():
    network, data = Network(Recurrent(hidden=(4,)), 3, [2]), some_data(Label(), [5] * 6)
    weights = exact_weights(network)
    first = data.having(data.x[:2], data.y[:2], data.all_lengths[:2])
    assert sensitivity(network, weights, data, samples=2) == pytest.approx(
        sensitivity(network, weights, first), rel=1e-12
    )
    assert sensitivity(network, weights, data, samples=99) == sensitivity(network, weights, data)


def test_networks_without_recurrence_are_told():
    network = Network(Convolutional(), 3, [2])
    with pytest.raises(Exception, match="no recurrent weights"):
        sensitivity(network, exact_weights(network), some_data(Label(), [8, 8]))


def test_the_command_shows_each_task_after_its_phase_and_at_the_end(tmp_path, capsys):
    found = run(build("permuted-copy", "fine-tuning", scale="smoke"), tmp_path).record
    assert main(["analyse", "sensitivity", found.hash, "--runs", str(tmp_path), "--samples", "20"]) == 0
    told = capsys.readouterr().out
    assert "sensitivity" in told
    assert len([line for line in told.splitlines() if line.split()[:1] in (["1"], ["2"], ["3"])]) == 3
