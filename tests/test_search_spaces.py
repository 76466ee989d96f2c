"""Spaces, the paper's tables, and samplers: against independent counts and hand-written examples."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from importlib.resources import files

import pytest

from perdure.errors import PerdureError
from perdure.experiment import generators_of, learner_of
from perdure.learning.learner import grow, init
from perdure.learning.sizes import sizes_of
from perdure.registry import methods
from perdure.search.halving import rungs
from perdure.search.problem import Problem, TaskShape
from perdure.search.samplers import SAMPLERS
from perdure.search.spaces import Dimension, Range, Space, file_space, grid_space, read_space, space_from
from perdure.search.state import design_from
from perdure.search.tuning import designed
from perdure.weights.hypernetwork import Hypernetwork


def anything(point):
    return True


def generation(name, space, problem, most, seed=0, accept=anything):
    return SAMPLERS[name](space, problem, accept, seed).generation([], most)


SI = Problem("permuted-copy", "si", "smoke", {})
TOML = """
[all]
training.learning_rate = { from = 1e-4, to = 1e-2 }
training.optimiser = ["Adam", "SGD"]

[si]
penalties.si.strength = [0.1, 1.0]

[online-ewc]
penalties.online-ewc.strength = [1.0]

[[all.variant]]
when = { "training.optimiser" = "SGD" }
training.weight_decay = [0.0, 1e-4]

[all.paper]
training.batch_size = [64, 128]
"""


def test_a_table_that_no_method_would_read_is_refused(tmp_path):
    """A misspelt method, a misspelt [all], and options outside of any table."""
    path = tmp_path / "space.toml"
    for text, name in (
        ("[all]\ntraining.clip = 1.0\n[sii]\npenalties.si.strength = [1.0]\n", "sii"),
        ("[al]\ntraining.clip = 1.0\n[si]\npenalties.si.strength = [1.0]\n", "al"),
        ("training.clip = [1.0]\n[si]\npenalties.si.strength = [1.0]\n", "training"),
    ):
        path.write_text(text)
        with pytest.raises(PerdureError, match=f"Unknown table '{name}'.* go into .all. or .METHOD."):
            file_space(path, "si", "smoke")
    path.write_text('source = "mine"\n["masking+si"]\nweights.fraction = [0.5]\n[all]\ntraining.clip = 1.0\n')
    assert [each.name for each in file_space(path, "masking+si", "smoke").dimensions]


@pytest.mark.parametrize(
    ("benchmark", "method", "count"),
    [  # counted by hand in the paper's tables
        ("copy", "fine-tuning", 4 * 3 * 2 * 2 * 2),
        ("permuted-copy", "fine-tuning", 4 * 3 * 2 * 3),
        ("permuted-copy", "online-ewc", 4 * 3 * 2 * 3 * 9),
        ("permuted-copy", "si", 4 * 3 * 2 * 3 * 6),
        ("permuted-copy", "masking+si", 4 * 3 * 2 * 3 * 6 * 4),
        ("permuted-copy", "rtf", 4 * 3 * 2 * 3 * 2**4),
        ("permuted-copy", "hnet", 4 * 3 * 2 * 3 * 5 * 2 * 2 * 2 * 2 * 2),  # 2 of the 3 hidden layers
        ("padded-copy", "hnet", 4 * 3 * 2 * 2 * 3 * 2 * 2),
        ("pattern-manipulation", "online-ewc", 3 * 3 * 6 * 2),
        ("pattern-manipulation", "hnet", 3 * 3 * 6 * 2 * 2),
        ("smnist", "online-ewc", 3 * 3 * 2 * 3 * 10),
        ("smnist", "hnet", 3 * 3 * 2 * 3 * 3 * 4 * 2 * 2 * 2),
        ("smnist", "multitask", 3 * 3 * 4 * 3),
        ("audioset", "masking+si", 3 * 2 * 2 * 2 * 2 * 4 * 8 * 4),
        ("audioset", "hnet", 3 * 2 * 2 * 2 * 2 * 4 * 4 * 2**4),
        ("pos", "coresets", 3 * 2 * 2 * 2 * 3),
        ("pos", "hnet", 3 * 2 * 2 * 2 * 4 * 3 * 3 * 2 * 2 * 2),
    ],
)
def test_the_papers_tables_have_as_many_points_as_it_says(benchmark, method, count):
    problem = Problem(benchmark, method, "paper", {})
    space = problem.checked(grid_space(benchmark, method, "paper"))
    points = list(space.every(problem.holds))
    assert len(points) == count
    assert len({repr(point) for point in points}) == count
    if method != "multitask":
        assert problem.config(points[-1], 0).hash != problem.config(points[0], 0).hash


def test_every_grid_fits_every_method_and_scale():
    """All names are options, all values possible; only the tables' own methods have more than [all]."""
    benchmarks = ("copy", "permuted-copy", "padded-copy", "pattern-manipulation", "smnist", "audioset", "pos")
    for benchmark in (*benchmarks, "arrays"):
        for method in [*methods(), "masking+si"]:
            if benchmark == "pos" and method in ("rtf", "hnet+r"):
                continue
            given = {"benchmark.folder": "mine"} if benchmark == "arrays" else {}
            for scale in ("smoke", "paper"):
                problem = Problem(benchmark, method, scale, given)
                space = problem.checked(grid_space(benchmark, method, scale))
                assert space.source
                assert ("training.iterations" in space.names) == (scale == "paper" and benchmark != "arrays")


def test_iterations_of_stroke_digits_follow_their_number():
    for digits, expected in ((1, [2000, 3000, 4000]), (3, [8000, 12000, 16000])):
        problem = Problem("smnist", "si", "paper", {"benchmark.digits": str(digits)})
        points = problem.checked(grid_space("smnist", "si", "paper")).every(problem.holds)
        assert sorted({point["training.iterations"] for point in points}) == expected


def test_a_file_has_tables_by_method_scale_and_condition(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    space = SI.checked(file_space(path, "si", "smoke"))
    assert space.names == [
        "training.learning_rate",
        "training.optimiser",
        "penalties.si.strength",
        "training.weight_decay",
    ]
    points = generation("random", space, SI, 60)
    assert len(points) == 60
    for point in points:
        assert 1e-4 <= point["training.learning_rate"] <= 1e-2
        assert ("training.weight_decay" in point) == (point["training.optimiser"] == "SGD")
        SI.config(point, 0)
    assert "training.batch_size" in file_space(path, "si", "paper").names
    assert space_from(space.json) == space


def test_random_points_are_distinct_even_and_begin_alike():
    space = Space.of({"training.learning_rate": [1e-3, 1e-2], "penalties.si.strength": [1.0, 2.0, 3.0]})
    every = generation("grid", space, SI, 100)
    assert len(every) == 6
    points = generation("random", space, SI, 100)
    assert sorted(map(repr, points)) == sorted(map(repr, every))
    assert generation("random", space, SI, 4) == points[:4]
    assert generation("random", space, SI, 100, seed=1) != points
    first = Counter(repr(generation("random", space, SI, 1, seed=seed)) for seed in range(600))
    assert min(first.values()) > 60  # 100 each is expected
    rates = Space.of({"training.learning_rate": Range(1e-4, 1e-2)})
    drawn = [point["training.learning_rate"] for point in generation("random", rates, SI, 400)]
    assert 150 < sum(rate < 1e-3 for rate in drawn) < 250, "evenly by ratio"
    even = Space.of({"training.learning_rate": Range(1e-4, 1e-2, "linear")})
    drawn = [point["training.learning_rate"] for point in generation("random", even, SI, 400)]
    assert sum(rate < 1e-3 for rate in drawn) < 70
    assert all(float(f"{rate:.4g}") == rate for rate in drawn)


def test_the_order_does_not_depend_on_the_process():
    """The original's random subset differs from process to process."""
    code = (
        "from perdure.search.problem import Problem; from perdure.search.spaces import grid_space;"
        "from perdure.search.samplers import Random;"
        "p = Problem('permuted-copy', 'si', 'smoke', {});"
        "print(Random(grid_space('permuted-copy', 'si', 'smoke'), p, lambda x: True, 3).generation([], 3))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )
    here = generation("random", grid_space("permuted-copy", "si", "smoke"), SI, 3, seed=3)
    assert done.stdout.strip() == repr(here)


def test_whole_numbers_stay_whole():
    space = SI.checked(Space.of({"training.iterations": Range(10, 1000)}))
    counts = [point["training.iterations"] for point in generation("random", space, SI, 50)]
    assert all(isinstance(count, int) and 10 <= count <= 1000 for count in counts)


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_range_of_sizes_is_one_layer(sampler):
    space = SI.checked(Space.of({"network.hidden": Range(8, 16)}))
    points = generation(sampler, space, SI, 4)
    assert len(points) == 4
    for point in points:
        assert isinstance(point["network.hidden"], int)
        (size,) = SI.config(point, 0).network.hidden
        assert 8 <= size <= 16


@pytest.mark.parametrize("cells", [("lstm", "gru"), ("gru", "lstm"), ("lstm",), ("elman", "lstm", "gru")])
@pytest.mark.parametrize("domain", [(0.0, 1.0), Range(0.5, 2.0)], ids=["values", "range"])
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_options_of_every_listed_cell_are_searched(cells, domain, sampler):
    given = Space(
        (
            Dimension("network.cell", cells),
            Dimension("network.cell.forget_offset", domain, {"network.cell": "lstm"}),
            Dimension("training.learning_rate", (1e-3, 1e-2, 1e-1)),
        )
    )
    space = SI.checked(given)
    assert space == given
    for point in generation(sampler, space, SI, 4):
        assert ("network.cell.forget_offset" in point) == (point["network.cell"] == "lstm")
        assert SI.config(point, 0).network.cell.name == point["network.cell"]


@pytest.mark.parametrize("cells", [("elman", "lstm"), ("lstm", "elman"), ("elman", "gru", "lstm"), ("lstm",)])
@pytest.mark.parametrize("sampler", ["random", "grid", "tpe"])
def test_an_option_of_one_cell_leaves_the_others_in_the_search(cells, sampler):
    """Given without a condition, it was drawn for all cells, and points of the others were refused."""
    given = Space.of({"network.cell": list(cells), "network.cell.forget_offset": [0.0, 1.0, 2.0]})
    space = SI.checked(given)

    def accept(point):
        return SI.config(point, 0) is not None and point not in seen and not seen.append(point)

    seen: list[dict[str, object]] = []
    points = [point for _ in range(8) for point in generation(sampler, space, SI, 8, accept=accept)]
    assert {point["network.cell"] for point in points} == set(cells)
    for point in points:
        assert ("network.cell.forget_offset" in point) == (point["network.cell"] == "lstm")
    assert len([point for point in points if point["network.cell"] == "lstm"]) == 3
    again = space_from(json.loads(json.dumps(space.json)))
    assert SI.checked(again) == space


def test_an_option_that_no_listed_cell_has_is_left_out():
    space = SI.checked(Space.of({"network.cell": ["lstm", "gru"], "network.cell.memory": [0.5, 0.9]}))
    assert space.names == ["network.cell"]


def test_a_cell_is_chosen_only_where_the_body_has_one():
    given = {"network.body": ["recurrent", "convolutional"], "network.cell": ["lstm", "gru"]}
    problem = Problem("dsa", "si", "smoke", {})
    space = problem.checked(Space.of(given))
    points = generation("grid", space, problem, 9)
    assert [(point["network.body"], point.get("network.cell")) for point in points] == [
        ("recurrent", "lstm"),
        ("recurrent", "gru"),
        ("convolutional", None),
    ]


def test_an_option_of_another_cell_is_checked_as_that_cells():
    cells = Dimension("network.cell", ("diagonal", "gru"))
    when = {"network.cell": "diagonal"}
    assert SI.checked(Space((cells, Dimension("network.cell.memory", Range(0.5, 0.9), when))))
    with pytest.raises(PerdureError, match=r"network\.cell\.memory: .*less than 1"):
        SI.checked(Space((cells, Dimension("network.cell.memory", (0.5, 1.5), when))))


def test_points_that_are_not_accepted_are_replaced():
    space = Space.of({"training.iterations": [1, 2, 3, 4, 5, 6]})
    for name in SAMPLERS:
        found = generation(name, space, SI, 2, accept=lambda point: point["training.iterations"] > 4)
        assert {point["training.iterations"] for point in found} <= {5, 6}
        assert found


def test_tpe_comes_near_what_went_well_and_is_the_same_again():
    space = Space.of({"training.learning_rate": Range(1e-5, 1.0), "penalties.si.strength": [0.1, 1.0]})

    def value(point):
        return -abs(math.log10(point["training.learning_rate"]) + 2) - point["penalties.si.strength"]

    def tried():
        sampler = SAMPLERS["tpe"](space, SI, anything, 0)
        points = []
        while len(points) < 40:
            points += sampler.generation([value(point) for point in points], 40 - len(points))
        return points

    points = tried()
    assert points == tried()
    early, late = points[:10], points[-10:]
    assert sum(map(value, late)) / 10 > sum(map(value, early)) / 10 + 0.5
    SAMPLERS["tpe"](space, SI, anything, 0).generation([], 4)


def test_hypernetworks_are_about_as_large_as_what_they_make():
    small = {"benchmark.train": 10, "benchmark.val": 5, "benchmark.test": 5}
    problem = Problem("permuted-copy", "hnet", "paper", small)
    space = problem.checked(grid_space("permuted-copy", "hnet", "paper"))
    fitting = {"weights.hidden": "25,25", "weights.chunk": 5000, "weights.chunk_embedding": 32}
    assert problem.refusal(space, problem.config(fitting, 0)) is None
    # by hand: theta of 50,50 with chunks of 5000 has 64*50+50 + 50*50+50 + 50*5000+5000 = 260 800 weights
    refusal = problem.refusal(space, problem.config(fitting | {"weights.hidden": "50,50"}, 0))
    assert refusal is not None
    assert refusal.startswith("1.8")


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"training.learning_rat": [1, 2]}, "did you mean 'training.learning_rate'"),
        (
            {"training.learning_rate": [1e-3, -1.0]},
            r"training.learning_rate: .*greater than 0 \(given: '-1.0'",
        ),
        ({"training.learning_rate": ["fast"]}, "training.learning_rate: .*number"),
        ({"training.optimiser": Range(1, 2)}, "training.optimiser: .*string"),
        (
            {"training.iterations": Range(0.5, 10)},
            r"training.iterations takes whole numbers \(given: 0.5..10",
        ),
        ({"network.hidden": Range(8, 16.5)}, r"network.hidden takes whole numbers \(given: 8..16.5"),
        ({"network.hidden": Range(8, math.inf)}, "network.hidden: "),
        ({"network.hidden": Range(0, 16, "linear")}, r"network.hidden: .*greater than 0 \(given: 0..16"),
        ({"penalties.online-ewc.strength": [1.0]}, "Nothing is searched for si"),
        ({"training.learning_rate": []}, "at least one value"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(space, words):
    with pytest.raises(PerdureError, match=words):
        designed("permuted-copy", "si", space, "smoke", {})


def test_ranges_and_rules_that_cannot_be():
    with pytest.raises(PerdureError, match="from the lower"):
        Range(2, 1)
    with pytest.raises(PerdureError, match=r"0\.\.1:linear"):
        Range(0, 1)
    rates = {"training.learning_rate": Range(1e-4, 1e-2)}
    with pytest.raises(PerdureError, match=r"training\.learning_rate has a range"):
        designed("permuted-copy", "si", rates, "smoke", {}, sampler="grid")
    with pytest.raises(PerdureError, match="did you mean 'random'"):
        designed("permuted-copy", "si", rates, "smoke", {}, sampler="randon")
    with pytest.raises(PerdureError, match="Halving"):
        designed("permuted-copy", "si", rates, "smoke", {}, sampler="tpe", halving=True)
    with pytest.raises(PerdureError, match="cannot be read as TOML"):
        designed("permuted-copy", "si", "nowhere.toml", "smoke", {})


def test_a_design_has_one_name_however_it_is_written():
    one = designed("permuted-copy", "si+masking", None, "smoke", {"training.batch_size": "32"})
    two = designed("permuted-copy", "masking+si", None, "smoke", {"training.batch_size": 32})
    other = designed("permuted-copy", "masking+si", None, "smoke", {"training.batch_size": 33})
    assert one.id == two.id != other.id


def test_data_that_vary_with_the_seed_are_another_question():
    """Their trials have other data; with the seed 0 of the design's config, the data are the same."""
    rates = {"training.learning_rate": [1e-3, 1e-2]}
    own, fixed = (
        designed("permuted-copy", "si", rates, "smoke", {"benchmark.data_seed": each}) for each in ("seed", 0)
    )
    assert own.config == fixed.config
    assert own.id != fixed.id
    assert design_from(own.json).id == own.id
    assert design_from(fixed.json | {"given": {"benchmark.data_seed": "0"}}).id == fixed.id


@pytest.mark.parametrize("method", ["si", "from-scratch", "masking", "hnet", "rtf", "hnet+r"])
def test_weights_are_counted_without_training(method):
    """The limit of a space counts what a run would, for every source and with decoders."""
    problem = Problem("permuted-copy", method, "smoke", {"benchmark.tasks": 3})
    config = problem.config({}, 0)
    learner = learner_of(config, problem.shape.inputs)
    state = grow(learner, init(learner), problem.shape.outputs, generators_of(config))
    counted = sizes_of(learner, state)
    assert problem.sizes(config) == {name: counted[name] for name in ("network", "trained")}


def test_counting_a_hypernetwork_makes_no_weights(monkeypatch):
    """At laptop scale a new embedding is chosen of 32 draws: seconds for each of many points."""
    problem = Problem("permuted-copy", "hnet", "laptop", {})
    monkeypatch.setattr(Hypernetwork, "grow", lambda *_: pytest.fail("weights were made"))
    assert problem.sizes(problem.config({}, 0))["trained"] > 1000


def test_rungs_of_halving():
    assert rungs(1) == [(None, 1.0)]
    assert [rung.phases for rung in rungs(3)] == [2, None]
    assert [rung.phases for rung in rungs(10)] == [3, 5, None]
    # 3 phases of all, 2 of half, 5 of a quarter of the trials: 3 + 1 + 1.25
    assert [round(rung.share, 4) for rung in rungs(10)] == [0.5714, 0.7619, 1.0]


def test_a_later_table_replaces_an_earlier_entry():
    tables = {
        "all": {
            "training": {"clip": ["none", 1.0], "decay": 1.0},
            "variant": [{"when": {"training.decay": 1.0}, "training": {"clip": 3.0}}],
            "laptop": {"training": {"clip": 2.0}},
        }
    }
    laptop, paper = (read_space(tables, "si", scale) for scale in ("laptop", "paper"))
    assert [(each.name, each.domain) for each in laptop.dimensions] == [
        ("training.decay", (1.0,)),
        ("training.clip", (2.0,)),
    ]
    assert len(paper.dimensions) == 3


PAPER = ("fine-tuning", "multitask", "from-scratch", "online-ewc", "si", "masking", "masking+si", "hnet")
PAPER += ("coresets", "rtf", "hnet+r")
GRIDS = ("copy", "permuted-copy", "padded-copy", "pattern-manipulation", "smnist", "audioset", "pos", "dsa")
SHAPES = {  # of benchmarks whose data are not included
    ("audioset", "smoke"): TaskShape(128, (3,) * 3),
    ("audioset", "laptop"): TaskShape(128, (10,) * 10),
    ("pos", "smoke"): TaskShape(64, (17,) * 3),
    ("pos", "laptop"): TaskShape(64, (17,) * 20),
    ("dsa", "smoke"): TaskShape(45, (2, 4)),
    ("dsa", "laptop"): TaskShape(45, (2, 4, 6, 8, 10, 12)),
}


def test_there_is_a_test_for_every_grid():
    names = {path.name.removesuffix(".toml") for path in (files("perdure.search") / "grids").iterdir()}
    assert names - {"any", "beyond"} == set(GRIDS)


@pytest.mark.parametrize("scale", ["smoke", "laptop"])
@pytest.mark.parametrize("benchmark", GRIDS)
def test_every_grid_has_points_that_can_be_tried(benchmark, scale):
    """For each of the paper's methods; what cannot be combined with the benchmark is refused before."""
    shape = SHAPES.get((benchmark, scale)) or Problem(benchmark, "si", scale, {}).shape
    for method in PAPER:
        if benchmark == "pos" and method in ("rtf", "hnet+r"):
            continue
        problem = Problem(benchmark, method, scale, {})
        vars(problem)["shape"] = shape
        space = problem.checked(grid_space(benchmark, method, scale))
        reasons = []

        def fits(point, problem=problem, space=space, reasons=reasons):
            reasons.append(problem.refusal(space, problem.config(point, 1000)))
            return reasons[-1] is None

        assert generation("random", space, problem, 2, accept=fits), (method, reasons[:1])
