"""Hypernetworks of all presets and of all items of the paper are at most as large as what they make."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perdure.config import build
from perdure.experiment import learner_of
from perdure.learning.learner import grow, init
from perdure.learning.sizes import sizes_of
from perdure.paper.item import items
from perdure.presets import preset_sources, scales_of
from perdure.randomness import generator
from perdure.report.tables import list_table, summary
from perdure.search.state import TUNING, all_searches
from perdure.storage.record import Record
from report_samples import record as sample_record

METHODS = ("hnet", "hnet+coresets", "hnet+r")
BENCHMARKS = (
    "copy",
    "padded-copy",
    "permuted-copy",
    "pattern-manipulation",
    "smnist",
    "audioset",
    "pos",
    "dsa",
)
PUBLISHED = {
    ("pattern-manipulation", "hnet", "paper"): 1.006,
    ("pattern-manipulation", "hnet+coresets", "paper"): 1.006,
}
"""The published call of the original breaks the rule itself, by 0.6 %; its records say so."""
ON_PURPOSE = {"flatness": "HNET x 5"}
"""Items that ask for a larger one, and the row whose name says it."""


def shape_of(benchmark):
    """Features and outputs of each task; raw data are not needed to know them."""
    if benchmark.name == "smnist":
        return 4, [2 if benchmark.classes == "two" else 2**benchmark.digits] * benchmark.tasks
    if benchmark.name == "audioset":
        return 128, [benchmark.classes] * benchmark.tasks
    if benchmark.name == "dsa":  # a head for each task, over all classes up to it
        return 45, [2 * number for number in range(1, (benchmark.tasks or 6) + 1)]
    if benchmark.name == "pos":
        return 64, [17] * (benchmark.tasks or len(benchmark.languages))
    few = benchmark.model_copy(update={"train": 4, "val": 4, "test": 4}).build()
    return few[0].inputs, [task.outputs for task in few]


def ratios_of(config, shape=None):
    inputs, outputs = shape or shape_of(config.benchmark)
    learner = learner_of(config, inputs)
    state = grow(learner, init(learner), outputs, lambda *role: generator(0, *role))
    return record_with(sizes_of(learner, state)).ratios


def record_with(parameters) -> Record:
    return replace(sample_record("hnet", 0), parameters=parameters)


@pytest.mark.parametrize(
    ("benchmark", "scale"), [(name, scale) for name in BENCHMARKS for scale in scales_of(name)]
)
def test_presets_keep_hypernetworks_small(benchmark, scale):
    for method in METHODS:
        (ratio,) = ratios_of(build(benchmark, method, scale=scale)).values()
        allowed = PUBLISHED.get((benchmark, method, scale), 1.0)
        assert 0.5 < ratio <= allowed + 5e-4, f"{method}: {ratio:.3f}"


@pytest.mark.parametrize("scale", scales_of("arrays"))
@pytest.mark.parametrize(("features", "classes"), [(3, 2), (40, 10)])
def test_presets_for_own_data_adapt_to_them(features, classes, scale, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((9, 4, 3), dtype=np.float32), y=np.arange(9) % 2)
    for method in METHODS:
        config = build("arrays", method, scale=scale, **{"benchmark.folder": str(tmp_path)})
        (ratio,) = ratios_of(config, (features, [classes] * 10)).values()
        assert 0.5 < ratio <= 1, f"{method}: {ratio:.3f}"


@pytest.mark.parametrize("scale", ["laptop", "paper"])
@pytest.mark.parametrize("name", items())
def test_items_keep_hypernetworks_small(name, scale):
    for setting in items()[name].settings(scale):
        if setting.label != ON_PURPOSE.get(name):
            config = setting.config(scale, 0)
            allowed = PUBLISHED.get((setting.benchmark, setting.method, scale), 1.0)
            for ratio in ratios_of(config).values():
                assert ratio <= allowed + 5e-4, f"{setting.label}: {ratio:.3f}"


def test_a_large_hypernetwork_is_named_in_record_and_tables():
    sizes = {"network": 100, "trained": 285, "generated network": 100, "generating network": 285}
    large = record_with(sizes)
    assert large.ratios == {"network": 2.85}
    assert large.oversized == "hypernetwork larger than its network x 2.85"
    assert large.oversized in summary([large])
    assert any(large.oversized in str(cell) for row in list_table([large]).rows for cell in row)
    small = record_with(sizes | {"generating network": 99})
    assert small.oversized == ""
    assert "hypernetwork" not in summary([small])


def test_the_source_of_a_variant_is_named_where_it_applies():
    usual = preset_sources("permuted-copy", "online-ewc", "paper")
    told = preset_sources("permuted-copy", "online-ewc", "paper", {"network.task_identity": True})
    assert preset_sources("permuted-copy", "online-ewc", "paper", {"network.task_identity": "true"}) == told
    assert "call 6" in usual
    assert [source for source in usual if source not in told] == ["call 6"]
    assert [source for source in told if source not in usual] == ["call 7, with the task as input"]
    other = {"network.task_identity": False, "network.hidden": [64]}
    assert preset_sources("permuted-copy", "online-ewc", "paper", other) == usual


def test_settings_of_another_benchmark_or_method_are_named_as_such():
    (source,) = preset_sources("permuted-copy", "er", "laptop")
    assert source.startswith("search ")
    assert preset_sources("pattern-manipulation", "er", "laptop") == [f"as permuted-copy: {source}"]
    (own,) = preset_sources("padded-copy", "online-ewc", "laptop")
    assert own.startswith("search ")


def test_presets_that_name_a_search_are_what_it_chose():
    """And the other way round: what a committed search has chosen is the preset."""
    searches, warnings = all_searches(Path(__file__).parent.parent / "results")
    assert searches
    assert not warnings
    for search in searches:
        design = search.design
        sources = preset_sources(design.benchmark, design.method, design.scale, design.given)
        assert re.findall(r"search (\w{12})", " ".join(sources)) == [search.id], design.question
        reported = [each.hashes[0] for each in search.candidates if each.trial == search.chosen]
        tuned = search.trials[search.chosen - 1].hashes[0]  # all there is without reporting seeds
        seed = 0 if reported else TUNING
        preset = build(design.benchmark, design.method, scale=design.scale, seed=seed, **design.given)
        assert preset.hash == (reported or [tuned])[0], (design.question, design.method)
