"""The problem of a search: a benchmark, a method, and which points are valid configs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from perdure.config import (
    BODY,
    CHOOSING,
    Config,
    Sections,
    build,
    every_option,
    option_names,
    sections_at,
)
from perdure.errors import PerdureError, unknown
from perdure.experiment import assemble, learner_of
from perdure.networks.network import Network
from perdure.options import Piece, option_reader, option_text
from perdure.randomness import generator
from perdure.search.spaces import Dimension, Domain, Range, Space, Values
from perdure.weights.source import Stock

Answer = TypeVar("Answer")

DIGITS = 4
"""Significant digits of values drawn from a range: enough for a search, few enough to type."""


class TaskShape(NamedTuple):
    """The sizes of a benchmark's tasks."""

    inputs: int
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """Benchmark, method and scale; `given` are fixed options by dotted name."""

    benchmark: str
    method: str
    scale: str
    given: Mapping[str, Any]

    def config(self, point: Values, seed: int) -> Config:
        """The config of a point."""
        return build(self.benchmark, self.method, scale=self.scale, seed=seed, **(dict(self.given) | point))

    @cached_property
    def plain(self) -> Config:
        """The config with the fixed options only."""
        return self.config({}, 0)

    def kinds(self, point: Mapping[str, Any]) -> Sections:
        """The option classes at a point."""
        return sections_at(self.benchmark, self.method, self.scale, dict(self.given) | dict(point))

    def holds(self, point: Values, name: str, value: Any) -> bool:
        """Whether an option has a value at a point; options not in the point have their usual value."""
        kinds = self.kinds(point)
        has = point[name] if name in point else option_value(self.plain, name)
        return bool(typed_value(kinds, name, has) == typed_value(kinds, name, value))

    def knowing(self, space: Space) -> dict[str, list[Sections]]:
        """Every option that points of a space can have, with the option classes among which it is found.

        These are the usual ones, and those of every body and cell that the space lists.
        """
        known: dict[str, list[Sections]] = {}
        for choice in _choices(space, usual=True):
            kinds = self.kinds(choice)
            for name in option_names(kinds):
                known.setdefault(name, []).append(kinds)
        return known

    def _where_known(self, dimension: Dimension, space: Space) -> list[Dimension]:
        """The same, or if only some of the bodies and cells of a space have it, once for each of these.

        Else a point with another cell would have an option that this cell lacks, and be refused.
        """
        others = [{n: v for n, v in each.items() if n != dimension.name} for each in _choices(space)]
        possible = [each for each in others if all(dimension.when.get(n, v) == v for n, v in each.items())]
        having = [each for each in possible if dimension.name in option_names(self.kinds(each))]
        if len(having) == len(possible):
            return [dimension]
        found = [replace(dimension, when={**dimension.when, **each}) for each in having]
        return [each for place, each in enumerate(found) if each not in found[:place]]

    def checked(self, space: Space) -> Space:
        """The space without options this method lacks; raises for unknown names and invalid values."""
        known = self.knowing(space)
        elsewhere = {name for name, _ in every_option()}
        kept = []
        for each in space.dimensions:
            if each.name in known:
                first_answer(known[each.name], partial(check_domain, name=each.name, domain=each.domain))
                kept += self._where_known(each, space)
            elif each.name not in elsewhere:
                raise unknown("option", each.name, known)
        if not kept:
            raise PerdureError(
                f"Nothing is searched for {self.method}: give --space FILE, or a range such as "
                f"--training.learning_rate 1e-4..1e-2."
            )
        return Space(tuple(kept), space.source, space.limits)

    @cached_property
    def shape(self) -> TaskShape:
        """Sizes of the benchmark's tasks, which are built once for this."""
        tasks, learner = assemble(self.plain)
        return TaskShape(learner.inputs, tuple(task.outputs for task in tasks))

    @property
    def phases(self) -> int:
        """Number of phases of a run."""
        return 1 if self.plain.together else len(self.shape.outputs)

    def refusal(self, space: Space, config: Config) -> str | None:
        """Why a config is outside the limits of a space, or None."""
        for name, bounds in space.limits.items():
            if name != "ratio":
                raise unknown("limit", name, ["ratio"])
            sizes = self.sizes(config)
            ratio = sizes["trained"] / sizes["network"]
            if not bounds.low <= ratio <= bounds.high:
                return f"{ratio:.2f} times as many weights are trained as the network has (limits: {bounds})"
        return None

    def sizes(self, config: Config) -> dict[str, int]:
        """Numbers of weights after all tasks have arrived, without making those of the source."""
        inputs, outputs = self.shape
        learner = learner_of(config, inputs)
        network = Network(config.network, inputs, list(outputs))
        trained = learner.source.count(network)
        for hook in learner.hooks.values():
            made = hook.grow(network, 0, Stock({}, {}), lambda *role: generator(config.seed, *role))
            trained += sum(vector.numel() for vector in made.parameters.values())
        return {"network": network.layout.size, "trained": trained}


def _choices(space: Space, *, usual: bool = False) -> list[Values]:
    """All combinations of the bodies and cells that a space lists, and of the usual ones if wanted."""
    listed: dict[str, list[Values]] = {}
    for each in space.dimensions:
        if each.name in CHOOSING and not isinstance(each.domain, Range):
            some = listed.setdefault(each.name, [{}] if usual else [])
            some += [{each.name: value} for value in each.domain]
    combinations = product(*listed.values())
    return [{name: value for one in several for name, value in one.items()} for several in combinations]


def option_value(config: Config, name: str) -> Any:
    """The value of a config's option by dotted name; None if there is no such option."""
    if name == BODY:
        return config.network.name
    section, *rest = name.split(".")
    found: Any = getattr(config, section, None)
    for part in rest:
        found = found.get(part) if isinstance(found, Mapping) else getattr(found, part, None)
    return found.name if isinstance(found, Piece) else found


def first_answer(several: Sequence[Sections], ask: Callable[[Sections], Answer]) -> Answer:
    """What the first option classes answer that raise nothing; if all do, the error is that of the last."""
    for kinds in several[:-1]:
        with suppress(PerdureError):
            return ask(kinds)
    return ask(several[-1])


def check_domain(kinds: Sections, name: str, domain: Domain) -> None:
    """Raise for the first invalid value of an option."""
    if isinstance(domain, Range):
        whole_numbers(kinds, name, domain)
        return
    for value in domain:
        fault = fault_of(kinds, name, value)
        if fault is not None:
            raise PerdureError(f"{name}: {fault} (given: {option_text(value)!r}).")


def whole_numbers(kinds: Sections, name: str, domain: Range) -> bool:
    """Whether an option takes integers only, as layer sizes do; raises if it takes no numbers."""
    for end in (domain.low, domain.high):
        whole = float(end).is_integer()
        fault = fault_of(kinds, name, int(end) if whole else end)
        if fault is not None and math.isfinite(end) and fault_of(kinds, name, math.ceil(end)) is None:
            raise PerdureError(f"{name} takes whole numbers (given: {domain}).")
        if fault is not None:
            raise PerdureError(f"{name}: {fault} (given: {domain}).")
    between = math.floor(domain.at(0.5)) + 0.5
    if fault_of(kinds, name, between) is None:
        reader = _reader(kinds, name)
        if reader is None or not isinstance(reader(between), float):
            raise PerdureError(f"{name} takes no range (given: {domain}); list alternatives.")
        return False
    return True


def rounded(value: float, domain: Range, whole: bool) -> float | int:
    """A value of a range, rounded to a few digits."""
    if whole:
        return min(max(round(value), math.ceil(domain.low)), math.floor(domain.high))
    return min(max(float(f"{value:.{DIGITS}g}"), domain.low), domain.high)


def typed_value(kinds: Sections, name: str, value: Any) -> Any:
    """A value converted to the type of its option, as plain data; pieces stay names."""
    reader = _reader(kinds, name)
    if reader is None or fault_of(kinds, name, value) is not None:
        return value
    typed = reader(value)
    return list(typed) if isinstance(typed, tuple) else typed


def _reader(kinds: Sections, name: str) -> Callable[[Any], Any] | None:
    """The validator of an option; None for pieces, whose names are checked elsewhere."""
    section, _, field = name.rpartition(".")
    if name in CHOOSING or section not in kinds or field not in kinds[section].model_fields:
        return None
    return option_reader(kinds[section], field).validate_python


def fault_of(kinds: Sections, name: str, value: Any) -> str | None:
    """What is wrong with a value, or None."""
    reader = _reader(kinds, name)
    if reader is None:
        return None
    try:
        reader(value)
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    except PerdureError as error:
        return str(error).rstrip(".")
    return None
