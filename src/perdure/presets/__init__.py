"""Settings of every benchmark, method and scale, with their source: `BENCHMARK.toml` in this folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from perdure.errors import PerdureError, unknown
from perdure.methods import Method, parts_of
from perdure.options import option_text
from perdure.registry import methods, pieces

SCALES = ("smoke", "demo", "laptop", "paper")
"""smoke: seconds; demo: a first impression in minutes; laptop: the paper's accuracy in minutes; paper: its
sizes and iterations."""
USUAL_SCALE = "laptop"
"""The scale unless another is asked for."""
ONLY_WHERE_MADE = ("demo",)
"""Scales that a benchmark has only if its presets name them."""


def scales_of(benchmark: str) -> tuple[str, ...]:
    """The scales that a benchmark has."""
    tables = read_presets(benchmark).values()
    named = {scale for table in tables if isinstance(table, Mapping) for scale in table}
    return tuple(scale for scale in SCALES if scale not in ONLY_WHERE_MADE or scale in named)


LENT = ("benchmark.", "network.", "training.", "penalties.orthogonal.")
"""Settings that a method can take from another."""
BORROWED = "as "
"""How the source of settings begins that were chosen for another method or benchmark."""

LIKE = '{"permuted-copy": {"laptop": {"training.iterations": 500}}}'
"""Presets as a method may bring them."""


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
        lender = _lender(tables, name, scale)
        if lender:
            layers += [Layer(_lent(each.values), each.when) for each in _layers(tables[lender][scale])]
    return layers


def check_presets(method: Method, options: Iterable[str]) -> None:
    """Raise an error for a name in a method's own presets that nothing has: it would set nothing, in silence.

    `options` are the names of all options there are.
    """
    where = f"Method '{method.name}', presets"
    for place, scales in _named(where, method.presets, "benchmark", ["all", *pieces("benchmarks")]):
        for scale, values in _named(f"{where}, {place}", scales, "scale", SCALES):
            _named(f"{where}, {place}, {scale}", values, "option", options)


def _named(where: str, given: Any, what: str, known: Iterable[str]) -> list[tuple[str, Any]]:
    """The entries of one level of presets, all of known names."""
    if not isinstance(given, Mapping):
        raise PerdureError(f"{where}: settings are given by {what}, as in {LIKE} (given: {given!r:.60}).")
    known = list(known)
    for name in given:
        if name not in known:
            raise PerdureError(f"{where}: {unknown(what, str(name), known)}")
    return list(given.items())


def _lender(tables: Mapping[str, Any], name: str, scale: str) -> str | None:
    """The method whose settings another one takes, because it has none of its own here."""
    lender = methods()[name].like if name in methods() else None
    if lender is None or scale in tables.get(name, {}):
        return None
    return lender if scale in tables.get(lender, {}) else None


def _lent(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a method that others can use: all but those of its own pieces."""
    return {name: value for name, value in values.items() if name.startswith(LENT)}


def _layers(table: Mapping[str, Any]) -> Iterator[Layer]:
    """A table's own values, then its variants."""
    yield Layer(_flat({key: value for key, value in table.items() if key not in ("source", "variant")}))
    for variant in table.get("variant", []):
        yield Layer(_flat({k: v for k, v in variant.items() if k not in ("source", "when")}), variant["when"])


def preset_sources(
    benchmark: str, method: str, scale: str, given: Mapping[str, Any] | None = None
) -> list[str]:
    """Where the preset's values come from.

    A variant that applies to the given options, and has a source, has it instead of that of its table.
    What is taken over from another method or benchmark begins with "as" and its name.
    """
    tables = read_presets(benchmark)
    own = _own_tables(tables, method, scale)
    found = [_source(tables.get(name, {}).get(scale, {}), given or {}) for name in ["all", *own]]
    lenders = [lender for name in own if (lender := _lender(tables, name, scale))]
    found += [f"{BORROWED}{name}: {_source(tables[name][scale], given or {})}" for name in lenders]
    parent = tables.get("inherits")
    inherited = preset_sources(parent, method, scale, given) if parent and not any(found[1:]) else []
    taken = [each if each.startswith(BORROWED) else f"{BORROWED}{parent}: {each}" for each in inherited]
    return [*taken, *(source for source in found if source)]


def _own_tables(tables: Mapping[str, Any], method: str, scale: str) -> list[str]:
    """The tables that a method takes its settings from: its own if there is one, else those of its parts."""
    return [method] if scale in tables.get(method, {}) else parts_of(method, methods())


def sourced_options(
    benchmark: str, method: str, scale: str, given: Mapping[str, Any] | None = None
) -> set[str]:
    """Those of the given options that a preset has been chosen for: a variant with a source names them."""
    tables = read_presets(benchmark)
    parent = tables.get("inherits")
    found = sourced_options(parent, method, scale, given) if parent else set()
    for name in ["all", *_own_tables(tables, method, scale)]:
        for variant in _sourced_variants(tables.get(name, {}).get(scale, {}), given or {}):
            found |= set(variant["when"])
    return found


def _source(table: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """The source of a table, or of its last variant that has one and applies."""
    variants = _sourced_variants(table, given)
    source: str | None = (variants[-1] if variants else table).get("source")
    return source


def _sourced_variants(table: Mapping[str, Any], given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The variants of a table that have a source and apply to the given options."""
    typed = {name: option_text(value) for name, value in given.items()}  # some are typed already
    return [
        each
        for each in table.get("variant", [])
        if each.get("source")
        and all(typed.get(name) == option_text(value) for name, value in each["when"].items())
    ]


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
