"""How flat the solutions of three methods are: the mean Fisher after each task."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.analysis import choices
from perdure.analysis.opened import OpenedRun
from perdure.analysis.statistics import number
from perdure.analysis.views import flatness
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

SAMPLES = {"smoke": 50, "laptop": 2000, "paper": None}
"""Training samples per Fisher; None: all."""
UNCOMPRESSED = 5.0
"""The hypernetwork is five times as large as the network, with as many weights as from-scratch has."""
SETTINGS = {
    "own": Setting("From-scratch", "permuted-copy", "from-scratch"),
    "uncompressed": Setting("HNET x 5", "permuted-copy", "hnet", {"weights.ratio": UNCOMPRESSED}),
    "accumulated": Setting("Online EWC", "permuted-copy", "online-ewc"),
}


@dataclass(frozen=True)
class _Flatness(Item):
    title: str = "Flatness of solutions"
    source: str = "SM Fig. (supp:fig:fisher:methods)"
    about: str = (
        "Task-specific solutions stay as flat as those learnt from scratch; Online EWC needs one "
        "solution for all tasks so far, so its Fisher values add up."
    )

    def settings(self, scale: str) -> list[Setting]:
        """Three methods."""
        del scale
        return list(SETTINGS.values())

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Mean Fisher after each task: the task's own, or that of all tasks so far for Online EWC."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 3.8), layout="constrained")
        axes = figure.subplots()
        cells: list[TableCell] = []
        for kind, setting in SETTINGS.items():
            column = 2 if kind == "accumulated" else 1
            options = choices.FlatnessOptions(samples=SAMPLES[results.scale])
            runs = [flatness(OpenedRun(results.folder(r), r), options).rows for r in results.of(setting)]
            numbers = []
            for task in range(len(runs[0])):
                values = [float(rows[task][column]) for rows in runs]
                numbers.append(number(values))
                cells.append(
                    TableCell(
                        setting.label,
                        f"after task {task + 1}",
                        numbers[-1],
                        command=results.command("flatness"),
                        hashes=tuple(record.hash for record in results.of(setting)),
                    )
                )
            axes.errorbar(
                range(1, len(numbers) + 1),
                [number.mean for number in numbers],
                yerr=[number.sem or 0 for number in numbers],
                marker="o",
                capsize=2,
                label=setting.label,
            )
        axes.set(xlabel="after task", ylabel="mean Fisher", yscale="log")
        axes.set_xticks(range(1, len(numbers) + 1))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        caption = "Mean of the diagonal empirical Fisher; for Online EWC, the sum over all tasks so far."
        return cells, [Drawn("fisher", self.title, caption, figure)]


ITEM = _Flatness()
