"""The whole description of a run: frozen, validated, hashable, and what its scale presets are.

A config is sections (benchmark, network, weights, penalties, rehearsal, training) and a seed. Presets are
data: `presets/BENCHMARK.toml` gives values for each method at each scale, with their source.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from perdure.benchmarks.task import Benchmark
from perdure.errors import PerdureError, unknown
from perdure.learning.training import Training
from perdure.methods import Method, canonical, compose, parts_of
from perdure.networks.network import Architecture
from perdure.options import Options, Piece, discover, find, validated
from perdure.penalties.penalty import Penalty
from perdure.rehearsal.rehearsal import Rehearsal
from perdure.weights.source import WeightSource

SCALES = ("smoke", "laptop", "paper")
"""smoke: seconds; laptop: the paper's accuracy in minutes; paper: its sizes and iterations."""

REVISION = 2
"""Raised when the same config begins to give other numbers, so that old records are not taken for new.

Where one piece alone does, its own `revision` is raised, and records without it stay good."""

ALWAYS = ("orthogonal",)
"""Penalties that every method may use."""

Values = dict[str, Any]
"""Option values by dotted name, such as training.iterations."""


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
        return compose(self.method).together

    @cached_property
    def json(self) -> dict[str, Any]:
        """As plain data; `from_json` reads it back."""
        return {
            "revision": revision(sections(self.benchmark.name, self.method)),
            "benchmark": {"name": self.benchmark.name, **self.benchmark.plain()},
            "method": self.method,
            "network": self.network.plain(),
            "weights": {"name": self.weights.name, **self.weights.plain()},
            "penalties": {name: penalty.plain() for name, penalty in self.penalties.items()},
            "rehearsal": None
            if self.rehearsal is None
            else {"name": self.rehearsal.name, **self.rehearsal.plain()},
            "training": self.training.plain(),
            "seed": self.seed,
        }

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that stand for this config."""
        text = json.dumps(self.json, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def sections(benchmark: str, method: str) -> dict[str, type[Options]]:
    """The option classes of a run, by section name."""
    parts: Method = compose(method)
    penalties = [*ALWAYS, *parts.penalties]
    return {
        "benchmark": find("perdure.benchmarks", Benchmark, benchmark),
        "network": Architecture,
        "weights": find("perdure.weights", WeightSource, parts.weights),
        **{f"penalties.{name}": find("perdure.penalties", Penalty, name) for name in penalties},
        **_rehearsal_section(parts.rehearsal),
        "training": Training,
    }


def revision(kinds: Mapping[str, type[Options]]) -> int:
    """That of all configs, and those of the pieces added; none ever falls, so the sum says all."""
    return REVISION + sum(kind.revision for kind in kinds.values() if issubclass(kind, Piece))


def _rehearsal_section(name: str | None) -> dict[str, type[Options]]:
    return {} if name is None else {"rehearsal": find("perdure.rehearsal", Rehearsal, name)}


def build(benchmark: str, method: str, *, scale: str = "laptop", seed: int = 0, **given: Any) -> Config:
    """A config from the presets of a scale and given values.

    Values are written as on the command line, with `__` or in a mapping for the dots:
    `build("permuted-copy", "si", training__iterations=500)` or `**{"training.iterations": 500}`.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if not isinstance(seed, int) or seed < 0:
        raise PerdureError(f"seed: must be a whole number from 0 on (given: {seed!r}).")
    method = canonical(method)
    kinds = sections(benchmark, method)
    values: Values = {name.replace("__", "."): value for name, value in given.items()}
    merged = preset(benchmark, method, scale, values) | values
    parts: dict[str, Values] = {section: {} for section in kinds}
    for name, value in merged.items():
        section, _, field = name.rpartition(".")
        if section not in parts or field not in kinds[section].model_fields:
            raise unknown("option", name, option_names(kinds))
        parts[section][field] = value
    made = {section: validated(kind, parts[section], section) for section, kind in kinds.items()}
    penalties = {
        section.removeprefix("penalties."): made.pop(section)
        for section in list(made)
        if section.startswith("penalties.")
    }
    made.setdefault("rehearsal", None)  # type: ignore[arg-type]
    return Config(method=method, penalties=penalties, seed=seed, **made)  # type: ignore[arg-type]


def every_option() -> Iterator[tuple[str, FieldInfo]]:
    """Dotted name and field of every option that any benchmark or method has."""
    kinds: list[tuple[str, type[Options]]] = [("network", Architecture), ("training", Training)]
    kinds += [("benchmark", kind) for kind in discover("perdure.benchmarks", Benchmark).values()]
    kinds += [("weights", kind) for kind in discover("perdure.weights", WeightSource).values()]
    kinds += [("rehearsal", kind) for kind in discover("perdure.rehearsal", Rehearsal).values()]
    kinds += [(f"penalties.{name}", kind) for name, kind in discover("perdure.penalties", Penalty).items()]
    for section, kind in kinds:
        for name, field in kind.model_fields.items():
            yield f"{section}.{name}", field


def option_names(kinds: Mapping[str, type[Options]]) -> list[str]:
    """Dotted names of all options."""
    return [f"{section}.{field}" for section, kind in kinds.items() for field in kind.model_fields]


def from_json(data: Mapping[str, Any]) -> Config:
    """The config that `Config.json` wrote."""
    kinds = sections(data["benchmark"]["name"], data["method"])
    ours = revision(kinds)
    if data["revision"] != ours:
        raise PerdureError(
            f"This config is of revision {data['revision']}, this version writes {ours}; run it anew."
        )
    penalties = {f"penalties.{name}": values for name, values in data["penalties"].items()}
    flat: dict[str, Values] = {
        **{section: data[section] for section in ("benchmark", "network", "weights", "training")},
        "rehearsal": data["rehearsal"] or {},
        **penalties,
    }
    given = {
        f"{section}.{field}": value
        for section, values in flat.items()
        for field, value in values.items()
        if field != "name"
    }
    # What a record does not say had its default, whatever a preset says today.
    unsaid: Values = {
        f"{section}.{name}": kind.model_fields[name].default
        for section, kind in kinds.items()
        for name in kind.later
    }
    return build(data["benchmark"]["name"], data["method"], seed=data["seed"], **(unsaid | given))


def preset(benchmark: str, method: str, scale: str, given: Values) -> Values:
    """Values for a scale: those for all methods, then for each part of the method's name, then the whole.

    A benchmark may inherit the presets of another and say only what differs. A `variant` of a preset
    counts only where the options that it names have the values it names.
    """
    tables = read_presets(benchmark)
    kinds = sections(benchmark, method)
    known = option_names(kinds)
    parent = tables.get("inherits")
    result: Values = preset(parent, method, scale, given) if parent else {}
    for name in dict.fromkeys(["all", *parts_of(method), method]):
        table = tables.get(name, {}).get(scale, {})
        result |= _flat({key: value for key, value in table.items() if key not in ("source", "variant")})
        for variant in table.get("variant", []):
            chosen = result | given
            wanted = variant["when"].items()
            if all(_typed(kinds, key, chosen.get(key)) == _typed(kinds, key, value) for key, value in wanted):
                result |= _flat({k: v for k, v in variant.items() if k not in ("source", "when")})
    return {name: value for name, value in result.items() if name in known}


def preset_sources(benchmark: str, method: str, scale: str) -> list[str]:
    """Where the preset's values come from."""
    tables = read_presets(benchmark)
    own = [method] if method in tables and scale in tables[method] else parts_of(method)
    found = [tables.get(name, {}).get(scale, {}).get("source") for name in ["all", *own]]
    parent = tables.get("inherits")
    inherited = preset_sources(parent, method, scale) if parent and not any(found[1:]) else []
    return [*inherited, *(source for source in found if source)]


def read_presets(benchmark: str) -> dict[str, Any]:
    """The preset file of a benchmark; empty if it has none."""
    path = files("perdure") / "presets" / f"{benchmark}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _typed(kinds: Mapping[str, type[Options]], name: str, value: object) -> object:
    """A value, perhaps still text from the command line, as its option understands it."""
    section, _, field = name.rpartition(".")
    if section not in kinds or field not in kinds[section].model_fields:
        return value
    option = kinds[section].model_fields[field]
    kind: Any = Annotated[option.annotation, option]  # with its validators, which read 64,32 as sizes
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return value  # it will be refused, with a sentence, when the config is built


def _flat(table: Mapping[str, Any], prefix: str = "") -> Values:
    """{'training': {'clip': 1}} -> {'training.clip': 1}."""
    result: Values = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            result |= _flat(value, f"{prefix}{key}.")
        else:
            result[prefix + key] = None if value == "none" else value  # TOML has no null
    return result
