"""What an iteration costs, and what must be kept, as tasks are added one after the other."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

from perdure.config import Config
from perdure.experiment import assemble, generators_of, on_device, threads
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.learning.memory import kept

STEPS = 6
"""Iterations timed; the first is discarded."""


class Cost(NamedTuple):
    """Of one task."""

    milliseconds: float
    """Of an iteration while it is learnt: the median, in time of the processor."""
    finish: float
    """Milliseconds after its last iteration, such as those of a Fisher."""
    kept: int
    """Bytes that must outlive it."""


def growth(config: Config, tasks: Sequence[int]) -> dict[int, Cost]:
    """The cost of some tasks (counted from 1); the others are given a single iteration.

    The time is that of this process, so that others on the same machine do not count.
    """
    built, learner = assemble(config)
    data, generators, state = on_device(built, "cpu"), generators_of(config), init(learner)
    found = {}
    with threads(1):  # as in a run
        for task in range(max(tasks)):
            phase = begin_phase(learner, state, [task], data, config.training, generators)
            asked = task + 1 in tasks
            times = []
            for _ in range(STEPS if asked else 1):
                begun = time.process_time()
                phase.step()
                times.append(time.process_time() - begun)
            begun = time.process_time()
            state = phase.finish()
            finish = time.process_time() - begun
            if asked:
                bytes_kept = sum(kept(learner, state, data[: task + 1], generators).values())
                found[task + 1] = Cost(1000 * statistics.median(times[1:]), 1000 * finish, bytes_kept)
    return found
