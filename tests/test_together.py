"""Several tasks in one pass give what each gives by itself."""

from __future__ import annotations

import pytest
import torch

from helpers import TARGETS, random_weights, sequences, whole
from perdure.networks import together
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import features_of, join, logits_of
from perdure.targets.label import Label
from perdure.targets.tags import Tags

CASES = [
    {"cell": "elman", "hidden": (6,)},
    {"cell": "lstm", "hidden": (5,), "bidirectional": True},
    {"cell": "gru", "hidden": (4, 3), "input_layers": (5,), "output_layers": (6,)},
    {"cell": "diagonal", "hidden": (5,)},
]


def batches(kind, *, ragged):
    """Three tasks with other numbers and lengths of sequences."""
    steps = (5, 5, 5) if not ragged else (3, 6, 4)
    return {
        task: whole(sequences(kind, 4 + task, steps[task], 3, 2, ragged=ragged, seed=task))
        for task in range(3)
    }


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_one_pass_equals_several(case, kind, ragged, monkeypatch):
    network = Network(Recurrent(**case), 3, (2, 2, 2))
    weights = {n: w.requires_grad_() for n, w in random_weights(network).items()}
    given = batches(kind, ragged=ragged)
    alone = {task: network(weights, batch, task) for task, batch in given.items()}
    sum(negative_log_likelihood(alone[task], batch) for task, batch in given.items()).backward()
    expected = {name: weight.grad.clone() for name, weight in weights.items()}
    for weight in weights.values():
        weight.grad = None

    calls = []
    whole_features = Network.features
    monkeypatch.setattr(Network, "features", lambda *arguments: calls.append(1) or whole_features(*arguments))
    together = logits_of({task: (network, dict(weights)) for task in given}, given)
    assert len(calls) == 1
    for task in given:
        torch.testing.assert_close(together[task], alone[task], rtol=1e-10, atol=1e-12)
    sum(negative_log_likelihood(together[task], batch) for task, batch in given.items()).backward()
    for name, weight in weights.items():
        torch.testing.assert_close(weight.grad, expected[name], rtol=1e-9, atol=1e-11)


def test_other_bodies_run_by_themselves():
    network = Network(Recurrent(hidden=(4,)), 3, (2, 2, 2))
    running = {task: (network, random_weights(network, seed=task)) for task in range(3)}
    given = batches(Label(), ragged=True)
    for task, logits in logits_of(running, given).items():
        assert torch.equal(logits, network(running[task][1], given[task], task))


def test_the_task_as_an_input_is_kept():
    network = Network(Recurrent(hidden=(4,), task_identity=True), 3, (2, 2, 2))
    weights = random_weights(network)
    given = batches(Label(), ragged=True)
    for task, logits in logits_of(dict.fromkeys(range(3), (network, weights)), given).items():
        torch.testing.assert_close(logits, network(weights, given[task], task), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize("kind", TARGETS)
def test_features_everywhere_are_those_of_each_row(kind, identity):
    network = Network(Recurrent(cell="lstm", hidden=(4,), task_identity=identity), 3, (2, 2, 2))
    weights = random_weights(network)
    given = batches(kind, ragged=True)
    found = features_of(dict.fromkeys(given, (network, weights)), given, everywhere=True)
    for task, batch in given.items():
        assert found[task].shape == (len(batch.rows), 4)
        torch.testing.assert_close(
            found[task], network.features(weights, batch, task), rtol=1e-12, atol=1e-14
        )


def test_joined_rows_are_the_rows_of_the_batches():
    given = list(batches(Tags(), ragged=True).values())
    joined = join(given)
    for number, (batch, asked) in enumerate(zip(given, joined.asked(given), strict=True)):
        assert torch.equal(joined.rows[asked], batch.rows)
        assert joined.batches[asked].tolist() == [number] * len(batch.rows)
    assert len(joined.rows) == sum(len(batch.rows) for batch in given)


@pytest.mark.parametrize("ragged", [False, True])
def test_rows_are_joined_alike_with_and_without_the_library(ragged, monkeypatch):
    given = list(batches(Tags(), ragged=ragged).values())
    native = join(given)
    monkeypatch.setattr(together, "join_rows", lambda *_: None)
    plain = join(given)
    assert torch.equal(native.rows, plain.rows)
    assert all(torch.equal(a, b) for a, b in zip(native.places, plain.places, strict=True))
