"""One's own data: all formats give the same tasks, splits follow their rules, and a run learns from them."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import io
import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.analysis.opened import config_of
from perdure.benchmarks.arrays import Arrays, save_tasks, tasks_from
from perdure.benchmarks.copy import PermutedCopy
from perdure.benchmarks.sources.own.drawing import draw
from perdure.benchmarks.sources.own.layout import natural
from perdure.benchmarks.task import Sequences, Task, check_tasks
from perdure.cli import main
from perdure.config import build, from_json
from perdure.errors import PerdureError
from perdure.experiment import run
from perdure.files import Damaged
from perdure.networks.batch import Data
from perdure.storage.record import to_record
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags

PARQUET = importlib.util.find_spec("pyarrow") is not None
FORMATS = ["npz", "flat", "npy", "csv", "semicolon", "tsv", "gz", "folder", "split", "lists", "dataset"]
FORMATS += ["parquet"] if PARQUET else []
LABELS = {"train": ["no", "yes"] * 5, "val": ["yes", "no"], "test": ["yes", "no", "no"]}


@pytest.fixture(autouse=True)
def _signals_as_before():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGTERM, before[1])


def example(seed, tags=False, labels=LABELS):
    """Ragged sequences of two features for each split: (list of [T, 2], list of labels or of tags)."""
    source = np.random.default_rng(seed)
    splits = {}
    for split, each in labels.items():
        x = [source.normal(size=(source.integers(1, 6), 2)).astype(np.float32) for _ in each]
        y = [source.choice(sorted(set(each)), len(steps)) for steps in x] if tags else list(each)
        splits[split] = (x, y)
    if tags:
        splits["train"][1][0] = np.resize(sorted(set(labels["train"])), len(splits["train"][0][0]))
        splits["train"][1][1] = np.resize(sorted(set(labels["train"]))[::-1], len(splits["train"][0][1]))
    return splits


def rows_of(splits, columns):
    """The rows of a table, with the split where columns ask for it."""
    rows = []
    for split, (x, y) in splits.items():
        for n, (steps, target) in enumerate(zip(x, y, strict=True)):
            for t, step in enumerate(steps):
                label = target if isinstance(target, (str, int, float)) else target[t]
                row = {"sequence": f"{split} {n}", "split": split, "a": step[0], "b": step[1], "label": label}
                rows.append([row[name] for name in columns])
    return rows


def write_csv(path, splits, delimiter=",", columns=("sequence", "split", "a", "b", "label")):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(rows_of(splits, columns))
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.name.endswith("gz") else content)


def padded(x):
    steps = max(len(one) for one in x)
    return np.stack([np.pad(one, ((0, steps - len(one)), (0, 0)), constant_values=np.nan) for one in x])


def padded_tags(y):
    steps = max(len(one) for one in y)
    return np.stack([np.pad(one.astype("U9"), (0, steps - len(one)), constant_values="?") for one in y])


def arrays_of(splits, flat=False):
    arrays = {}
    for split, (x, y) in splits.items():
        tags = not isinstance(y[0], (str, int, float))
        arrays[f"lengths_{split}"] = np.array([len(one) for one in x])
        arrays[f"x_{split}"] = np.concatenate(x) if flat else padded(x)
        arrays[f"y_{split}"] = (np.concatenate(y) if flat else padded_tags(y)) if tags else np.array(y)
    return arrays


class Pairs(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, number):
        return torch.tensor(self.x[number]), self.y[number]


def write_parquet(path, splits):
    import pyarrow
    from pyarrow import parquet

    columns = ("sequence", "split", "a", "b", "label")
    table = zip(*rows_of(splits, columns), strict=True)
    parquet.write_table(pyarrow.table(dict(zip(columns, map(list, table), strict=True))), path)


def write_folder(folder, splits):
    folder.mkdir()
    for split in splits:
        write_csv(folder / f"{split}.csv", {split: splits[split]}, columns=("label", "a", "b", "sequence"))


def write_split(path, splits):
    """One npz with an array that names the split of each sequence."""
    x = [one for steps, _ in splits.values() for one in steps]
    y = [one for _, targets in splits.values() for one in targets]
    arrays = arrays_of({"all": (x, y)}, flat=True)
    arrays = {name.removesuffix("_all"): array for name, array in arrays.items()}
    np.savez(path, split=np.repeat(list(splits), [len(one[0]) for one in splits.values()]), **arrays)


def write_npy(folder, splits):
    folder.mkdir()
    for name, array in arrays_of(splits).items():
        np.save(folder / f"{name}.npy", array)


WRITERS = {
    "npz": lambda folder, name, splits: np.savez(folder / f"{name}.npz", **arrays_of(splits)),
    "flat": lambda folder, name, splits: np.savez(folder / f"{name}.npz", **arrays_of(splits, flat=True)),
    "npy": lambda folder, name, splits: write_npy(folder / name, splits),
    "csv": lambda folder, name, splits: write_csv(folder / f"{name}.csv", splits),
    "semicolon": lambda folder, name, splits: write_csv(folder / f"{name}.csv", splits, ";"),
    "tsv": lambda folder, name, splits: write_csv(folder / f"{name}.tsv", splits, "\t"),
    "gz": lambda folder, name, splits: write_csv(folder / f"{name}.csv.gz", splits),
    "folder": lambda folder, name, splits: write_folder(folder / name, splits),
    "split": lambda folder, name, splits: write_split(folder / f"{name}.npz", splits),
    "parquet": lambda folder, name, splits: write_parquet(folder / f"{name}.parquet", splits),
}


def read(form, folder, examples, **options):
    if form == "lists":
        return tasks_from(examples, **options)
    if form == "dataset":
        return tasks_from(
            {
                name: {split: Pairs(*pair) for split, pair in splits.items()}
                for name, splits in examples.items()
            },
            **options,
        )
    for name, splits in examples.items():
        WRITERS[form](folder, name, splits)
    return Arrays(folder=str(folder), **options).build()


def same(one, other):
    for split in ("train", "val", "test"):
        left, right = getattr(one, split), getattr(other, split)
        assert left.target == right.target
        for name in ("x", "y", "lengths"):
            assert np.array_equal(getattr(left, name), getattr(right, name)), (split, name)
        assert (left.table is None) == (right.table is None)
        assert left.table is None or np.array_equal(left.table, right.table)
    assert (one.name, one.outputs, one.inputs) == (other.name, other.outputs, other.inputs)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("tags", [False, True])
def test_every_format_gives_what_was_written(form, tags, tmp_path):
    """Against the written lists themselves, sequence by sequence."""
    examples = {"task 2": example(1, tags), "task 10": example(2, tags)}
    tasks = read(form, tmp_path, examples)
    check_tasks(tasks)
    assert [task.name for task in tasks] == ["task 2", "task 10"]
    for task in tasks:
        assert task.target == (Tags() if tags else Label())
        assert (task.outputs, task.inputs) == (2, 2)
        for split, (x, y) in examples[task.name].items():
            data = getattr(task, split)
            assert data.lengths.tolist() == [len(one) for one in x]
            for n, steps in enumerate(x):
                assert np.array_equal(data.x[n, : len(steps)], steps)
                assert not data.x[n, len(steps) :].any()
                wanted = ["no", "yes"].index(y[n]) if not tags else [["no", "yes"].index(t) for t in y[n]]
                assert (data.y[n] if not tags else data.y[n, : len(steps)]).tolist() == wanted


@pytest.mark.parametrize(
    "labels", [["10", "9", "-1"], [10, 9, -1], [3, 1, 2], ["b", "10", "a"], ["10", "9", "x"]]
)
@pytest.mark.parametrize("form", ["csv", "npz", "lists"])
def test_labels_are_sorted_as_numbers_only_if_all_are(labels, form, tmp_path):
    chosen = {"train": labels * 3, "val": labels, "test": labels}
    (task,) = read(form, tmp_path, {"one": example(0, labels=chosen)})
    texts = [str(label) for label in labels]
    numbers = all(text.lstrip("-").isdigit() for text in texts)
    order = sorted(texts, key=int) if numbers else sorted(texts)
    assert task.train.y.tolist() == [order.index(text) for text in texts] * 3
    assert task.outputs == 3


def test_tags_may_be_left_out(tmp_path):
    (tmp_path / "a.csv").write_text(
        "sequence,split,f,label\n1,train,0,x\n1,train,1,\n1,train,2,y\n2,val,0,x\n2,val,0,y\n3,test,1,\n3,test,0,x\n"
    )
    (task,) = Arrays(folder=str(tmp_path)).build()
    assert task.train.y.tolist() == [[0, -1, 1]]
    assert task.test.y.tolist() == [[-1, 0]]
    np.savez(tmp_path / "a.npz", x=np.zeros((9, 2, 1)), y=np.array([[3, -1], [7, 3], [3, 3]] * 3))
    (tmp_path / "a.csv").unlink()
    (task,) = Arrays(folder=str(tmp_path)).build()
    assert task.outputs == 2
    together = np.concatenate([task.train.y, task.val.y, task.test.y])
    assert sorted(together.tolist()) == sorted([[0, -1], [1, 0], [0, 0]] * 3)


def test_kind_can_be_said(tmp_path):
    write_csv(tmp_path / "a.csv", example(0))
    (task,) = Arrays(folder=str(tmp_path), kind="tags").build()
    assert task.target == Tags()
    inside = np.arange(task.train.x.shape[1]) < task.train.lengths[:, None]
    assert (task.train.y[~inside] == -1).all()
    assert [set(row[row >= 0].tolist()) for row in task.train.y] == [{0}, {1}] * 5
    write_csv(tmp_path / "a.csv", example(0, tags=True))
    with pytest.raises(PerdureError, match="a sequence has one label"):
        Arrays(folder=str(tmp_path), kind="label").build()


def test_patterns_are_bits_at_the_last_steps(tmp_path):
    source = np.random.default_rng(0)
    y = source.integers(0, 2, (30, 2, 3))
    np.savez(tmp_path / "a.npz", x=source.random((30, 4, 1)), y=y, lengths=source.integers(2, 5, 30))
    (task,) = Arrays(folder=str(tmp_path)).build()
    assert (task.target, task.outputs) == (Bits(), 3)
    assert np.concatenate([task.train.y, task.val.y, task.test.y]).sum() == y.sum()


def test_tags_to_ignore_may_be_written_as_in_torch(tmp_path):
    """-100 as -1: the same targets, and no class of that name."""
    source = np.random.default_rng(0)
    x, y = source.random((20, 4, 1)), source.integers(0, 3, (20, 4))
    y[:, 3] = -1
    found = []
    for number in (-1, -100):
        np.savez(tmp_path / "a.npz", x=x, y=np.where(y == -1, number, y))
        found.append(Arrays(folder=str(tmp_path)).build()[0])
    assert (found[0].outputs, found[1].outputs) == (3, 3)
    assert found[1].train.y.tolist() == found[0].train.y.tolist()
    assert (found[1].train.y[:, 3] == -1).all()


def test_a_label_that_is_not_listed_is_told_from_one_that_does_not_occur(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((9, 2, 1)), y=np.arange(9) % 2, classes=np.array(["no", "yes"]))
    with pytest.raises(PerdureError, match=r"'[01]' does not occur among the classes that are listed"):
        Arrays(folder=str(tmp_path)).build()


@pytest.mark.parametrize("other", ["a.csv", "a"])
def test_tasks_are_not_saved_beside_what_would_be_read_as_one_of_them(tmp_path, other):
    tasks = tasks_from([example(0)])
    saved = save_tasks([replace(tasks[0], name="a")], tmp_path)
    save_tasks([replace(tasks[0], name="a")], tmp_path)  # its own files are replaced
    path = tmp_path / other
    path.mkdir() if other == "a" else path.write_text("x")
    with pytest.raises(PerdureError, match=f"already has '{other}', which would be task 'a' as well"):
        save_tasks([replace(tasks[0], name="a")], saved)


def test_classes_can_be_shared_by_all_tasks():
    one = example(0, labels={"train": ["a", "b"] * 4, "val": ["a"], "test": ["b"]})
    two = example(1, labels={"train": ["b", "c"] * 4, "val": ["b"], "test": ["a"]})
    with pytest.raises(PerdureError, match="'a' does not occur in the training"):
        tasks_from([one, two])
    first, second = tasks_from([one, two], labels="shared")
    assert (first.outputs, second.outputs) == (3, 3)
    assert first.train.y.tolist() == [0, 1] * 4
    assert second.train.y.tolist() == [1, 2] * 4
    assert second.test.y.tolist() == [0]


def test_an_unknown_class_is_named_at_its_place_in_y():
    """Labels stand in y, at the sequence or step that the message names, whatever the layout of x."""
    x = np.zeros((6, 4, 2))
    labels, tags = np.arange(6) % 2, np.arange(24).reshape(6, 4) % 2
    train, late = (x, labels), labels.copy()
    late[4] = 7
    with pytest.raises(PerdureError, match=r"'task a, test', y\[4\]: the label '7' does not occur"):
        tasks_from({"a": {"train": train, "test": (x, late)}})
    ragged = [np.zeros((length, 2)) for length in (4, 1, 3, 2, 5, 2)]
    with pytest.raises(PerdureError, match=r"'task a, test', y\[4\]: the label '7' does not occur"):
        tasks_from({"a": {"train": train, "test": (ragged, late)}})
    wrong = tags.copy()
    wrong[3, 2] = 7
    with pytest.raises(PerdureError, match=r"'task a, test', y\[3, 2\]: the label '7' does not occur"):
        tasks_from({"a": {"train": (x, tags), "test": (x, wrong)}})


def test_an_unknown_class_is_named_at_its_place_in_a_file(tmp_path):
    """Splits given by an array: the message counts in the file, not among the sequences of the split."""
    split = np.array(["train"] * 4 + ["test", "train", "test", "val", "val"])
    y = np.array([0, 1, 0, 1, 0, 1, 9, 0, 1])
    np.savez(tmp_path / "a.npz", x=np.zeros((9, 3, 2)), y=y, split=split)
    with pytest.raises(PerdureError, match=r"a.npz', y\[6\]: the label '9' does not occur"):
        build("arrays", "si", benchmark__folder=tmp_path).benchmark.build()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    fractions=st.tuples(st.floats(0.01, 0.3), st.floats(0.01, 0.3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_drawn_splits_part_the_sequences_and_keep_proportions(sizes, fractions, seed):
    classes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    count = len(classes)
    wanted = {"val": fractions[0], "test": fractions[1]}
    amounts = {split: max(1, round(part * count)) for split, part in wanted.items()}
    if sum(amounts.values()) > count - len(sizes):
        with pytest.raises(PerdureError, match="too few"):
            draw(classes, wanted, seed, "f")
        return
    drawn = draw(classes, wanted, seed, "f")
    assert sorted(np.concatenate(list(drawn.values())).tolist()) == list(range(count))
    assert {split: len(drawn[split]) for split in wanted} == amounts
    assert set(classes[drawn["train"]].tolist()) == set(range(len(sizes)))
    total = sum(amounts.values())
    for number, size in enumerate(sizes):
        taken = sum(int((classes[drawn[split]] == number).sum()) for split in wanted)
        assert abs(taken - total * (size - 1) / (count - len(sizes))) <= 1
    assert all(np.array_equal(drawn[split], draw(classes, wanted, seed, "f")[split]) for split in drawn)


def test_only_missing_splits_are_drawn():
    x = np.arange(100, dtype=np.float32).reshape(50, 2, 1)
    y = np.arange(50) % 2
    given = {"train": (x[:40], y[:40]), "test": (x[40:], y[40:])}
    (task,) = tasks_from([given], val_fraction=0.25)
    assert np.array_equal(task.test.x, x[40:])
    assert len(task.val) == 10
    assert sorted(np.concatenate([task.train.x, task.val.x])[:, 0, 0].tolist()) == x[:40, 0, 0].tolist()
    (other,) = tasks_from([given], val_fraction=0.25, data_seed=1)
    assert not np.array_equal(other.val.x, task.val.x)
    (alone,) = tasks_from([(x, y)])
    assert [len(alone.train), len(alone.val), len(alone.test)] == [35, 5, 10]


def test_tasks_are_sorted_as_people_count_or_as_listed(tmp_path):
    for name in ("task 10", "task 2", "b", "task 1"):
        write_csv(tmp_path / f"{name}.csv", example(0))
    assert [t.name for t in Arrays(folder=str(tmp_path)).build()] == ["b", "task 1", "task 2", "task 10"]
    (tmp_path / "tasks.txt").write_text("task 10\n\n# not now: b\ntask 1\n")
    assert [t.name for t in Arrays(folder=str(tmp_path)).build()] == ["task 10", "task 1"]
    chosen = Arrays(folder=str(tmp_path), tasks="b, task 2")
    assert [t.name for t in chosen.build()] == ["b", "task 2"]
    assert sorted(["x10y2", "x9", "x10y1"], key=natural) == ["x9", "x10y1", "x10y2"]


def test_standardised_inputs_have_mean_zero_and_deviation_one_in_the_first_task():
    examples = {}
    for name, shift in (("a", 100), ("b", 200)):
        splits = example(3)
        examples[name] = {s: ([one * [1, 50] + shift for one in x], y) for s, (x, y) in splits.items()}
    tasks = tasks_from(examples, standardise=True)
    rows = Data(tasks[0].train, dtype=torch.float64).batch(slice(None)).rows
    assert torch.allclose(rows.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-5)
    assert torch.allclose(rows.std(0, correction=0), torch.ones(2, dtype=torch.float64), atol=1e-5)
    assert all(np.array_equal(tasks[0].val.scaling[n], tasks[1].test.scaling[n]) for n in (0, 1))


def word_task(name):
    """Tags of words from a table, with steps that are not asked and a class that never occurs."""
    source = np.random.default_rng(0)
    splits = []
    for count in (6, 3, 2):
        lengths = source.integers(1, 5, count)
        x = source.integers(0, 7, (count, 4)).astype(np.int32)
        y = source.integers(-1, 2, (count, 4))
        inside = np.arange(4) < lengths[:, None]
        y[0, 0], y[~inside], x[~inside] = 1, -1, 0
        splits.append(Sequences(Tags(), x, y, lengths, table=table))
    return Task(name, 5, *splits)


table = np.random.default_rng(1).normal(size=(7, 3)).astype(np.float32)


@pytest.mark.parametrize("form", ["copy", "labels", "tags", "words"])
def test_saved_tasks_are_read_back_as_they_were(form, tmp_path):
    tasks = {
        "copy": lambda: PermutedCopy(tasks=11, train=8, val=2, test=3).build(),
        "labels": lambda: tasks_from({"z": example(0), "a": example(1)}),
        "tags": lambda: tasks_from({"z": example(0, tags=True), "a": example(1, tags=True)}),
        "words": lambda: [word_task("z"), word_task("a")],
    }[form]()
    again = Arrays(folder=str(save_tasks(tasks, tmp_path / "new" / "folder"))).build()
    assert len(again) == len(tasks)
    for one, other in zip(tasks, again, strict=True):
        longest = {split: int(getattr(one, split).lengths.max()) for split in ("train", "val", "test")}
        cut = {
            split: Sequences(
                one.target,
                getattr(one, split).x[:, :steps],
                getattr(one, split).y[:, :steps] if one.target == Tags() else getattr(one, split).y,
                getattr(one, split).lengths,
                getattr(one, split).table,
            )
            for split, steps in longest.items()
        }
        same(Task(one.name, one.outputs, **cut), other)
    assert again[0].train.x.dtype == tasks[0].train.x.dtype


def test_saved_tasks_are_scaled_as_a_network_reads_them(tmp_path):
    (task,) = tasks_from([example(0)], standardise=True)
    (again,) = Arrays(folder=str(save_tasks([task], tmp_path))).build()
    rows = [Data(one.test).batch(slice(None)).rows for one in (task, again)]
    assert torch.allclose(*rows, atol=1e-6)


@pytest.mark.parametrize("name", ["a/b", "", ".a", "../a", "a\nb", "#a"])
def test_names_that_are_no_files_are_refused(name, tmp_path):
    (task,) = tasks_from({name: example(0)})
    with pytest.raises(PerdureError, match="cannot be used as a file name"):
        save_tasks([task], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_config_is_known_by_the_content_of_its_files(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    write_csv(folder / "a.csv", example(0))
    write_csv(folder / "b.csv", example(1))
    options = {"benchmark.folder": str(folder)}
    first = build("arrays", "si", **options)
    assert build("arrays", "si", **options).hash == first.hash
    assert from_json(json.loads(json.dumps(first.json))) == first
    (folder / "readme.md").write_text("not read")
    assert build("arrays", "si", **options).hash == first.hash
    (folder / "tasks.txt").write_text("b\na\n")
    assert build("arrays", "si", **options).hash != first.hash
    (folder / "tasks.txt").unlink()
    os.utime(folder / "a.csv", (1, 1))
    assert build("arrays", "si", **options).hash == first.hash
    write_csv(folder / "a.csv", example(2))
    assert build("arrays", "si", **options).hash != first.hash
    old = from_json(first.json)
    assert old.hash == first.hash
    with pytest.raises(PerdureError, match=r"mine' has changed: its digest was [0-9a-f]{16}"):
        old.benchmark.build()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(np.zeros((4, 3)), [0, 1, 0, 1])], "no 'lengths'"),
        ([(np.zeros((4, 3, 1)), [0, 1, 0])], r"y has shape \(3,\)"),
        ([(np.zeros((4, 3, 1)), [0j, 1, 0, 1])], "integers or strings"),
        ([(np.zeros((9, 3, 1)), [0.0, 1, 0] * 3)], "all its numbers are whole"),
        ([([np.zeros((2, 1)), np.zeros((2, 2))], [0, 1])], "sequence 1: it has 2 features"),
        ([([np.zeros((2, 1)), np.zeros(2)], [0, 1])], r"sequence 1: it is float64 \(2,\)"),
        ([([np.zeros((2, 1)), np.zeros((0, 1))], [0, 1])], "sequence 1"),
        ([([np.zeros((2, 1)), [[1], [2, 3]]], [0, 1])], "sequence 1"),
        ([([np.zeros((2, 1))] * 2, [0])], "2 sequences, but 1 targets"),
        ([([np.zeros((2, 1))] * 2, [[0, 1], [0]])], "sequence 1: it has 2 steps"),
        ([([np.zeros((2, 1))] * 2, [[[0, 1]], [[0]]])], "differ in shape"),
        ([([], [])], "no sequences"),
        ([[1, 2]], r"item 0: it must be a pair"),
        ([7], "is a int"),
        ([{"trian": ([], [])}], "did you mean 'train'"),
        ([{"test": (np.zeros((4, 3, 1)), [0, 1, 0, 1])}], "no training sequences"),
        ([(np.full((9, 3, 1), np.nan), np.arange(9) % 2)], r"x\[0, 0\]: feature 0 is NaN"),
        ([(np.zeros((9, 3, 1)), np.arange(9) % 2), (np.zeros((9, 3, 2)), np.arange(9) % 2)], "2 features"),
        ([(np.zeros((9, 3, 1)), np.zeros(9, int))], "only the class '0'"),
        ([], "no tasks"),
    ],
)
def test_faulty_lists_get_a_sentence(given, message):
    with pytest.raises(PerdureError, match=message) as caught:
        tasks_from(given)
    assert "\n" not in str(caught.value)


def test_names_of_tasks_are_texts():
    with pytest.raises(PerdureError, match=r"^tasks: the name .* must be a text, such as '1' \(given: 1\)"):
        tasks_from({1: example(0)})


def test_a_run_is_the_same_wherever_its_files_are(tmp_path):
    """Also where they were moved while it was in progress; records of earlier versions open as well."""
    folder, runs = tmp_path / "mine", tmp_path / "runs"
    save_tasks(tasks_from({"a": example(0), "b": example(1)}), folder)
    known = {"network.hidden": 4, "training.iterations": 2}

    def made(place):
        return build("arrays", "si", scale="smoke", **known, **{"benchmark.folder": str(place)})

    first = made(folder)
    result = run(first, runs)
    folder.rename(tmp_path / "elsewhere")
    moved = made(tmp_path / "elsewhere")
    assert moved.hash == first.hash
    assert run(moved, runs).found
    assert moved.json["benchmark"]["folder"] != first.json["benchmark"]["folder"]
    text = json.dumps(first.json, sort_keys=True, separators=(",", ":"))
    earlier = hashlib.sha256(text.encode()).hexdigest()[:16]  # as it was when the folder counted
    assert earlier != first.hash
    (tmp_path / "elsewhere").rename(folder)
    old = to_record(result.record.json | {"hash": earlier})
    assert config_of(old) == first
    with pytest.raises(Damaged, match="its config is not the one"):
        to_record(result.record.json | {"hash": "0" * 16})


def test_tasks_in_python_have_a_scenario_as_files_have(tmp_path):
    examples = {"a": example(0), "b": example(1)}
    save_tasks(tasks_from(examples), tmp_path)
    for options in ({"scenario": "class"}, {"scenario": "domain", "labels": "shared"}):
        here, there = tasks_from(examples, **options), Arrays(folder=str(tmp_path), **options).build()
        assert [task.told for task in here] == [task.told for task in there] == [False, False]
        assert [task.outputs for task in here] == [task.outputs for task in there]
        for one, other in zip(here, there, strict=True):
            assert np.array_equal(one.test.y, other.test.y)
    with pytest.raises(PerdureError, match="class needs tasks with classes of their own"):
        tasks_from(examples, scenario="class", labels="shared")
    with pytest.raises(PerdureError, match=r"'a' is not told.*scenario"):
        save_tasks(tasks_from(examples, scenario="class"), tmp_path / "more")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenario": "clas"}, r"^tasks_from\.scenario: it must be 'task', 'class' or 'domain'"),
        ({"val_fraction": 0.9}, r"^tasks_from\.val_fraction: it must be less than 0\.5 \(given: 0\.9\)\.$"),
        ({"scenaro": "class"}, r"did you mean 'tasks_from\.scenario'"),
        ({"folder": "mine"}, r"tasks_from\.folder"),
    ],
)
def test_wrong_options_of_tasks_in_python_get_a_sentence(options, message):
    with pytest.raises(PerdureError, match=message):
        tasks_from([example(0)], **options)


def separable(seed, direction):
    """Whether the sum of a feature over the steps is positive: ragged, with 3 features."""
    source = np.random.default_rng(seed)
    x, y = [], []
    for number in range(240):
        label = number % 2
        steps = source.normal(size=(source.integers(3, 9), 3))
        steps[:, direction] += 1.5 if label else -1.5
        x.append(steps.astype(np.float32))
        y.append("up" if label else "down")
    return x, y


def test_a_run_learns_from_a_folder(tmp_path, capsys, monkeypatch):
    """Three formats, one of each; the labels follow one feature, another one in each task."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    sets = {name: {"all": separable(n, n)} for n, name in enumerate(("first", "second", "third"))}
    rows = [
        [f"s{n}", *step, label]
        for n, (steps, label) in enumerate(zip(*sets["first"]["all"], strict=True))
        for step in steps
    ]
    with (folder / "first.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["sequence", "p", "q", "r", "label"], *rows])
    for name in ("second", "third"):
        arrays = arrays_of(sets[name], flat=name == "third")
        np.savez(folder / f"{name}.npz", **{key.removesuffix("_all"): value for key, value in arrays.items()})
    words = ["run", "arrays", "from-scratch", "--benchmark.folder", "mine", "--scale", "smoke", "--json"]
    assert main(words) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["tasks"] == ["first", "second", "third"]
    assert min(record["accuracy"][-1]) > 90
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == record["seconds"]  # not run twice
    (folder / "third.npz").unlink()
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == ["first", "second"]
