"""Search spaces: options by dotted name, each with alternatives or a range.

In Python a space is a mapping; in TOML it is tables by method, as presets are (see `grids/`):

    [all]                                             # for every method
    training.learning_rate = { from = 1e-4, to = 1e-2, scale = "log" }
    training.clip = ["none", 1.0, 100.0]

    [si]                                              # for every method with si in its name
    penalties.si.strength = [0.01, 0.1, 1.0]

    [[all.variant]]                                   # only where other options have these values
    when = { "training.optimiser" = "SGD" }
    training.weight_decay = [0.0, 1e-4]

A table `[METHOD.SCALE]` counts at that scale alone.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from perdure.errors import PerdureError, unknown
from perdure.files import read
from perdure.methods import parts_of
from perdure.presets import SCALES
from perdure.registry import methods

Values = dict[str, Any]
"""Option values by dotted name."""

LARGEST_FILE = 2**24
"""Size in bytes of the largest file that describes a space."""
LARGEST = 200_000
"""Spaces with at most this many points are enumerated; larger ones are sampled."""
OWN_WORDS = ("source", "variant", "limits", *SCALES)
"""Keys of a table that are not options."""
RANGE_WORDS = {"from", "to", "scale"}


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, log-uniform or uniform (linear)."""

    low: float
    high: float
    scale: Literal["log", "linear"] = "log"

    def __post_init__(self) -> None:
        """Check the bounds."""
        if not self.low < self.high:
            raise PerdureError(f"A range goes from the lower to the higher number (given: {self}).")
        if self.scale not in ("log", "linear"):
            raise unknown("scale of a range", self.scale, ("log", "linear"))
        if self.scale == "log" and self.low <= 0:
            raise PerdureError(f"A log range begins above 0 (given: {self}); {self.low:g}..{self.high:g}"
                               f":linear is an even one.")  # fmt: skip

    def at(self, position: float) -> float:
        """The number at a position between 0 and 1."""
        if self.scale == "linear":
            return self.low + position * (self.high - self.low)
        return math.exp(math.log(self.low) + position * (math.log(self.high) - math.log(self.low)))

    def __str__(self) -> str:
        """As written on the command line."""
        return f"{self.low:g}..{self.high:g}" + (":linear" if self.scale == "linear" else "")

    @property
    def json(self) -> dict[str, Any]:
        """As in TOML."""
        return {"from": self.low, "to": self.high, "scale": self.scale}


Domain = Range | tuple[Any, ...]
"""The possible values of an option: a range, or alternatives."""


@dataclass(frozen=True)
class Dimension:
    """An option, its domain, and the values of other options under which it applies."""

    name: str
    domain: Domain
    when: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        domain = self.domain
        what = {"range": domain.json} if isinstance(domain, Range) else {"values": list(domain)}
        return {"name": self.name} | what | ({"when": dict(self.when)} if self.when else {})


@dataclass(frozen=True)
class Space:
    """Dimensions; if several have the same name, the last whose condition holds applies."""

    dimensions: tuple[Dimension, ...]
    source: str = ""
    limits: Mapping[str, Range] = field(default_factory=dict, hash=False)
    """Bounds on properties of a point: `ratio`, trained weights / weights of the network."""

    @classmethod
    def of(cls, options: Mapping[str, object], source: str = "") -> Space:
        """From option names (with dots or __) and ranges, lists of alternatives or single values."""
        return cls(
            tuple(Dimension(name.replace("__", "."), domain_of(each)) for name, each in options.items()),
            source,
        )

    @property
    def names(self) -> list[str]:
        """Options in the order in which they are chosen: conditional ones come last."""
        free = [dimension.name for dimension in self.dimensions if not dimension.when]
        return list(dict.fromkeys([*free, *(dimension.name for dimension in self.dimensions)]))

    @property
    def varied(self) -> list[str]:
        """Options with more than one possible value."""
        several = {
            d.name for d in self.dimensions if isinstance(d.domain, Range) or len(d.domain) > 1 or d.when
        }
        return [name for name in self.names if name in several]

    def replaced(self, options: Mapping[str, object]) -> Space:
        """The space with other domains for some options."""
        new = {each.name: each for each in Space.of(options).dimensions}
        named = {each.name: each for each in self.dimensions if each.name in new}
        kept = [each for each in self.dimensions if each.name not in new or named[each.name] is each]
        placed = [new.pop(each.name, each) for each in kept]
        return Space((*placed, *new.values()), self.source, self.limits)

    def domain(self, name: str, holds: Callable[[Mapping[str, Any]], bool]) -> Domain | None:
        """The domain of an option given which conditions hold; None if it is not searched."""
        fitting = [each.domain for each in self.dimensions if each.name == name and holds(each.when)]
        return fitting[-1] if fitting else None

    def decide(
        self, pick: Callable[[Values, str, Domain], Any], holds: Callable[[Values, str, Any], bool]
    ) -> Values:
        """A point: `pick` chooses values after earlier ones, `holds` says whether an option has a value."""
        point: Values = {}
        for name in self.names:
            domain = self.domain(name, lambda when: all(holds(point, *each) for each in when.items()))
            if domain is not None:
                point[name] = pick(point, name, domain)
        return point

    def every(self, holds: Callable[[Values, str, Any], bool]) -> Iterator[Values]:
        """All points, in order; raises if an option has a range."""

        def further(point: Values, names: Sequence[str]) -> Iterator[Values]:
            if not names:
                yield point
                return
            domain = self.domain(names[0], lambda when: all(holds(point, *each) for each in when.items()))
            if isinstance(domain, Range):
                raise PerdureError(f"A grid has alternatives, but {names[0]} has a range; list some values.")
            if domain is None:
                yield from further(point, names[1:])
                return
            for value in domain:
                yield from further({**point, names[0]: value}, names[1:])

        return further({}, self.names)

    @property
    def size(self) -> float:
        """Upper bound on the number of points; infinite with a range."""
        most: dict[str, float] = {}
        for each in self.dimensions:
            count = math.inf if isinstance(each.domain, Range) else len(each.domain)
            most[each.name] = max(most.get(each.name, 1), count)
        return math.prod(most.values())

    @property
    def json(self) -> dict[str, Any]:
        """As plain data; `space_from` reads it back."""
        data = {"source": self.source, "dimensions": [dimension.json for dimension in self.dimensions]}
        return data | ({"limits": {n: each.json for n, each in self.limits.items()}} if self.limits else {})


def space_from(data: Mapping[str, Any]) -> Space:
    """The space that `Space.json` wrote."""
    return Space(
        tuple(
            Dimension(each["name"], domain_of(each.get("range", each.get("values"))), each.get("when", {}))
            for each in data["dimensions"]
        ),
        data["source"],
        {name: _range(each, name) for name, each in data.get("limits", {}).items()},
    )


def domain_of(given: object) -> Domain:
    """A range, alternatives, or a single value, from Python or TOML, where "none" is None."""
    if isinstance(given, Range):
        return given
    if isinstance(given, Mapping):
        return _range(given, "a range")
    several = list(given) if isinstance(given, list | tuple) else [given]
    if not several:
        raise PerdureError("An option that is searched needs at least one value.")
    # TOML has no null, and JSON no tuple
    return tuple(
        None if each == "none" else list(each) if isinstance(each, tuple) else each for each in several
    )


def _range(table: Mapping[str, Any], where: str) -> Range:
    if not {"from", "to"} <= set(table) <= RANGE_WORDS:
        raise PerdureError(f'{where}: a range is written {{ from = 1e-4, to = 1e-2, scale = "log" }}.')
    return Range(table["from"], table["to"], table.get("scale", "log"))


def read_space(tables: Mapping[str, Any], method: str, scale: str) -> Space:
    """The space of a method at a scale, from the tables of a file."""
    dimensions: list[Dimension] = []
    limits: dict[str, Range] = {}
    for name in dict.fromkeys(["all", *parts_of(method, methods()), method]):
        for table in (tables.get(name, {}), tables.get(name, {}).get(scale, {})):
            dimensions += [Dimension(key, domain) for key, domain in _flat(table)]
            limits |= {key: _range(each, key) for key, each in table.get("limits", {}).items()}
            for variant in table.get("variant", []):
                when = variant.get("when", {})
                plain = {key: each for key, each in variant.items() if key != "when"}
                dimensions += [Dimension(key, domain, when) for key, domain in _flat(plain)]
    # An entry without a condition makes earlier ones of that name meaningless.
    last = {each.name: place for place, each in enumerate(dimensions) if not each.when}
    kept = [each for place, each in enumerate(dimensions) if place >= last.get(each.name, 0)]
    source = tables.get("all", {}).get(scale, {}).get("source", tables.get("source", ""))
    return Space(tuple(kept), str(source), limits)


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Domain]]:
    """{'training': {'clip': [1, 2]}} -> ('training.clip', (1, 2))."""
    for key, value in table.items():
        if not prefix and key in OWN_WORDS:
            continue
        if isinstance(value, Mapping) and not RANGE_WORDS & set(value):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, domain_of(value)


def file_space(path: Path, method: str, scale: str) -> Space:
    """The space in a TOML file."""
    try:
        tables = tomllib.loads(read(path, LARGEST_FILE).decode())
    except (OSError, RecursionError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PerdureError(f"--space: '{path}' cannot be read as TOML ({error}).") from None
    _check_tables(tables, path)
    space = read_space({"source": path.name} | tables, method, scale)
    if not space.dimensions:
        raise PerdureError(
            f"--space: '{path}' has nothing for {method}; write its options in a table [all] or [{method}]."
        )
    return space


def _check_tables(tables: Mapping[str, Any], path: Path) -> None:
    """Raise a helpful error for a table that no method would read."""
    known = methods()
    for name in tables:
        if name not in ("all", "source") and not set(parts_of(name, known)) <= set(known):
            error = unknown("table", name, ["all", *known])
            raise PerdureError(f"--space: '{path}': {error} Options go into [all] or [METHOD].")


def grid_space(benchmark: str, method: str, scale: str) -> Space:
    """The paper's table for a benchmark; for others ours, in `grids/any.toml`.

    Methods that the paper does not have are in `grids/beyond.toml`, for all benchmarks.
    """
    folder = files("perdure.search") / "grids"
    path = folder / f"{benchmark}.toml"
    chosen = path if path.is_file() else folder / "any.toml"
    tables = [tomllib.loads(each.read_text(encoding="utf-8")) for each in (folder / "beyond.toml", chosen)]
    return read_space(tables[0] | tables[1], method, scale)
