"""How many dimensions of the hidden state the tasks need, as Online EWC learns one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.analysis import choices
from perdure.analysis.opened import OpenedRun
from perdure.analysis.views import supervised
from perdure.paper.findings import Cell
from perdure.paper.item import Drawn, Item, Results, Setting, over_seeds

EWC = Setting("Online EWC", "permuted-copy", "online-ewc")
SIZES = {"smoke": (5, 3), "laptop": (50, 60), "paper": (256, 100)}
"""Dimensions at the most, and steps of Adam for each."""
ENOUGH = 0.95
"""Part of the best accuracy that counts as reached."""


@dataclass(frozen=True)
class _Supervised(Item):
    title: str = "Dimensions that the tasks need"
    source: str = "SM Fig. (supp:fig:supervised_dim_red), n = 5"
    about: str = (
        "The hidden states are projected on the n dimensions that serve all tasks so far best. The "
        "more tasks are "
        "learnt, the more dimensions it takes."
    )

    def settings(self, scale: str) -> list[Setting]:
        """Online EWC on the Permuted Copy Task, the runs of Table 1."""
        del scale
        return [EWC]

    def differs(self, scale: str) -> str:
        """Beside the scale: where the search for dimensions ends."""
        columns, iterations = SIZES[scale]
        size = f"At most {columns} dimensions, {iterations} steps of Adam for each."
        return f"{super().differs(scale)} {size}".strip()

    def evaluate(self, results: Results) -> tuple[list[Cell], list[Drawn]]:
        """A curve for each number of tasks."""
        from matplotlib.figure import Figure

        columns, iterations = SIZES[results.scale]
        options = choices.Supervised(every=True, columns=columns, iterations=iterations)
        records = results.of(EWC)
        tables = [supervised(OpenedRun(results.folder(record), record), options) for record in records]
        figure = Figure(figsize=(5.8, 3.9), layout="constrained")
        axes = figure.subplots()
        cells: list[Cell] = []
        for phase in range(1, len(tables[0].columns)):
            curves = [[float(row[phase]) for row in table.rows] for table in tables]
            means = [
                over_seeds([curve[n] for curve in curves], str(phase), str(n)) for n in range(len(curves[0]))
            ]
            axes.errorbar(
                range(1, len(means) + 1),
                [mean.mean for mean in means],
                yerr=[mean.sem or 0 for mean in means],
                elinewidth=0.6,
                label=f"{phase} task{'s' if phase > 1 else ''}",
            )
            needed = [
                next(n + 1 for n, value in enumerate(curve) if value >= ENOUGH * max(curve))
                for curve in curves
            ]
            cells.append(
                Cell(
                    f"after task {phase}",
                    f"dimensions to {100 * ENOUGH:g} % of the best",
                    over_seeds([float(n) for n in needed], "needed", str(phase)),
                    command=EWC.command(results.scale, results.seeds),
                    hashes=tuple(record.hash for record in records),
                )
            )
        axes.set(xlabel="dimensions n", ylabel="test accuracy (%)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        caption = "Mean test accuracy of all tasks so far with n dimensions of the hidden state; bars: SEM."
        return cells, [Drawn("accuracy", self.title, caption, figure)]


ITEM = _Supervised()
