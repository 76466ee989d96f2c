"""Rehearsal: distillation and VAE terms against independent formulas, stored samples, behaviour."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn import functional

from helpers import TARGETS, random_weights, sequences, whole
from perdure.config import build
from perdure.errors import PerdureError
from perdure.learning.engine import begin_phase
from perdure.learning.learner import grow, init
from perdure.learning.phase import context_of
from perdure.learning.splits import outputs_of
from perdure.methods import METHODS, compose, parts_of
from perdure.networks import together
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.networks.targets import distillation
from perdure.networks.variational import prior_matching, reconstruction, sample_latent
from perdure.penalties.orthogonal import Orthogonal, OrthogonalTerm
from perdure.randomness import generator
from perdure.rehearsal.generative import Generative
from perdure.rehearsal.rehearsal import shares
from perdure.rehearsal.samples import choose_herding, store, unstore
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.value import Value
from perdure.weights.source import Stock
from test_learning import first_phase, generators, outcome, setting


@pytest.mark.parametrize("kind", TARGETS)
def test_distillation_equals_a_loop(kind):
    network = Network(Recurrent(hidden=(4,)), 3, (3,))
    data = sequences(kind, 7, 5, 3, 3, ragged=True)
    batch = whole(data)
    student = network(random_weights(network, 1), batch, 0)
    teacher = network(random_weights(network, 2), batch, 0)
    expected = 0.0
    mask = torch.ones_like(batch.targets, dtype=torch.bool) if batch.mask is None else batch.mask
    for z, t, asked in zip(student, teacher, mask, strict=True):
        if kind == Bits():
            for a, b, counts in zip(z, t, asked, strict=True):
                p, q = 1 / (1 + math.exp(-a / 2)), 1 / (1 + math.exp(-b / 2))
                expected -= (q * math.log(p) + (1 - q) * math.log(1 - p)) * int(counts)
        elif kind == Value():
            expected += float(((z - t) ** 2 * asked).sum()) / 2 / 4  # no temperature, so no T^2
        elif asked:
            expected -= float((functional.softmax(t / 2, 0) * functional.log_softmax(z / 2, 0)).sum())
    assert float(distillation(student, teacher, batch, 2.0)) == pytest.approx(4 * float(expected), rel=1e-10)


@pytest.mark.parametrize("kind", TARGETS)
def test_distilling_a_network_into_itself_has_no_gradient(kind):
    network = Network(Recurrent(hidden=(4,)), 3, (3,))
    batch = whole(sequences(kind, 7, 5, 3, 3, ragged=True))
    weights = {n: w.requires_grad_() for n, w in random_weights(network).items()}
    logits = network(weights, batch, 0)
    loss = distillation(logits, logits.detach(), batch, 2.0)
    for gradient in torch.autograd.grad(loss, list(weights.values())):
        assert gradient.abs().max() < 1e-12


def test_prior_matching_and_reconstruction_equal_torch_distributions():
    source = generator(0, "vae")
    xi = torch.randn(20, 6, generator=source, dtype=torch.float64)
    mean, log_variance = xi[:, :3], xi[:, 3:]
    posterior = Normal(mean, torch.exp(log_variance / 2))
    for sd in (1.0, 0.7):
        expected = kl_divergence(posterior, Normal(torch.zeros(20, 3).double(), sd)).sum()
        assert prior_matching(xi, sd).item() == pytest.approx(expected.item(), rel=1e-12)
    noise = torch.randn(20, 3, generator=source, dtype=torch.float64)
    torch.testing.assert_close(sample_latent(xi, noise), mean + posterior.stddev * noise)
    decoded = torch.randn(20, 4, generator=source, dtype=torch.float64)
    bits = (torch.rand(20, 4, generator=source) > 0.5).double()
    expected = -Bernoulli(logits=decoded).log_prob(bits).sum()
    assert reconstruction(decoded, bits, "bernoulli").item() == pytest.approx(expected.item(), rel=1e-12)
    expected = ((decoded - bits) ** 2).sum()
    assert reconstruction(decoded, bits, "gaussian").item() == pytest.approx(expected.item(), rel=1e-12)


def test_shares_are_even_and_complete():
    drawn = [shares(10, [0, 1, 2], generator(seed, "s")) for seed in range(30)]
    for counts in drawn:
        assert sum(counts.values()) == 10
        assert sorted(counts.values()) == [3, 3, 4]
    assert {max(c, key=c.get) for c in drawn} == {0, 1, 2}
    assert sum(shares(2, [0, 1, 2], generator(0, "s")).values()) == 2


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("ragged", [True, False])
def test_stored_samples_come_back_unchanged_and_small(binary, ragged):
    data = sequences(Tags(), 12, 5, 3, 4, ragged=ragged)
    x = (data.x > 0).astype(np.uint8) if binary else data.x.astype(np.float32)
    whole_data = Data(type(data)(data.target, x, data.y.astype(np.int8), data.lengths))
    index = torch.tensor([3, 7, 1])
    memory = store(whole_data, index, 2, packed=True)
    back = unstore(memory, 2, whole_data)
    assert torch.equal(back.x, whole_data.x[index])
    assert torch.equal(back.y, whole_data.y[index])
    if ragged:
        assert torch.equal(back.lengths, whole_data.lengths[index])
    if binary:
        assert memory["bits.2"].shape == (3, 2)  # 15 bits in 2 bytes


def test_the_record_states_the_memory_of_a_stored_sample():
    """28 input bits in 4 bytes, 9 target bytes, 4 bytes of length, and a share of the shape."""
    result, _ = outcome("coresets", **{"rehearsal.size": 50, "training.iterations": 2})
    assert result.memory["a stored sample"] == 4 + 9 + 4
    loose, _ = outcome(
        "coresets", **{"rehearsal.size": 50, "rehearsal.packed": False, "training.iterations": 2}
    )
    assert loose.memory["a stored sample"] == 28 + 9 + 4


def test_herding_is_nearer_to_the_mean_than_chance():
    data = Data(sequences(Label(), 200, 4, 3, 2, ragged=False), dtype=torch.float64)

    def answer(batch):
        return batch.rows.view(4, -1, 3)[-1]

    everything = answer(data.batch(slice(None)))
    chosen = choose_herding(data, 5, generator(0, "h"), answer)
    assert len(set(chosen.tolist())) == 5
    distance = (everything[chosen].mean(0) - everything.mean(0)).norm()
    others = [
        (everything[torch.randperm(200, generator=generator(n, "o"))[:5]].mean(0) - everything.mean(0)).norm()
        for n in range(50)
    ]
    assert distance < min(others)


def test_a_whole_training_set_as_coreset_keeps_old_tasks():
    values = {
        "benchmark.train": 2000,
        "rehearsal.size": 2000,
        "rehearsal.strength": 3.0,
        "training.iterations": 250,
        "training.clip": None,
        "network.hidden": 40,
        "training.learning_rate": 1e-2,
        "penalties.orthogonal.strength": 0.1,
    }
    result, _ = outcome("coresets", **values)
    for task in range(3):
        assert result.accuracy[task][task] > 85
        assert result.accuracy[2][task] > result.accuracy[task][task] - 2
    forgetful, _ = outcome("coresets", **(values | {"rehearsal.strength": 0.0}))
    assert forgetful.accuracy[2][0] < result.accuracy[2][0] - 15
    other = {"rehearsal.targets": "hard", "rehearsal.selection": "herding", "rehearsal.strength": 10.0}
    hard, _ = outcome("coresets", **(values | other))
    assert hard.accuracy[2][0] > 93


@pytest.mark.parametrize("method", ["rtf", "hnet+r"])
def test_replay_losses_are_named_and_strength_zero_is_fine_tuning(method):
    """With all factors at zero the main network learns exactly as in fine-tuning."""
    off = {f"rehearsal.{name}": 0.0 for name in ("distillation", "reconstruction", "prior")}
    off |= {"rehearsal.hidden": 10, "penalties.orthogonal.strength": 0.0, "training.clip": None}
    if method == "hnet+r":
        off["rehearsal.beta"] = 0.0
    plain, knowledge = outcome("fine-tuning", **{"training.clip": None})
    free, other = outcome(method, **off)
    assert plain.accuracy == free.accuracy
    assert torch.equal(knowledge[-1]["parameters/body"], other[-1]["parameters/body"])
    named = set(free.curves[-1][-1])
    assert {"loss distillation", "loss reconstruction", "loss prior"} <= named
    assert ("loss decoder regulariser" in named) == (method == "hnet+r")


def test_the_decoder_learns_to_reconstruct_and_its_replay_to_mean_something():
    values = {
        "rehearsal.hidden": 40,
        "rehearsal.reconstruction": 10.0,
        "rehearsal.prior": 0.1,
        "network.hidden": 40,
        "training.iterations": 300,
        "training.learning_rate": 5e-3,
        "penalties.orthogonal.strength": 0.1,
    }
    result, _ = outcome("rtf", **values)
    first = result.curves[0]
    assert first[-1]["loss reconstruction"] < 0.3 * first[0]["loss reconstruction"]
    assert result.accuracy[2][0] > 85


@pytest.mark.parametrize("ragged", [False, True])
def test_replayed_batches_have_the_lengths_of_the_task(ragged):
    phase, learner, data = first_phase("rtf", **{"rehearsal.hidden": 6})
    memory = phase.finish().memories["rehearsal"]
    if ragged:
        memory["lengths.0"] = torch.tensor([4, 5, 7], dtype=torch.int32)
    state = grow(learner, init(learner), outputs_of(data[:2]), generators)
    formats = {task: data[task].train.without_samples() for task in range(2)}
    context = context_of(learner, state, {1: data[1]}, formats, generators)
    replay = learner.rehearsal.begin(memory, context)
    batch = replay.imagine({0: 60})[0]
    assert set(batch.packing.lengths.tolist()) == ({4, 5, 7} if ragged else {7})
    assert batch.rows.shape == (int(batch.packing.lengths.sum()), 4)
    assert float(batch.rows.min()) >= 0
    assert float(batch.rows.max()) <= 1
    assert len(state.network(state.weights(learner, 0)[1], batch, 0)) == 60 * 3


@pytest.mark.parametrize("method", ["rtf", "hnet+r"])
def test_replay_in_one_pass_equals_one_pass_for_each_task(method, monkeypatch):
    config, data, learner = setting(method, **{"rehearsal.hidden": 6, "rehearsal.latent": 3})
    state = init(learner)
    for task in range(2):
        state = begin_phase(learner, state, [task], data, config.training, generators).finish()

    def losses_and_gradients():
        phase = begin_phase(learner, state, [2], data, config.training, generators)
        _, losses = phase._gradients()
        gradients = {name: vector.grad for name, vector in phase.active.items() if vector.grad is not None}
        return {name: float(loss.detach()) for name, loss in losses.items()}, gradients

    joins, join = [], together.join
    monkeypatch.setattr(together, "join", lambda *a, **k: joins.append(1) or join(*a, **k))
    losses, gradients = losses_and_gradients()
    assert joins
    joins.clear()
    monkeypatch.setattr(together, "distinct_bodies", list)  # as if no task shared its body
    expected, slopes = losses_and_gradients()
    assert not joins
    assert losses == pytest.approx(expected, rel=1e-5, abs=1e-7)
    for name, slope in slopes.items():
        torch.testing.assert_close(gradients[name], slope, rtol=1e-4, atol=1e-5)


def test_no_dead_outputs():
    """Coreset networks have no latent outputs; generative ones have exactly two for each dimension."""
    _, data, learner = setting("coresets")
    everything = grow(learner, init(learner), outputs_of(data), generators)
    assert set(everything.parameters) == {"body", "head.0", "head.1", "head.2"}
    phase, _, _ = first_phase("rtf", **{"rehearsal.latent": 5})
    assert phase.before.parameters["latent"].numel() == 2 * 5 * (10 + 1)


def test_counts_of_generative_replay_are_the_originals():
    """Decoder Elman 13 -> 256 -> 8 for the Copy Task, and the widened encoder."""
    config = build("permuted-copy", "rtf", scale="paper")
    network = Network(config.network, 8, (7,) * 5)
    vectors, _ = config.rehearsal.grow(network, 0, Stock({}, {}), generators)
    decoder = sum(v.numel() for n, v in vectors.items() if n.startswith("decoder."))
    assert decoder == 137_224
    assert network.layout.size + vectors["latent"].numel() == 146_995


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("coresets+rtf", "two kinds of rehearsal"),
        ("masking+coresets", "sub-network"),
        ("from-scratch+coresets", "nothing to protect"),
        ("multitask+coresets", "no old task"),
    ],
)
def test_combinations_without_meaning_are_refused(name, message):
    with pytest.raises(PerdureError, match=message):
        build("permuted-copy", name)


def test_hnet_plus_r_is_one_method():
    assert parts_of("hnet+r", METHODS) == ["hnet+r"]
    assert parts_of("hnet+r+si", METHODS) == ["hnet+r", "si"]
    assert parts_of("hnet+rtf", METHODS) == ["hnet", "rtf"]
    assert compose("hnet+coresets", METHODS).rehearsal == "coreset"


def test_all_losses_of_a_decoders_penalty_count(monkeypatch):
    phase, _, _ = first_phase("rtf", **{"rehearsal.orthogonal_strength": 1.0})
    one = phase._gradients()[1]["decoder orthogonal"]
    plain = OrthogonalTerm.losses

    def twice(self, step):
        found = plain(self, step).items()
        return {f"{name} {n}": n * loss for name, loss in found for n in (1, 2)}

    monkeypatch.setattr(OrthogonalTerm, "losses", twice)
    both = phase._gradients()[1]["decoder orthogonal"]
    assert both.item() == pytest.approx(3 * one.item())


def test_a_decoders_penalty_may_not_take_the_name_of_another_loss(monkeypatch):
    monkeypatch.setattr(
        Generative, "decoder_penalties", property(lambda self: {"prior": Orthogonal(strength=1)})
    )
    phase, _, _ = first_phase("rtf")
    with pytest.raises(PerdureError, match=r"'generative' and 'prior' both have a loss 'prior'"):
        phase.step()
