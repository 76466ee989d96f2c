"""Class- and domain-incremental scenarios: growing heads, classes seen so far, inferred tasks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from helpers import Memory, random_weights, sequences, whole
from perdure.benchmarks.scenario import in_scenario
from perdure.benchmarks.task import Task
from perdure.cli import main
from perdure.config import build
from perdure.errors import PerdureError
from perdure.experiment import assemble, generators_of, on_device, run
from perdure.learning.engine import RunOptions, begin_phase, learn
from perdure.learning.inference import infer
from perdure.learning.learner import LearnerState, init
from perdure.learning.scores import scores_of_all_tasks
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.network import Network
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.testing import check_resumes
from test_fisher import brute_force

SMALL = {
    "benchmark.scenario": "class",
    "benchmark.tasks": 3,
    "benchmark.train": 40,
    "benchmark.val": 20,
    "benchmark.test": 30,
    "network.hidden": 8,
    "training.iterations": 6,
    "training.batch_size": 8,
    "training.validate_every": 3,
    "training.patience": None,
}


def small(method, **values):
    names = {"hnet": {"weights.hidden": "6", "weights.chunk": 60}}.get(method, {})
    return build("smnist", method, scale="smoke", **(SMALL | names | values))


def tasks_of(target, outputs):
    return [
        Task(f"task {n}", count, *(sequences(target, 6, 4, 3, count, ragged=True, seed=n) for _ in range(3)))
        for n, count in enumerate(outputs)
    ]


def test_classes_are_counted_on_from_task_to_task():
    plain = tasks_of(Label(), (2, 3, 2))
    tasks = in_scenario(plain, "class")
    assert [task.outputs for task in tasks] == [2, 5, 7]
    for first, before, after in zip((0, 2, 5), plain, tasks, strict=True):
        assert np.array_equal(after.train.y, before.train.y + first)
        assert not after.told
    assert in_scenario(plain, "task") == plain
    with pytest.raises(PerdureError, match="classes"):
        in_scenario(tasks_of(Bits(), (2, 2)), "class")
    with pytest.raises(PerdureError, match="equally many outputs"):
        in_scenario(plain, "domain")


def test_a_growing_head_is_the_heads_side_by_side():
    network = Network(Recurrent(hidden=(4,), heads="growing"), 3, [2, 5, 6])
    weights = random_weights(network)
    data = sequences(Label(), 5, 4, 3, 6, ragged=True)
    batch = whole(data)
    features = network.features(weights, batch, 1, batch.asked)
    parts = [features @ weights[f"head.{n}.weight"].t() + weights[f"head.{n}.bias"] for n in range(3)]
    for task in range(3):  # whichever task is said
        assert torch.allclose(network(weights, batch, task), torch.cat(parts, dim=1))
    assert [part.shape[1] for part in parts] == [2, 3, 1]
    smaller = Network(Recurrent(hidden=(4,), heads="growing"), 3, [2, 5])
    assert torch.equal(smaller(weights, batch, 0), network(weights, batch, 0)[:, :5])
    expected = brute_force(network, weights, data, 0, "empirical")
    for name, value in fisher(network, weights, data, task=0).items():
        assert torch.allclose(value, expected[name], rtol=1e-10, atol=1e-14)
    with pytest.raises(PerdureError, match="growing head"):
        Network(Recurrent(heads="growing"), 3, [2, 2])


def test_the_scenario_chooses_the_heads():
    for method, heads in (
        ("er", "growing"),
        ("online-ewc", "growing"),
        ("hnet", "multi"),
        ("masking", "multi"),
    ):
        assert small(method).network.heads == heads
        assert small(method, **{"benchmark.scenario": "domain"}).network.heads == "single"
        assert small(method, **{"benchmark.scenario": "task"}).network.heads == "multi"
    assert small("er", **{"network.heads": "multi"}).network.heads == "multi"
    with pytest.raises(PerdureError, match="growing head"):
        assemble(small("hnet", **{"network.heads": "growing"}))


def test_a_scenario_of_before_leaves_the_hash_as_it_was():
    for benchmark in ("smnist", "arrays"):
        assert "scenario" not in build(benchmark, "si").json["benchmark"]
    assert "norm" not in build("smnist", "si").json["network"]
    assert "criterion" not in build("smnist", "si").json["training"]


@pytest.mark.parametrize("method", ["fine-tuning", "er", "der++", "herding", "lwf", "gpm", "coresets"])
def test_only_classes_that_have_arrived_are_possible(method):
    """After each phase, by brute force: argmax over the outputs of the tasks learnt so far."""
    config = small(method)
    tasks, learner = assemble(config)
    data, state, generators = on_device(tasks, "cpu"), init(learner), generators_of(config)
    for phase_number in range(2):
        phase = begin_phase(learner, state, [phase_number], data, config.training, generators)
        while not phase.done:
            phase.step()
        state = phase.finish()
        tested, _ = scores_of_all_tasks(learner, state, data, generators)
        for task in range(phase_number + 1):
            network, weights = state.weights(learner, task)
            batch = data[task].test.batch(slice(None))
            logits = network(weights, batch, task)
            assert logits.shape[1] == 2 * (phase_number + 1)
            right = (logits.argmax(1) == data[task].test.y).double().mean()
            assert tested[task].accuracy == pytest.approx(100 * float(right))


@pytest.mark.parametrize("scenario", ["class", "domain"])
def test_networks_from_which_a_task_is_inferred_are_generated_once(scenario, monkeypatch):
    """For K tasks: one network each to be looked at, and one each to choose from; not K for every split."""
    config = small("hnet", **{"benchmark.scenario": scenario})
    tasks, learner = assemble(config)
    data, generators = on_device(tasks, "cpu"), generators_of(config)
    phase = begin_phase(learner, init(learner), [0], data, config.training, generators)
    state = begin_phase(learner, phase.finish(), [1], data, config.training, generators).finish()
    asked, generate = [], LearnerState.weights
    monkeypatch.setattr(LearnerState, "weights", lambda *given: asked.append(given[2]) or generate(*given))
    scores_of_all_tasks(learner, state, data, generators)
    assert sorted(asked) == [0, 0, 1, 1, 2]


def test_joint_training_learns_all_classes_at_once():
    config = small("multitask", **{"training.iterations": 150, "training.learning_rate": 1e-2})
    tasks, learner = assemble(config)
    results = learn(
        learner, on_device(tasks, "cpu"), config.training, generators_of(config), Memory(), RunOptions()
    )
    assert np.mean(results.accuracy[-1]) > 40  # chance is 17


def test_an_unknown_task_is_the_most_certain_one():
    config = small("hnet")
    tasks, learner = assemble(config)
    data, state, generators = on_device(tasks, "cpu"), init(learner), generators_of(config)
    for number in range(2):
        phase = begin_phase(learner, state, [number], data, config.training, generators)
        while not phase.done:
            phase.step()
        state = phase.finish()
    batch = data[1].test.batch(slice(None))
    running = {task: state.weights(learner, task) for task in range(2)}
    found = infer(running, batch)
    for row in range(len(batch)):
        one = data[1].test.batch(torch.tensor([row]))
        chances = {task: net(psi, one, task).softmax(1)[0] for task, (net, psi) in running.items()}
        doubts = {task: float(-(p * p.log()).sum()) / np.log(len(p)) for task, p in chances.items()}
        best = min(doubts, key=lambda task: doubts[task])
        assert int(found.tasks[row]) == best
        assert int(found.logits[row].argmax()) == int(chances[best].argmax())
    tested, _ = scores_of_all_tasks(learner, state, data, generators)
    right = (found.logits.argmax(1) == data[1].test.y).double().mean()
    assert tested[1].accuracy == pytest.approx(100 * float(right))
    assert tested[2].accuracy == 0  # its classes have not arrived


@pytest.mark.parametrize("target", [Label(), Bits()])
@pytest.mark.parametrize("outputs", [2, 4, 12])
def test_a_head_that_knows_nothing_is_as_uncertain_whatever_its_size(target, outputs):
    """Otherwise the first task, whose head has the fewest classes, would be chosen in doubt."""
    ignorant, certain = torch.zeros(3, outputs), torch.full((3, outputs), -50.0)
    certain[:, 0] = 50.0
    torch.testing.assert_close(target.uncertainty(ignorant), torch.ones(3))
    torch.testing.assert_close(target.uncertainty(certain), torch.zeros(3))


@pytest.mark.parametrize("method", ["er", "herding", "hnet"])
def test_runs_in_the_class_scenario_resume(method):
    check_resumes(small(method))


def test_dropout_acts_in_training_alone_and_resumes(tmp_path):
    config = small("er", **{"network.dropout": 0.5, "network.norm": "layer"})
    check_resumes(config)
    plain = small("er", **{"network.norm": "layer"})
    ours, others = run(config, tmp_path).record, run(plain, tmp_path).record
    assert ours.curves != others.curves
    network = Network(Recurrent(hidden=(50,), dropout=0.5), 3, [2])
    from dataclasses import replace

    weights, batch = random_weights(network), whole(sequences(Label(), 40, 4, 3, 2, ragged=True))
    assert torch.equal(network(weights, batch, 0), network(weights, batch, 0))
    noisy = replace(batch, noise=torch.Generator().manual_seed(0))
    features = network.features(weights, noisy, 0, noisy.asked)
    whole_features = network.features(weights, batch, 0, batch.asked)
    dropped = features == 0
    assert 0.4 < float(dropped.double().mean()) < 0.6
    assert torch.allclose(features[~dropped], 2 * whole_features[~dropped])


def test_a_normalised_layer_has_mean_0_and_variance_1():
    network = Network(Recurrent(hidden=(6, 5), output_layers=(4,), norm="layer"), 3, [2])
    data = sequences(Label(), 7, 4, 3, 2, ragged=True)
    weights = random_weights(network)
    batch = whole(data)
    features = network.features(weights, batch, 0, batch.asked)
    assert torch.allclose(features.mean(1), torch.zeros(7).double(), atol=1e-9)
    assert torch.allclose(features.var(1, correction=0), torch.ones(7).double(), atol=1e-2)
    expected = brute_force(network, weights, data, 0, "empirical")
    for name, value in fisher(network, weights, data).items():
        assert torch.allclose(value, expected[name], rtol=1e-9, atol=1e-13)


def test_the_scenario_has_a_short_name_on_the_command_line(capsys):
    for words in (["--scenario", "klass"], ["--scenario=klass"], ["--benchmark.scenario", "klass"]):
        assert main(["run", "smnist", "si", *words]) == 2
        assert "benchmark.scenario" in capsys.readouterr().err
    assert main(["run", "permuted-copy", "si", "--scenario", "class"]) == 2
    assert "permuted-copy has no scenarios" in capsys.readouterr().err


def grown(method, **values):
    """The third phase of a class-incremental run, about to begin, and the data."""
    config = small(method, **values)
    tasks, learner = assemble(config)
    data, state = on_device(tasks, "cpu"), init(learner)
    for task in (0, 1):
        phase = begin_phase(learner, state, [task], data, config.training, generators_of(config))
        while not phase.done:
            phase.step()
        state = phase.finish()
    return begin_phase(learner, state, [2], data, config.training, generators_of(config)), data


def test_der_compares_outputs_that_did_not_exist_with_zero():
    phase, _ = grown("der", **{"rehearsal.alpha": 0.5, "rehearsal.samples": 12})
    term = phase.terms["rehearsal"]
    before = term.state()
    _, losses = phase._gradients()
    term.restore(before)
    total, new = 0.0, 0.0
    for task, index in term.stored.draw(8).items():
        network, weights = phase.before.weights(phase.learner, task)
        for number in index:
            now = network(weights, term.stored.data[task].batch(number[None]), task)[0]
            then = torch.zeros(len(now))
            stored = term.memory[f"logits.{task}"][number].flatten()
            then[: len(stored)] = stored
            total += float((now - then).square().sum())
            new += float(now[len(stored) :].square().sum())
    assert losses["dark"].item() == pytest.approx(0.5 * total / 8, rel=1e-4)
    assert new > 0  # the head has grown since


def test_lwf_distils_the_old_outputs_of_a_growing_head_in_one_softmax():
    phase, data = grown("lwf", **{"penalties.lwf.strength": 3.0})
    phase.step()
    step, losses = phase._gradients()
    (index,) = step.indices.values()
    batch = data[2].train.batch(index)
    _, teacher = phase.before.weights(phase.learner, 1)
    network, student = phase.learner.source.weights(
        phase.before.network, {}, phase.before.parameters | phase.trained(), 2
    )
    known = phase.before.network.outputs[1]
    z, t = (network(weights, batch, 2)[:, :known].double() for weights in (student, teacher))
    expected = 0.0
    for one, other in zip(z, t, strict=True):
        expected -= float((torch.softmax(other / 2, 0) * torch.log_softmax(one / 2, 0)).sum())
    assert losses["lwf"].item() == pytest.approx(3 * 4 * expected / len(index), rel=1e-5)
