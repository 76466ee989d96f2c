"""Configs: presets, hashes, round trips, and composition of methods."""

from __future__ import annotations

import itertools
import json

import pytest

from perdure import config as configs
from perdure.config import build, from_json, option_names, preset, sections
from perdure.errors import PerdureError
from perdure.methods import COMBINATIONS, METHODS, compose
from perdure.networks.cells.lstm import LSTM
from perdure.presets import SCALES, preset_sources, read_presets, scales_of
from perdure.registry import KINDS, methods, pieces
from perdure.rehearsal.generative import Generative
from perdure.search.tuning import tune

BENCHMARKS = sorted(pieces("benchmarks"))
ALL_METHODS = [*METHODS, *COMBINATIONS]


@pytest.mark.parametrize(
    ("benchmark", "method", "scale"),
    [each for each in itertools.product(BENCHMARKS, ALL_METHODS, SCALES) if each[2] in scales_of(each[0])],
)
def test_every_preset_builds_and_survives_json(benchmark, method, scale):
    config = build(benchmark, method, scale=scale, seed=3)
    assert from_json(json.loads(json.dumps(config.json))) == config
    assert from_json(config.json).hash == config.hash


def test_another_seed_is_another_hash_of_the_same_config():
    config = build("permuted-copy", "si", seed=3)
    other = config.with_seed(5)
    assert other.hash == build("permuted-copy", "si", seed=5).hash != config.hash
    assert other.json == build("permuted-copy", "si", seed=5).json


def test_a_scale_that_was_not_made_is_refused():
    assert "demo" in scales_of("permuted-copy")
    with pytest.raises(PerdureError, match="There is no scale demo for smnist; use --scale laptop"):
        build("smnist", "si", scale="demo")


def test_preset_files_name_only_what_exists():
    """A misspelt option in a preset would silently do nothing; here it is an error."""
    from perdure.presets import _flat

    for benchmark in BENCHMARKS:
        for method, scales in read_presets(benchmark).items():
            if method == "inherits":
                assert scales in BENCHMARKS
                continue
            assert set(scales) <= set(SCALES)
            for table in scales.values():
                others = [method] if method != "all" else ALL_METHODS
                values = _flat({k: v for k, v in table.items() if k not in ("source", "variant")})
                known = _options(benchmark, others, values)
                assert set(values) <= known
                assert method == "all" or table["source"]
                assert len(table.get("source", "")) < 130
                for variant in table.get("variant", []):
                    rest = _flat({k: v for k, v in variant.items() if k not in ("source", "when")})
                    # A variant may be that of a cell, with the cell's own options.
                    assert set(rest) <= _options(benchmark, others, values | variant["when"])
                    assert set(variant["when"]) <= known


def _options(benchmark, methods, values):
    """All options of these methods, given values that select pieces."""
    return {name for method in methods for name in option_names(sections(benchmark, method, values))}


def test_published_values_are_the_defaults_of_paper_scale():
    config = build("permuted-copy", "online-ewc", scale="paper")
    assert config.training.iterations == 20_000
    assert config.penalties["online-ewc"].strength == 100
    assert config.penalties["orthogonal"].strength == 0.01
    with_identity = build("permuted-copy", "online-ewc", scale="paper", network__task_identity=True)
    assert with_identity.penalties["online-ewc"].strength == 1e7
    assert with_identity.network.orthogonal


def test_variants_apply_where_their_values_are_given():
    for given in (5, "5"):
        config = build("pattern-manipulation", "hnet", scale="paper", benchmark__r=given)
        assert config.penalties["hnet-regulariser"].strength == 10
    assert build("pattern-manipulation", "hnet", scale="paper").penalties["hnet-regulariser"].strength == 1
    assert build("pattern-manipulation", "hnet", scale="paper").weights.activation == "sigmoid"
    assert build("pattern-manipulation", "fine-tuning", scale="paper").training.iterations == 20_000


CALLS = [
    # benchmark, method, given, expected: the published calls of the original for the Copy Task
    ("multitask", {}, {"training.iterations": 20_000, "training.learning_rate": 5e-4, "training.clip": 1}),
    ("from-scratch", {}, {"training.learning_rate": 5e-4, "training.clip": None}),
    (
        "fine-tuning",
        {},
        {"training.learning_rate": 1e-3, "training.clip": 1, "penalties.orthogonal.strength": 0},
    ),
    (
        "hnet",
        {},
        {
            "penalties.hnet-regulariser.strength": 10,
            "weights.chunk": 2500,
            "training.learning_rate": 5e-4,
        },
    ),
    ("si", {}, {"penalties.si.strength": 0.01, "penalties.orthogonal.strength": 1, "training.clip": 1}),
    ("masking", {}, {"weights.fraction": 0.8, "training.clip": 100, "penalties.orthogonal.strength": 0}),
    (
        "masking+si",
        {},
        {"penalties.si.strength": 1, "training.learning_rate": 5e-3, "network.orthogonal": True},
    ),
    ("rtf", {}, {"rehearsal.latent": 8, "rehearsal.reconstruction": 10, "training.learning_rate": 1e-4}),
    ("coresets", {}, {"rehearsal.size": 100, "rehearsal.strength": 10, "training.iterations": 10_000}),
    ("online-ewc", {"network.task_identity": "1"}, {"penalties.online-ewc.strength": 1e7}),
]


@pytest.mark.parametrize(("method", "given", "expected"), CALLS)
def test_paper_scale_has_the_published_values(method, given, expected):
    config = build("permuted-copy", method, scale="paper", **given).json
    for name, value in expected.items():
        section, _, field = name.rpartition(".")
        table = config["penalties"][section.split(".")[1]] if "." in section else config[section]
        assert table[field] == value, name


def test_pattern_manipulation_has_the_published_values():
    config = build("pattern-manipulation", "online-ewc", scale="paper", benchmark__r=5)
    assert (config.training.clip, config.training.learning_rate) == (None, 1e-3)
    config = build("pattern-manipulation", "online-ewc", scale="paper")
    assert (config.training.clip, config.training.learning_rate) == (1.0, 5e-3)


def test_the_order_of_parts_does_not_matter():
    for one, other in (("masking+si", "si+masking"), ("hnet+coresets", "coresets+hnet")):
        assert build("permuted-copy", one) == build("permuted-copy", other)
        assert build("permuted-copy", other).method == one


def test_every_preset_tells_its_source():
    for benchmark in BENCHMARKS:
        for method in ALL_METHODS:
            assert preset_sources(benchmark, method, "paper"), (benchmark, method)


def test_given_values_beat_presets():
    config = build("permuted-copy", "si", scale="paper", training__iterations="7", network__hidden="64,32")
    assert config.training.iterations == 7
    assert config.network.hidden == (64, 32)


def test_parts_lend_their_presets_to_combinations():
    values = preset("permuted-copy", "masking+si", "paper", {})
    assert values["weights.fraction"] == 0.8
    assert values["penalties.si.strength"] == 1.0


def test_hashes_differ_where_configs_do():
    hashes = {
        build("permuted-copy", method, seed=seed, training__iterations=n).hash
        for method in ALL_METHODS
        for seed in (0, 1)
        for n in (10, 11)
    }
    assert len(hashes) == len(ALL_METHODS) * 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fine-tunning", "did you mean 'fine-tuning'"),
        ("masking+masking", "twice"),
        ("masking+from-scratch", "two sources of weights"),
        ("from-scratch+si", "nothing to protect"),
        ("multitask+si", "no old task"),
        ("multitask+hnet", "no old task"),
        ("multitask+masking", "learnt together"),
        ("hnet+online-ewc", "a hypernetwork generates them"),
        ("", "Unknown method"),
        ("si+", "nothing to join"),
    ],
)
def test_combinations_without_meaning_are_refused(name, message):
    with pytest.raises(PerdureError, match=message) as caught:
        build("permuted-copy", name)
    assert "\n" not in str(caught.value)


def test_combinations_merge():
    method = compose("masking+si+online-ewc", methods())
    assert (method.weights, method.penalties) == ("masked", ("si", "online-ewc"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_piece_explains_itself(kind):
    found = pieces(kind)
    assert found
    for name, piece in found.items():
        assert (piece.__doc__ or "").strip()
        for field, about in piece.model_fields.items():
            assert about.description, f"{name}.{field} has no help text"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"network.hidden": 0}, "network.hidden"),
        ({"network.hidden": "12,-3"}, "network.hidden"),
        ({"network.cell": "lstn"}, "network.cell: .* did you mean 'lstm'"),
        ({"network.body": "recurent"}, "network.body: .* did you mean 'recurrent'"),
        ({"network.cell": "lstm", "network.cell.forget_offset": "much"}, "network.cell.forget_offset"),
        ({"network.cell.forget_offset": 2}, "'network.cell.forget_offset' belongs to lstm"),
        ({"training.learning_rate": "fast"}, "training.learning_rate"),
        ({"training.learning_rate": "nan"}, "training.learning_rate"),
        ({"training.optimiser": "Muon"}, "available are Adam"),
        ({"training.iteration": 5}, "did you mean 'training.iterations'"),
        ({"penalties.si.strength": 5}, "'penalties.si.strength' belongs to si"),
    ],
)
def test_faults_name_the_field(values, message):
    with pytest.raises(PerdureError, match=message) as caught:
        build("permuted-copy", "fine-tuning", **values)
    assert "\n" not in str(caught.value)


def test_what_was_given_is_quoted_as_it_was():
    with pytest.raises(PerdureError) as caught:
        build("permuted-copy", "si", **{"training.batch_size": "../a..b"})
    assert str(caught.value).endswith("(given: '../a..b').")
    with pytest.raises(PerdureError) as caught:
        build("permuted-copy", "si", **{"training.optimiser": "Adam."})
    assert not str(caught.value).endswith("..")


def test_faulty_seed_and_scale():
    with pytest.raises(PerdureError, match="seed"):
        build("copy", "si", seed=-1)
    with pytest.raises(PerdureError, match="did you mean 'laptop'"):
        build("copy", "si", scale="lapto")


def test_a_piece_that_computes_otherwise_spares_the_records_of_others(monkeypatch):
    """Raising the revision of generative replay changes the hashes of rtf and hnet+r, and of nothing else."""
    methods = ("fine-tuning", "coresets", "rtf", "hnet+r")
    before = {method: build("permuted-copy", method) for method in methods}
    hashes = {method: config.hash for method, config in before.items()}
    monkeypatch.setattr(Generative, "revision", Generative.revision + 1)
    after = {method: build("permuted-copy", method).hash for method in methods}
    assert [method for method in methods if after[method] != hashes[method]] == ["rtf", "hnet+r"]
    with pytest.raises(PerdureError, match="run it again"):
        from_json(before["rtf"].json)


def test_options_that_came_later_leave_old_records_alone(monkeypatch):
    """At its default such an option is not written; a record without it means the default, not a preset."""
    plain, eased = build("permuted-copy", "si"), build("permuted-copy", "si", training__warm_up=7)
    assert "warm_up" not in plain.json["training"]
    assert eased.json["training"]["warm_up"] == 7
    assert from_json(eased.json) == eased
    monkeypatch.setattr(configs, "preset", lambda *arguments: {"training.warm_up": 50})
    assert build("permuted-copy", "si").training.warm_up == 50
    assert from_json(plain.json).training.warm_up == 0


def test_options_of_a_cell_are_written_in_several_ways():
    ways = [
        {"network.cell": "lstm", "network.cell.forget_offset": "2"},
        {"network.cell": {"name": "lstm", "forget_offset": 2}},
        {"network.cell": LSTM(forget_offset=2)},
    ]
    configs = [build("permuted-copy", "rtf", **values) for values in ways]
    assert len({config.hash for config in configs}) == 1
    assert configs[0].network.cell == LSTM(forget_offset=2)
    assert from_json(configs[0].json) == configs[1] == configs[2]
    plain = build("permuted-copy", "rtf", **{"network.cell": "lstm"})
    assert plain.json["network"]["cell"] == "lstm"
    assert plain.hash != configs[0].hash


def test_keywords_need_no_hyphens():
    given = {"penalties__online_ewc__strength": 3.0, "network__hidden": (8,)}
    config = build("permuted-copy", "online-ewc", scale="smoke", **given)
    same = {"penalties.online-ewc.strength": 3.0, "network.hidden": (8,)}
    assert config == build("permuted-copy", "online-ewc", scale="smoke", **same)
    assert config.penalties["online-ewc"].strength == 3.0


def test_the_public_names_are_completed():
    import perdure

    assert set(dir(perdure)) == set(perdure.__all__)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((3, "si"), r"^benchmark: must be a name, such as 'permuted-copy' \(given: 3\)\.$"),
        (("permuted-copy", ["si"]), r"^method: must be a name, such as 'si' \(given: \['si'\]\)\.$"),
        (("permuted-copy", "si", 4), r"^scale: must be a name, such as 'laptop' \(given: 4\)\.$"),
    ],
)
def test_names_must_be_texts(given, message):
    benchmark, method, *scale = given
    for call in (build, tune):
        with pytest.raises(PerdureError, match=message):
            call(benchmark, method, **({"scale": scale[0]} if scale else {}))
