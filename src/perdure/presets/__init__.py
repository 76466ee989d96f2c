"""Settings of every benchmark, method and scale, with their source: `BENCHMARK.toml` in this folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from perdure.methods import parts_of
from perdure.registry import methods

SCALES = ("smoke", "laptop", "paper")
"""smoke: seconds; laptop: the paper's accuracy in minutes; paper: its sizes and iterations."""


@dataclass(frozen=True)
class Layer:
    """Values by dotted name that apply if the options in `when` have the values there."""

    values: Mapping[str, Any]
    when: Mapping[str, Any] = field(default_factory=dict)


def flat_presets(benchmark: str, method: str, scale: str) -> list[Layer]:
    """Layers of values; later ones override earlier ones.

    A benchmark may inherit the presets of another and specify only what differs; external methods bring
    their own.
    """
    tables = read_presets(benchmark)
    parent = tables.get("inherits")
    layers = flat_presets(parent, method, scale) if parent else []
    known = methods()
    for name in dict.fromkeys(["all", *parts_of(method, known), method]):
        if name in known:
            own = known[name].presets
            layers += [
                Layer(own[place][scale]) for place in ("all", benchmark) if scale in own.get(place, {})
            ]
        layers += _layers(tables.get(name, {}).get(scale, {}))
    return layers


def _layers(table: Mapping[str, Any]) -> Iterator[Layer]:
    """A table's own values, then its variants."""
    yield Layer(_flat({key: value for key, value in table.items() if key not in ("source", "variant")}))
    for variant in table.get("variant", []):
        yield Layer(_flat({k: v for k, v in variant.items() if k not in ("source", "when")}), variant["when"])


def preset_sources(benchmark: str, method: str, scale: str) -> list[str]:
    """Where the preset's values come from."""
    tables = read_presets(benchmark)
    whole = method in tables and scale in tables[method]
    own = [method] if whole else parts_of(method, methods())
    found = [tables.get(name, {}).get(scale, {}).get("source") for name in ["all", *own]]
    parent = tables.get("inherits")
    inherited = preset_sources(parent, method, scale) if parent and not any(found[1:]) else []
    return [*inherited, *(source for source in found if source)]


@cache
def read_presets(benchmark: str) -> Mapping[str, Any]:
    """The preset file of a benchmark; empty if it has none."""
    path = files(__name__) / f"{benchmark}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{'training': {'clip': 1}} -> {'training.clip': 1}."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            result |= _flat(value, f"{prefix}{key}.")
        else:
            result[prefix + key] = None if value == "none" else value  # TOML has no null
    return result
