"""The record of a finished run: everything a table, figure or report needs."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from perdure.checking import check, check_matrix, mapping
from perdure.files import Damaged
from perdure.identity import stands_for
from perdure.learning.size_names import GENERATED, GENERATING

if TYPE_CHECKING:  # to read records, no torch is needed
    from perdure.benchmarks.task import Task
    from perdure.config import Config
    from perdure.learning.engine import Results

FORMAT = 1
"""The format of the records that this version writes; it reads those with more fields, too."""


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
    """Sizes: of the network's psi, of all that is trained, and of what is generated and what generates it."""
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
    kept: list[dict[str, int]] = field(default_factory=list)
    """For each phase, bytes that must outlive it, by what keeps them; empty in older records."""
    untrained: list[float] = field(default_factory=list)
    """Accuracy of each task before anything is learnt; empty in older records."""
    searches: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By its id, each search that chose these settings: where, among what and how they were found."""
    format: int = FORMAT
    others: dict[str, Any] = field(default_factory=dict)
    """Fields that this version does not know, as they were read; they are written again."""

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
    def ratios(self) -> dict[str, float]:
        """|theta and embeddings| / |psi| of each generated part, such as the network or a decoder."""
        return {
            (part := name.removeprefix(f"{GENERATED} ")): self.parameters[f"{GENERATING} {part}"] / size
            for name, size in self.parameters.items()
            if name.startswith(f"{GENERATED} ")
        }

    @property
    def oversized(self) -> str:
        """A remark if a hypernetwork has more weights than what it generates, as the paper rules out."""
        large = [f"{part} x {ratio:.2f}" for part, ratio in self.ratios.items() if ratio > 1]
        return f"hypernetwork larger than its {', its '.join(large)}" if large else ""

    @property
    def kept_bytes(self) -> list[int]:
        """Bytes that must outlive each phase; empty in older records."""
        return [sum(each.values()) for each in self.kept]

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        plain = asdict(self)
        others: dict[str, Any] = plain.pop("others")
        return plain | others


def make_record(
    config: Config,
    tasks: Sequence[Task],
    results: Results,
    machine: dict[str, str],
) -> Record:
    """The record of the results of a config for these tasks."""
    from importlib.metadata import version

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
        untrained=results.untrained,
        during=sum(diagonal) / len(diagonal),
        final=sum(accuracy[-1]) / len(accuracy[-1]),
        seconds=sum(sum(times.values()) for times in results.seconds),
        iterations=results.iterations,
        tasks=[task.name for task in tasks],
        parameters=results.sizes,
        memory=results.memory,
        kept=results.kept * times if len(results.kept) == len(results.accuracy) else [],
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


def to_record(data: Any) -> Record:
    """A record from JSON data; raises Damaged, with the place and the reason, if it cannot be one."""
    if not isinstance(data, dict):
        raise Damaged("it is not a record")
    if type(data.get("format")) is int and data["format"] > FORMAT:
        raise Damaged(f"it has format {data['format']}, and this version reads format {FORMAT}")
    hints = _hints()
    for name in _needed():
        if name not in data:
            raise Damaged(f"'{name}' is missing")
    known = {name: value for name, value in data.items() if name in hints}
    for name, value in known.items():
        check(value, hints[name], name)
    record = Record(**known, others={name: value for name, value in data.items() if name not in hints})
    _check_sizes(record)
    _check_config(record)
    return record


@cache
def _hints() -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(Record).items() if name != "others"}


@cache
def _needed() -> tuple[str, ...]:
    """Fields that even the oldest records have."""
    return tuple(
        each.name for each in fields(Record) if each.default is MISSING and each.default_factory is MISSING
    )


def _check_sizes(record: Record) -> None:
    """Whether matrices, phases and means belong together."""
    count = len(record.tasks)
    if not count:
        raise Damaged("'tasks' is empty")
    check_matrix(record.accuracy, count, "accuracy")
    for name in ("f1", "error", "validation"):
        if rows := getattr(record, name):
            check_matrix(rows, count, name)
    if not len(record.iterations) == len(record.curves) == len(record.timings) <= count:
        raise Damaged("'iterations', 'curves' and 'timings' must have an entry for each phase")
    if min(record.iterations, default=0) < 0 or record.seconds < 0 or record.seed < 0:
        raise Damaged("'iterations', 'seconds' and 'seed' must not be negative")
    means = {
        "during": [row[task] for task, row in enumerate(record.accuracy)],
        "final": record.accuracy[-1],
    }
    for name, values in means.items():
        if not math.isclose(getattr(record, name), sum(values) / count, rel_tol=1e-6, abs_tol=1e-6):
            raise Damaged(f"'{name}' is not the mean of the accuracies that it stands for")


def _check_config(record: Record) -> None:
    """Whether the config is the one that the hash stands for, and of this run."""
    config = record.config
    if not stands_for(record.hash, config):
        raise Damaged("its config is not the one that its hash stands for")
    named = {"benchmark": mapping(config.get("benchmark"), "config.benchmark").get("name")}
    named |= {name: config.get(name) for name in ("method", "seed")}
    for name, value in named.items():
        if getattr(record, name) != value:
            raise Damaged(f"its '{name}' is not that of its config")
    for name in ("network", "weights", "penalties", "training"):
        if name in config:
            mapping(config[name], f"config.{name}")
