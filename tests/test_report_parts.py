"""Pieces of the report: thinned curves, commands that reproduce, harmless drawings, short numbers."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import pytest

from page_tree import Tree
from perdure.commands.running import _configs
from perdure.commands.words import parse
from perdure.config import build
from perdure.methods import COMBINATIONS, METHODS
from perdure.report.drawings import embedded
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
        read = parse(words[2:], flags=())
        (again,) = _configs(read, read.options.get("scale", "laptop"))
        assert words[:2] == ["perdure", "run"]
        assert again.hash == config.hash
        assert len(words) <= 4 + len(["--seed", "S", "--scale", "S"]) + 2 * len(chosen)


def test_drawings_are_made_harmless():
    nasty = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
      viewBox="0 0 10 10" onload="alert(1)"><script>alert(2)</script><style>* { color: red }</style>
      <a href="javascript:alert(3)"><text>gone</text></a><foreignObject><p>gone</p></foreignObject>
      <image href="https://example.org/x.png"/><use xlink:href="other.svg#a"/><animate attributeName="x"/>
      <rect id="a" onclick="alert(4)" style="fill: url(https://example.org/x)" width="3"/>
      <g id="b" fill="url('#a')"><use href="#a"/><text>&lt;b&gt;</text></g></svg>"""
    safe = embedded(nasty, "p_", '"label"')
    tree = Tree(safe)
    assert tree.tags == ["svg", "image", "use", "rect", "g", "use", "text"]
    assert not re.search(r"alert|javascript|example\.org|gone|color: red", safe)
    assert "<text>&lt;b&gt;</text>" in safe
    assert [value for _, name, value in tree.attributes if name == "href"] == ["#p_a"]
    assert tree.ids == ["p_a"]  # b is not referred to
    assert 'fill="url(#p_a)"' in safe
    assert ("svg", "aria-label", '"label"') in tree.attributes


@pytest.mark.parametrize("broken", ["", "<svg", "<html/>", '<svg viewBox="a b c d"/>', "<svg/>"])
def test_what_is_no_drawing_is_left_out(broken):
    assert embedded(broken, "p_", "label") == ""


def test_a_drawing_keeps_its_shapes():
    source = drawing()
    safe = embedded(source, "p_", "label")
    for shape in ("<path", "<use", "<image", "clipPath"):
        assert safe.count(shape) == source.count(shape), shape
    assert len(safe) < len(source)
    assert "p_" not in embedded(source, "q_", "label")


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
    read = parse(shlex.split(command_of(made))[2:], flags=())
    (again,) = _configs(read, read.options.get("scale", "laptop"))
    assert again.hash == config.hash
