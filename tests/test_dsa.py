"""Daily and Sports Activities: both forms of the data, the streams, and the protocol."""

from __future__ import annotations

import io
import lzma

import numpy as np
import pytest

from made_data import WINDOWS, dsa_windows, make_dsa
from perdure.benchmarks.dsa import NAMES, Dsa, class_order
from perdure.benchmarks.sources import activities
from perdure.config import build
from perdure.errors import Interrupted, PerdureError
from perdure.experiment import assemble, run
from perdure.learning.engine import RunOptions
from perdure.paper.item import find_item
from perdure.testing import check_resumes


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data folder with made-up packed arrays, and an empty cache."""
    monkeypatch.setenv("PERDURE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_dsa(tmp_path / "data" / "dsa")
    return tmp_path / "data" / "dsa"


def test_packed_arrays_are_restored(data):
    levels, activity = dsa_windows()
    found = activities.read_packed(data / activities.PACKED)
    expected = levels * 1e-3 + np.arange(activities.CHANNELS)
    assert np.allclose(found["x"], expected, atol=1e-4)
    assert np.array_equal(found["y"], activity - 1)
    (data / activities.PACKED).write_bytes(b"nothing")
    with pytest.raises(PerdureError, match="cannot be read"):
        activities.read_packed(data / activities.PACKED)


def test_the_files_of_the_repository_are_read_without_the_sixteenth_activity(tmp_path, monkeypatch):
    monkeypatch.setattr(activities, "PEOPLE", 1)
    monkeypatch.setattr(activities, "SEGMENTS", 2)
    for number in range(1, 20):
        for segment in (1, 2):
            path = tmp_path / f"a{number:02}" / "p1" / f"s{segment:02}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            row = ",".join([f"{number}.{segment}"] * activities.CHANNELS)
            path.write_text("\n".join([row] * activities.STEPS) + "\n")
    found = activities.read_folder(tmp_path, lambda *_: None)
    assert found["x"].shape == (36, activities.STEPS, activities.CHANNELS)
    assert found["y"].tolist() == [label for label in range(18) for _ in range(2)]
    numbers = found["x"][::2, 0, 0].astype(int).tolist()
    assert numbers == [number for number in range(1, 20) if number != 16]
    (tmp_path / "a03" / "p1" / "s02.txt").write_text("1,2\n")
    with pytest.raises(PerdureError, match="125 lines"):
        activities.read_folder(tmp_path, lambda *_: None)


def test_a_run_never_goes_on_with_other_data(data, tmp_path):
    """Raw files do not count in the hash of a run, but a checkpoint belongs to the data it was made with."""
    config = build("dsa", "fine-tuning", scale="smoke", training__iterations=6, network__hidden=8)
    calls = iter(range(100))
    with pytest.raises(Interrupted):
        run(config, tmp_path / "runs", RunOptions(stop=lambda: next(calls) == 8))
    packed = data / activities.PACKED
    arrays = dict(np.load(io.BytesIO(lzma.decompress(packed.read_bytes()))))
    arrays["planes"] = arrays["planes"][:, ::-1]
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    packed.write_bytes(lzma.compress(buffer.getvalue(), preset=0))
    resumed, clean = run(config, tmp_path / "runs"), run(config, tmp_path / "clean")
    assert "made with other data" in " ".join(resumed.warnings)
    assert resumed.record.validation == clean.record.validation
    assert resumed.record.curves == clean.record.curves


def test_streams_share_no_activity_and_follow_the_order(data):
    for order in (0, 7):
        names = [
            [task.name for task in Dsa(stream=stream, order=order).build()]
            for stream in ("validation", "experiment")
        ]
        assert [len(each) for each in names] == [3, 6]
        flat = [name for each in names for task in each for name in task.split(" and ")]
        assert flat == [NAMES[activity] for activity in class_order(order)]
    assert class_order(0).tolist() != class_order(7).tolist()


def test_windows_are_split_by_class_and_no_window_is_in_two_splits(data):
    tasks = Dsa(order=3).build()
    assert [task.outputs for task in tasks] == [2, 4, 6, 8, 10, 12]
    for number, task in enumerate(tasks):
        sizes = {split: np.bincount(getattr(task, split).y) for split in ("train", "val", "test")}
        for split, count in (("train", 11), ("val", 1), ("test", 4)):
            assert sizes[split][2 * number :].tolist() == [count, count]
            assert not sizes[split][: 2 * number].any()
        marks = [getattr(task, split).x[:, 0, 0] for split in ("train", "val", "test")]
        assert len(np.unique(np.concatenate(marks))) == 2 * WINDOWS
        assert not task.told


def test_the_seed_of_a_run_is_its_order(data):
    names = []
    for seed in (0, 1):
        tasks, _ = assemble(build("dsa", "er", scale="smoke", seed=seed, benchmark__tasks=6))
        names.append([task.name for task in tasks])
        assert names[-1] == [task.name for task in Dsa(order=seed, windows=16).build()]
    assert names[0] != names[1]


def test_seeds_beyond_32_bits_have_orders_of_their_own(data):
    seeds = (0, 2**32 - 1, 2**32, 2**32 + 1, 2**64, 2**64 + 2**32)
    orders = [class_order(seed).tolist() for seed in seeds]
    assert all(sorted(order) == list(range(len(order))) for order in orders)
    assert len({tuple(order) for order in orders}) == len(seeds)
    assert orders[0] == np.random.RandomState(0).permutation(len(orders[0])).tolist()
    assemble(build("dsa", "fine-tuning", scale="smoke", seed=2**40))


def test_the_protocol_is_the_published_one():
    config = build("dsa", "er", scale="paper", **{"network.body": "convolutional"})
    assert config.network.channels == (64, 128, 256, 128)
    assert (config.network.kernel, config.network.dropout, config.network.heads) == (5, 0.3, "growing")
    assert (config.training.batch_size, config.rehearsal.batch, config.rehearsal.samples) == (32, 32, 216)
    assert (config.training.patience, config.training.criterion) == (20, "loss")
    assert config.training.iterations * 32 == 100 * 640  # a hundred epochs of (about) 648 windows
    plain = build("dsa", "mas", scale="paper")
    assert (plain.training.batch_size, plain.training.patience, plain.network.heads) == (64, 5, "growing")
    assert build("dsa", "hnet", scale="paper").network.heads == "multi"


@pytest.mark.parametrize("body", ["recurrent", "convolutional"])
def test_runs_resume(data, body):
    check_resumes(build("dsa", "er", scale="smoke", **{"network.body": body}))


def test_every_row_names_its_encoder_and_runs(data, tmp_path):
    item = find_item("dsa")
    settings = item.settings("smoke")
    assert all(setting.label.split(":")[0] in ("CNN", "LSTM", "GRU", "LRU") for setting in settings)
    published = {row.setting.label: row.published["final"].mean for row in item.rows if row.published}
    assert published["CNN: ER"] == 97.19
    assert all(label.startswith("CNN") for label in published)
    for setting in settings:
        if setting.label in ("CNN: MAS", "LSTM: HNET, task inferred", "LSTM: Duncker", "LRU: ER"):
            record = run(setting.config("smoke", 0), tmp_path).record
            assert len(record.accuracy) == 2
