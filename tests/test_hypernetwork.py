"""The hypernetwork: published counts, the penalty at and away from the snapshot, all kinds alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from helpers import sequences, whole
from perdure.errors import PerdureError
from perdure.learning.engine import RunOptions, begin_phase, learn
from perdure.learning.learner import grow, init
from perdure.learning.packing import unpack
from perdure.learning.splits import outputs_of
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.targets.tags import Tags
from perdure.weights.hypernetwork import Hypernetwork
from perdure.weights.source import Stock
from test_learning import Memory, generators, network_of, outcome, setting

SMALL_HNET = {
    "weights.hidden": "8,8",
    "weights.chunk": 60,
    "weights.task_embedding": 4,
    "weights.chunk_embedding": 4,
    "penalties.orthogonal.strength": 0.0,
    "training.clip": None,
}


NOTHING = Stock({}, {})


def copy_network(**choices):
    return Network(Recurrent(**choices), 8, (7,) * 5)


PUBLISHED = [
    # main network, hypernetwork, chunks, parameters, ratio
    (copy_network(), {}, 58, 135_316, 0.947),
    (copy_network(heads="single"), {"chunk_embedding": 16}, 55, 133_540, 0.984),
    (copy_network(), {"hidden": (60, 60, 30), "chunk": 4000, "task_embedding": 16}, 36, 133_662, 0.935),
    (copy_network(), {"hidden": (64, 64, 32), "chunk": 4000}, 36, 143_712, 1.006),
    (
        Network(Recurrent(cell="lstm"), 4, (2,) * 5),
        {"hidden": (25, 25), "chunk": 10_000, "chunk_embedding": 16}, 28, 262_483, 0.969,
    ),
    (
        Network(Recurrent(cell="lstm"), 4, (2,) * 5),
        {"hidden": (50, 50), "chunk": 5000, "chunk_embedding": 16}, 55, 261_040, 0.964,
    ),
    (
        Network(Recurrent(cell="lstm"), 4, (2,) * 5),
        {"hidden": (25, 25), "chunk": 10_000, "chunk_embedding": 16, "task_embedding": 16},
        28, 262_003, 0.967,
    ),
    (
        Network(Recurrent(cell="lstm", hidden=(32,)), 128, (10,) * 10),
        {"hidden": (10, 10), "chunk": 2000}, 13, 23_496, 0.978,
    ),
    (
        Network(Recurrent(cell="lstm", hidden=(32,), bidirectional=True), 64, (17,) * 20),
        {"hidden": (75, 125), "chunk": 190, "chunk_embedding": 8}, 249, 39_147, 0.830,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("network", "options", "chunks", "count", "ratio"), PUBLISHED)
def test_published_counts(network, options, chunks, count, ratio):
    source = Hypernetwork(**options)
    parameters, _ = source.grow(network, 0, NOTHING, generators)
    assert len(source.shape(network).weights(parameters)["0.chunks"]) == chunks
    assert source.count(network) == count
    assert round(count / network.layout.size, 3) == ratio
    assert sum(vector.numel() for vector in parameters.values()) == count


KINDS = {
    "chunked": {},
    "full": {"kind": "full"},
    "structured": {"kind": "structured", "chunk": 5},
    "separate heads": {"heads": "separate"},
    "sigmoid": {"activation": "sigmoid", "initialisation": "original"},
    "spectral": {"spectral": True},
}
BODIES = {
    "elman": {},
    "lstm": {"cell": "lstm"},
    "gru, both directions": {"cell": "gru", "bidirectional": True},
    "stacked, dense layers": {"hidden": (10, 5), "input_layers": (4,), "output_layers": (3,)},
    "single head": {"heads": "single"},
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_makes_every_network(kind, body):
    """Weights of the right shapes that depend on the task, and gradients for theta and embedding alone."""
    if (kind, body) == ("separate heads", "single head"):
        pytest.skip("refused: see test_meaningless_combinations_are_refused")
    network = Network(Recurrent(**({"hidden": (10,)} | BODIES[body])), 3, (2, 2, 2))
    small = {"hidden": (6,), "task_embedding": 3, "chunk_embedding": 4}
    source = Hypernetwork(**(small | {"chunk": 37} | KINDS[kind]))
    parameters, buffers = source.grow(network, 0, NOTHING, generators)
    active = {
        name: parameters[name].clone().requires_grad_() for name in source.active(network, buffers, [2])
    }
    assert {"embedding.0", "embedding.1"} < set(active)
    _, weights = source.weights(network, buffers, active, 2)
    needed = network.layout_of(2).shapes
    assert {n: tuple(w.shape) for n, w in weights.items() if n in needed} == needed
    batch = whole(sequences(Tags(), 4, 5, 3, 2, ragged=True), torch.float32)
    network(weights, batch, 2).square().sum().backward()
    assert active["theta"].grad.abs().sum() > 0
    assert active["embedding.2"].grad.abs().sum() > 0
    assert active["embedding.0"].grad is None
    other = source.weights(network, buffers, parameters, 0)[1]
    assert not torch.equal(other["recurrent.0.weight_hh"], weights["recurrent.0.weight_hh"])


def test_chunks_are_the_plain_formula():
    """psi = concat_i MLP([c_i, e]), written out."""
    network = Network(Recurrent(hidden=(5,)), 3, (2,))
    source = Hypernetwork(hidden=(6, 4), chunk=30, task_embedding=3, chunk_embedding=2)
    parameters, buffers = source.grow(network, 0, NOTHING, generators)
    shape = source.shape(network)
    theta = shape.theta.split(parameters["theta"])
    pieces = []
    for chunk in theta["0.chunks"]:
        hidden = torch.cat([chunk, parameters["embedding.0"]])
        for layer in range(3):
            hidden = theta[f"0.weight.{layer}"] @ hidden + theta[f"0.bias.{layer}"]
            hidden = hidden.relu() if layer < 2 else hidden
        pieces.append(hidden)
    psi = torch.cat(pieces)[: network.layout.size] * buffers["scale"]
    _, weights = source.weights(network, buffers, parameters, 0)
    torch.testing.assert_close(network.layout.join(weights), psi)


def test_structured_pieces_are_whole_rows():
    """Changing one chunk embedding changes exactly the rows of one piece, in all tensors of its layer."""
    network = Network(Recurrent(hidden=(6,)), 3, (2,))
    source = Hypernetwork(kind="structured", chunk=2, hidden=(5,), task_embedding=3, chunk_embedding=2)
    parameters, buffers = source.grow(network, 0, NOTHING, generators)
    shape = source.shape(network)
    before = source.weights(network, buffers, parameters, 0)[1]
    theta = {n: w.clone() for n, w in shape.theta.split(parameters["theta"]).items()}
    theta["0.chunks"][1] += 1
    changed = parameters | {"theta": shape.theta.join(theta)}
    after = source.weights(network, buffers, changed, 0)[1]
    for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh", "weight_ho", "bias_ho"):
        moved = (after[f"recurrent.0.{name}"] != before[f"recurrent.0.{name}"]).reshape(6, -1).any(1)
        assert moved.tolist() == [False, False, True, True, False, False]
    assert torch.equal(after["head.0.weight"], before["head.0.weight"])


@pytest.mark.parametrize("kind", ["chunked", "structured"])
@pytest.mark.parametrize("ratio", [0.25, 1.0, 5.0])
def test_the_wanted_ratio_is_met_by_the_largest_chunk_that_stays_below(kind, ratio):
    """At the first task; what is chosen then stays as further tasks arrive."""
    network = Network(Recurrent(), 8, (7,))
    source = Hypernetwork(kind=kind, ratio=ratio)
    chosen = source.resolved(network)
    assert source.resolved(copy_network()) == chosen
    assert 0.7 * ratio < source.count(network) / network.layout.size <= ratio
    # Larger chunks: parts of all 256 rows, or about as many weights as are tried at a time.
    steps = [rows for rows in (1, 2, 4, 8, 16, 32, 64, 128, 256) if rows > chosen.chunk]
    larger = steps if kind == "structured" else [chosen.chunk + 40, 2 * chosen.chunk]
    for chunk in larger:
        assert chosen.model_copy(update={"chunk": chunk}).count(network) > ratio * network.layout.size


def test_a_ratio_that_cannot_be_met_is_refused():
    network = copy_network()
    with pytest.raises(PerdureError, match="ratio"):
        Hypernetwork(ratio=1e-4).count(network)


def test_scaled_weights_start_like_a_plain_rnn():
    network = copy_network(cell="lstm", hidden=(64,))
    source = Hypernetwork()
    parameters, buffers = source.grow(network, 0, NOTHING, generators)
    draws = torch.randn(200, 32, generator=generators("embeddings of any task"))
    made = [network.layout.split(psi) for psi in source.generate(network, buffers, parameters, draws)]
    for name, spread in (("weight_hh", 1 / 8), ("weight_ih", (3 * 8) ** -0.5), ("bias_hh", (3 * 64) ** -0.5)):
        mean = sum(float(weights[f"recurrent.0.{name}"].std()) for weights in made) / 200
        assert mean == pytest.approx(spread, rel=0.02)
    for task in range(5):
        weights = source.weights(network, buffers, parameters, task)[1]
        head = float(weights[f"head.{task}.weight"].std(correction=0))
        assert head == pytest.approx((3 * 64) ** -0.5, rel=0.5)


def phase_after_one_task(**values):
    config, data, learner = setting("hnet", **(SMALL_HNET | values))
    first = begin_phase(learner, init(learner), [0], data, config.training, generators)
    while not first.done:
        first.step()
    return begin_phase(learner, first.finish(), [1], data, config.training, generators)


def third_phase(**values):
    """The phase of task 3, about to begin, after two tasks that were not trained; the state before it."""
    config, data, learner = setting("hnet", **(SMALL_HNET | values))
    state = grow(learner, init(learner), outputs_of(data[:2]), generators)
    return begin_phase(learner, state, [2], data, config.training, generators), learner


def penalty_of(phase, number=0):
    """The penalty for the active vectors as they are."""
    step = replace(phase._forward(phase.mixture.take(4)), number=number)
    return phase.terms["hnet-regulariser"].losses(step)["hnet-regulariser"]


@pytest.mark.parametrize("targets", ["stored", "recomputed"])
def test_at_the_snapshot_the_penalty_and_its_gradient_are_zero(targets):
    phase = phase_after_one_task(**{"penalties.hnet-regulariser.targets": targets})
    loss = penalty_of(phase)
    assert loss.item() == 0
    gradients = torch.autograd.grad(loss, list(phase.active.values()), allow_unused=True)
    assert not any(g is not None and g.any() for g in gradients)


def test_the_penalty_is_its_formula():
    """beta/(K-1) sum_k ||h - target||^2 over body and own head only."""
    phase, learner = third_phase(**{"penalties.hnet-regulariser.strength": 3.0})
    state, network = phase.before, phase.before.network
    with torch.no_grad():
        for vector in phase.active.values():
            vector.add_(torch.sin(torch.arange(len(vector), dtype=torch.float32)) * 0.1)
    loss = penalty_of(phase).item()
    expected = 0.0
    for task in (0, 1):
        _, before = state.weights(learner, task)
        _, now = learner.source.weights(network, state.buffers, phase.active, task)
        used = [*network.body.axes, *network.heads[f"head.{task}"].axes]
        expected += 3.0 / 2 * sum((now[n] - before[n]).square().sum().item() for n in used)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_beta_may_grow_within_a_task():
    """From `first` to `strength` by equal ratios, on the same weights: 2, then 2 * 9^(1/2), then 18."""
    growing = {"first": 2.0, "strength": 18.0, "anneal": 2}
    phase = phase_after_one_task(
        **{f"penalties.hnet-regulariser.{name}": value for name, value in growing.items()}
    )
    with torch.no_grad():
        phase.active["theta"].add_(0.1)
    losses = [penalty_of(phase, number).item() for number in range(4)]
    assert [loss / losses[0] for loss in losses] == pytest.approx([1, 3, 9, 9], rel=1e-5)


def test_sampled_tasks_have_the_full_penalty_as_their_mean():
    phase, _ = third_phase(**{"penalties.hnet-regulariser.sample": 1})
    whole_phase, _ = third_phase()
    with torch.no_grad():
        phase.active["theta"].mul_(1.1)
        whole_phase.active["theta"].mul_(1.1)
    drawn = [penalty_of(phase).item() for _ in range(200)]
    full = penalty_of(whole_phase).item()
    assert len(set(drawn)) == 2
    assert sum(set(drawn)) / 2 == pytest.approx(full, rel=1e-5)


def moved_and_kept(**values):
    """How far the weights generated for task 1 move while tasks 2 and 3 are learnt, and final accuracy."""
    config, data, learner = setting("hnet", **(SMALL_HNET | values))
    keeper = Memory()
    result = learn(learner, data, config.training, generators, keeper, RunOptions())
    body = network_of(learner, data).body
    first, last = (
        body.join(unpack(after, learner, outputs_of(data[:count])).weights(learner, 0)[1])
        for after, count in ((keeper.after[0], 1), (keeper.after[-1], 3))
    )
    return float((last - first).square().sum()), result.accuracy


def test_the_stronger_the_penalty_the_less_old_weights_move():
    moved = [moved_and_kept(**{"penalties.hnet-regulariser.strength": beta})[0] for beta in (0.0, 1.0, 100.0)]
    assert moved[0] > 2 * moved[1] > 4 * moved[2]


LONGER = {
    "training.iterations": 500,
    "weights.hidden": "20,20",
    "network.hidden": 30,
    "weights.chunk": 200,
    "weights.task_embedding": 32,
    "weights.chunk_embedding": 32,
    "penalties.orthogonal.strength": 0.1,
}


def test_without_penalty_it_forgets_and_with_it_keeps_with_one_head_too():
    _, free = moved_and_kept(**LONGER, **{"penalties.hnet-regulariser.strength": 0.0})
    held, single = (
        moved_and_kept(**LONGER, **{"network.heads": heads, "penalties.hnet-regulariser.strength": 10.0})[1]
        for heads in ("multi", "single")
    )
    assert free[0][0] > 95
    assert held[0][0] > 95
    assert free[2][0] < 80
    assert held[2][0] > 93
    assert min(single[2][:2]) > 93  # how well the third is learnt varies at this size


@pytest.mark.parametrize(
    "values",
    [
        {"penalties.hnet-regulariser.lookahead": True},
        {"weights.embeddings": "frozen"},
        {"weights.heads": "separate"},
        {"penalties.hnet-regulariser.targets": "recomputed", "penalties.hnet-regulariser.sample": 1},
    ],
)
def test_variants_hold_old_weights_too(values):
    held = moved_and_kept(**values, **{"penalties.hnet-regulariser.strength": 10.0})[0]
    free = moved_and_kept(**values, **{"penalties.hnet-regulariser.strength": 0.0})[0]
    assert held < 0.7 * free


def test_frozen_embeddings_stay():
    _, knowledge = outcome("hnet", **(SMALL_HNET | {"weights.embeddings": "frozen"}))
    assert torch.equal(knowledge[0]["parameters/embedding.0"], knowledge[2]["parameters/embedding.0"])
    _, knowledge = outcome("hnet", **SMALL_HNET)
    assert not torch.equal(knowledge[0]["parameters/embedding.0"], knowledge[2]["parameters/embedding.0"])


def test_stored_and_recomputed_targets_are_the_same_run():
    stored, _ = outcome("hnet", **SMALL_HNET)
    recomputed, _ = outcome("hnet", **(SMALL_HNET | {"penalties.hnet-regulariser.targets": "recomputed"}))
    assert stored.accuracy == recomputed.accuracy


def test_spectral_normalisation_divides_by_the_largest_singular_value():
    network = Network(Recurrent(cell="lstm", hidden=(8,)), 3, (2,))
    source = Hypernetwork(hidden=(6,), chunk=50, spectral=True)
    parameters, buffers = source.grow(network, 0, NOTHING, generators)
    weights = source.weights(network, buffers, parameters, 0)[1]
    for block in network.recurrent_matrices(weights):
        assert float(torch.linalg.matrix_norm(block, 2)) == pytest.approx(1, rel=0.1)


def test_meaningless_combinations_are_refused():
    with pytest.raises(PerdureError, match="hypernetwork generates"):
        outcome("hnet+online-ewc", **SMALL_HNET)
    with pytest.raises(PerdureError, match="separate heads"):
        outcome("hnet", **(SMALL_HNET | {"weights.heads": "separate", "network.heads": "single"}))


def test_a_new_embedding_may_be_the_draw_with_the_most_orthogonal_recurrence():
    network = Network(Recurrent(cell="lstm", hidden=(6,)), 3, (2, 2, 2))
    source = Hypernetwork(new_embedding="chosen", hidden=(5,), chunk=40, task_embedding=4)
    parameters, buffers = source.grow(network, 0, NOTHING, generators)

    def far(embedding):
        changed = parameters | {"embedding.1": embedding}
        weights = source.weights(network, buffers, changed, 1)[1]["recurrent.0.weight_hh"]
        return sum(float((w @ w.T - torch.eye(6)).square().sum()) for w in weights.split(6))

    drawn = Hypernetwork(hidden=(5,), chunk=40, task_embedding=4).grow(network, 0, NOTHING, generators)
    plain = drawn.parameters["embedding.1"]
    more = torch.randn(31, 4, generator=generators("new embedding", 1))
    best = min([plain, *more], key=far)
    torch.testing.assert_close(parameters["embedding.1"], best)
    assert far(best) < far(plain)
    for name in ("theta", "embedding.0"):
        assert torch.equal(parameters[name], drawn.parameters[name])
