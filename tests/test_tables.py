"""Data that are row numbers of a table, tables that are trained, and the weighted F1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers import Memory, sequences
from perdure.benchmarks.task import Sequences, Task, check_tasks
from perdure.errors import PerdureError
from perdure.learning.engine import RunOptions, begin_phase, learn
from perdure.learning.evaluate import evaluate
from perdure.learning.learner import Learner, init
from perdure.learning.splits import Splits, outputs_of
from perdure.learning.training import Training
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.targets import negative_log_likelihood
from perdure.penalties.online_ewc import OnlineEWC
from perdure.randomness import generator
from perdure.rehearsal.coreset import Coreset
from perdure.targets.confusion import weighted_f1
from perdure.targets.tags import Tags
from perdure.weights.shared import Shared
from perdure.weights.source import Stock

WORDS, FEATURES, TAGS = 30, 4, 3


def worded(count, seed, table):
    """Sentences of word numbers, with tags."""
    plain = sequences(Tags(), count, 6, FEATURES, TAGS, ragged=True, seed=seed)
    words = np.random.default_rng(seed).integers(0, WORDS, plain.x.shape[:2]).astype(np.int32)
    return Sequences(Tags(), words, plain.y.astype(np.int8), plain.lengths, table)


def spelled_out(data):
    """The same with each word's vector written down."""
    return replace(data, x=data.table[data.x], table=None)


def table_of(seed):
    return np.random.default_rng(100 + seed).normal(size=(WORDS, FEATURES)).astype(np.float32)


def generators(*role):
    return generator(0, *role)


def setting(penalties=None, rehearsal=None, change=lambda sequences: sequences):
    data = []
    for task in range(2):
        splits = (Data(change(worded(40, 10 * task + n, table_of(task)))) for n in range(3))
        data.append(Splits(f"language {task}", TAGS, *splits))
    architecture = Recurrent(cell="lstm", hidden=(5,), bidirectional=True)
    return data, Learner(architecture, FEATURES, Shared(), penalties or {}, rehearsal)


def network_of(data, learner):
    """The network with all tasks."""
    return init(learner).network.grown(outputs_of(data))


def learnt(data, learner, **settings):
    keeper = Memory()
    training = Training(iterations=30, batch_size=8, learning_rate=0.01, validate_every=10, **settings)
    return learn(learner, data, training, generators, keeper, RunOptions()), keeper.after


@pytest.mark.parametrize("rehearsal", [None, Coreset(size=7)])
def test_a_table_means_what_it_says(rehearsal):
    words = learnt(*setting({"online-ewc": OnlineEWC(strength=1.0)}, rehearsal))
    vectors = learnt(*setting({"online-ewc": OnlineEWC(strength=1.0)}, rehearsal, change=spelled_out))
    assert words[0].accuracy == vectors[0].accuracy
    for first, second in zip(words[1], vectors[1], strict=True):
        for name in first:
            if not name.startswith("memory/rehearsal/x"):  # stored as words, or as vectors
                assert torch.equal(first[name], second[name]), name


def test_a_trained_table_gets_the_gradient_of_its_rows():
    data, learner = setting()
    training = Training(iterations=1, batch_size=40, learning_rate=0.1, optimiser="SGD", tables="trained")
    keeper = Memory()
    learn(learner, data, training, generators, keeper, RunOptions())
    network = network_of(data, learner)
    start, _ = Shared().grow(network, 0, Stock({}, {}), generators)
    table = torch.tensor(table_of(0), requires_grad=True)
    _, weights = Shared().weights(network, {}, start, 0)
    total = torch.zeros(())
    source = worded(40, 0, table_of(0))
    for words, y, length in zip(source.x, source.y, source.lengths, strict=True):
        alone = Data(
            Sequences(Tags(), words[None, :length], y[None, :length], np.array([length]), table_of(0))
        )
        batch = alone.reading(table).batch(slice(None))
        total = total + negative_log_likelihood(network(weights, batch, 0), batch)
    (total / 40).backward()
    moved = keeper.after[0]["parameters/table.0"].view(WORDS, FEATURES)
    torch.testing.assert_close(moved, (table - 0.1 * table.grad).detach(), atol=1e-5, rtol=1e-4)
    assert "parameters/table.1" not in keeper.after[0]  # it comes with its task
    assert not torch.equal(
        keeper.after[1]["parameters/table.1"].view(WORDS, FEATURES), torch.tensor(table_of(1))
    )
    assert torch.equal(keeper.after[1]["parameters/table.0"], keeper.after[0]["parameters/table.0"])


def test_training_tables_helps_to_fit():
    frozen, trained = (learnt(*setting(), tables=how)[0] for how in ("frozen", "trained"))
    final = [outcome.curves[0][-1]["loss task"] for outcome in (frozen, trained)]
    assert final[1] < final[0]


def test_tested_with_the_trained_table():
    data, learner = setting()
    outcome, after = learnt(data, learner, tables="trained")
    own = {n.removeprefix("parameters/"): v for n, v in after[-1].items() if n.startswith("parameters/")}
    through = data[0].test.reading(own["table.0"].view(WORDS, FEATURES))
    score = evaluate(*Shared().weights(network_of(data, learner), {}, own, 0), through, 0)
    assert (score.accuracy, score.f1) == (outcome.accuracy[-1][0], outcome.f1[-1][0])


def test_a_phase_with_tables_resumes_bit_for_bit():
    data, learner = setting({"online-ewc": OnlineEWC(strength=1.0)}, Coreset(size=7))
    training = Training(iterations=12, batch_size=8, learning_rate=0.01, validate_every=5, tables="trained")

    def phase():
        return begin_phase(learner, init(learner), [0], data, training, generators)

    whole, first, second = phase(), phase(), phase()
    for _ in range(5):
        first.step()
    second.restore(*first.state())
    while not whole.done:
        whole.step()
    while not second.done:
        second.step()
    ends = whole.finish(), second.finish()
    for name, value in ends[0].parameters.items():
        assert torch.equal(value, ends[1].parameters[name]), name
    for name, value in ends[0].memories["online-ewc"].items():
        assert torch.equal(value, ends[1].memories["online-ewc"][name]), name


def test_row_numbers_beyond_the_table_are_a_fault():
    good = worded(5, 0, table_of(0))
    bad = replace(good, x=np.full_like(good.x, WORDS))
    with pytest.raises(PerdureError, match="row indices of its table, from 0 to 29"):
        check_tasks([Task("language", TAGS, good, good, bad)])


def test_weighted_f1_equals_a_loop_over_classes():
    source = np.random.default_rng(0)
    for _ in range(20):
        asked, answered = source.integers(0, 4, 50), source.integers(0, 5, 50)
        table = np.zeros((5, 5), dtype=int)
        for a, b in zip(asked, answered, strict=True):
            table[a, b] += 1
        expected = 0.0
        for label in range(5):
            hits = int(((asked == label) & (answered == label)).sum())
            precision = hits / max((answered == label).sum(), 1)
            recall = hits / max((asked == label).sum(), 1)
            f1 = 0.0 if hits == 0 else 2 * precision * recall / (precision + recall)
            expected += (asked == label).mean() * f1
        assert weighted_f1(torch.tensor(table)) == pytest.approx(expected, abs=1e-12)
