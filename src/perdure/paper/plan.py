"""The work needed to reproduce items: which runs exist, which are missing, and how long they take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from perdure.config import Config
from perdure.experiment import assemble, generators_of, on_device, threads
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.learning.phase import Phase
from perdure.learning.scores import scores_of_all_tasks
from perdure.paper.item import Item
from perdure.storage.record import Record
from perdure.storage.store import RunFolder

STEPS = 4
"""Iterations timed for an estimate; the first is discarded."""
PATIENCE = 30.0
"""Seconds after which no further setting is timed; those that are left are taken to be like others."""


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

    A setting with finished seeds is assumed to take as long as these did. For others a few iterations of the
    first two tasks are timed; whoever waits for that wants to know whether it is minutes or days, so after
    PATIENCE the rest is taken to last as long as settings of the same benchmark and method, or as all others.
    Early stopping makes a run shorter than this; work that grows with the number of tasks makes it longer.
    """
    spent: dict[str, list[float]] = {}
    settings: dict[str, Config] = {}
    for config in work.configs:
        settings.setdefault(_setting(config), config)
        if config.hash in work.found:
            spent.setdefault(_setting(config), []).append(work.found[config.hash].seconds)
    seconds = {setting: statistics.mean(each) for setting, each in spent.items()}
    begun = monotonic()
    for setting in _each_kind_first(settings):
        if setting not in seconds and monotonic() - begun <= PATIENCE:
            seconds[setting] = _measured(settings[setting], device)
    kinds: dict[tuple[str, str], list[float]] = {}
    for setting, each in seconds.items():
        kinds.setdefault(_kind(settings[setting]), []).append(each)

    def expected(config: Config) -> float:
        known = seconds.get(_setting(config))
        return statistics.mean(kinds.get(_kind(config), seconds.values())) if known is None else known

    return {config.hash: expected(config) for config in work.missing}


def _each_kind_first(settings: Mapping[str, Config]) -> list[str]:
    """The settings, but one of each benchmark and method before all others."""
    first = {_kind(config): setting for setting, config in reversed(list(settings.items()))}.values()
    return [*reversed(list(first)), *(setting for setting in settings if setting not in first)]


def _kind(config: Config) -> tuple[str, str]:
    """What settings have in common that take about as long."""
    return config.benchmark.name, config.method


def _setting(config: Config) -> str:
    """The same for all seeds."""
    return replace(config, seed=0).hash


def _measured(config: Config, device: str) -> float:
    """Seconds of all phases, from a few iterations of the first two, and the end of the first with its tests.

    The second has what a method does for earlier tasks; those after it are assumed to take as long. After
    each phase all tasks are tested, which takes most of a run with many short ones.
    """
    # On the CPU processor time, which other work of the machine does not lengthen.
    clock = time.process_time if device == "cpu" else time.perf_counter
    tasks, learner = assemble(config)
    data, generators = on_device(tasks, device), generators_of(config)
    phases = learner.phases(len(data))
    state, seconds = init(learner), []
    with threads(1):  # as in a run
        for tasks_of_phase in phases[:2]:
            phase = begin_phase(learner, state, tasks_of_phase, data, config.training, generators)
            seconds.append(_seconds_of_a_step(phase, clock) * phase.iterations)
            if tasks_of_phase is phases[0]:
                begun = clock()
                state = phase.finish()
                scores_of_all_tasks(learner, state, data, generators)
                finishing = clock() - begun
    return seconds[0] + (len(phases) - 1) * seconds[-1] + len(phases) * finishing


def _seconds_of_a_step(phase: Phase, clock: Callable[[], float]) -> float:
    """The median of a few iterations."""
    times = []
    for _ in range(STEPS):
        begun = clock()
        phase.step()
        times.append(clock() - begun)
    return statistics.median(times[1:])
