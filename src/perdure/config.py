"""The complete description of a run: frozen, validated, hashable; and how it is built from given values.

A config has sections (benchmark, network, weights, penalties, rehearsal, training) and a seed. An option
whose value is itself a piece, such as network.cell, has a separate section for that piece's options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from perdure.benchmarks.task import Benchmark
from perdure.errors import SUGGESTED, PerdureError, shortened, unknown
from perdure.hooks import Hook
from perdure.identity import hash_of
from perdure.learning.training import Training
from perdure.methods import Method, canonical, compose, parts_of
from perdure.networks.bodies import DEFAULT as DEFAULT_BODY
from perdure.networks.bodies.body import Architecture
from perdure.options import Options, Piece, option_reader, validated
from perdure.penalties.penalty import Penalty
from perdure.presets import SCALES, USUAL_SCALE, check_presets, flat_presets, scales_of
from perdure.registry import Choice, changes, find, methods, origin, origins, pieces
from perdure.rehearsal.rehearsal import Rehearsal
from perdure.weights.source import WeightSource

REVISION = 3
"""Increased when the same config would give different numbers, so that old records are not mistaken for new.

If only one piece changes, its own `revision` is increased, and records without it stay valid."""

ALWAYS = ("orthogonal",)
"""Penalties that every method may use."""

BODY = "network.body"
"""The option that selects the kind of a network's body."""

DATA_SEED, OWN_SEED = "benchmark.data_seed", "seed"
"""The option from which a benchmark draws its data, and the value that stands for the seed of the run."""

CHOOSING = (BODY, "network.cell", "rehearsal.cell")
"""Options whose values are pieces, and which therefore determine what other options there are."""

Values = dict[str, Any]
"""Option values by dotted name, such as training.iterations."""

Sections = dict[str, type[Options]]
"""The option classes of a run, by section name; sub-sections such as network.cell before their parents."""


@dataclass(frozen=True)
class Config:
    """One run."""

    benchmark: Benchmark
    method: str
    network: Architecture
    weights: WeightSource
    penalties: Mapping[str, Penalty]
    rehearsal: Rehearsal | None
    training: Training
    seed: int

    @property
    def together(self) -> bool:
        """Whether all tasks are learnt in one phase."""
        return compose(self.method, methods()).together

    @property
    def pieces(self) -> list[Piece]:
        """All pieces involved."""
        found: list[Piece] = [self.benchmark, self.network, self.weights, *self.penalties.values()]
        found += [] if self.rehearsal is None else [self.rehearsal]
        return found + [inner for piece in found for _, inner in piece if isinstance(inner, Piece)]

    @cached_property
    def json(self) -> dict[str, Any]:
        """As plain data; `from_json` reads it back."""
        rehearsal, best = self.rehearsal, self.training.patience is not None
        data = {
            "revision": REVISION
            + sum(piece.revision + best * piece.revision_of_best for piece in self.pieces),
            "benchmark": {"name": self.benchmark.name, **self.benchmark.plain()},
            "method": self.method,
            "network": {"body": self.network.name, **self.network.plain()},
            "weights": {"name": self.weights.name, **self.weights.plain()},
            "penalties": {name: penalty.plain() for name, penalty in self.penalties.items()},
            "rehearsal": None if rehearsal is None else {"name": rehearsal.name, **rehearsal.plain()},
            "training": self.training.plain(),
            "seed": self.seed,
        }
        return data | ({"plugins": self._plugins} if self._plugins else {})

    @cached_property
    def _plugins(self) -> dict[str, str]:
        """Name and content digest of every plugin that a piece or the method of this config comes from."""
        known = methods()
        parts: list[object] = [known[part] for part in parts_of(self.method, known)]
        found = [origin(each) for each in (*parts, *(type(piece) for piece in self.pieces))]
        return dict(sorted((source.name, source.digest) for source in found if source is not None))

    def with_seed(self, seed: int) -> Config:
        """The same with another seed; the plain data, which take long, are not made again."""
        other = replace(self, seed=seed)
        other.__dict__["json"] = self.json | {"seed": seed}
        return other

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that identify this config."""
        return hash_of(self.json)


@dataclass(frozen=True)
class MethodComposition:
    """The pieces of a method as classes, to decide whether they can be combined."""

    name: str
    weights: type[Piece]
    companions: Mapping[str, type[Piece]]
    together: bool


def sections(benchmark: str, method: str, given: Mapping[str, Any] | None = None) -> Sections:
    """The option classes of a run. Values that select pieces, such as network.cell, may be given."""
    chosen = tuple((name, _name_of(value)) for name, value in (given or {}).items() if name in CHOOSING)
    return dict(_sections(benchmark, canonical(method, methods()), chosen, changes()))


def sections_at(benchmark: str, method: str, scale: str, given: Mapping[str, Any]) -> Sections:
    """The option classes of a run at a scale, whose preset selects pieces too."""
    values = dict(given)
    return sections(
        benchmark, method, preset(benchmark, canonical(method, methods()), scale, values) | values
    )


def _name_of(value: object) -> str:
    """The name of a piece given by its name, with options, or as it is."""
    if isinstance(value, Mapping):
        return str(value.get("name"))
    return value.name if isinstance(value, Piece) else str(value)


@lru_cache(maxsize=1024)
def _sections(benchmark: str, method: str, given: tuple[tuple[str, str], ...], key: int) -> Sections:
    """As `sections`; `key` invalidates the cache when something is registered later."""
    del key
    parts, chosen = compose(method, methods()), dict(given)
    found: Sections = {
        "benchmark": find("benchmarks", benchmark),
        "network": _chosen_class("bodies", BODY, chosen.get(BODY, DEFAULT_BODY)),
        "weights": find("weights", parts.weights),
        **{f"penalties.{name}": find("penalties", name) for name in (*ALWAYS, *parts.penalties)},
        **({} if parts.rehearsal is None else {"rehearsal": find("rehearsal", parts.rehearsal)}),
        "training": Training,
    }
    _check_combination(parts, found)
    inner = {
        (option := f"{section}.{name}"): _chosen_class(choice.kind, option, chosen.get(option, field.default))
        for section, kind in found.items()
        for name, field in kind.model_fields.items()
        for choice in field.metadata
        if isinstance(choice, Choice)
    }
    return inner | found


def _chosen_class(kind: str, option: str, name: str) -> type[Piece]:
    """The class named by an option; errors name the option too."""
    try:
        return find(kind, name)
    except PerdureError as error:
        raise PerdureError(f"{option}: {error}") from None


def _check_combination(method: Method, found: Sections) -> None:
    """Let every piece check whether it can be combined with the others."""
    weights = found["weights"]
    assert issubclass(weights, Piece)
    named = {f"penalties.{name}" for name in method.penalties} | {"rehearsal"}
    companions = {
        section: kind for section, kind in found.items() if section in named and issubclass(kind, Hook)
    }
    composition = MethodComposition(method.name, weights, companions, method.together)
    for kind in (weights, *companions.values()):
        reason = kind.refusal(composition)
        if reason is not None:
            raise PerdureError(f"Method '{method.name}' is not possible: {reason}.")


def build(benchmark: str, method: str, *, scale: str = USUAL_SCALE, seed: int = 0, **given: Any) -> Config:
    """A config from the presets of a scale and given values.

    Values are written as on the command line, with `__` for the dots and `_` for hyphens, or in a mapping:
    `build("permuted-copy", "si", training__iterations=500)` or `**{"training.iterations": 500}`.
    The benchmark's data_seed may be "seed": then the data vary with the seed of the run.
    """
    check_texts(benchmark=benchmark, method=method, scale=scale)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if scale not in scales_of(benchmark):
        raise PerdureError(f"There is no scale {scale} for {benchmark}; use --scale laptop.")
    if not isinstance(seed, int) or seed < 0:
        raise PerdureError(f"seed: must be an integer of at least 0 (given: {seed!r}).")
    values: Values = {_dotted(name): value for name, value in given.items()}
    if values.get(DATA_SEED) == OWN_SEED:
        values[DATA_SEED] = seed
    method = canonical(method, methods())
    return _assembled(benchmark, method, seed, preset(benchmark, method, scale, values) | values)


TEXTS = {"benchmark": "permuted-copy", "method": "si", "scale": USUAL_SCALE}
"""Arguments that are names, and an example of each."""


def check_texts(**given: object) -> None:
    """Raise a helpful error for the first of these arguments that is no name."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise PerdureError(
                f"{name}: must be a name, such as '{TEXTS[name]}' (given: {shortened(repr(value))})."
            )


def check_config(given: object, argument: str) -> None:
    """Raise a helpful error for what is no config."""
    if not isinstance(given, Config):
        raise PerdureError(
            f"{argument}: a config is needed, such as build('permuted-copy', 'si') "
            f"(given: {shortened(repr(given))})."
        )


def _dotted(name: str) -> str:
    """An option's name from that of a keyword: penalties__online_ewc__strength."""
    section, dot, rest = name.replace("__", ".").partition(".")
    if section != "penalties":
        return section + dot + rest
    penalty, dot, option = rest.partition(".")
    return f"{section}.{penalty.replace('_', '-')}{dot}{option}"


def _assembled(benchmark: str, method: str, seed: int, values: Values) -> Config:
    """A config from the values of its options alone."""
    kinds = sections(benchmark, method, values)
    parts: dict[str, Values] = {section: {} for section in kinds}
    for name, value in values.items():
        section, _, field = name.rpartition(".")
        if name in kinds and not isinstance(value, str):  # a piece with its options, as in JSON
            options = dict(value) if isinstance(value, (Mapping, Piece)) else {}
            parts[name] |= {key: each for key, each in options.items() if key != "name"}
        elif name != BODY and name not in kinds:
            if section not in parts or field not in kinds[section].model_fields:
                raise unknown_option(name, option_names(kinds))
            parts[section][field] = value
    made: dict[str, Any] = {"rehearsal": None}
    penalties: dict[str, Penalty] = {}
    for section, kind in kinds.items():
        piece: Any = validated(kind, parts[section], section)
        parent, _, name = section.rpartition(".")
        if parent == "penalties":
            penalties[name] = piece
        elif parent:
            parts[parent][name] = piece
        else:
            made[section] = piece
    return Config(method=method, penalties=penalties, seed=seed, **made)


def every_option() -> Iterator[tuple[str, FieldInfo]]:
    """Dotted name and field of every option of any benchmark or method."""
    for section, kind in _every_kind():
        for name, field in kind.model_fields.items():
            yield f"{section}.{name}", field


def unknown_option(name: str, known: Iterable[str], mark: str = "") -> PerdureError:
    """The error for an option that is not known here: whose it is, or the nearest that is known.

    `mark` is what stands before options, such as -- on the command line.
    """
    owners = {
        str(getattr(kind, "name", section))
        for section, kind in _every_kind()
        for field in kind.model_fields
        if name == f"{section}.{field}"
    }
    if not owners:
        return unknown("option", f"{mark}{name}", [f"{mark}{each}" for each in known])
    listed = sorted(owners)
    more = " and others" if len(listed) > SUGGESTED else ""
    whose = f"{', '.join(listed[:SUGGESTED])}{more}"
    return PerdureError(f"Option '{mark}{name}' belongs to {whose}, which is not used here.")


def _every_kind() -> list[tuple[str, type[Options]]]:
    """Everything that has options, with the section in which they are given."""
    single = {"benchmarks": "benchmark", "bodies": "network", "weights": "weights", "rehearsal": "rehearsal"}
    kinds: list[tuple[str, type[Options]]] = [("training", Training)]
    kinds += [(section, kind) for folder, section in single.items() for kind in pieces(folder).values()]
    kinds += [(f"penalties.{name}", kind) for name, kind in pieces("penalties").items()]
    kinds += [
        (f"{section}.cell", kind) for section in ("network", "rehearsal") for kind in pieces("cells").values()
    ]
    return kinds


def option_names(kinds: Mapping[str, type[Options]]) -> list[str]:
    """Dotted names of all options."""
    return [BODY, *(f"{section}.{field}" for section, kind in kinds.items() for field in kind.model_fields)]


def from_json(data: Mapping[str, Any]) -> Config:
    """The config written by `Config.json`; a helpful error for anything else."""
    try:
        return _from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        told = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else "a part has the wrong type"
        raise PerdureError(f"This config is not one that Perdure writes ({told}); run it again.") from error


def _from_json(data: Mapping[str, Any]) -> Config:
    seed = data["seed"]
    if type(seed) is not int or seed < 0:
        raise PerdureError(f"seed: must be an integer of at least 0 (given: {seed!r:.80}).")
    loaded = {source.name for source in origins()}
    missing = [name for name in data.get("plugins", {}) if name not in loaded]
    if missing:
        raise PerdureError(f"This config uses the plugin '{missing[0]}'; load it with --plugin FILE.")
    flat: dict[str, Values] = {
        **{section: data[section] for section in ("benchmark", "network", "weights", "training")},
        "rehearsal": data["rehearsal"] or {},
        **{f"penalties.{name}": values for name, values in data["penalties"].items()},
    }
    given = {
        f"{section}.{field}": value
        for section, values in flat.items()
        for field, value in values.items()
        if field != "name"
    }
    config = _assembled(data["benchmark"]["name"], data["method"], seed, given)
    if data["revision"] != config.json["revision"]:
        raise PerdureError(
            f"This config has revision {data['revision']}, but this version has {config.json['revision']}; "
            f"run it again."
        )
    if data.get("plugins", {}) != config.json.get("plugins", {}):
        raise PerdureError("A plugin of this config has changed; run it again.")
    return config


def preset(benchmark: str, method: str, scale: str, given: Values) -> Values:
    """Values for a scale: those for all methods, then for each part of the method's name, then for the whole.

    A `variant` of a preset applies only if the options it names have the values it names.
    """
    result: Values = {}
    _check_own_presets(method, changes())
    for layer in flat_presets(benchmark, method, scale):
        wanted = layer.when.items()
        chosen = result | given
        kinds = sections(benchmark, method, chosen)
        if all(_typed(kinds, key, chosen.get(key)) == _typed(kinds, key, value) for key, value in wanted):
            result |= layer.values
    result |= _heads(sections(benchmark, method, result | given), result | given)
    known = option_names(sections(benchmark, method, result | given))
    return {name: value for name, value in result.items() if name in known}


@lru_cache(maxsize=1024)
def _check_own_presets(method: str, key: int) -> None:
    """Check what external methods bring; `key` repeats it when something is registered later."""
    del key
    known = methods()
    for part in {*parts_of(method, known), method} & known.keys():
        if known[part].presets:
            check_presets(known[part], [BODY, *(name for name, _ in every_option())])


def _heads(kinds: Sections, chosen: Values) -> Values:
    """The heads that a scenario needs; tasks with weights of their own have their own, and are inferred."""
    field = kinds["benchmark"].model_fields.get("scenario")
    scenario = None if field is None else chosen.get("benchmark.scenario", field.default)
    weights = kinds["weights"]
    shared = issubclass(weights, WeightSource) and weights.shares_heads
    wanted = {"class": "growing" if shared else "multi", "domain": "single"}.get(str(scenario))
    return {} if wanted is None else {"network.heads": wanted}


def _typed(kinds: Mapping[str, type[Options]], name: str, value: object) -> object:
    """A value, possibly still a string from the command line, converted to its option's type."""
    if name in CHOOSING:
        return _name_of(value)
    section, _, field = name.rpartition(".")
    if section not in kinds or field not in kinds[section].model_fields:
        return value
    try:
        return option_reader(kinds[section], field).validate_python(value)
    except ValidationError:
        return value  # it will be refused, with a sentence, when the config is built
