"""The summary of the data: classes, samples, features and steps of each benchmark, as built here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from perdure.analysis.statistics import Number
from perdure.benchmarks.task import Task
from perdure.errors import PerdureError
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Setting, WithoutRuns

PUBLISHED: dict[str, dict[str, float]] = {
    "Permuted Copy": {"training": 100_000, "validation": 1_000, "test": 1_000, "features": 8, "steps": 11},
    "SMNIST": {
        "outputs": 2,
        "training": 12_000,
        "validation": 1_000,
        "test": 2_000,
        "features": 4,
        "steps": 117,
    },
    "AudioSet": {
        "outputs": 10,
        "training": 7_500,
        "validation": 500,
        "test": 2_000,
        "features": 128,
        "steps": 10,
    },
    "PoS": {"outputs": 17, "training": 9_582, "validation": 1_492, "test": 1_467, "features": 64},
}
"""SM Table (supp:tab:datasets); steps of PoS are a mean over sentences there, and left out."""
BENCHMARKS = {"Permuted Copy": "permuted-copy", "SMNIST": "smnist", "AudioSet": "audioset", "PoS": "pos"}


def _facts(tasks: Sequence[Task]) -> dict[str, list[float]]:
    """Each fact of each task."""
    return {
        "outputs": [task.outputs for task in tasks],
        "training": [len(task.train) for task in tasks],
        "validation": [len(task.val) for task in tasks],
        "test": [len(task.test) for task in tasks],
        "features": [task.inputs for task in tasks],
        "steps": [max(len(task.train.x[0]), len(task.test.x[0])) for task in tasks],
    }


@dataclass(frozen=True)
class _DataSets(WithoutRuns):
    title: str = "Summary of the data"
    source: str = "SM Table (supp:tab:datasets)"
    about: str = (
        "Samples, features and steps (the longest sequence) of a task, as a mean over tasks. Benchmarks "
        "whose raw data are missing are left out."
    )

    def seeds(self, scale: str) -> int:
        """There is no chance in it."""
        del scale
        return 1

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """What is different about the data at a scale."""
        settings = [Setting(label, name, "fine-tuning") for label, name in BENCHMARKS.items()]
        said = [setting.given(given or {}, scale).problem(scale).differs for setting in settings]
        return " ".join(part for part in said if part)

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """A summary concludes nothing."""
        del scale
        return ()

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """A row for each benchmark that can be built."""
        cells: list[TableCell] = []
        for label, benchmark in BENCHMARKS.items():
            setting = Setting(label, benchmark, "fine-tuning")
            try:
                facts = _facts(results.problem(setting).build())
            except PerdureError:
                continue
            for column, values in facts.items():
                theirs = PUBLISHED[label].get(column)
                ours = Number(fmean(values), None, 0)  # tasks are no seeds, so there is no error
                published = None if theirs is None else Number(theirs, None, 0)
                # No verdict: sizes are given, and would count among the results that agree.
                cells.append(TableCell(label, column, ours, published, "", results.command("data-sets")))
        return cells, []


ITEM = _DataSets()
