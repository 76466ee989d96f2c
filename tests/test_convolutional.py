"""The convolutional body equals torch's layers; its Fisher equals a loop over samples."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from helpers import random_weights, sequences, whole
from perdure.errors import PerdureError
from perdure.networks.batch import Data
from perdure.networks.bodies.convolutional import Convolutional
from perdure.networks.fisher import fisher
from perdure.networks.network import Network
from perdure.networks.together import logits_of
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from test_fisher import brute_force


def network_of(**options):
    return Network(Convolutional(channels=(4, 3), kernel=3, **options), 3, [2, 2])


def oracle(network, weights, x):
    """Features of one sequence [T, F] by torch.nn: convolution, ReLU, norm, pooling, mean over time."""
    body = network.architecture
    rows = nn.functional.layer_norm(x, x.shape[1:]) if body.input_norm else x
    for block, units in enumerate(body.channels):
        matrix = weights[f"blocks.{block}.weight"]  # [C', kernel C], taps first
        kernel = matrix.view(units, body.kernel, -1).transpose(1, 2)
        bias = weights[f"blocks.{block}.bias"]
        rows = nn.functional.conv1d(rows.t()[None], kernel, bias, padding=body.kernel // 2)[0].t().relu()
        if body.norm == "layer":
            gain, shift = (weights[f"blocks.{block}.{part}"] for part in ("gain", "shift"))
            rows = nn.functional.layer_norm(rows, (units,), 1 + gain, shift)
        width = min(body.pooling, len(rows))
        rows = nn.functional.max_pool1d(rows.t()[None], width)[0].t()
    return rows.mean(0)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("options", [{}, {"norm": "none", "input_norm": False}, {"pooling": 3}], ids=str)
def test_features_equal_torchs_layers(ragged, options):
    network = network_of(**options)
    weights = random_weights(network)
    for name in weights:
        if name.endswith(("gain", "shift")):
            weights[name] = torch.linspace(-0.5, 0.5, len(weights[name]), dtype=torch.float64)
    data = sequences(Label(), 8, 9, 3, 2, ragged=ragged)
    batch = whole(data)
    ours = network.features(weights, batch, 0, batch.asked)
    for row, x, length in zip(ours, data.x, data.lengths, strict=True):
        assert torch.allclose(row, oracle(network, weights, torch.tensor(x[:length])), atol=1e-10)


@pytest.mark.parametrize("ragged", [False, True])
def test_the_fisher_is_that_of_a_loop(ragged):
    network = network_of()
    weights, data = random_weights(network), sequences(Label(), 6, 9, 3, 2, ragged=ragged)
    expected = brute_force(network, weights, data, 0, "empirical")
    for name, value in fisher(network, weights, data).items():
        assert torch.allclose(value, expected[name], rtol=1e-9, atol=1e-13), name
    assert expected["blocks.0.gain"].any()


def test_several_tasks_run_in_one_pass():
    network = network_of()
    weights = random_weights(network)
    batches = {task: whole(sequences(Label(), 5, 9, 3, 2, ragged=True, seed=task)) for task in range(2)}
    joined = logits_of({task: (network, weights) for task in range(2)}, batches)
    for task, batch in batches.items():
        assert torch.allclose(joined[task], network(weights, batch, task), atol=1e-10)


def test_gradients_are_those_of_finite_differences():
    network = network_of(pooling=1)
    batch = whole(sequences(Label(), 4, 6, 3, 2, ragged=True))
    flat = network.layout.join(random_weights(network)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda vector: network(network.layout.split(vector), batch, 0), (flat,), fast_mode=True, rtol=1e-4
    )


def test_only_labels_can_be_asked():
    network = network_of()
    data = Data(sequences(Tags(), 4, 6, 3, 2, ragged=True), dtype=torch.float64)
    with pytest.raises(PerdureError, match="one answer per sequence"):
        network(random_weights(network), data.batch(slice(None)), 0)
    with pytest.raises(PerdureError, match="odd"):
        Network(Convolutional(kernel=4), 3, [2]).layout  # noqa: B018


def test_a_narrowed_body_has_fewer_channels():
    assert network_of().narrowed({"blocks.0": 2}).architecture.channels == (2, 3)
    assert network_of().units == {"blocks.0": 4, "blocks.1": 3}
