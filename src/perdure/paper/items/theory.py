"""The linear-RNN theory as a demonstration: tasks in orthogonal subspaces, until no more fit."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.analysis import choices
from perdure.analysis.statistics import number
from perdure.analysis.views import linear_theory
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting

SIZES = {"smoke": (8, 2, 6), "laptop": (32, 4, 12), "paper": (256, 16, 24)}
"""Units n_h, dimensions p_k of a task, and the maximum number of tasks."""


@dataclass(frozen=True)
class _Theory(Item):
    title: str = "Linear RNNs: tasks without interference"
    source: str = "SM text (supp:linear:rnns)"
    about: str = (
        "A linear RNN solves K tasks without interference if each has its own subspace: orthogonal subspaces "
        "and a block-diagonal recurrent matrix, as long as the dimensions p_k add up to at most n_h."
    )

    def settings(self, scale: str) -> list[Setting]:
        """None; it needs no runs."""
        del scale
        return []

    def differs(self, scale: str) -> str:
        """The paper gives the argument, not a figure."""
        del scale
        return "A numerical demonstration of the argument; the paper has no figure for it."

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """The largest error while the tasks fit, and the smallest beyond."""
        from matplotlib.figure import Figure

        units, dimension, tasks = SIZES[results.scale]
        errors: dict[str, list[float]] = {"while they fit": [], "beyond": []}
        figure = Figure(figsize=(6, 3.8), layout="constrained")
        for seed in range(results.seeds):
            options = choices.Theory(units=units, dimension=dimension, tasks=tasks, seed=seed)
            finding = linear_theory(options)
            total, error = (finding.columns.index(name) for name in ("sum of p_k", "error"))
            rows = [(float(row[total]), float(row[error])) for row in finding.rows]
            errors["while they fit"].append(max(value for size, value in rows if size <= units))
            errors["beyond"].append(min(value for size, value in rows if size > units))
            if seed == 0 and finding.draw is not None:
                axes = figure.subplots()
                finding.draw(axes)
                axes.axvline(units, linestyle=":", color="black", label="n_h")
                axes.legend(fontsize=8)
        command = f"perdure analyse theory --units {units} --dimension {dimension} --tasks {tasks}"
        cells = [
            TableCell(f"relative error, {when}", "error", number(values), command=command)
            for when, values in errors.items()
        ]
        caption = (
            f"Relative error of a linear RNN of {units} units as tasks of {dimension} dimensions are added."
        )
        return cells, [Drawn("error", self.title, caption, figure)]


ITEM = _Theory()
