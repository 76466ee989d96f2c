"""Pieces of the report: thinned curves, commands that reproduce, harmless drawings, short numbers."""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from perdure.benchmarks.arrays import save_tasks, tasks_from
from perdure.commands.arguments import parse
from perdure.commands.running import _configs
from perdure.config import build
from perdure.methods import COMBINATIONS, METHODS
from perdure.report.drawings import image
from perdure.report.figures import _whole_ticks
from perdure.report.numbers import MINUS, difference_text, duration, plain, points, size
from perdure.report.reproduce import command_of
from perdure.report.runs import POINTS, forgetting, thinned
from report_samples import drawing, record


def test_curves_are_thinned_but_keep_their_ends():
    long, short = thinned(record("si", 0, checks=60)), thinned(record("si", 0, checks=4))
    assert len(long["iteration"]) == len(long["values"]["loss si"]) == POINTS
    assert long["iteration"] == sorted(set(long["iteration"]))
    assert (long["iteration"][0], long["iteration"][-1]) == (100, 5 * 60 * 100)
    assert short["iteration"] == [100 * n for n in range(1, 21)]
    assert short["phase"] == [n // 4 for n in range(20)]
    source = record("si", 0, checks=4).curves[2][3]["loss si"]
    assert short["values"]["loss si"][11] == pytest.approx(source, rel=1e-3)


def test_forgetting_of_one_task_is_none():
    assert forgetting(replace(record("si", 0), accuracy=[[99.0]])) == 0


CHOICES = [
    ("laptop", {}),
    ("smoke", {"training.iterations": 123, "training.learning_rate": 1.5e-05, "training.patience": 7}),
    (
        "laptop",
        {"network.hidden": (64, 32), "network.cell": "lstm", "network.output_layers": (), "benchmark.i": 7},
    ),
    ("laptop", {"network.cell": "lstm", "network.cell.forget_offset": 2.0}),
    ("paper", {"network.task_identity": True, "training.clip": None}),  # chooses a variant of online-ewc
]


@pytest.mark.parametrize("method", [*METHODS, *COMBINATIONS])
def test_the_command_of_a_run_makes_that_run(method):
    for seed, (scale, chosen) in enumerate(CHOICES):
        config = build("permuted-copy", method, scale=scale, seed=seed, **chosen)
        made = replace(record("si", 0), method=method, seed=seed, config=json.loads(json.dumps(config.json)))
        words = shlex.split(command_of(made))
        read = parse(words[2:])
        (again,) = _configs(read, read.options.get("scale", "laptop"), None)
        assert words[:2] == ["perdure", "run"]
        assert again.hash == config.hash
        assert len(words) <= 4 + len(["--seed", "S", "--scale", "S"]) + 2 * len(chosen)


def test_the_command_of_a_run_on_own_data_says_where_they_are(tmp_path):
    """The folder does not count in the hash, but without it nothing could be run."""
    x, y = np.random.default_rng(0).random((30, 4, 2)), np.arange(30) % 2
    save_tasks(tasks_from([{"train": (x, y), "val": (x, y), "test": (x, y)}]), tmp_path / "mine")
    config = build("arrays", "si", scale="smoke", **{"benchmark.folder": str(tmp_path / "mine")})
    made = replace(record("si", 0), benchmark="arrays", config=json.loads(json.dumps(config.json)))
    words = shlex.split(command_of(made))
    assert words[words.index("--benchmark.folder") + 1] == str(tmp_path / "mine")
    assert "--benchmark.content" not in words
    read = parse(words[2:])
    (again,) = _configs(read, read.options.get("scale", "laptop"), None)
    assert again.hash == config.hash


def test_a_drawing_is_an_image_as_it_was_drawn():
    found = image(drawing())
    kind, _, content = found.source.partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(content).decode() == drawing()
    assert (found.width, found.height) == (6 * 96, 3 * 96)  # inches at 96 pixels


BROKEN = {
    "nothing": "",
    "cut": "<svg",
    "a page": "<html/>",
    "no numbers": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="a b c d"/>',
    "no size": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "no namespace": '<svg viewBox="0 0 9 9"/>',
    "huge": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 1e300"/>',
    "a bomb": '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">&b;</svg>',
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_drawing_is_left_out(broken):
    assert image(BROKEN[broken]) is None


def test_numbers_are_short():
    assert [plain(value) for value in (99.956, -3.0, 0, 0.0123, 123456.0)] == [
        "99.96",
        f"{MINUS}3.00",
        "0.00",
        "0.012",
        "123\u202f456",
    ]
    assert [points(value) for value in (-0.001, 0.0004, -2.345)] == ["0.00", "0.00", f"{MINUS}2.35"]
    assert [difference_text(*pair) for pair in ((1.0, 1.001), (3.0, 1.0), (0.02, 0.03))] == [
        "0.00",
        "+2.00",
        f"{MINUS}0.01",
    ]
    assert [size(value) for value in (0, 999, 25_000, 1_143_064)] == [
        "0\u202fB",
        "999\u202fB",
        "25\u202fkB",
        "1.14\u202fMB",
    ]
    assert [duration(value) for value in (0.0951, 8.04, 305, 6200, 8000)] == [
        "95\u202fms",
        "8.0\u202fs",
        "305\u202fs",
        "103\u202fmin",
        "2.2\u202fh",
    ]


def test_options_that_are_valid_only_together_stay_together():
    config = build("copy", "online-ewc", scale="smoke", **{"benchmark.i": 2, "benchmark.p": 2})
    made = replace(record("online-ewc", 0), benchmark="copy", config=json.loads(json.dumps(config.json)))
    read = parse(shlex.split(command_of(made))[2:])
    (again,) = _configs(read, read.options.get("scale", "laptop"), None)
    assert again.hash == config.hash


def test_axes_that_count_have_no_ticks_between():
    def ticks(x, chosen=None):
        from matplotlib.figure import Figure

        axes = Figure().subplots()
        axes.plot(x, range(len(x)))
        if chosen:
            axes.set_xticks(chosen)
        _whole_ticks(axes)
        return [float(tick) for tick in axes.get_xticks()]

    assert all(tick.is_integer() for tick in ticks([1, 2, 3]))
    assert not all(tick.is_integer() for tick in ticks([0.1, 0.5, 0.9]))
    assert ticks([1, 2, 3], [1.5, 2.5]) == [1.5, 2.5]
