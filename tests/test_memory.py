"""The common memory and the rehearsals built on it, against brute force and independent formulas."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from helpers import random_weights
from perdure import ContinualLearner
from perdure.benchmarks.task import Sequences
from perdure.config import build
from perdure.errors import PerdureError
from perdure.hooks import PhaseEnd
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.networks.targets import negative_log_likelihood
from perdure.networks.together import logits_of
from perdure.rehearsal import coreset, generative
from perdure.rehearsal.a_gem import projected
from perdure.rehearsal.er import ER
from perdure.rehearsal.herding import Herding, herding_order
from perdure.rehearsal.memory import Remembering, Stored, fair_shares
from perdure.rehearsal.samples import choose_random, keep_some, stored_samples, stored_tasks, unstore
from perdure.targets.tags import Tags
from test_learning import generators, outcome, setting

FEW = {"rehearsal.samples": 20}


@pytest.mark.parametrize("method", ["er", "der", "der++", "a-gem", "herding"])
@pytest.mark.parametrize("kind", ["bits", "numbers"])
def test_a_memory_with_fewer_places_than_tasks_goes_on(method, kind):
    """Late tasks have no place in it; they are learnt all the same, and the budget is kept."""
    chance = np.random.default_rng(0)
    learner = ContinualLearner(
        method,
        network={"hidden": 4},
        training={"iterations": 2, "validate_every": 1},
        options={"rehearsal.samples": 3},
        verbose=0,
    )
    for number in range(5):
        x = chance.normal(size=(12, 4, 2))
        x = x > 0 if kind == "bits" else x
        learner.learn(f"task {number}", x.astype(float), np.arange(12) % 2)
        stored = learner._knowledge.state.memories["rehearsal"]
        assert sum(len(stored[f"y.{task}"]) for task in stored_tasks(stored)) == 3


def later_phase(method, tasks=2, **values):
    """A phase with old tasks, about to begin, and the data."""
    options = build("permuted-copy", method).rehearsal
    few = FEW if options is not None else {}
    config, data, learner = setting(method, **(few | values))
    state = init(learner)
    for task in range(tasks):
        phase = begin_phase(learner, state, [task], data, config.training, generators)
        while not phase.done:
            phase.step()
        state = phase.finish()
    return begin_phase(learner, state, [tasks], data, config.training, generators), data


@pytest.mark.parametrize("room", range(0, 14))
def test_shares_are_as_equal_as_they_can_be(room):
    counts = {0: 2, 1: 5, 2: 3}
    shares = fair_shares(room, counts)
    possible = [
        some for some in itertools.product(*(range(n + 1) for n in counts.values())) if sum(some) <= room
    ]
    most = max(map(sum, possible))
    assert sum(shares.values()) == most
    assert sorted(shares.values()) == max(sorted(some) for some in possible if sum(some) == most)


@pytest.mark.parametrize("share", ["tasks", "stream"])
@pytest.mark.parametrize("method", ["er", "der", "der++", "a-gem", "herding"])
def test_the_budget_is_kept_and_shared(method, share):
    _, after = outcome(method, **{"rehearsal.samples": 11, "rehearsal.share": share})
    for phase, state in enumerate(after):
        memory = {
            name.removeprefix("memory/rehearsal/"): value
            for name, value in state.items()
            if name.startswith("memory/rehearsal/")
        }
        assert stored_tasks(memory) == list(range(phase + 1))
        assert stored_samples(memory) == 11
        sizes = {len(memory[f"y.{task}"]) for task in range(phase + 1)}
        if share == "tasks":
            assert max(sizes) - min(sizes) <= 1
        for task in range(phase + 1):
            rows = {len(memory[n]) for n in memory if n.endswith(f".{task}") and "shape" not in n} - {3}
            assert rows <= sizes | {3}


def test_a_budget_in_bytes_holds_as_many_samples_as_fit():
    _, after = outcome("er", **{"rehearsal.bytes": 1000})
    for state in after:
        memory = {n: v for n, v in state.items() if n.startswith("memory/rehearsal/") and "shape" not in n}
        used = sum(value.numel() * value.element_size() for value in memory.values())
        one = used / sum(len(value) for name, value in memory.items() if "key" in name)
        assert 1000 - one < used <= 1000


def test_the_stream_is_a_uniform_sample_of_all_that_was_seen():
    """Bottom-k by uniform keys is a reservoir: every sample stays equally often, whenever it was seen."""
    options, kept = ER(samples=6, share="stream"), torch.zeros(2, 10)
    source = torch.Generator().manual_seed(0)
    for _ in range(3000):
        memory = {}
        for task, size in enumerate((10, 10)):
            keys, order = torch.rand(size, generator=source, dtype=torch.float64).sort()
            memory = options.within_budget(memory | {f"key.{task}": keys, f"y.{task}": order})
        for task in (0, 1):
            kept[task][memory[f"y.{task}"]] += 1
    expected = 3000 * 6 / 20
    assert (kept - expected).abs().max() < 5 * (expected * 0.7) ** 0.5


def test_the_loss_of_er_is_that_of_true_targets():
    phase, data = later_phase("er", **{"rehearsal.strength": 3.0})
    term = phase.terms["rehearsal"]
    before = term.state()
    _, losses = phase._gradients()
    term.restore(before)
    drawn = term.stored.draw(16)
    assert sum(len(index) for index in drawn.values()) == 16
    total = 0.0
    for task, index in drawn.items():
        network, weights = phase.before.weights(phase.learner, task)
        for number in index:
            batch = term.stored.data[task].batch(number[None])
            total += negative_log_likelihood(network(weights, batch, task), batch).item()
            same = (data[task].train.x == term.stored.data[task].x[number]).flatten(1).all(1)
            assert (data[task].train.y[same] == term.stored.data[task].y[number]).flatten(1).all(1).any()
    assert losses["rehearsal"].item() == pytest.approx(3 * total / 16, rel=1e-5)


def test_der_compares_with_the_outputs_of_the_moment_of_storing():
    phase, _ = later_phase("der++", tasks=1, **{"rehearsal.alpha": 0.5, "rehearsal.beta": 2.0})
    _, losses = phase._gradients()
    assert losses["dark"].item() == pytest.approx(0, abs=1e-9)  # nothing has moved since
    phase.step()
    term = phase.terms["rehearsal"]
    before = term.state()
    _, losses = phase._gradients()
    term.restore(before)
    (index,) = term.stored.draw(16).values()
    active = phase.trained()
    network, weights = phase.learner.source.weights(
        phase.before.network, phase.before.buffers, phase.before.parameters | active, 0
    )
    total = 0.0
    for number in index:
        batch = term.stored.data[0].batch(number[None])
        now = batch.answers.unpack(network(weights, batch, 0))[0]
        total += float((now - term.memory["logits.0"][number]).square().sum())
    assert losses["dark"].item() == pytest.approx(0.5 * total / 16, rel=1e-4)
    (index,) = term.stored.draw(16).values()
    batch = term.stored.data[0].batch(index)
    hard = negative_log_likelihood(network(weights, batch, 0), batch) / 16
    assert losses["rehearsal"].item() == pytest.approx(2 * float(hard), rel=1e-5)


def test_without_alpha_der_plus_plus_rehearses_as_er_does():
    one, _ = later_phase("er", **{"rehearsal.strength": 0.0})
    other, _ = later_phase("der++", **{"rehearsal.alpha": 0.0, "rehearsal.beta": 0.0})
    assert torch.equal(one.active["body"], other.active["body"])


def test_a_projected_gradient_is_the_nearest_that_does_not_raise_the_loss():
    source = torch.Generator().manual_seed(1)
    for _ in range(50):
        g = {name: torch.randn(4, generator=source, dtype=torch.float64) for name in "ab"}
        r = {name: torch.randn(4, generator=source, dtype=torch.float64) for name in "ab"}
        flat, reference = (torch.cat([v["a"], v["b"]]) for v in (g, r))
        found = projected(g, r)
        ours = torch.cat([found["a"], found["b"]])
        assert float(ours @ reference) >= -1e-9
        if flat @ reference >= 0:
            assert torch.equal(ours, flat)
            continue
        for _ in range(20):  # no other gradient with g . r >= 0 is nearer
            other = torch.randn(8, generator=source, dtype=torch.float64)
            if other @ reference >= 0:
                assert (ours - flat).norm() <= (other - flat).norm() + 1e-12


def test_herding_equals_the_greedy_search():
    source = torch.Generator().manual_seed(2)
    features = functional.normalize(torch.randn(12, 5, generator=source, dtype=torch.float64), dim=1)
    classes = torch.tensor([0, 1, 0, 1, 1, 0, 0, 1, -1, 0, 1, 0])
    order = herding_order(features, classes)
    assert torch.isinf(order[8])
    for label in (0, 1):
        members = (classes == label).nonzero()[:, 0].tolist()
        mean, chosen = features[members].mean(0), []
        for _ in members:
            best = min(
                (each for each in members if each not in chosen),
                key=lambda each: float((features[[*chosen, each]].mean(0) - mean).norm()),
            )
            assert order[best] == len(chosen)
            chosen.append(best)
    first = herding_order(features, classes, 2)
    assert torch.equal(first, torch.where(order < 2, order, torch.inf))


@pytest.mark.parametrize(
    "budget", [{"rehearsal.samples": 11}, {"rehearsal.samples": 150}, {"rehearsal.bytes": 1000}]
)
@pytest.mark.parametrize("share", ["tasks", "stream"])
def test_herding_stops_where_the_memory_is_full_and_keeps_the_same_samples(budget, share, monkeypatch):
    options = budget | {"rehearsal.share": share, "training.iterations": 5}
    _, after = outcome("herding", **options)
    monkeypatch.setattr(Remembering, "_most_of", lambda self, task, data, memory: len(data))
    _, of_whole_order = outcome("herding", **options)
    for state, expected in zip(after, of_whole_order, strict=True):
        assert state.keys() == expected.keys()
        assert all(torch.equal(state[name], expected[name]) for name in state)


def test_the_nearest_mean_is_what_a_search_over_classes_finds():
    config = build(
        "smnist",
        "herding",
        scale="smoke",
        **{"benchmark.tasks": 2, "benchmark.train": 60, "benchmark.val": 20, "benchmark.test": 40}
        | {"training.iterations": 20, "training.patience": None},
    )
    from perdure.experiment import assemble, generators_of, on_device

    tasks, learner = assemble(config)
    data, state = on_device(tasks, "cpu"), init(learner)
    for task in (0, 1):
        phase = begin_phase(learner, state, [task], data, config.training, generators_of(config))
        while not phase.done:
            phase.step()
        state = phase.finish()
    memory = state.memories["rehearsal"]
    for task in (0, 1):
        batch = data[task].test.batch(slice(None))
        network, weights = state.weights(learner, task)
        ours = network(weights, batch, task).argmax(1)
        stored = Stored(memory, phase_context(learner, state, data, config))
        exemplars = stored.data[task]
        features = functional.normalize(
            network.features(weights, exemplars.batch(slice(None)), task, exemplars.batch(slice(None)).asked)
        )
        means = torch.stack([features[exemplars.y == label].mean(0) for label in (0, 1)])
        tested = functional.normalize(network.features(weights, batch, task, batch.asked))
        distance = torch.cdist(tested, functional.normalize(means))
        assert torch.equal(ours, distance.argmin(1))


def test_a_class_without_exemplars_is_never_the_answer():
    """Its mean is zero, and a cosine of zero would beat all negative ones."""
    network = Network(Recurrent(hidden=(4,)), 3, [3])
    weights = random_weights(network)
    means = functional.normalize(torch.tensor([[-1.0, 0, 0, 0], [-1.0, 1, 0, 0], [0, 0, 0, 0]]), dim=1)
    answering = Herding().answering({"mean.head.0": means}, network, weights, 0)
    feature = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    logits = functional.linear(feature, answering["head.0.weight"], answering["head.0.bias"])
    assert int(logits.argmax(1)) == 1  # cosines -1, -0.7 and none


@pytest.mark.parametrize(("method", "module", "second"), [("rtf", generative, 1), ("coresets", coreset, 0)])
def test_what_is_rehearsed_has_the_dropout_of_training_and_its_teacher_has_none(
    method, module, second, monkeypatch
):
    """Coresets rehearse a task beside its own mini-batch if it is learnt again."""
    config = build(
        "smnist",
        method,
        scale="smoke",
        **{"benchmark.tasks": 2, "benchmark.train": 60, "benchmark.val": 20, "benchmark.test": 40}
        | {"training.iterations": 2, "training.patience": None, "network.dropout": 0.5},
    )
    from perdure.experiment import assemble, generators_of, on_device

    tasks, learner = assemble(config)
    data, state = on_device(tasks, "cpu"), init(learner)
    seen = []

    def noted(running, batches):
        seen.append((torch.is_grad_enabled(), {batch.noise for batch in batches.values()}))
        return logits_of(running, batches)

    for task in (0, second):
        phase = begin_phase(learner, state, [task], data, config.training, generators_of(config))
        seen.clear()
        monkeypatch.setattr(module, "logits_of", noted)
        while not phase.done:
            phase.step()
        state = phase.finish()
    trained = [noises for trains, noises in seen if trains and None not in noises]
    taught = [noises for trains, noises in seen if not trains]
    assert len(trained) == 2
    assert all(noises == {None} for noises in taught)


def phase_context(learner, state, data, config):
    from perdure.experiment import generators_of
    from perdure.learning.phase import context_of

    formats = {task: splits.train.without_samples() for task, splits in enumerate(data)}
    return context_of(learner, state, {}, formats, generators_of(config))


def test_stored_samples_cannot_run_in_sub_networks():
    for name in ("er", "a-gem", "lwf"):
        with pytest.raises(PerdureError, match=f"sub-network at a time, but {name} needs those of old tasks"):
            build("permuted-copy", f"masking+{name}")


def numbered(start, count, steps, *, bits=False):
    """Sequences whose inputs tell their number: as a value, or as bits."""
    numbers = np.arange(start, start + count)
    x = np.zeros((count, steps, 8), dtype=np.float32)
    x[:, 0] = (numbers[:, None] >> np.arange(8)) & 1
    if not bits:
        x[:, 0, 7] = -1
    y = np.full((count, steps), -1)
    y[:, : steps - 1] = numbers[:, None]
    return Data(Sequences(Tags(), x, y, np.full(count, steps - 1)))


def numbers_in(memory, like):
    """The number of each stored sample by its inputs; targets and logits must tell the same."""
    data = unstore(memory, 0, like)
    found = (data.x[:, 0, :7].long() << torch.arange(7)).sum(1)
    batch = data.batch(slice(None))
    told = batch.answers.unpack(batch.targets[:, None])[:, :, 0]
    for number, length, row in zip(found, data.lengths, told, strict=True):
        assert (row[:length] == number).all()
    if "logits.0" in memory:
        assert (memory["logits.0"][:, 0, 0] == found).all()
    return found.tolist()


@pytest.mark.parametrize("lengths", [(4, 4), (4, 6), (6, 4)])
@pytest.mark.parametrize("forms", list(itertools.product([True, False], repeat=2)))
def test_a_task_learnt_again_joins_its_samples(forms, lengths):
    """The reservoir is that of both visits, whatever form and length each visit's inputs have."""
    visits = [
        numbered(start, 30, steps, bits=bits)
        for start, steps, bits in zip((0, 30), lengths, forms, strict=True)
    ]
    options, memory = ER(samples=25), {}
    keys = torch.rand(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for number, data in enumerate(visits):
        mine = keys[30 * number : 30 * (number + 1)]
        memory = options.remember(
            memory,
            PhaseEnd({}, {0: data}),
            lambda task, data, most, mine=mine: mine,
            lambda task, data, index, width=2 + number: {
                "logits": data.y[index][:, :1, None].repeat(1, 1, width)
            },
        )
    assert sorted(numbers_in(memory, visits[1])) == sorted(keys.argsort()[:25].tolist())
    assert stored_samples(memory) == 25
    assert ("bits.0" in memory) == all(forms)
    assert ("x.0" in memory) != ("bits.0" in memory)


def test_a_coreset_keeps_samples_of_earlier_visits():
    """Of 100 seen, 30 in the first visit: 3 of 10 stay; then 20 of 120 are new: 2 of 10."""
    visits = [numbered(0, 30, 4), numbered(30, 70, 4), numbered(100, 20, 4)]
    memory, source = {}, torch.Generator().manual_seed(0)
    shares = []
    for data in visits:
        choose = partial(choose_random, data, generator=source)
        memory = keep_some(memory, data, 0, 10, choose, packed=True)
        numbers = numbers_in(memory, data)
        assert len(set(numbers)) == len(numbers) == 10
        shares.append(
            [sum(low <= n < high for n in numbers) for low, high in ((0, 30), (30, 100), (100, 120))]
        )
    assert shares[0] == [10, 0, 0]
    assert shares[1] == [3, 7, 0]
    assert shares[2][2] == 2
    assert memory["seen.0"].tolist() == [120]
