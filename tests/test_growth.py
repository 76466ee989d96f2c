"""Tasks arrive one by one: what is there does not change, and nothing depends on tasks to come."""

from __future__ import annotations

import pytest
import torch

from perdure.errors import PerdureError
from perdure.experiment import assemble, generators_of, on_device
from perdure.learning.engine import begin_phase
from perdure.learning.learner import grow, init
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.randomness import generator
from perdure.testing import small
from perdure.weights.hypernetwork import Hypernetwork
from perdure.weights.masked import Masked
from perdure.weights.separate import Separate
from perdure.weights.shared import Shared
from perdure.weights.source import Stock

KINDS = {
    "shared": Shared(),
    "separate": Separate(),
    "masked": Masked(fraction=0.5),
    "chunked": Hypernetwork(hidden=(6,), chunk=50),
    "full": Hypernetwork(kind="full", hidden=(5,)),
    "structured": Hypernetwork(kind="structured", chunk=3, hidden=(6,)),
    "separate heads": Hypernetwork(hidden=(6,), chunk=50, heads="separate"),
}


def generators(*role):
    return generator(3, *role)


def network(tasks, **options):
    return Network(Recurrent(hidden=(7,), **options), 3, [2] * tasks)


def arrived(source, steps, **options):
    """The stock after tasks have arrived in groups, such as (1, 2, 3): one, then one, then one."""
    stock = Stock({}, {})
    known = 0
    for tasks in steps:
        new = source.grow(network(tasks, **options), known, stock, generators)
        assert not set(new.parameters) & set(stock.parameters)
        stock = Stock(stock.parameters | new.parameters, stock.buffers | new.buffers)
        known = tasks
    return stock


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_one_by_one_equals_all_at_once(kind, identity):
    step_by_step = arrived(KINDS[kind], (1, 2, 4), task_identity=identity)
    at_once = arrived(KINDS[kind], (4,), task_identity=identity)
    for ours, expected in zip(step_by_step, at_once, strict=True):
        assert ours.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(ours[name], value), name


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_task_runs_with_does_not_change_when_another_arrives(kind):
    source = KINDS[kind]
    before, after = arrived(source, (2,)), arrived(source, (2, 3))
    for task in (0, 1):
        weights = []
        for tasks, stock in ((2, before), (3, after)):
            net = network(tasks)
            active = {
                name: stock.parameters[name] if where is None else stock.parameters[name][where]
                for name, where in source.active(net, stock.buffers, [task]).items()
            }
            weights.append(source.weights(net, stock.buffers, active, task)[1])
        own = network(2).layout_of(task).axes
        for name in own:
            assert torch.equal(weights[0][name], weights[1][name]), name


@pytest.mark.parametrize("kind", ["chunked", "full", "structured"])
def test_a_hypernetwork_that_grew_is_as_large_as_one_that_knew(kind):
    """|theta| by the formula for all heads at once: chunks (or rows), layers, embeddings."""
    source, tasks = KINDS[kind], 4
    stock = arrived(source, (1, 2, 3, 4))
    net = network(tasks)
    count = sum(vector.numel() for vector in stock.parameters.values())
    assert count == source.count(net)
    size, inputs = net.layout.size, source.task_embedding
    if kind == "full":
        hidden = source.hidden[0]
        layers = hidden * (inputs + 1) + size * (hidden + 1)
    elif kind == "chunked":
        hidden, inputs = source.hidden[0], inputs + source.chunk_embedding
        pieces = -(-size // source.chunk)
        layers = pieces * source.chunk_embedding + hidden * (inputs + 1) + source.chunk * (hidden + 1)
    else:
        return
    assert count == layers + tasks * source.task_embedding


def test_structured_heads_must_be_equal():
    net = Network(Recurrent(hidden=(7,)), 3, [2, 3])
    with pytest.raises(PerdureError, match="chunked"):
        KINDS["structured"].grow(net, 0, Stock({}, {}), generators)


@pytest.mark.parametrize("method", ["coresets", "rtf", "hnet"])
def test_training_data_of_other_tasks_cannot_be_read(method):
    config = small(method)
    tasks, learner = assemble(config)
    data = on_device(tasks, "cpu")
    state = grow(learner, init(learner), [data[0].outputs], generators_of(config))
    seen = []

    class Spy(type(learner.hooks["orthogonal"])):
        name = "spy"

        def begin(self, memory, context):
            seen.append(context)
            return super().begin(memory, context)

    from dataclasses import replace

    watched = replace(learner, penalties={**learner.penalties, "spy": Spy()})
    state = replace(state, memories={**state.memories, "spy": {}})
    if method != "hnet":
        phase = begin_phase(watched, init(watched), [0], data, config.training, generators_of(config))
        state = phase.finish()
        seen.clear()
    begin_phase(watched, state, [1], data, config.training, generators_of(config))
    (context,) = seen
    assert list(context.tasks) == [1]
    assert list(context.known) == [0]
    assert len(context.data(1)) == len(data[1].train)
    with pytest.raises(PerdureError, match="task 1"):
        context.data(0)
    assert all(len(each) == 0 for each in context.formats.values())


@pytest.mark.parametrize("identity", [False, True])
def test_later_heads_are_generated_with_the_factors_of_the_first(identity):
    """Measured after training they were 0.01 at times, and such a head did not learn."""
    config = small("hnet", **{"network.task_identity": identity, "training.iterations": 30})
    tasks, learner = assemble(config)
    state, data = init(learner), on_device(tasks, "cpu")
    for task in range(len(tasks)):
        phase = begin_phase(learner, state, [task], data, config.training, generators_of(config))
        while not phase.done:
            phase.step()
        state = phase.finish()
    network = Network(config.network, tasks[0].inputs, [task.outputs for task in tasks])
    factors = network.layout.split(config.weights.scale(network, state.buffers))
    for task in range(1, len(tasks)):
        for alike, part in zip(network.parts(0), network.parts(task), strict=True):
            for first, later in zip(network.layouts[alike].shapes, network.layouts[part].shapes, strict=True):
                assert factors[later].unique().tolist() == factors[first].unique().tolist()
                assert len(factors[later].unique()) == 1
