"""Stroke MNIST's tasks by hand and against published facts, and its presets."""

from __future__ import annotations

import numpy as np
import pytest

from perdure.benchmarks.smnist import Smnist, resampled, upsampled
from perdure.benchmarks.sources.strokes_file import SHIPPED, Strokes, shipped
from perdure.benchmarks.task import check_tasks
from perdure.config import build
from perdure.errors import PerdureError
from perdure.networks.cells.lstm import LSTM
from perdure.options import validated


@pytest.fixture(scope="module")
def digits():
    return shipped()


FEW = {"train": 70, "val": 20, "test": 30}
SEEDS = [15795, 860, 76820, 54886, 6265]
GROUPS = {
    2: ["10 11", "10 11", "00 11", "01 10", "00 11"],
    3: [
        "011 100 101 111",
        "000 010 100 111",
        "000 001 100 110",
        "001 010 101 111",
        "001 010 011 100",
    ],
    4: [
        "0011 0100 0110 1000 1001 1010 1100 1111",
        "0000 0110 0111 1000 1001 1010 1101 1111",
        "0000 0010 0011 0100 0101 1000 1110 1111",
        "0000 0001 0010 0111 1010 1011 1100 1111",
        "0000 0001 0010 0011 0100 0101 1011 1100",
    ],
}
"""Class 1 of each task for data seed 42, published."""


@pytest.fixture
def quick(monkeypatch, digits):
    """Read the shipped file once for all tests."""
    monkeypatch.setattr("perdure.benchmarks.smnist.shipped", lambda: digits)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_published_groupings(quick, m):
    tasks = Smnist(digits=m, train=2**m, val=2**m, test=2**m).build()
    for task, ones in zip(tasks, GROUPS[m], strict=True):
        expected = np.zeros(2**m, dtype=int)
        expected[[int(string, 2) for string in ones.split()]] = 1
        for split in (task.train, task.val, task.test):
            assert np.array_equal(split.y, expected)


def drawn_by_hand(digits, pair, seed, m, grouped, counts=FEW):
    """Which digits the original draws: one random number after the other."""
    source = np.random.RandomState(seed)
    if grouped:
        source.choice(2**grouped, 2**grouped // 2, replace=False)
    parts = {"train": ("train", 0, 50_000), "test": ("test", 0, 10_000), "val": ("train", 50_000, 60_000)}
    result = {}
    for split, (part, begin, end) in parts.items():
        labels = digits[part].labels[begin:end]
        pools = [np.flatnonzero(labels == digit) + begin for digit in pair]
        result[split] = []
        for string in range(2**m):
            share = counts[split] // 2**m + (string < counts[split] % 2**m)
            for _ in range(share):
                bits = [int(bit) for bit in f"{string:0{m}b}"]
                result[split].append([pools[bit][source.randint(len(pools[bit]))] for bit in bits])
    return result


def sequences(data):
    assert not data.x[np.arange(data.x.shape[1]) >= data.lengths[:, None]].any()
    assert data.x.shape[1] == data.lengths.max()
    return [x[:length] for x, length in zip(data.x, data.lengths, strict=True)]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_samples_are_the_digits_that_the_original_draws(quick, digits, m):
    """In particular: validation and training digits are of disjoint parts of the training set."""
    tasks = Smnist(digits=m, **FEW).build()
    check_tasks(tasks)
    for number in (0, 3):
        pair = (2 * number, 2 * number + 1)
        chosen = drawn_by_hand(digits, pair, SEEDS[number], m, grouped=m if m > 1 else 0)
        for split, numbers in chosen.items():
            source = digits["test" if split == "test" else "train"]
            data = getattr(tasks[number], split)
            assert data.x.dtype == np.int8
            for made, parts in zip(sequences(data), numbers, strict=True):
                assert np.array_equal(made, np.concatenate([source.digit(part) for part in parts]))


def test_a_single_digit_is_its_own_class_and_classes_are_balanced(quick):
    for task in Smnist(train=1001, val=7, test=4).build():
        assert np.bincount(task.train.y).tolist() == [501, 500]
        assert task.val.y.tolist() == [0, 0, 0, 0, 1, 1, 1]
        assert task.outputs == 2
    for task in Smnist(digits=3, train=2000, val=8, test=8).build():
        assert np.bincount(task.train.y).tolist() == [1000, 1000]
        ends = task.train.x[..., 3].sum(axis=1)
        assert (ends == 3).all()


def test_every_string_may_be_a_class(quick):
    task = Smnist(digits=3, classes="all", train=17, val=8, test=8, tasks=1).build()[0]
    assert task.outputs == 8
    assert task.train.y.tolist() == [0, 0, 0, *(c for c in range(1, 8) for _ in (0, 1))]


def test_more_than_five_tasks_are_shuffled_pairs(quick):
    source = np.random.RandomState(42)
    order = np.arange(45)
    source.shuffle(order)
    pairs = [(a, b) for a in range(10) for b in range(a + 1, 10)]
    tasks = Smnist(tasks=45, train=2, val=2, test=2).build()
    assert [task.name for task in tasks] == ["digits {} and {}".format(*pairs[k]) for k in order]


def test_upsampling_by_hand():
    rows = [
        (5, 8, 0, 0),
        (1, -1, 0, 0),
        (0, 0, 1, 0),
        (3, 0, 0, 0),
        (0, 0, 1, 1),
        (20, 20, 0, 0),
        (0, 0, 1, 1),
    ]
    strokes = Strokes(np.array(rows, dtype=np.int8), np.array([5, 2]), np.array([0, 1]))
    twice = upsampled(strokes, 2)
    assert twice.digit(0).tolist() == [
        [10, 16, 0, 0],
        *[[1, -1, 0, 0]] * 2,
        [0, 0, 1, 0],
        *[[3, 0, 0, 0]] * 2,
        [0, 0, 1, 1],
    ]
    assert twice.digit(1).tolist() == [[40, 40, 0, 0], [0, 0, 1, 1]]
    assert twice.rows.dtype == np.int8
    assert upsampled(strokes, 7).digit(1).tolist()[0] == [140, 140, 0, 0]  # more than a byte holds


def resampled_by_hand(rows, points):
    """One digit at a time: which rows stay, and what was moved between them."""
    lifts = [k for k, row in enumerate(rows) if row[2]]
    draws = [k for k, row in enumerate(rows) if not row[2]]
    stay = set()
    room = min(len(lifts), points - 1)
    for among, count in ((lifts, room), (draws, points - room)):
        count = min(count, len(among))
        last = len(among) - 1
        stay |= {among[-(-j * last // max(count - 1, 1))] for j in range(count)}
    made, start = [], 0
    for k in sorted(stay):
        part = rows[start : k + 1]
        made.append([*part[:, :2].sum(axis=0), *part[:, 2:].max(axis=0)])
        start = k + 1
    return np.array(made)


@pytest.mark.parametrize("points", [4, 12, 40])
def test_resampling_by_hand(digits, points):
    strokes = digits["train"]
    ends = np.add.reduceat(strokes.rows[:, 2] != 0, strokes.offsets)
    chosen = [*range(300), *np.argsort(-ends)[:20]]  # some with many strokes
    short = resampled(strokes, points)
    assert short.lengths.max() <= points
    assert short.rows.dtype == strokes.rows.dtype
    assert np.array_equal(short.labels, strokes.labels)
    for number in chosen:
        whole, few = strokes.digit(number), short.digit(number)
        assert np.array_equal(few, resampled_by_hand(whole, points))
        assert np.array_equal(few[:, :2].sum(axis=0), whole[:, :2].sum(axis=0))
        assert few[-1].tolist()[2:] == [1, 1]
        assert few[:-1, 3].sum() == 0
        assert few[:, 2].sum() == min(whole[:, 2].sum(), points - 1)
        if len(whole) <= points:
            assert np.array_equal(few, whole)
    assert resampled(strokes, None) is strokes


def test_points_are_named_in_results_and_only_then_part_of_the_config(quick):
    plain, few = Smnist(), Smnist(points=12)
    assert "points" not in plain.plain()
    assert few.plain()["points"] == 12
    assert plain.comparable
    assert not few.comparable
    assert "at most 12 points" in few.differs
    assert "at most" not in plain.differs
    task = Smnist(points=12, digits=2, tasks=1, **FEW).build()[0]
    assert task.train.lengths.max() <= 24


def test_upsampled_tasks_have_the_digits_that_the_original_draws(quick, digits):
    task = Smnist(upsampling=3, tasks=1, **FEW).build()[0]
    chosen = drawn_by_hand(digits, (0, 1), SEEDS[0], 1, grouped=3)
    for made, (number,) in zip(sequences(task.train), chosen["train"], strict=True):
        small = digits["train"].digit(number)
        assert len(made) == 1 + 3 * (len(small) - 1) - 2 * int(small[:, 2].sum())
        assert np.array_equal(made[:, :2].sum(axis=0), 3 * small[:, :2].sum(axis=0))
    assert np.bincount(task.train.y).tolist() == [35, 35]


def test_the_split_variant_takes_every_digit_once(quick, digits):
    tasks = Smnist(variant="split").build()
    check_tasks(tasks)
    assert [len(task.train) for task in tasks] == [12565, 11989, 11163, 12083, 11700]
    assert [len(task.test) for task in tasks] == [2115, 2042, 1874, 1986, 1983]
    assert {len(task.val) for task in tasks} == {100}
    numbers = [n for n, label in enumerate(digits["train"].labels) if label in (4, 5)]
    for data, chosen in ((tasks[2].val, numbers[:100]), (tasks[2].train, numbers[100:140])):
        for made, y, number in zip(sequences(data), data.y, chosen, strict=False):
            assert np.array_equal(made, digits["train"].digit(number))
            assert y == digits["train"].labels[number] - 4
    few = Smnist(variant="split", tasks=2, **FEW).build()
    assert [len(split) for split in (few[1].train, few[1].val, few[1].test)] == [70, 20, 30]
    with pytest.raises(PerdureError, match="too many for validation"):
        Smnist(variant="split", val=20_000).build()


def test_building_without_the_shipped_file_is_explained(monkeypatch, tmp_path):
    monkeypatch.setattr("perdure.benchmarks.sources.strokes_file.files", lambda package: tmp_path)
    with pytest.raises(PerdureError, match=f"'{SHIPPED}' is not a valid strokes file"):
        Smnist().build()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"digits": 0}, "benchmark.digits"),
        ({"digits": 2, "upsampling": 2}, "upsampling = 2 is for single digits"),
        ({"variant": "split", "digits": 2}, "the split variant uses single digits"),
        ({"variant": "split", "tasks": 6}, "at most 5 tasks"),
        ({"tasks": 46}, "benchmark.tasks"),
        ({"digits": 4, "val": 15}, "val = 15 samples are too few: each of the 16 strings"),
        ({"classes": "three"}, "benchmark.classes"),
    ],
)
def test_faulty_options_are_named(values, message):
    with pytest.raises(PerdureError, match=message):
        validated(Smnist, values, "benchmark")


# Presets: batch size, iterations, learning rate, clipping, and what is the method's own.

CALLS = {
    "fine-tuning": [(64, 3000, 1e-3, 1), (128, 6000, 1e-3, 1), (64, 16000, 1e-3, 1), (64, 25000, 1e-3, 1)],
    "from-scratch": [
        (128, 3000, 1e-3, 1),
        (128, 8000, 1e-3, None),
        (64, 12000, 5e-3, 100),
        (64, 25000, 1e-3, 1),
    ],
    "multitask": [
        (512, 4000, 5e-3, None),
        (256, 10000, 1e-3, 1),
        (128, 8000, 1e-3, None),
        (512, 20000, 1e-3, None),
    ],
    "online-ewc": [
        (64, 2000, 5e-3, None, 1e7),
        (64, 8000, 5e-3, 100, 1e7),
        (128, 8000, 1e-3, None, 1e7),
        (64, 20000, 1e-3, 100, 1e5),
    ],
    "si": [
        (64, 3000, 5e-3, 1, 0.01),
        (128, 6000, 1e-3, 1, 0.1),
        (128, 16000, 1e-4, 1, 100),
        (128, 25000, 5e-3, None, 10),
    ],
    "masking": [
        (64, 4000, 5e-3, 1, 0.8),
        (128, 8000, 1e-3, 1, 0.6),
        (64, 12000, 1e-3, 1, 0.6),
        (64, 15000, 1e-3, 1, 0.6),
    ],
    "masking+si": [
        (128, 4000, 5e-3, 1, 0.8, 0.01),
        (128, 10000, 1e-3, 1, 0.8, 1),
        (64, 16000, 1e-3, 1, 0.4, 1),
        (64, 25000, 1e-3, 1, 0.4, 0.01),
    ],
    "hnet": [
        (128, 2000, 1e-3, None, 0.01, (25, 25), 10000, 32, 16, 1.0, 0.1),
        (128, 8000, 1e-3, 100, 0.1, (25, 25), 10000, 32, 16, 1.0, 0.1),
        (64, 8000, 1e-3, None, 1, (50, 50), 5000, 32, 16, 0.1, 0.1),
        (128, 20000, 1e-3, None, 0.01, (25, 25), 10000, 16, 16, 0.1, 0.1),
    ],
    "coresets": [
        (64, 4000, 1e-3, 1, 500, 10),
        (64, 6000, 1e-3, 1, 500, 1),
        (64, 16000, 1e-3, 1, 500, 10),
        (128, 15000, 1e-4, 100, 500, 10),
    ],
}
WITH_IDENTITY = [
    (128, 3000, 5e-3, 1, 1e8),
    (128, 8000, 1e-4, None, 1e4),
    (64, 12000, 1e-3, 100, 1e7),
    (64, 20000, 1e-3, None, 1e10),
]
SPLIT_CALLS = [
    ("multitask", {}, (128, 10000, 1e-3, None)),
    ("coresets", {"rehearsal.size": "10"}, (64, 5000, 1e-3, None, 10, 10)),
    ("coresets", {"rehearsal.size": "50"}, (64, 10000, 1e-4, None, 50, 10)),
    ("coresets", {}, (64, 5000, 1e-4, None, 100, 10)),
    ("rtf", {}, (128, 5000, 1e-3, None, 10, 10, 1, 32)),
    ("hnet+r", {}, (64, 5000, 1e-3, None, 10, 0.1, 0.1, 16, 0.1)),
]
DENSE = {"rehearsal.input_layers": "256", "rehearsal.output_layers": "256"}
STAR_CALLS = [
    ("rtf", DENSE, (128, 10000, 1e-4, None, 10, 1, 0.1, 16)),
    ("hnet+r", DENSE, (64, 10000, 1e-3, None, 10, 1, 0.1, 16, 100)),
]


def own_values(config):
    weights, rehearsal, found = config.weights, config.rehearsal, []
    if config.method.startswith("masking"):
        found.append(weights.fraction)
    found += [p.strength for name, p in config.penalties.items() if name != "orthogonal"]
    if config.method == "hnet":
        sizes = (weights.hidden, weights.chunk, weights.task_embedding, weights.chunk_embedding)
        found += [*sizes, weights.task_embedding_sd, weights.chunk_embedding_sd]
    if config.method == "coresets":
        found += [rehearsal.size, rehearsal.strength]
    if config.method in ("rtf", "hnet+r"):
        found += [rehearsal.distillation, rehearsal.reconstruction, rehearsal.prior, rehearsal.latent]
        assert (rehearsal.likelihood, rehearsal.cell) == ("gaussian", LSTM())
        assert rehearsal.hidden == (256,)
    if config.method == "hnet+r":
        found.append(rehearsal.beta)
        assert (rehearsal.hyper_hidden, rehearsal.hyper_chunk) == ((50, 50), 5000)
    return found


def check_call(method, given, expected):
    config = build("smnist", method, scale="paper", **given)
    training = config.training
    found = (training.batch_size, training.iterations, training.learning_rate, training.clip)
    assert (*found, *own_values(config)) == expected
    assert (config.network.cell, config.network.hidden) == (LSTM(), (256,))
    assert config.penalties["orthogonal"].strength == 0
    return config


@pytest.mark.parametrize("method", CALLS)
def test_paper_scale_has_the_published_values(method):
    for digits, expected in enumerate(CALLS[method], start=1):
        check_call(method, {"benchmark.digits": str(digits)}, expected)


def test_task_identity_has_the_published_values():
    for digits, expected in enumerate(WITH_IDENTITY, start=1):
        given = {"benchmark.digits": digits, "network.task_identity": True}
        assert check_call("online-ewc", given, expected).penalties["online-ewc"].samples is None
        given.pop("network.task_identity")
        assert build("smnist", "online-ewc", scale="paper", **given).penalties["online-ewc"].samples == 200


@pytest.mark.parametrize(("method", "given", "expected"), SPLIT_CALLS + STAR_CALLS)
def test_the_rehearsal_table_has_the_published_values(method, given, expected):
    check_call(method, {"benchmark.variant": "split", **given}, expected)
