"""Projected weights, and the penalties without stored samples, against independent formulas."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from helpers import random_weights, sequences, whole
from perdure.config import build
from perdure.errors import PerdureError
from perdure.experiment import assemble, on_device
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.networks.activity import joined, moments
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.networks.sample_gradients import mean_sample_gradients
from perdure.networks.tape import Tape
from perdure.penalties.gpm import extended
from perdure.penalties.projection import shrunk
from perdure.targets.tags import Tags
from test_learning import generators, setting
from test_memory import later_phase


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("cell", ["elman", "lstm", "gru", "diagonal"])
def test_moments_equal_a_loop_over_rows(cell):
    network = Network(Recurrent(cell=cell, hidden=(4,), output_layers=(3,)), 3, [2])
    data, weights = sequences(Tags(), 6, 5, 3, 2, ragged=True), random_weights(network)
    found = {
        each.names: each
        for each in moments(network, weights, Data(data, dtype=torch.float64), torch.arange(6), 0)
    }
    tape = Tape()
    network(weights, whole(data), 0, tape)
    entries = {entry.weight: entry for entry in tape.entries if hasattr(entry, "inputs")}
    assert {name for names in found for name, _ in names} == set(entries)
    for names, each in found.items():
        rows = []
        for number in range(len(entries[names[0][0]].inputs)):
            parts = [
                torch.cat([entries[w].inputs[number].detach(), torch.ones(1).double()]) for w, _ in names
            ]
            rows.append(torch.cat(parts))
        inside = sum(torch.outer(row, row) for row in rows) / len(rows)
        images = [joined(weights, names) @ row for row in rows]
        outside = sum(torch.outer(image, image) for image in images) / len(rows)
        assert torch.allclose(each.inputs, inside, rtol=1e-10)
        assert torch.allclose(each.outputs, outside, rtol=1e-10)
        if names[0][0].endswith("output_layers.0.weight"):  # the images are the pre-activations
            assert torch.allclose(torch.stack(images), entries[names[0][0]].outputs.detach())


def test_both_matrices_of_a_recurrence_are_one_map_if_they_share_a_sum():
    for cell, parts in (("elman", [2]), ("lstm", [2]), ("gru", [1, 1])):
        network = Network(Recurrent(cell=cell, hidden=(4,)), 3, [2])
        data = Data(sequences(Tags(), 3, 4, 3, 2, ragged=False), dtype=torch.float64)
        found = [each.names for each in moments(network, random_weights(network), data, torch.arange(3), 0)]
        recurrent = [names for names in found if names[0][0].endswith(("_ih", "_hh"))]
        assert [len(names) for names in recurrent] == parts


def test_owm_equals_the_recursion_over_samples():
    """P <- P - P x x^T P / (alpha + x^T P x), sample by sample, as Zeng et al. write it."""
    inputs, alpha = random(30, 6), 0.3
    projector = torch.eye(6, dtype=torch.float64)
    for x in inputs:
        image = projector @ x
        projector = projector - torch.outer(image, image) / (alpha + x @ image)
    ours = shrunk(inputs.t() @ inputs, alpha)
    assert torch.allclose(ours.double(), projector, atol=1e-6)
    values, vectors = torch.linalg.eigh(inputs.t() @ inputs)
    expected = vectors @ torch.diag(alpha / (alpha + values)) @ vectors.t()
    assert torch.allclose(ours.double(), expected, atol=1e-6)


def test_gpm_takes_the_directions_that_singular_values_name():
    first, second, threshold = random(8, 40, seed=1), random(8, 40, seed=2), 0.8
    first[:2] *= 5
    second[4:6] *= 5
    u, s, _ = torch.linalg.svd(first)
    needed = int((s.square().cumsum(0) / s.square().sum() < threshold).sum()) + 1
    basis = extended(first.new_zeros(8, 0), first @ first.t(), threshold)
    assert basis.shape[1] == needed
    assert torch.allclose(basis @ basis.t(), u[:, :needed] @ u[:, :needed].t(), atol=1e-8)
    rest = second - basis @ basis.t() @ second
    u, s, _ = torch.linalg.svd(rest)
    held = (second.square().sum() - rest.square().sum()) / second.square().sum()
    more = 0
    while held < threshold:
        held, more = held + s[more].square() / second.square().sum(), more + 1
    both = extended(basis, second @ second.t(), threshold)
    assert both.shape[1] == needed + more
    assert torch.allclose(both.t() @ both, torch.eye(needed + more, dtype=torch.float64), atol=1e-10)
    expected = basis @ basis.t() + u[:, :more] @ u[:, :more].t()
    assert torch.allclose(both @ both.t(), expected, atol=1e-8)


@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
def test_a_full_basis_has_no_directions_that_are_rounding(precision):
    """All of what inputs of low rank fill, and nothing of what float rounding adds to it."""
    for seed in range(20):
        low = (random(20, 3, seed=seed) @ random(3, 40, seed=100 + seed)).to(precision).double()
        basis = extended(low.new_zeros(20, 0), low @ low.t(), 1.0)
        again = extended(basis, low @ low.t(), 1.0)
        assert (basis.shape[1], again.shape[1]) == (3, 3)


def test_a_full_basis_leaves_old_answers_as_they_are():
    """With every input in the basis nothing that an old task reads can change."""
    phase, data = later_phase(
        "gpm", tasks=1, **{"penalties.gpm.threshold": 1.0, "penalties.gpm.samples": None}
    )
    network, weights = phase.before.weights(phase.learner, 0)
    batch = data[0].train.batch(slice(None))
    before = network(weights, batch, 0)
    while not phase.done:
        phase.step()
    after = phase.finish()
    network, weights = after.weights(phase.learner, 0)
    assert torch.allclose(network(weights, batch, 0), before, atol=1e-3)
    moved = after.parameters["head.1"] - phase.before.parameters["head.1"]
    assert moved.abs().max() > 1e-3  # the new head still learns


@pytest.mark.parametrize("method", ["owm", "duncker"])
def test_steps_stay_between_the_projectors(method):
    """Every step of W_hh and W_ih together is P_out X P_in for some X: Adam cannot leave the subspace."""
    phase, _ = later_phase(method, tasks=1, **{f"penalties.{method}.alpha": 1e-4})
    before = phase.active["body"].detach().clone()
    gradients = {}
    term = phase.terms[method]
    original = phase.optimiser.step

    def noted(*factor):
        original(*factor)
        gradients["move"] = phase.active["body"].detach() - before

    phase.optimiser.step = noted
    phase.step()
    named = phase.before.network.body.split(gradients["move"])
    for names, projectors in term.maps.items():
        if not names[0][0].startswith("recurrent"):
            continue
        wanted = joined(named, names).double() @ projectors.inputs.double()
        if method == "duncker":
            wanted = projectors.outputs.double() @ wanted
        ours = joined(phase.before.network.body.split(phase.active["body"].detach() - before), names)
        assert torch.allclose(ours.double(), wanted, atol=1e-6)
        assert float(wanted.norm()) < float(joined(named, names).norm())  # and the projection did something


def test_projections_need_shared_weights():
    for method in ("masking+owm", "hnet+gpm", "masking+duncker"):
        with pytest.raises(PerdureError, match="one set of weights"):
            build("permuted-copy", method)


def test_mas_equals_a_loop_over_samples():
    phase, data = later_phase("mas", tasks=1)
    network, weights = phase.before.weights(phase.learner, 0)
    leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    total = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    train = data[0].train
    for number in range(len(train)):
        norm = network(leaves, train.batch(torch.tensor([number])), 0).square().sum()
        for name, gradient in zip(leaves, torch.autograd.grad(norm, list(leaves.values())), strict=True):
            total[name] += gradient.abs() / len(train)
    expected = network.body.join(total)
    memory = phase.before.memories["mas"]
    assert torch.allclose(memory["importance.body"], expected, rtol=1e-3, atol=1e-4)
    phase.step()
    _, losses = phase._gradients()
    change = phase.active["body"].detach() - memory["anchor.body"]
    assert losses["mas"].item() == pytest.approx(
        float((memory["importance.body"] * change**2).sum()), rel=1e-4
    )


@pytest.mark.parametrize("cell", ["elman", "lstm", "lru", "min-gru", "selective-diagonal"])
def test_absolute_sample_gradients_equal_a_loop_in_double_precision(cell):
    """What mas stores, for ragged sequences and every kind of recurrence; a mean of signed ones differs."""
    network = Network(Recurrent(cell=cell, hidden=(4,)), 3, [2])
    weights, data = random_weights(network), sequences(Tags(), 7, 5, 3, 2, ragged=True)
    whole_data = Data(data, dtype=torch.float64)
    found = mean_sample_gradients(
        network, weights, whole_data, torch.arange(7), 0, lambda logits, batch: [2 * logits], "absolute"
    )
    leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    sizes = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    signed = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    for number in range(7):
        norm = network(leaves, whole_data.batch(torch.tensor([number])), 0).square().sum()
        for name, slope in zip(leaves, torch.autograd.grad(norm, list(leaves.values())), strict=True):
            sizes[name] += slope.abs() / 7
            signed[name] += slope / 7
    for name, value in found.items():
        assert torch.allclose(value, sizes[name], rtol=1e-9, atol=1e-12), name
    assert any(not torch.allclose(found[name], signed[name].abs(), rtol=1e-3) for name in found)


def test_lwf_distils_old_heads_on_new_inputs():
    phase, data = later_phase("lwf", **{"penalties.lwf.strength": 3.0})
    phase.step()
    step, losses = phase._gradients()
    (index,) = step.indices.values()
    batch = data[2].train.batch(index)
    total = 0.0
    for old in (0, 1):
        network, teacher = phase.before.weights(phase.learner, old)
        _, student = phase.learner.source.weights(network, {}, phase.before.parameters | phase.trained(), old)
        z, t = network(student, batch, old), network(teacher, batch, old)
        total += float(functional.binary_cross_entropy_with_logits(z / 2, (t / 2).sigmoid(), reduction="sum"))
    assert losses["lwf"].item() == pytest.approx(3 * 4 * total / len(index), rel=1e-5)


def test_the_plain_quadratic_is_what_it_says():
    phase, _ = later_phase("l2-anchor", **{"penalties.l2-anchor.strength": 0.7})
    phase.step()
    _, losses = phase._gradients()
    change = phase.active["body"].detach() - phase.before.parameters["body"]
    assert losses["l2-anchor"].item() == pytest.approx(0.7 * float(change.square().sum()), rel=1e-5)


def test_l2_start_measures_from_the_initial_weights():
    phase, _ = later_phase("l2-start", **{"penalties.l2-start.strength": 0.7})
    _, losses = phase._gradients()
    config, data, learner = setting("l2-start")
    first = begin_phase(learner, init(learner), [0], data, config.training, generators)
    change = phase.active["body"].detach() - first.before.parameters["body"]
    assert losses["l2-start"].item() == pytest.approx(0.7 * float(change.square().sum()), rel=1e-4)


def test_shrink_and_perturb_acts_once_a_task_on_what_was_trained():
    values = {"penalties.shrink-and-perturb.shrink": 0.5, "penalties.shrink-and-perturb.perturb": 0.0}
    phase, _ = later_phase("shrink-and-perturb", tasks=1, **values)
    before = {name: vector.detach().clone() for name, vector in phase.active.items()}
    plain, _ = later_phase("shrink-and-perturb", tasks=1, **values)
    plain.terms["shrink-and-perturb"].redirects = False
    phase.step()
    plain.step()
    for name, part in (("body", 0.5), ("head.1", 0.0)):  # the new head starts as it is
        difference = phase.active[name].detach() - plain.active[name].detach()
        assert torch.allclose(difference, -part * before[name], atol=1e-6)
    moved = phase.active["body"].detach().clone()
    phase.step()
    assert (phase.active["body"].detach() - moved).abs().max() < 0.05


def test_a_perturbation_is_drawn_like_initial_weights():
    phase, _ = later_phase("shrink-and-perturb", tasks=1)
    added = phase.terms["shrink-and-perturb"].added["body"]
    named = phase.before.network.body
    for name, values in named.split(added).items():
        bound = named.starts[name].bound
        assert float(values.abs().max()) <= bound
    assert not torch.equal(added, phase.before.parameters["body"])


@pytest.mark.parametrize(
    ("method", "values", "perturbed"),
    [
        ("shrink-and-perturb", {"benchmark.scenario": "class"}, {"body", "head.0", "head.1"}),
        ("shrink-and-perturb", {}, {"body"}),
        ("shrink-and-perturb+er", {}, {"body", "head.0", "head.1"}),
    ],
)
def test_what_old_tasks_have_trained_is_perturbed_and_nothing_else(method, values, perturbed):
    """With a growing head, old tasks read its new part too, which nobody has trained."""
    config = build("smnist", method, scale="smoke", **{"benchmark.tasks": 3, "benchmark.train": 40, **values})
    tasks, learner = assemble(config)
    data, state = on_device(tasks, "cpu"), init(learner)
    for task in (0, 1):
        phase = begin_phase(learner, state, [task], data, config.training, generators)
        phase.step()
        state = phase.finish()
    phase = begin_phase(learner, state, [2], data, config.training, generators)
    assert set(phase.terms["shrink-and-perturb"].added) == perturbed
    assert "head.2" in phase.active


@pytest.mark.parametrize("method", ["owm", "duncker", "gpm"])
def test_under_sgd_a_step_is_the_projected_gradient(method):
    """dW = - rate P_out g P_in, once: shrinking projectors would act more strongly if they acted twice."""
    plain = {"training.optimiser": "SGD", "training.clip": None, "training.learning_rate": 0.1}
    phase, _ = later_phase(method, tasks=1, **plain)
    other, _ = later_phase(method, tasks=1, **plain)
    other._gradients()
    layout = phase.before.network.body
    gradient = layout.split(other.active["body"].grad)
    before = phase.active["body"].detach().clone()
    phase.step()
    moved = layout.split(phase.active["body"].detach() - before)
    compared = 0
    for names, project in phase.terms[method].maps.items():
        if names[0][0] not in moved:
            continue  # an old head
        wanted = -0.1 * project(joined(gradient, names))
        assert torch.allclose(joined(moved, names), wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))
        compared += float(wanted.abs().max()) > 0
    assert compared >= 2
