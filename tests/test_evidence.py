"""What items say of their runs: which networks count, how settings were chosen, what iterations cost."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from perdure.analysis.finding import Finding
from perdure.analysis.opened import OpenedRun
from perdure.analysis.paths import path_lengths, slope
from perdure.analysis.rehearsed import form, likeness, likenesses
from perdure.config import build
from perdure.errors import PerdureError
from perdure.experiment import run
from perdure.paper import growth as measuring
from perdure.paper import item as planning
from perdure.paper.growth import growth
from perdure.paper.item import FinishedRuns, items
from perdure.paper.items.intuition import FORMS, evaluate_form
from perdure.paper.solved import counted, counting_cell
from perdure.storage.store import RunFolder
from report_samples import record as sample

TINY = {"training.iterations": 2, "benchmark.train": 40, "benchmark.val": 10, "benchmark.test": 10}


def finals(setting, *values, scale="laptop"):
    """Runs of a setting with these final accuracies, one for each seed."""
    configs = setting.configs(scale, len(values))
    made = {
        config.hash: replace(sample("si", seed), hash=config.hash, final=value)
        for seed, (config, value) in enumerate(zip(configs, values, strict=True))
    }
    return FinishedRuns(scale, len(values), Path("."), made)


def test_only_networks_above_99_percent_count():
    setting = FORMS[0].tied("laptop")[0]
    results = finals(setting, 99.9, 98.0, 99.5, 99.0)
    records, left_out = counted(results, setting)
    assert ([record.final for record in records], left_out) == ([99.9, 99.5], (1, 3))
    cell = counting_cell(results, setting, "mean importance", (1.0, 3.0), "intuition")
    assert (cell.ours.mean, cell.ours.n, cell.by_seed) == (2.0, 2, {0: 1.0, 2: 3.0})
    assert cell.remark == "2 of 4 networks below 99 % left out"
    assert len(cell.hashes) == 4  # those that do not count are named, too
    none = counting_cell(finals(setting, 50.0, 60.0), setting, "mean importance", (), "intuition")
    assert (none.ours, none.left_out) == (None, (0, 1))
    smoke = FORMS[0].tied("smoke")[0]
    assert counted(finals(smoke, 50.0, scale="smoke"), smoke)[1] == ()  # there nothing is learnt


def test_the_figure_leaves_out_networks_that_have_not_learnt(tmp_path, monkeypatch):
    """At a scale of its own, all but one network fail: its numbers are in the cells, its bars are SD."""
    form = replace(FORMS[0], options=TINY, lengths={"smoke": (2, 3)})
    configs = {c.hash: c for s in [*form.tied("smoke"), *form.padded("smoke")] for c in s.configs("smoke", 2)}
    records = {name: run(config, tmp_path).record for name, config in configs.items()}
    results = FinishedRuns("smoke", 2, tmp_path, records)
    every, drawn = evaluate_form(form, results, "intuition")
    assert all(cell.ours.n == 2 for cell in every)
    bars = drawn.figure.axes[2].containers[0].lines[2][0].get_segments()
    first = next(cell for cell in every if cell.column.startswith("mean importance"))
    low, high = sorted(first.values)
    assert bars[0][1][1] - bars[0][0][1] == pytest.approx(2 * (high - low) / 2**0.5)  # 2 SD of two values
    best = max(record.final for record in records.values())
    monkeypatch.setattr("perdure.paper.solved.SOLVED", best - 1e-6)
    monkeypatch.setattr("perdure.paper.solved.EVERY", ())
    few, _ = evaluate_form(form, results, "intuition")
    kept = [cell for cell in few if cell.column.startswith("mean importance") and cell.ours]
    (whole,) = [cell for cell in every if cell.row == kept[0].row and cell.column == kept[0].column]
    assert kept[0].values[0] in whole.values
    lost = sum(len(cell.left_out) for cell in few if cell.column.startswith("mean importance"))
    assert lost == sum(record.final < best for record in records.values())
    assert all(cell.ours.n == 2 for cell in few if cell.column == "accuracy (%)")  # of all of them


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("search 3f of 2026-11-17", "from a search on seeds that are not reported"),
        ("not tuned: as fine-tuning, whose settings are from a search", "not tuned"),
        ("docs/log.md; as on paper scale", "tuned by hand on seed 0, which is among those reported"),
        ("as coresets: search 3f", "from a search for another method or benchmark"),
        ("as permuted-copy: docs/log.md", "tuned by hand on seed 0, which is among those reported"),
        ("in the middle of TSCIL's grid", "from the protocol and grid of TSCIL, not tuned"),
    ],
)
def test_items_say_how_settings_were_chosen(source, said, monkeypatch):
    monkeypatch.setattr(planning, "preset_sources", lambda *place: [source])
    assert f"Settings: 10 {said}." in items()["table-1"].differs("laptop")
    assert "Settings:" not in items()["table-1"].differs("paper")


def test_items_say_which_settings_differ_from_those_of_a_search():
    """An option that the search was told too is no difference; one that it was not told is."""

    def said(**options):
        setting = planning.Setting("SI", "permuted-copy", "si", options)
        return planning._tuned([setting], "laptop")

    total, short = {"penalties.si.task_loss_only": False}, {"training.iterations": 7}
    searched = "Settings: 1 from a search on seeds that are not reported"
    assert said() == said(**total) == f"{searched}."
    assert said(**short) == said(**total, **short) == f"{searched}, but for values that the item sets."
    assert said(**{"penalties.si.task_loss_only": True}) == said(**short)  # given, though it is the default
    masked = planning.Setting("Masking+SI", "permuted-copy", "masking+si", total)
    assert planning._tuned([masked], "laptop") == f"{searched}, but for values that the item sets."
    padded = planning.Setting("ER", "pattern-manipulation", "er")
    assert planning._tuned([padded], "laptop") == "Settings: 1 from a search for another method or benchmark."


@pytest.mark.parametrize("method", ["from-scratch", "online-ewc", "hnet", "coresets"])
def test_what_growth_counts_is_what_a_run_keeps(method, tmp_path):
    config = build("permuted-copy", method, scale="smoke", **TINY)
    record = run(config, tmp_path).record
    found = growth(config, [1, 3])
    assert {task: cost.kept for task, cost in found.items()} == {
        task: record.kept_bytes[task - 1] for task in (1, 3)
    }


def test_growth_times_the_median_iteration_of_the_tasks_asked_for(monkeypatch):
    """A clock that goes on by 1 s at each reading, by 900 s at the first: the first step does not count."""
    readings = []

    def clock():
        readings.append(1.0 if len(readings) != 1 else 900.0)
        return sum(readings)

    monkeypatch.setattr(measuring.time, "process_time", clock)
    config = build("permuted-copy", "fine-tuning", scale="smoke", **TINY)
    found = growth(config, [1])
    assert (found[1].milliseconds, found[1].finish) == (1000.0, 1000.0)
    assert len(readings) == 2 * (measuring.STEPS + 1)


def test_likeness_equals_a_loop():
    """The nearest of all known sequences, one pair at a time; shorter sequences end with zeros."""
    chance = np.random.default_rng(0)
    known = {
        task: [torch.tensor(chance.normal(size=(length, 2)) + task) for length in (3, 5, 4)]
        for task in (0, 1)
    }
    asked = [torch.tensor(chance.normal(size=(length, 2)) + 1) for length in (2, 5, 6, 3)]

    def distance(one, other):
        steps = max(len(one), len(other))
        rows = [
            [
                float(each[step, place]) if step < len(each) else 0.0
                for step in range(steps)
                for place in (0, 1)
            ]
            for each in (one, other)
        ]
        return math.dist(*rows)

    nearest = [{task: min(distance(one, other) for other in known[task]) for task in known} for one in asked]
    recognised, mean = likeness(asked, 1, known)
    assert recognised == 25.0 * sum(each[1] < each[0] for each in nearest)
    assert 0 < recognised <= 100
    assert mean == pytest.approx(sum(each[1] for each in nearest) / 4)
    assert likeness(known[0], 0, known) == (100.0, 0.0)
    same = {task: known[0] for task in range(4)}  # tasks with the same inputs cannot be told apart
    assert likeness(known[0], 2, same) == (25.0, 0.0)


def test_patterns_to_copy_must_be_bits_various_and_of_the_form_of_real_ones():
    """Grey, empty, noisy, collapsed and misplaced ones each fail in the measure that is for them."""
    chance = torch.Generator().manual_seed(0)

    def patterns(count):
        x = torch.zeros(count, 11, 8)
        x[:, :5, :7] = torch.randint(0, 2, (count, 5, 7), generator=chance).float()
        x[:, 5, 7] = 1
        return list(x)

    real = patterns(100)
    grey, late, shaded = torch.full((11, 8), 0.5), [x.roll(1, 0) for x in patterns(50)], patterns(50)
    noise = [torch.rand(11, 8, generator=chance) for _ in range(50)]
    for x in shaded:
        x[:5, :7] = 0.6
    others = form(patterns(50), real)
    assert (others.grey, others.formed) == (0, 100)
    assert others.variety == pytest.approx(1, abs=0.1)
    assert form(real, real) == pytest.approx((0, 100, 1))
    assert form([grey] * 50, real) == (0.5, 0, 0)
    assert form([torch.zeros(11, 8)] * 50, real) == (0, 0, 0)
    assert form([real[0]] * 50, real) == (0, 100, 0)
    assert form(late, real).formed == 0
    assert form(shaded, real) == pytest.approx((0.4 * 35 / 88, 100, 0), abs=1e-6)
    assert form(noise, real).grey == pytest.approx(0.25, abs=0.02)
    assert form(noise, real).formed == 0
    loop = [int(((a > 0.5) != (b > 0.5)).sum()) for a, b in itertools.combinations(late, 2)]
    known = [int((a != b).sum()) for a, b in itertools.combinations(real, 2)]
    assert form(late, real).variety == pytest.approx(np.mean(loop) / np.mean(known))


@pytest.mark.parametrize("method", ["coresets", "rtf"])
def test_stored_sequences_are_real_and_untrained_replay_is_not(method, tmp_path):
    """What is stored has distance 0 to the training data it was taken from; what is replayed has not."""
    config = build("permuted-copy", method, scale="smoke", **TINY)
    run_ = OpenedRun(RunFolder(tmp_path, config.hash), run(config, tmp_path).record)
    for row in likenesses(run_, 5, 40):
        kinds = {kind: like.distance for kind, like in row.items()}
        if method == "coresets":
            assert (set(kinds), kinds["stored"]) == ({"real", "stored"}, 0.0)
        else:
            assert set(kinds) == {"real", "reconstructed", "replayed"}
            assert min(kinds["reconstructed"], kinds["replayed"]) > 0.1


def test_the_flatness_item_takes_the_exact_fisher(monkeypatch):
    asked = []

    def look(run, options):
        asked.append(options.estimator)
        return Finding("", [], [[1, 1e-9, 1e-9, 1.0, 1.0]])

    monkeypatch.setattr("perdure.paper.items.flatness.flatness", look)
    monkeypatch.setattr("perdure.paper.items.flatness.OpenedRun", lambda *run: None)
    item, made = items()["flatness"], {}
    for setting in item.settings("laptop"):
        made |= finals(setting, 99.0).records
    cells, (drawn,) = item.evaluate(FinishedRuns("laptop", 1, Path("."), made))
    assert asked == ["exact"] * 4
    assert "exact" in drawn.caption
    assert "exact" in item.differs("laptop")
    assert len(cells) == 8


def test_paths_back_in_time_are_those_of_the_permutation():
    """By the paper: all i + 1 steps in Copy; in Permuted Copy the mean is the same, the spread is not."""
    small = {"benchmark.train": 50, "benchmark.val": 4, "benchmark.test": 4, "benchmark.i": 9}
    padded = build("copy", "fine-tuning", **small, **{"benchmark.p": 6}).benchmark
    assert path_lengths(padded.build()[0].train) == [10] * 6
    permuted = build("permuted-copy", "fine-tuning", **small, **{"benchmark.p": 9}).benchmark
    for task, seed in zip(permuted.build(), (102, 435, 860, 270, 106), strict=True):
        order = np.random.RandomState(seed).permutation(9)
        lengths = path_lengths(task.train)
        assert lengths == [10 + step - int(order[step]) for step in range(9)]
        assert np.mean(lengths) == 10
        assert np.std(lengths) > 0
    with pytest.raises(PerdureError, match="does not repeat"):
        path_lengths(build("pattern-manipulation", "fine-tuning", **small).benchmark.build()[0].train)


def test_the_slope_is_that_of_least_squares():
    chance = np.random.default_rng(1)
    lengths, accuracies = chance.integers(1, 20, 30), chance.normal(size=30)
    assert slope(lengths, accuracies) == pytest.approx(scipy.stats.linregress(lengths, accuracies).slope)
