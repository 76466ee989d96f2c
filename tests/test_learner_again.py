"""Returning to a known task: nothing of its earlier visits is thrown away; and data that are read once."""

from __future__ import annotations

import datetime

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from perdure import ContinualLearner
from perdure.rehearsal.samples import choose_random, keep_some, unstore
from test_memory import numbered

LITTLE = {"iterations": 2, "validate_every": 1}


def made(seed: int, shift: float = 0.0, steps: int = 6, count: int = 120):
    """Sequences whose first feature tells the class, and whose second tells the visit."""
    random = np.random.RandomState(seed)
    x = random.randn(count, steps, 3).astype(np.float32)
    x[:, :, 1] = shift
    return x, (x[:, :, 0].sum(1) * (1 if shift <= 0 else -1) > 0).astype(int)


def learner(method: str, iterations: int = 200, **more) -> ContinualLearner:
    training = {"iterations": iterations, "validate_every": iterations, "learning_rate": 0.01}
    return ContinualLearner(method, network={"hidden": 16}, training=training, verbose=0, seed=1, **more)


@pytest.mark.parametrize("method", ["multitask", "coresets", "er"])
def test_a_second_visit_leaves_the_first_in_memory(method):
    """The second visit's rule is the opposite of the first's, so that what is not rehearsed is unlearnt."""
    first, second = made(0, -2.0), made(1, 2.0)
    both = learner(method).learn("a", *first).learn("a", *second)
    assert both.score(*second, task="a") > 85
    assert both.score(*first, task="a") > 85
    if method == "er":
        plain = learner("fine-tuning").learn("a", *first).learn("a", *second)
        assert plain.score(*first, task="a") < 75  # the test would notice


def test_multitask_keeps_all_sequences_of_all_visits():
    kept = learner("multitask", 2)
    for seed, steps in ((0, 6), (1, 9), (2, 4)):
        kept.learn("a", *made(seed, steps=steps, count=40))
    train, val = kept._knowledge.kept[0]
    assert len(train) + len(val) == 120
    assert sorted({*train.lengths.tolist()}) == [4, 6, 9]
    originals = np.concatenate(
        [made(seed, steps=steps, count=40)[0][:, 0] for seed, steps in ((0, 6), (1, 9), (2, 4))]
    )
    stored = torch.cat([train.x[:, 0], val.x[:, 0]]).numpy()
    assert {row.tobytes() for row in stored} == {row.tobytes() for row in originals}


def test_every_visit_has_its_share_of_a_coreset():
    memory, source = {}, torch.Generator().manual_seed(0)
    for visit in range(8):
        data = numbered(15 * visit, 15, 4)
        memory = keep_some(
            memory, data, 0, 16, lambda n, data=data: choose_random(data, n, source), packed=True
        )
    numbers = (unstore(memory, 0, data).x[:, 0, :7].long() << torch.arange(7)).sum(1)
    shares = torch.bincount(numbers // 15, minlength=8)
    assert int(shares.sum()) == 16
    assert shares.min() >= 1
    assert shares.max() <= 4


@pytest.mark.parametrize("method", ["rtf", "hnet+r"])
def test_replay_has_the_lengths_of_all_visits(method):
    again = learner(method, 2).learn("a", *made(0, steps=5)).learn("a", *made(1, steps=9))
    memory = again._knowledge.state.memories["rehearsal"]
    lengths = memory["lengths.0"].tolist()
    assert set(lengths) == {5, 9}
    assert 0.25 < lengths.count(5) / len(lengths) < 0.75


@pytest.mark.parametrize(
    "answers",
    [
        lambda y: [np.int64(each) for each in y],
        lambda y: [np.bool_(each) for each in y],
        lambda y: [(np.int64(each), "x") for each in y],
        lambda y: list(torch.tensor(y)),
        lambda y: [pandas.Timestamp(2026, 1, 1 + each) for each in y],
        lambda y: np.array([np.datetime64("2026-01-01") + each for each in y]).astype("datetime64[ns]"),
    ],
)
def test_labels_of_a_stream_are_saved_while_they_wait(answers, tmp_path):
    x, y = made(0, count=25)
    stream = ContinualLearner("er", network={"hidden": 6, "heads": "single"}, training=LITTLE, verbose=0)
    stream.observe(x, answers(y), every=20)
    stream.save(tmp_path / "model")
    loaded = ContinualLearner.load(tmp_path / "model")
    loaded.observe(x, answers(y), every=20)
    stream.observe(x, answers(y), every=20)
    assert loaded.classes("segment 1") == stream.classes("segment 1")
    assert isinstance(loaded.classes("segment 1")[0], (int, bool, tuple, datetime.datetime))


def test_a_loader_is_read_once():
    """A loader that shuffles gives another order each time: owners and inputs must be of the same reading."""
    first, second = made(0, -4.0), made(1, 4.0)
    taught = learner("coresets", 60).learn("a", *first).learn("b", *second)
    x = np.concatenate([first[0], second[0]])
    reads = []

    class Counting(DataLoader):
        def __iter__(self):
            reads.append(1)
            return super().__iter__()

    data = TensorDataset(torch.tensor(x), torch.zeros(len(x)))
    loader = Counting(data, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(0))
    taught.predict(loader)
    assert len(reads) == 1


def test_frames_and_ragged_loaders_with_wrong_shapes_are_named():
    x, y = made(0)
    taught = learner("fine-tuning", 2).learn("a", x, y)
    frame = pandas.DataFrame(
        {"sequence": [0, 0, 1, 1], "label": [0, 0, 1, 1], **{f"f{k}": 0.5 for k in range(4)}}
    )
    for ask in (lambda: taught.predict(frame, task="a"), lambda: taught.learn("b", frame)):
        with pytest.raises(ValueError, match=r"^x: it has 4 features, but the first task had 3"):
            ask()
    pairs = [(x[number, : 2 + number % 3], int(y[number])) for number in range(40)]

    def listed(items):
        return [one for one, _ in items], [answer for _, answer in items]

    loader = DataLoader(pairs, batch_size=8, collate_fn=listed)
    same = learner("fine-tuning", 2).learn("a", pairs)
    ragged = learner("fine-tuning", 2).learn("a", loader)
    assert all(
        torch.equal(value, ragged._knowledge.state.parameters[name])
        for name, value in same._knowledge.state.parameters.items()
    )
    three = DataLoader(pairs, batch_size=8, collate_fn=lambda items: (*listed(items), [2] * len(items)))
    with pytest.raises(ValueError, match=r"^x: batch 0 of the loader has lengths beside a list"):
        learner("fine-tuning", 2).learn("a", three)


def test_what_32_bits_cannot_tell_apart_is_refused():
    x, y = made(0)
    times = x.astype(np.float64)
    times[:, :, 2] = 1.7e9 + np.arange(times[:, :, 2].size).reshape(times.shape[:2]) / 100
    with pytest.raises(ValueError, match=r"^x: feature 2 varies by .* subtract its first value"):
        learner("fine-tuning", 2).learn("a", times, y)
    times[:, :, 2] -= 1.7e9
    assert learner("fine-tuning", 2).learn("a", times, y).tasks == ["a"]
