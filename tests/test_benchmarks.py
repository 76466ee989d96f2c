"""The Copy family against hand-written examples and published facts; contracts over all benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from perdure.benchmarks.arrays import save_tasks
from perdure.benchmarks.copy import Copy, PaddedCopy, PatternManipulation, PermutedCopy
from perdure.benchmarks.sources.folder import data_folder
from perdure.benchmarks.task import Sequences, Task, check_tasks
from perdure.errors import PerdureError
from perdure.options import validated
from perdure.registry import pieces
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.value import Value

FEW = {"train": 50, "val": 5, "test": 6}

PUBLISHED = [
    [1, 4, 2, 3, 0], [4, 0, 3, 1, 2], [2, 4, 0, 3, 1], [3, 1, 2, 4, 0], [0, 4, 1, 3, 2],
    [4, 2, 0, 1, 3], [0, 1, 2, 4, 3], [1, 4, 0, 2, 3], [4, 1, 2, 0, 3], [4, 3, 0, 1, 2],
]  # fmt: skip
"""Permutations for data seed 42, found by running the original's rule."""


def pattern(task):
    return task.train.x[:, : task.train.y.shape[1], :-1]


def test_published_permutations():
    for task, order in zip(PermutedCopy(tasks=10, **FEW).build(), PUBLISHED, strict=True):
        assert np.array_equal(task.train.y, pattern(task)[:, order])


def test_inputs_by_hand():
    (task,) = Copy(i=3, p=2, width=2, train=4, val=1, test=1).build()
    bits = np.random.RandomState(42).rand(4, 2, 2) > 0.5
    for x, y, bit in zip(task.train.x, task.train.y, bits, strict=True):
        (a, b), (c, d) = bit.astype(int)
        assert x.tolist() == [[a, b, 0], [c, d, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
        assert y.tolist() == [[a, b], [c, d]]


def test_padded_is_long_and_permuted():
    tasks = PaddedCopy(**FEW).build()
    assert tasks[0].train.x.shape == (50, 25 + 1 + 5, 8)
    assert np.array_equal(tasks[1].train.y, pattern(tasks[1])[:, PUBLISHED[1]])
    assert not tasks[0].train.x[:, 5:25].any()
    assert tasks[0].train.x[:, 25, 7].all()


@pytest.mark.parametrize(
    ("r", "constant", "rank"), [(1, [2, 0, 1, 2, 2], [2, 4, 2, 2, 2]), (5, [0, 0, 0, 2, 0], [4, 4, 4, 2, 4])]
)
def test_pattern_manipulation_has_the_known_maps(r, constant, rank):
    """Constant rows and GF(2) ranks of the maps, known for data seed 42."""
    tasks = PatternManipulation(r=r, train=300, val=5, test=5).build()
    for task, rows, order in zip(tasks, constant, rank, strict=True):
        assert int((task.train.y == 0).all((0, 2)).sum()) == rows
        assert _rank_of_map(task) == order


def _rank_of_map(task):
    """Rank over GF(2) of the linear map from a pattern's rows to the target's rows, solved from data."""
    x = pattern(task).transpose(0, 2, 1).reshape(-1, 5)
    y = task.train.y.transpose(0, 2, 1).reshape(-1, 5)
    matrix = np.array([y[(x == unit).all(1)][0] for unit in np.eye(5, dtype=int)])
    rank, rows = 0, [int("".join(map(str, row)), 2) for row in matrix]
    while rows:
        pivot = rows.pop()
        if pivot:
            rank += 1
            low = pivot & -pivot
            rows = [row ^ pivot if row & low else row for row in rows]
    return rank


def test_manipulation_by_hand():
    """r = 2: y = x XOR pi_1(x) XOR pi_2(x), both permutations of the original x."""
    task = PatternManipulation(r=2, tasks=1, **FEW).build()[0]
    source = np.random.RandomState(102)
    first, second = source.permutation(5), source.permutation(5)
    x = pattern(task)
    assert np.array_equal(task.train.y, x ^ x[:, first] ^ x[:, second])


def test_repeated_tasks_are_the_same_twice():
    tasks = PermutedCopy(repeats=2, **FEW).build()
    assert len(tasks) == 10
    for first, again in zip(tasks[:5], tasks[5:], strict=True):
        assert np.array_equal(first.train.y, again.train.y)


def test_tasks_share_inputs_and_splits_differ():
    tasks = PermutedCopy(**FEW).build()
    assert tasks[0].train.x is tasks[4].train.x
    assert not np.array_equal(tasks[0].val.x[:5], tasks[0].test.x[:5])
    assert abs(PermutedCopy(train=5000, val=5, test=5).build()[0].train.y.mean() - 0.5) < 0.01


def test_the_data_seed_changes_everything():
    one, other = (PermutedCopy(data_seed=seed, **FEW).build() for seed in (1, 2))
    assert not np.array_equal(one[0].train.x, other[0].train.x)


@pytest.mark.parametrize("name", sorted(pieces("benchmarks")))
def test_every_benchmark_keeps_the_contract(name, tmp_path):
    kind = pieces("benchmarks")[name]
    small = {field: 20 for field in ("train", "val", "test") if field in kind.model_fields}
    if name == "arrays":
        small = {"folder": str(save_tasks(PermutedCopy(**FEW).build(), tmp_path))}
    for need in kind.needs:
        places = [data_folder() / place for place in (need.path, *need.instead)]
        if not need.optional and not any(place.exists() for place in places):
            pytest.skip(f"'{need.path}' is not below the data folder")
    first, again = kind(**small).build(), kind(**small).build()
    check_tasks(first)
    assert len({task.name for task in first}) == len(first)
    for one, two in zip(first, again, strict=True):
        assert np.array_equal(one.train.x, two.train.x)
        assert np.array_equal(one.train.y, two.train.y)
    assert (kind.__doc__ or "").strip()
    for field, about in kind.model_fields.items():
        assert about.description, f"{name}.{field} has no help text"


def _task(**changes):
    parts = {
        "target": Label(),
        "x": np.zeros((4, 3, 2)),
        "y": np.array([0, 1, 0, 1]),
        "lengths": np.full(4, 3),
    } | changes
    split = Sequences(**parts)
    return Task("broken", 2, split, split, split)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((4, 3))}, r"x must be \[N, T, F\]"),
        ({"x": np.full((4, 3, 2), np.nan)}, "NaN"),
        ({"lengths": np.array([0, 1, 2, 3])}, "lengths"),
        ({"lengths": np.array([4, 1, 2, 3])}, "lengths"),
        ({"y": np.array([0, 1, 2, 1])}, "integers from 0 to 1"),
        ({"y": np.array([0.0, 1, 1, 1])}, "integers"),
        ({"y": np.zeros((4, 2), int)}, "shape"),
        (
            {"target": Tags(), "y": np.zeros((4, 3), int), "lengths": np.array([1, 3, 3, 3])},
            "beyond the end",
        ),
        (
            {"target": Bits(), "y": np.zeros((4, 2, 2), int), "lengths": np.array([1, 3, 3, 3])},
            "do not fit",
        ),
        ({"target": Value(), "y": np.zeros(4)}, r"must have shape \(4, 2\)"),
        ({"target": Value(), "y": np.zeros((4, 2), int)}, "floating-point"),
        ({"target": Value(), "y": np.full((4, 2), np.inf)}, "finite"),
        ({"target": Value((0.0,), (1.0,)), "y": np.zeros((4, 2))}, "one per output"),
    ],
)
def test_faulty_tasks_are_named(changes, message):
    with pytest.raises(PerdureError, match=message) as caught:
        check_tasks([_task(**changes)])
    assert "Task 'broken', train split" in str(caught.value)


def test_faulty_lists_of_tasks_are_named():
    with pytest.raises(PerdureError, match="no tasks"):
        check_tasks([])
    with pytest.raises(PerdureError, match="same kind of target"):
        check_tasks([_task(), _task(target=Tags(), y=np.zeros((4, 3), int))])
    with pytest.raises(PerdureError, match="same number of input features"):
        check_tasks([_task(), _task(x=np.zeros((4, 3, 5)))])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"p": 6}, "p = 6 steps does not fit in an input phase of i = 5"),
        ({"i": 0}, "benchmark.i"),
        ({"width": -1}, "benchmark.width"),
        ({"tasks": 0}, "benchmark.tasks"),
        ({"train": "many"}, "benchmark.train"),
        ({"data_seed": -1}, "benchmark.data_seed"),
        ({"q": 1}, "did you mean 'benchmark.p'|choose from"),
    ],
)
def test_faulty_options_are_named(values, message):
    with pytest.raises(PerdureError, match=message):
        validated(PermutedCopy, values, "benchmark")
