"""What reproducing items means in work: which runs are there, which are missing, and how long they take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perdure.config import Config
from perdure.learning.learner import newborn
from perdure.learning.phase import Phase
from perdure.paper.item import Item
from perdure.records.record import Record
from perdure.records.store import RunFolder
from perdure.run import assemble, chance_of, on_device

STEPS = 4
"""Iterations that are timed for an estimate; the first is left out."""


@dataclass(frozen=True)
class Plan:
    """The runs behind some items."""

    configs: list[Config]
    """All of them, each once."""
    found: dict[str, Record]
    """Those that are finished, by hash."""

    @property
    def missing(self) -> list[Config]:
        """Those that are still to be run."""
        return [config for config in self.configs if config.hash not in self.found]


def plan(items: Mapping[str, Item], scale: str, seeds: Mapping[str, int], runs: Path) -> Plan:
    """Which runs the items need, and which of them are there."""
    configs = {
        config.hash: config for name, item in items.items() for config in item.configs(scale, seeds[name])
    }
    found = {}
    for name in configs:
        record = RunFolder(runs, name).record()
        if record is not None:
            found[name] = record
    return Plan(list(configs.values()), found)


def estimate(work: Plan) -> float:
    """Seconds of one core that the missing runs take, about.

    A setting with finished seeds takes as long as these did. For the others a few iterations of the first
    task are timed; runs of one benchmark, method and cell are taken to cost the same per iteration. Early
    stopping makes them shorter than that, and what a method does for earlier tasks makes them longer.
    """
    finished: dict[str, list[float]] = {}
    for config in work.configs:
        if config.hash in work.found:
            finished.setdefault(_setting(config), []).append(work.found[config.hash].seconds)
    kinds: dict[tuple[str, str, str], list[Config]] = {}
    seconds = 0.0
    for config in work.missing:
        if before := finished.get(_setting(config)):
            seconds += statistics.mean(before)
        else:
            kinds.setdefault((config.benchmark.name, config.method, config.network.cell), []).append(config)
    return seconds + sum(_seconds_an_iteration(kind[0]) * iterations_of(kind) for kind in kinds.values())


def _setting(config: Config) -> str:
    """The same for all seeds."""
    return replace(config, seed=0).hash


def iterations_of(configs: Sequence[Config]) -> int:
    """Iterations of all tasks of all configs; a benchmark that several share is built once."""
    tasks = {benchmark: len(benchmark.build()) for benchmark in {config.benchmark for config in configs}}
    return sum(config.training.iterations * tasks[config.benchmark] for config in configs)


def _seconds_an_iteration(config: Config) -> float:
    """Measured on the first task."""
    tasks, learner = assemble(config)
    data, chance = on_device(tasks, "cpu"), chance_of(config)
    phase = Phase(learner, newborn(learner, chance), learner.phases[0], data, config.training, chance)
    times = []
    for _ in range(STEPS):
        begun = time.perf_counter()
        phase.step()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])
