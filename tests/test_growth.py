<<<<<<< HEAD
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
=======
"""A learner grows task by task: what is there for a task does not depend on tasks that follow."""

from __future__ import annotations

import itertools

import pytest
import torch

from helpers import sequences, whole
from perdure.errors import PerdureError
from perdure.experiment import run
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.learning.phase import context_of
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.storage.store import RunFolder
from perdure.targets.tags import Tags
>>>>>>> porting
from perdure.testing import small
from perdure.weights.hypernetwork import Hypernetwork
from perdure.weights.masked import Masked
from perdure.weights.separate import Separate
from perdure.weights.shared import Shared
<<<<<<< HEAD
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


def test_a_new_head_starts_with_the_spread_of_a_plain_one():
    """Whatever theta has become: it is scaled when the task arrives."""
    source = Hypernetwork(hidden=(20,), chunk=60)
    stock = arrived(source, (1,))
    trained = Stock(stock.parameters | {"theta": stock.parameters["theta"] * 3}, stock.buffers)
    new = source.grow(network(2), 1, trained, generators)
    parameters, buffers = trained.parameters | new.parameters, trained.buffers | new.buffers
    _, weights = source.weights(network(2), buffers, parameters, 1)
    wanted = network(2).layout.starts["head.1.weight"].spread
    assert float(weights["head.1.weight"].std(correction=0)) == pytest.approx(wanted, rel=1e-4)


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
=======
from perdure.weights.source import Stock, take
from test_learning import generators, setting

NOTHING = Stock({}, {})
HYPERNETWORK = {"hidden": (6, 5), "task_embedding": 3, "chunk_embedding": 4}
SOURCES = {
    "shared": Shared(),
    "separate": Separate(),
    "masked": Masked(fraction=0.5),
    "chunked": Hypernetwork(chunk=37, **HYPERNETWORK),
    "full": Hypernetwork(kind="full", **HYPERNETWORK),
    "structured": Hypernetwork(kind="structured", chunk=5, **HYPERNETWORK),
    "plain heads": Hypernetwork(chunk=37, heads="separate", **HYPERNETWORK),
    "unscaled": Hypernetwork(chunk=37, initialisation="original", **HYPERNETWORK),
    "chosen": Hypernetwork(chunk=37, new_embedding="chosen", **HYPERNETWORK),
    "by ratio": Hypernetwork(ratio=1.5, **HYPERNETWORK),
}
GENERATING = [name for name, source in SOURCES.items() if source.generates]
NETWORKS = {
    "elman": {},
    "lstm, both directions": {"cell": "lstm", "bidirectional": True},
    "told the task": {"task_identity": True, "input_layers": (4,)},
    "one head": {"heads": "single"},
    "one head, told the task": {"heads": "single", "task_identity": True, "cell": "gru"},
}


def network_for(choices: str, tasks: int) -> Network:
    return Network(Recurrent(**({"hidden": (10,)} | NETWORKS[choices])), 3, [2] * tasks)


def grown(source, choices, steps):
    """What a source owns after each growth to so many tasks."""
    stock, known, after = NOTHING, 0, []
    for tasks in steps:
        network = network_for(choices, tasks)
        new = source.grow(network, known, stock, generators)
        assert not new.parameters.keys() & stock.parameters.keys(), "what is there stays"
        assert not new.buffers.keys() & stock.buffers.keys()
        stock = Stock(stock.parameters | new.parameters, stock.buffers | new.buffers)
        known = tasks
        after.append((network, stock))
    return after


def refused(source, choices):
    return getattr(source, "heads", "") == "separate" and NETWORKS[choices].get("heads") == "single"


CASES = [(n, c) for n, source in SOURCES.items() for c in NETWORKS if not refused(source, c)]


@pytest.mark.parametrize(("name", "choices"), CASES)
def test_growing_task_by_task_is_knowing_all_at_once(name, choices):
    """The same start values, in the same order, whether tasks come one by one, in pairs or together."""
    ends = [grown(SOURCES[name], choices, steps)[-1][1] for steps in ([4], [1, 2, 3, 4], [2, 4])]
    for other in ends[1:]:
        for ours, theirs in zip(ends[0], other, strict=True):
            assert list(ours) == list(theirs)
            for vector in ours:
                assert torch.equal(ours[vector], theirs[vector]), vector


@pytest.mark.parametrize(("name", "choices"), CASES)
def test_a_task_that_arrives_changes_no_weight_of_the_others(name, choices):
    """psi of known tasks, from parameters that have been trained meanwhile, and so their answers."""
    source = SOURCES[name]
    (before, stock), (after, _) = grown(source, choices, [2, 3])
    source_of_change = torch.Generator().manual_seed(0)
    trained = {
        n: v + 0.1 * torch.randn(v.shape, generator=source_of_change) for n, v in stock.parameters.items()
    }
    new = source.grow(after, 2, Stock(trained, stock.buffers), generators)
    batch = whole(sequences(Tags(), 4, 5, 3, 2, ragged=True), torch.float32)
    for task in range(2):
        narrow, old = running(source, before, Stock(trained, stock.buffers), task)
        more = Stock(trained | new.parameters, stock.buffers | new.buffers)
        wide, now = running(source, after, more, task)
        for weight in narrow.layout_of(task).axes:
            torch.testing.assert_close(now[weight], old[weight], rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(wide(now, batch, task), narrow(old, batch, task), rtol=1e-5, atol=1e-6)


def running(source, network, stock, task):
    """The network and psi of a task."""
    active = take(stock.parameters, source.active(network, stock.buffers, [task]))
    return source.weights(network, stock.buffers, active, task)


def mlp(inputs, hidden, outputs):
    """Numbers of weights and biases."""
    sizes = [inputs, *hidden, outputs]
    return sum((fan_in + 1) * units for fan_in, units in itertools.pairwise(sizes))


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_counts_are_those_of_a_hypernetwork_that_knew_all_tasks(tasks):
    """Elman, 10 units, 3 inputs, heads of 2 outputs, written out: nothing is wasted by growing."""
    body, head, pairs, hidden = (10 * 3 + 10) + 2 * (10 * 10 + 10), 10 * 2 + 2, 4 + 3, (6, 5)
    whole_psi = body + tasks * head
    expected = {
        "chunked": -(-whole_psi // 37) * 4 + mlp(pairs, hidden, 37),
        "full": mlp(3, hidden, whole_psi),
        # rows of the body in pieces of five, and a piece for each head
        "structured": 2 * 4 + mlp(pairs, hidden, 5 * body // 10) + tasks * 4 + mlp(pairs, hidden, head),
        "plain heads": -(-body // 37) * 4 + mlp(pairs, hidden, 37) + tasks * head,
    }
    for name, theta in expected.items():
        source = SOURCES[name]
        network, stock = grown(source, "elman", range(1, tasks + 1))[-1]
        count = theta + 3 * tasks
        assert sum(vector.numel() for vector in stock.parameters.values()) == count, name
        assert source.count(network) == count, name
        if source.heads == "generated":
            assert source.scale(network, stock.buffers).numel() == whole_psi


def test_what_is_generated_covers_all_weights_in_their_order():
    """Heads of different sizes, so that chunks of one task reach into the next one's head."""
    source = SOURCES["chunked"]
    network = Network(Recurrent(hidden=(10,)), 3, [2, 5, 1, 9])
    stock = source.grow(network, 0, NOTHING, generators)
    psi = source.generate(network, stock.buffers, stock.parameters, stock.parameters["embedding.3"][None])[0]
    assert psi.shape == (network.layout.size,)
    _, weights = source.weights(network, stock.buffers, stock.parameters, 3)
    assert torch.equal(network.layout.join(weights), psi)
    spreads = {n: float(w.std(correction=0)) for n, w in weights.items() if n.startswith("head.3")}
    assert spreads["head.3.weight"] == pytest.approx((3 * 10) ** -0.5, rel=1e-5)
    with pytest.raises(PerdureError, match="heads of equal size"):
        SOURCES["structured"].grow(network, 0, NOTHING, generators)


def numbers(folder, phase):
    """Accuracies of the first phases on the first tasks, and the state."""
    place = RunFolder(folder.parent, folder.name)
    rows = place.record().accuracy[: phase + 1]
    return [row[: phase + 1] for row in rows], place.knowledge(phase)


VARIANTS = {
    "told": ("online-ewc", {"network.task_identity": True}),
    "masked and told": ("masking+si", {"network.task_identity": True}),
    "one head": ("coresets", {"network.heads": "single"}),
    "decoders": ("hnet+r", {}),
    "full": ("hnet", {"weights.kind": "full"}),
    "structured": ("hnet", {"weights.kind": "structured", "weights.new_embedding": "chosen"}),
    "plain heads": ("hnet", {"weights.heads": "separate", "network.task_identity": True}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_three_tasks_are_the_first_three_of_five(variant, tmp_path):
    """Options that change what grows; every method by itself is in test_contracts.py."""
    method, values = VARIANTS[variant]
    found = []
    for tasks in (3, 5):
        done = run(small(method, **(values | {"benchmark.tasks": tasks})), tmp_path)
        found.append(numbers(done.folder, 2))
    (rows, state), (other_rows, other) = found
    assert rows == other_rows
    assert state.keys() == other.keys()
    for name, value in state.items():
        assert torch.equal(value, other[name]), name


def context_in_the_second_phase(method="coresets"):
    config, data, learner = setting(method)
    first = begin_phase(learner, init(learner), [0], data, config.training, generators)
    second = begin_phase(learner, first.finish(), [1], data, config.training, generators)
    formats = {task: data[task].train.without_samples() for task in range(2)}
    return context_of(learner, second.before, {1: data[1]}, formats, generators), data


def test_old_and_future_data_cannot_be_reached():
    context, data = context_in_the_second_phase()
    assert torch.equal(context.data(1).x, data[1].train.x)
    for task in (0, 2):
        with pytest.raises(PerdureError, match=f"training data of task {task + 1} cannot be read") as caught:
            context.data(task)
        assert "must keep in its memory" in str(caught.value)
    assert (context.tasks, context.known) == ([1], [0])
    for task, form in context.formats.items():
        assert (len(form), form.y.numel(), form.lengths) == (0, 0, None)
        assert form.target == data[task].train.target
        assert form.x.shape[1:] == data[task].train.x.shape[1:]
    assert context.network.tasks == 2


def test_a_phase_holds_no_data_of_other_tasks():
    """Whatever can be reached from a phase: only the data of its own task."""
    config, data, learner = setting("coresets")
    first = begin_phase(learner, init(learner), [0], data, config.training, generators)
    phase = begin_phase(learner, first.finish(), [1], data, config.training, generators)
    assert list(phase.data) == [1]
    others = {data[task].train.x.data_ptr() for task in (0, 2)}
    seen, left = set(), [phase]
    while left:
        thing = left.pop()
        if id(thing) in seen or isinstance(thing, (str, int, float, type(None), type)):
            continue
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            assert thing.numel() == 0 or thing.data_ptr() not in others
        elif isinstance(thing, dict):
            left += list(thing.values())
        elif isinstance(thing, (list, tuple)):
            left += list(thing)
        elif type(thing).__module__.startswith("perdure."):
            left += list(vars(thing).values())
    assert len(seen) > 50


def test_a_record_counts_what_has_grown(tmp_path):
    """|psi| and all that is trained, after the last task."""
    config = small("hnet", **{"benchmark.tasks": 4, "training.iterations": 1})
    network = Network(config.network, 3 + 1, [3] * 4)  # patterns of three bits, and the stop bit
    counts = {"network": network.layout.size, "trained": config.weights.count(network)}
    assert run(config, tmp_path).record.parameters == counts
>>>>>>> porting
