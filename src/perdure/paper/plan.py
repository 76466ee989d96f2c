"""The work needed to reproduce items: which runs exist, which are missing, and how long they take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perdure.config import Config
from perdure.experiment import assemble, generators_of, on_device, threads
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.paper.item import Item
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

STEPS = 4
"""Iterations timed for an estimate; the first is discarded."""


@dataclass(frozen=True)
class Plan:
    """The runs needed by some items."""

    configs: list[Config]
    """All of them, each once."""
    found: dict[str, Record]
    """The finished ones, by hash."""
    warnings: list[str] = field(default_factory=list)
    """Warnings about damaged runs."""

    @property
    def missing(self) -> list[Config]:
        """Those that are still to be run."""
        return [config for config in self.configs if config.hash not in self.found]


def plan(
    items: Mapping[str, Item],
    scale: str,
    seeds: Mapping[str, int],
    runs: Path,
    given: Mapping[str, Any] | None = None,
) -> Plan:
    """The runs that the items need, with what is given in addition, and which of them exist."""
    configs = {
        config.hash: config
        for name, item in items.items()
        for config in item.configs(scale, seeds[name], given)
    }
    work = Plan(list(configs.values()), {})
    for name in configs:
        folder = RunFolder(runs, name)
        record = folder.record()
        work.warnings.extend(folder.warnings)
        if record is not None:
            work.found[name] = record
    return work


def estimate(work: Plan, device: str = "cpu") -> dict[str, float]:
    """Approximate seconds on one core of each missing run, by hash.

    A setting with finished seeds is assumed to take as long as these did. For the others, a few iterations
    of the first task are timed. Early stopping makes a run shorter than this; the work a method does for
    earlier tasks makes it longer.
    """
    seconds: dict[str, list[float]] = {}
    for config in work.configs:
        if config.hash in work.found:
            seconds.setdefault(_setting(config), []).append(work.found[config.hash].seconds)
    for config in work.missing:
        if _setting(config) not in seconds:
            seconds[_setting(config)] = [_measured(config, device)]
    return {config.hash: statistics.mean(seconds[_setting(config)]) for config in work.missing}


def _setting(config: Config) -> str:
    """The same for all seeds."""
    return replace(config, seed=0).hash


def _measured(config: Config, device: str) -> float:
    """Seconds of all iterations of all tasks, if each takes as long as the first few."""
    tasks, learner = assemble(config)
    data, generators = on_device(tasks, device), generators_of(config)
    phases = learner.phases(len(data))
    phase = begin_phase(learner, init(learner), phases[0], data, config.training, generators)
    times = []
    with threads(1):  # as in a run
        for _ in range(STEPS):
            begun = time.perf_counter()
            phase.step()
            times.append(time.perf_counter() - begun)
    return statistics.median(times[1:]) * config.training.iterations * len(data)
