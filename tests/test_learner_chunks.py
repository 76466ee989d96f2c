"""A task learnt in several visits in a row is summed up once, by methods whose memory sums up tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import perdure
from perdure import ContinualLearner
from perdure.experiment import learner_of
from perdure.learner.answers import read_answers
from perdure.learner.classes import Owner
from perdure.learner.forms import read_given
from perdure.penalties.gpm import GPM
from perdure.registry import load_plugin, pieces
from test_learner import made, same

ONCE = {"online-ewc", "mas", "owm", "duncker", "gpm"}
STRENGTH = 50.0


def learner(method: str = "online-ewc", **more) -> ContinualLearner:
    training = {"iterations": 20, "validate_every": 1, "learning_rate": 0.01, "patience": None}
    given = {"network": {"hidden": 8, "heads": "single"}, "training": training, "verbose": 0, **more}
    if method == "online-ewc":
        given["options"] = {"penalties.online-ewc.strength": STRENGTH, **given.get("options", {})}
    return ContinualLearner(method, **given)


def visit(taught: ContinualLearner, task: str, seed: int, count: int = 40) -> ContinualLearner:
    """Learn all of some samples, validating on others."""
    x, y = made(seed, count)
    return taught.learn(task, x, y, validation=made(seed + 50))


def test_weights_shrink_once_however_many_visits_a_task_takes():
    options = {"penalties.shrink-and-perturb.shrink": 0.5, "penalties.shrink-and-perturb.perturb": 0.0}
    still = {"iterations": 1, "validate_every": 1, "learning_rate": 1e-12}
    taught = learner("shrink-and-perturb", training=still, options=options)

    def size() -> float:
        return float(taught._knowledge.state.parameters["body"].norm())

    sizes = []
    for seed, task in enumerate(("a", "a", "b", "b", "b", "a", "c")):
        visit(taught, task, seed)
        sizes.append(size())
    assert sizes == pytest.approx([sizes[0] * 0.5**times for times in (0, 0, 1, 1, 1, 2, 3)], rel=1e-5)


def memory(taught: ContinualLearner, name: str = "online-ewc") -> dict[str, torch.Tensor]:
    return taught._knowledge.state.memories[name]


def fisher(taught: ContinualLearner, task: str, seed: int, count: int = 40) -> dict[str, torch.Tensor]:
    """The Fisher of a visit's samples at the weights as they are."""
    knowledge, config = taught._knowledge, taught._config
    given = read_given(*made(seed, count), None, 3, None)
    _, coded = read_answers(given.y, given.inputs, "label", knowledge.formats[task], Owner(task))
    pieces_of = learner_of(config, 3)
    network, weights = knowledge.state.weights(pieces_of, knowledge.number(task))
    data, number = knowledge.data(task, given.inputs, coded), knowledge.number(task)
    return pieces_of.source.vectors(network, perdure.fisher(network, weights, data, task=number), number)


def close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.allclose(one[name], other[name], rtol=1e-4, atol=1e-7) for name in one)


def importance(values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix("importance."): each
        for name, each in values.items()
        if name.startswith("importance.")
    }


def test_these_methods_declare_it():
    assert {name for name, kind in pieces("penalties").items() if kind.summarises} == ONCE
    assert not any(kind.summarises for kind in pieces("rehearsal").values())


def test_the_importance_of_equal_chunks_is_the_mean_of_their_fishers():
    taught, fishers = learner(), []
    for chunk in range(4):
        visit(taught, "a", chunk)
        fishers.append(fisher(taught, "a", chunk))
    mean = {name: sum(each[name] for each in fishers) / 4 for name in fishers[0]}
    assert close(mean, importance(memory(taught)))
    for name, weights in taught._knowledge.state.parameters.items():
        assert torch.equal(memory(taught)[f"anchor.{name}"], weights)  # of the latest visit


@pytest.mark.parametrize("gamma", [1.0, 0.5, 0.0])
def test_visits_count_by_their_samples_and_old_tasks_once(gamma):
    taught = visit(learner(options={"penalties.online-ewc.gamma": gamma}), "old", 9)
    old = importance(memory(taught))
    counts, fishers = (20, 60, 40), []
    for chunk, count in enumerate(counts):
        visit(taught, "a", chunk, count)
        fishers.append(fisher(taught, "a", chunk, count))
    found = importance(memory(taught))
    for name in old:
        mean = sum(n * each[name] for n, each in zip(counts, fishers, strict=True)) / sum(counts)
        assert torch.allclose(found[name], gamma * old[name] + mean, rtol=1e-4, atol=1e-7)


def test_old_tasks_are_protected_by_the_same_penalty_in_every_chunk():
    taught = visit(learner(), "old", 9)
    before = dict(memory(taught))
    for chunk in range(3):
        seen = {}

        class Noting:
            def on_progress(self, task, iteration, values, seen=seen):
                seen.setdefault(iteration, values["loss/online-ewc"])

        start = {name: each.clone() for name, each in taught._knowledge.state.parameters.items()}
        visit(taught.set_params(callbacks=[Noting()]), "a", chunk)
        expected = sum(
            (before[f"importance.{name}"] * (each - before[f"anchor.{name}"]).square()).sum()
            for name, each in start.items()
        )
        assert seen[1] == pytest.approx(float(STRENGTH / 2 * expected), rel=1e-4, abs=1e-9)
        assert chunk == 0 or seen[1] > 0


@pytest.mark.parametrize("method", sorted(ONCE))
def test_the_first_task_is_not_held_back_against_itself(method):
    """Nothing is to be protected yet: bit for bit as without a method."""
    held, free = learner(method), learner("fine-tuning")
    for chunk in range(3):
        visit(held, "a", chunk)
        visit(free, "a", chunk)
    ours, theirs = held._knowledge.state.parameters, free._knowledge.state.parameters
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert any(memory(held, method))
    visit(held, "b", 7)
    visit(free, "b", 7)
    ours, theirs = held._knowledge.state.parameters, free._knowledge.state.parameters
    assert not torch.equal(ours["body"], theirs["body"])  # now it is


@pytest.mark.parametrize("method", ["owm", "duncker"])
def test_moments_are_averaged_over_visits(method):
    """The first visit's moments can be had from a learner that stops there, the second's from a trick."""
    taught = visit(learner(method), "a", 0, 30)
    first = dict(memory(taught, method))
    alone = replace(taught._knowledge, row=replace(taught._knowledge.row, samples=0))
    twin = learner(method)
    twin._knowledge = alone  # as if the first visit had left nothing to be joined
    second = memory(visit(twin, "a", 1, 60), method)
    both = memory(visit(taught, "a", 1, 60), method)
    for name in first:
        expected = (30 * first[name] + 60 * second[name]) / 90
        assert torch.allclose(both[name], expected, rtol=1e-4, atol=1e-6)
        assert not torch.allclose(first[name], second[name])


def test_a_joined_basis_holds_what_both_visits_need():
    random = torch.Generator().manual_seed(0)
    first, second = (
        torch.linalg.qr(torch.randn(12, 4, generator=random, dtype=torch.float64))[0] for _ in range(2)
    )
    options = GPM(threshold=0.97)
    joined = options.joined({"basis|m": first}, {"basis|m": second}, 0.5)["basis|m"]
    assert torch.allclose(joined.t() @ joined, torch.eye(joined.shape[1], dtype=torch.float64), atol=1e-9)
    assert torch.equal(joined[:, :4], first)
    assert (joined.t() @ second).square().sum() >= 0.97 * 4
    alike = options.joined({"basis|m": first}, {"basis|m": first.flip(1)}, 0.5)["basis|m"]
    assert torch.equal(alike, first)


@pytest.mark.parametrize("method", ["online-ewc", "mas", "gpm", "masking+online-ewc"])
def test_saving_between_chunks_changes_nothing(method, tmp_path):
    more = {"network": {"hidden": 20}} if "+" in method else {}
    straight, saved = learner(method, **more), learner(method, **more)
    for task, seed in (("old", 9), ("a", 0), ("a", 1), ("a", 2), ("b", 3), ("a", 4), ("a", 5)):
        visit(straight, task, seed)
        saved = ContinualLearner.load(visit(saved, task, seed).save(tmp_path / "m"))
    assert same(straight, saved)


def test_returning_to_a_task_after_another_is_a_new_summary():
    """It holds for the task learnt last: what was learnt in between is protected on a return."""
    taught = visit(visit(visit(learner(), "a", 0), "b", 1), "a", 2)
    before = importance(memory(taught))
    visit(taught, "b", 3)
    found, added = importance(memory(taught)), fisher(taught, "b", 3)
    assert close({name: before[name] + added[name] for name in added}, found)


def test_a_learner_saved_before_goes_on_as_it_would_have():
    """It does not know what was remembered before its last task."""
    taught = visit(learner(), "a", 0)
    taught._knowledge = replace(taught._knowledge, row=None)
    before = importance(memory(taught))
    visit(taught, "a", 1)
    added = fisher(taught, "a", 1)
    assert close({name: before[name] + added[name] for name in added}, importance(memory(taught)))


def test_a_second_visit_that_was_interrupted_goes_on(tmp_path):
    class Stopping:
        def on_progress(self, task, iteration, values):
            return iteration < 8

    straight, stopped = (visit(visit(learner(), "old", 9), "a", 0) for _ in range(2))
    x, y = made(1)
    stopped.set_params(callbacks=[Stopping()])
    with pytest.raises(perdure.PerdureError, match="stopped by a callback"):
        stopped.learn("a", x, y, validation=made(51), checkpoint=tmp_path / "les")
    stopped.set_params(callbacks=()).learn("a", x, y, validation=made(51), checkpoint=tmp_path / "les")
    assert same(stopped, visit(straight, "a", 1))


@pytest.mark.parametrize("method", ["si", "coresets", "er", "hnet", "rtf", "lwf"])
def test_other_methods_go_on_as_ever(method):
    """Their phase begins with the memory as it is."""
    heads = {"hidden": 8} if method in ("hnet", "rtf") else {"hidden": 8, "heads": "single"}
    one, other = (visit(learner(method, network=heads), "a", 0) for _ in range(2))
    other._knowledge = replace(other._knowledge, row=None)
    assert same(visit(one, "a", 1), visit(other, "a", 1))


COUNTING = '''
from typing import ClassVar
import torch
from perdure import Method, Penalty, Term

class Counting(Penalty):
    """Counts the tasks that it has summed up."""
    summarises: ClassVar[bool] = True
    def begin(self, memory, context):
        return CountingTerm(memory)

class CountingTerm(Term):
    def __init__(self, memory):
        self.tasks = memory.get("tasks", torch.zeros(1))
    def finish(self, end):
        return {"tasks": self.tasks + 1}

method = Method("my-counting", "counts", penalties=("counting",))
'''


def test_a_hook_of_somebody_else_that_declares_it(tmp_path):
    (tmp_path / "counting.py").write_text(COUNTING)
    load_plugin(tmp_path / "counting.py")
    taught = learner("my-counting")
    counts = []
    for task in ("a", "a", "a", "b", "b", "a"):
        visit(taught, task, 0)
        taught = ContinualLearner.load(taught.save(tmp_path / "m"))
        counts.append(int(memory(taught, "counting")["tasks"]))
    assert counts == [1, 1, 1, 2, 2, 3]


def test_a_stream_in_small_chunks_has_the_importance_of_one_task():
    x, y = made(0, 120)
    few, many = (learner().observe(x, y, every=every, drift=False) for every in (60, 20))
    sizes = [sum(float(each.sum()) for each in importance(memory(one)).values()) for one in (few, many)]
    assert np.isfinite(sizes).all()
    assert many._knowledge.row.samples == few._knowledge.row.samples  # six chunks, and two
    state = many._knowledge.state
    free = learner("fine-tuning").observe(x, y, every=20, drift=False)._knowledge.state
    assert all(torch.equal(state.parameters[name], each) for name, each in free.parameters.items())
