"""The runs in the report: one line each, their data for the charts, and means by method."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.analysis.statistics import mean_and_sem
from perdure.compare.answer import forgetting
from perdure.options import option_text
from perdure.report.charts import Tick, percent_axis
from perdure.report.numbers import SPACE, duration, plain, points, points_with_error, significant, size, whole
from perdure.report.reproduce import command_of, option_values
from perdure.storage.record import Record

POINTS = 100
"""Maximum number of points of a curve; a screen shows no more."""

SAMPLE = "a stored sample"
"""An entry of a record's memory that is part of another one."""


def memory(record: Record) -> int:
    """Bytes that must outlive the last task; 0 if an older record does not tell."""
    return record.kept_bytes[-1] if record.kept else 0


def memory_text(count: float) -> str:
    """Bytes with a unit."""
    return size(count) if count else "not counted"


@dataclass(frozen=True)
class Run:
    """A line of the table of runs."""

    id: str
    record: Record
    during: str
    final: str
    forgetting: str
    forgetting_value: float
    time: str
    trained: str
    memory: str
    memory_value: int


def run_line(identity: str, record: Record) -> Run:
    """A record as a line."""
    lost = forgetting(record)
    return Run(
        id=identity,
        record=record,
        during=points(record.during),
        final=points(record.final),
        forgetting=points(lost),
        forgetting_value=lost,
        time=duration(record.seconds),
        trained=whole(record.parameters.get("trained", 0)),
        memory=memory_text(memory(record)),
        memory_value=memory(record),
    )


def run_data(record: Record) -> dict[str, Any]:
    """Everything that the charts and lists of one run need, rounded and thinned."""
    return {
        "hash": record.hash,
        "benchmark": record.benchmark,
        "method": record.method,
        "seed": record.seed,
        "tasks": record.tasks,
        "during": points(record.during),
        "final": points(record.final),
        "forgetting": points(forgetting(record)),
        "score": record.score,
        "accuracy": _rounded(record.accuracy),
        **({"f1": _rounded(record.f1)} if record.f1 else {}),
        **({"error": [[plain(value) for value in row] for row in record.error]} if record.error else {}),
        "iterations": record.iterations,
        "curves": thinned(record),
        "timings": [{name: duration(value) for name, value in times.items()} for times in record.timings],
        "facts": _facts(record),
        "config": _grouped(option_values(record.config)),
        "command": command_of(record),
    }


def _rounded(matrix: Sequence[Sequence[float]]) -> list[list[float | None]]:
    """Two decimals, and none where both are 0: with many tasks, the page is mostly these."""
    return [
        [None if (kept := significant(value, 12)) is None else _short(round(kept, 2)) for value in row]
        for row in matrix
    ]


def _short(value: float) -> float:
    return int(value) if value == int(value) else value


def _facts(record: Record) -> list[list[str]]:
    """Sizes and times as pairs of name and text."""
    facts = [[f"parameters, {name}", whole(count)] for name, count in record.parameters.items()]
    facts += [[f"kept, {name}", size(count)] for name, count in (record.kept or [{}])[-1].items()]
    facts += [["kept in all", size(memory(record))]] if record.kept else []
    facts += [[name, size(count)] for name, count in record.memory.items() if name == SAMPLE]
    facts.append(["time", duration(record.seconds)])
    facts += [[name, text] for name, text in record.machine.items()]
    return [*facts, *([name, text] for name, text in record.versions.items())]


def _grouped(options: Mapping[str, Any]) -> list[list[Any]]:
    """Options by section: [section, [[name, text], ...]]."""
    sections: dict[str, list[list[str]]] = {}
    for name, value in options.items():
        section, _, field = name.rpartition(".")
        sections.setdefault(section, []).append([field, option_text(value)])
    return [[section, pairs] for section, pairs in sections.items()]


def thinned(record: Record) -> dict[str, Any]:
    """Curves over all phases: iteration, phase, and each value by name, at most POINTS of each.

    Iterations are counted across phases. A value missing from a point is null.
    """
    points: list[tuple[int, float, dict[str, float]]] = []
    before = 0
    for phase, curve in enumerate(record.curves):
        points += [(phase, before + values.get("iteration", 0), values) for values in curve]
        before += record.iterations[phase] if phase < len(record.iterations) else 0
    if len(points) > POINTS:
        spread = (len(points) - 1) / (POINTS - 1)
        points = [points[round(number * spread)] for number in range(POINTS)]
    names = dict.fromkeys(name for _, _, values in points for name in values if name != "iteration")
    return {
        "iteration": [iteration for _, iteration, _ in points],
        "phase": [phase for phase, _, _ in points],
        "values": {
            name: [significant(values[name]) if name in values else None for _, _, values in points]
            for name in names
        },
    }


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with its text, and the length of its bar in percent of the longest."""

    text: str
    value: float
    share: float = 0.0


@dataclass(frozen=True)
class Summary:
    """One method with one choice of settings on a benchmark, over its seeds."""

    method: str
    settings: str
    """The options that distinguish it from other summaries of the same method."""
    n: int
    during: Mean
    final: Mean
    forgetting: Mean
    network: str
    trained: Mean
    memory: Mean
    seconds: Mean

    @property
    def told(self) -> str:
        """A description, used as a tooltip."""
        return f"{self.method}: during {self.during.text}, final {self.final.text} (n = {self.n})"


@dataclass(frozen=True)
class ProblemComparison:
    """All methods on one problem: a benchmark with one choice of its options."""

    benchmark: str
    settings: str
    """The benchmark options that distinguish it from other problems."""
    summaries: list[Summary]
    low: float
    high: float
    ticks: list[Tick]
    score: str
    """What the percentages measure."""

    def place(self, mean: Mean) -> str:
        """The position of an accuracy on the axis, in percent."""
        share = (mean.value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.1f}"


def comparisons(records: Sequence[Record]) -> list[ProblemComparison]:
    """Means over seeds, by problem, best final accuracy first; problems with the most methods come first.

    Accuracies on different problems, such as one digit and four, say nothing about which method is better.
    """
    problems: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        options = json.dumps(record.config.get("benchmark"), sort_keys=True)
        problems[record.benchmark][options].append(record)
    result = []
    for benchmark, groups in problems.items():
        for group in groups.values():
            summaries = _summaries(group)
            low, high, ticks = percent_axis([m.value for one in summaries for m in (one.during, one.final)])
            settings = _distinction(group, list(groups.values()), "benchmark.")
            result.append(ProblemComparison(benchmark, settings, summaries, low, high, ticks, group[0].score))
    return sorted(result, key=lambda one: (-len(one.summaries), one.benchmark))


def _summaries(records: Sequence[Record]) -> list[Summary]:
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        settings = {name: value for name, value in record.config.items() if name != "seed"}
        groups[record.method, json.dumps(settings, sort_keys=True)].append(record)
    longest = {name: max(_average(group, of) for group in groups.values()) for name, of in MEASURES.items()}
    made = []
    for (method, _), group in groups.items():
        rivals = [other for (name, _), other in groups.items() if name == method]
        made.append(
            Summary(
                method=method,
                settings=", ".join(filter(None, (_distinction(group, rivals), group[0].oversized))),
                n=len(group),
                during=_accuracy(group, lambda record: record.during),
                final=_accuracy(group, lambda record: record.final),
                forgetting=_accuracy(group, forgetting),
                network=whole(_average(group, lambda record: record.parameters.get("network", 0))),
                trained=_bar(group, "trained", whole, longest),
                memory=_bar(group, "memory", memory_text, longest),
                seconds=_bar(group, "seconds", duration, longest),
            )
        )
    return sorted(made, key=lambda one: (-one.final.value, one.method, one.settings))


MEASURES: dict[str, Callable[[Record], float]] = {
    "trained": lambda record: record.parameters.get("trained", 0),
    "memory": memory,
    "seconds": lambda record: record.seconds,
}
"""The costs of a method."""


def _average(group: Iterable[Record], of: Callable[[Record], float]) -> float:
    values = [of(record) for record in group]
    return sum(values) / len(values)


def _accuracy(group: Sequence[Record], of: Callable[[Record], float]) -> Mean:
    mean, sem = mean_and_sem([of(record) for record in group])
    return Mean(points_with_error(mean, sem), mean)


def _bar(
    group: Sequence[Record], name: str, text: Callable[[float], str], longest: Mapping[str, float]
) -> Mean:
    mean = _average(group, MEASURES[name])
    return Mean(text(mean), mean, 100 * mean / longest[name] if longest[name] else 0.0)


def _distinction(group: Sequence[Record], rivals: Sequence[Sequence[Record]], section: str = "") -> str:
    """The options, optionally of one section, that distinguish a group from its rivals, with its values."""
    if len(rivals) < 2:
        return ""
    mine = option_values(group[0].config)
    others = [option_values(rival[0].config) for rival in rivals]
    different = [
        name
        for name, value in mine.items()
        if name.startswith(section) and any(other.get(name, ...) != value for other in others)
    ]
    return ", ".join(f"{name.rpartition('.')[2]}{SPACE}{option_text(mine[name])}" for name in different)
