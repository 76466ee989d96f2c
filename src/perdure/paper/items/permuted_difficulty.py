"""Permuted Copy beside Copy: whether it is harder, and whether what lies closer in time is learnt first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.analysis.opened import OpenedRun
from perdure.analysis.paths import path_lengths, slope
from perdure.analysis.statistics import number
from perdure.analysis.steps import accuracy_per_step
from perdure.paper.conclusions import Claim, difference
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting
from perdure.paper.items.intuition import ACCURACY

CELLS = {"RNN": "elman", "LSTM": "lstm"}
LENGTH = {"smoke": 3, "laptop": 10, "paper": 10}
"""Steps of the pattern, p = i."""
ITERATIONS = {"smoke": 20, "laptop": 200, "paper": 200}
"""Few, the same for all: networks that have learnt everything show no bias."""
COPY, PERMUTED = "Copy", "Permuted Copy"
SLOPE = "points for each step further back"


def setting(cell: str, problem: str, scale: str) -> Setting:
    """Five networks, each on its own: five orders of recall, or five times the same."""
    benchmark = "permuted-copy" if problem == PERMUTED else "copy"
    options: Mapping[str, Any] = {
        "benchmark.i": LENGTH[scale],
        "benchmark.p": LENGTH[scale],
        "benchmark.tasks": 5,
        "network.cell": CELLS[cell],
        "training.iterations": ITERATIONS[scale],
        "training.validate_every": ITERATIONS[scale],
        "training.patience": None,
    }
    return Setting(f"{problem}, {cell}", benchmark, "from-scratch", options)


@dataclass(frozen=True)
class _PermutedDifficulty(Item):
    title: str = "Permuted Copy is harder than Copy"
    source: str = "SM text (supp:remarks:perm:copy:difficulty)"
    about: str = (
        "Networks learnt from scratch, equally briefly: the accuracy of Copy and of Permuted Copy, and for "
        "each output step of the latter its accuracy against the number of steps back to its input."
    )
    note: str = "The paper gives no numbers. Training ends early, so that there is a difference to be seen."

    def settings(self, scale: str) -> list[Setting]:
        """Both problems with both cells."""
        return [setting(cell, problem, scale) for cell in CELLS for problem in (COPY, PERMUTED)]

    def seeds(self, scale: str) -> int:
        """Five networks each."""
        return 1 if scale == "smoke" else 5

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Permuted Copy is harder, and what is closer in time is learnt first."""
        del scale
        harder = (
            difference(
                f"Permuted Copy is harder than Copy ({cell})",
                f"{COPY}, {cell}",
                f"{PERMUTED}, {cell}",
                column=ACCURACY,
            )
            for cell in CELLS
        )
        nearer = (
            Claim(
                f"inputs that lie closer in time to their outputs are learnt first ({cell})",
                "accuracy of an output step for each step further back to its input",
                ((1.0, f"{PERMUTED}, {cell}", SLOPE),),
                "less",
                margin=0.1,
            )
            for cell in CELLS
        )
        return (*harder, *nearer)

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Accuracy, spread of path lengths and slope of each setting, and all output steps as points."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.6, 3.6), layout="constrained")
        panels = figure.subplots(1, len(CELLS), sharey=True)
        cells: list[TableCell] = []
        for axes, cell in zip(panels, CELLS, strict=True):
            for problem, marker in ((PERMUTED, "o"), (COPY, "x")):
                chosen = setting(cell, problem, results.scale)
                points = [_points(OpenedRun(results.folder(r), r)) for r in results.of(chosen)]
                lengths, accuracies = zip(*(pair for run in points for pair in run), strict=True)
                axes.plot(lengths, accuracies, marker, markersize=3, alpha=0.5, label=problem)
                cells += _cells(chosen, points, results)
            axes.set(xlabel="steps back to the input", title=cell)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8)
        panels[0].set_ylabel("accuracy of an output step (%)")
        return cells, [Drawn("paths", self.title, "Each output step of each network of each seed.", figure)]


def _points(run: OpenedRun) -> list[tuple[float, float]]:
    """Path length and accuracy of each output step of each task."""
    found = []
    for task, built in enumerate(run.config.benchmark.for_run(run.record.seed).build()):
        phase = run.phase_of(task)
        scores = accuracy_per_step(*run.running(phase, task), run.data(phase)[task].test, task)
        lengths = path_lengths(built.test)
        found += [(float(length), score.accuracy) for length, score in zip(lengths, scores, strict=True)]
    return found


def _cells(
    chosen: Setting, points: Sequence[Sequence[tuple[float, float]]], results: FinishedRuns
) -> list[TableCell]:
    columns = {
        ACCURACY: [_mean([accuracy for _, accuracy in run]) for run in points],
        "mean steps back": [_mean([length for length, _ in run]) for run in points],
    }
    if chosen.benchmark == "permuted-copy":  # those of Copy are all equal
        columns[SLOPE] = [slope(*zip(*run, strict=True)) for run in points]
    return [
        TableCell(
            chosen.label,
            column,
            number(values),
            command=results.command("permuted-difficulty"),
            hashes=tuple(record.hash for record in results.of(chosen)),
            values=tuple(values),
        )
        for column, values in columns.items()
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


ITEM = _PermutedDifficulty()
