"""Our side: the benchmark `arrays`, as `perdure run arrays METHOD --benchmark.folder DIR` runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perdure import build, run, save_tasks, tasks_from
from perdure.learning.engine import Progress, RunOptions
from performance.peers.setting import BATCH, LEARNING_RATE, STORED, TASKS, UNITS, MadeTask, Split

METHODS: dict[str, dict[str, Any]] = {
    "fine-tuning": {},
    "online-ewc": {"penalties.online-ewc.strength": 1e5},
    "si": {"penalties.si.strength": 1.0},
    "er": {"rehearsal.samples": STORED * TASKS},
    "coresets": {"rehearsal.size": STORED},
    "lwf": {"penalties.lwf.strength": 1.0},
}
"""Our methods; the strengths of EWC and SI were chosen among powers of ten, with data of seed 100."""


def write_tasks(tasks: Sequence[MadeTask], folder: Path) -> Path:
    """The tasks as files."""
    given = {
        f"task {number + 1}": {name: _pairs(getattr(task, name)) for name in ("train", "val", "test")}
        for number, task in enumerate(tasks)
    }
    return save_tasks(tasks_from(given), folder)


def _pairs(split: Split) -> tuple[list[Any], Any]:
    """Sequences without padding, and their classes."""
    return [x[:length] for x, length in zip(split.x, split.lengths, strict=True)], split.y


def learn(
    method: str, data: Path, runs: Path, seed: int, iterations: int, after_task: Callable[[int], None]
) -> tuple[list[float], float]:
    """Run a method; returns the milliseconds of an iteration for each task, and the final accuracy.

    `after_task` is called with each task's number once it is learnt; its own time counts nowhere.
    """
    training = {
        "training.iterations": iterations,
        "training.batch_size": BATCH,
        "training.learning_rate": LEARNING_RATE,
        "training.clip": None,
        "training.patience": None,
        "training.validate_every": iterations,
    }
    network = {"network.cell": "lstm", "network.hidden": (UNITS,)}
    given = {"benchmark.folder": str(data), **network, **training, **METHODS[method]}

    def watch(progress: Progress) -> None:
        if progress.accuracy is not None:  # a task is over
            after_task(progress.phase)

    options = RunOptions(watch=watch, threads=1)
    record = run(build("arrays", method, seed=seed, **given), runs, options).record
    pace = [1e3 * t["train"] / n for t, n in zip(record.timings, record.iterations, strict=True)]
    return pace, record.final
