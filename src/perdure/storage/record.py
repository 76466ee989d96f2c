"""The record of a finished run: everything a table, figure or report needs."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from perdure.benchmarks.task import Task
from perdure.config import Config
from perdure.learning.engine import Results


@dataclass(frozen=True)
class Record:
    """The results of a run; written once, as record.json."""

    hash: str
    benchmark: str
    method: str
    seed: int
    accuracy: list[list[float]]
    """R[k][j]: percent on task j after phase k. Joint training has a single state, repeated in all rows."""
    during: float
    """Mean of the diagonal: each task right after it was learnt."""
    final: float
    """Mean of the last row: all tasks at the end."""
    seconds: float
    iterations: list[int]
    """Iterations of each phase."""
    tasks: list[str]
    parameters: dict[str, int]
    """Sizes: of the network's psi, and of everything that is trained."""
    memory: dict[str, int]
    """Bytes stored by each penalty and the rehearsal at the end, and by one stored sample."""
    curves: list[list[dict[str, float]]]
    """For each phase, at each validation: losses by term, validation accuracy and loss."""
    timings: list[dict[str, float]]
    config: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, str]
    f1: list[list[float]] = field(default_factory=list)
    """Like `accuracy`, for the weighted F1 in percent; empty if targets are values."""
    error: list[list[float]] = field(default_factory=list)
    """Like `accuracy`, for the root mean squared error of values, in the units of the data; else empty."""
    score: str = "accuracy"
    """What the percentages of `accuracy`, `during` and `final` are: accuracy, or R² of values."""
    validation: list[list[float]] = field(default_factory=list)
    """The accuracy matrix' like on validation data, by which everything is chosen; empty in older records."""
    searches: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By its id, each search that chose these settings: where, among what and how they were found."""
    format: int = 1

    @property
    def val_during(self) -> float | None:
        """Like `during`, on validation data; None in older records."""
        rows = self.validation
        return sum(row[task] for task, row in enumerate(rows)) / len(rows) if rows else None

    @property
    def val_final(self) -> float | None:
        """Like `final`, on validation data; None in older records."""
        return sum(self.validation[-1]) / len(self.validation[-1]) if self.validation else None

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def make_record(
    config: Config,
    tasks: Sequence[Task],
    results: Results,
    machine: dict[str, str],
) -> Record:
    """The record of the results of a config for these tasks."""
    times = len(tasks) if config.together else 1
    accuracy = results.accuracy * times
    # A run that an earlier version began has no validation of its first tasks: then none at all is given.
    complete = len(results.validation) == len(results.accuracy)
    diagonal = [row[task] for task, row in enumerate(accuracy)]
    return Record(
        hash=config.hash,
        benchmark=config.benchmark.name,
        method=config.method,
        seed=config.seed,
        accuracy=accuracy,
        f1=results.f1 * times,
        error=results.error * times,
        score=tasks[0].target.score_name,
        validation=results.validation * times if complete else [],
        during=sum(diagonal) / len(diagonal),
        final=sum(accuracy[-1]) / len(accuracy[-1]),
        seconds=sum(sum(times.values()) for times in results.seconds),
        iterations=results.iterations,
        tasks=[task.name for task in tasks],
        parameters=results.sizes,
        memory=results.memory,
        curves=results.curves,
        timings=results.seconds,
        config=config.json,
        versions={name: version(name) for name in ("perdure", "torch", "numpy")},
        machine={
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            **machine,
        },
    )
