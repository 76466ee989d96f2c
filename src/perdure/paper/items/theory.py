"""The linear-RNN theory as a demonstration: tasks in orthogonal subspaces, until no more fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.analysis import choices
from perdure.analysis.statistics import number
from perdure.analysis.views import linear_theory
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, WithoutRuns

SIZES = {"smoke": (8, 2, 6), "laptop": (32, 4, 12), "paper": (256, 16, 24)}
"""Units n_h, dimensions p_k of a task, and the maximum number of tasks."""


APART, SHARING = "tasks that share nothing", "tasks that share half of their subspaces"
SHARED = choices.Theory(units=16, dimension=4, tasks=10)
"""The network in which tasks that share are compared with tasks that do not, at every scale."""
SOLVED = 1e-6
"""Relative error below which tasks count as solved."""


@dataclass(frozen=True)
class _Theory(WithoutRuns):
    title: str = "Linear RNNs: tasks without interference"
    source: str = "SM text (supp:linear:rnns)"
    about: str = (
        "Linear RNNs that learn more and more tasks, each in a subspace of p_k dimensions: tasks that share "
        "nothing, and tasks that share half of their subspace."
    )

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Tasks fit without interference as long as their dimensions do, and more fit if they share."""
        del scale
        fitting, beyond = ((f"relative error, {when}", "error") for when in ("while they fit", "beyond"))
        return (
            Claim(
                "tasks in orthogonal subspaces do not interfere while their dimensions add up to at most n_h",
                "the largest error of tasks that fit",
                ((1.0, *fitting),),
                "same",
                unit="of the required output",
                margin=1e-6,
            ),
            Claim(
                "tasks interfere once their dimensions add up to more",
                "the smallest error of tasks that do not fit",
                ((1.0, *beyond),),
                "more",
                unit="of the required output",
                margin=1e-6,
            ),
            Claim(
                "shared computation makes room for more tasks",
                "how many tasks fit that share half of their subspaces, minus how many that share nothing",
                ((1.0, SHARING, "tasks that fit"), (-1.0, APART, "tasks that fit")),
                "more",
                unit="tasks",
                margin=0.5,
            ),
        )

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """The paper gives the argument, not a figure."""
        del scale, given
        return "A numerical demonstration of the argument; the paper has no figure for it."

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """The largest error while the tasks fit, and the smallest beyond."""
        from matplotlib.figure import Figure

        units, dimension, tasks = SIZES[results.scale]
        fitting: dict[str, list[float]] = {APART: [], SHARING: []}
        errors: dict[str, list[float]] = {"while they fit": [], "beyond": []}
        figure = Figure(figsize=(6, 3.8), layout="constrained")
        for seed in range(results.seeds):
            options = choices.Theory(units=units, dimension=dimension, tasks=tasks, seed=seed)
            finding = linear_theory(options)
            total, error = (finding.columns.index(name) for name in ("sum of p_k", "error"))
            rows = [(float(row[total]), float(row[error])) for row in finding.rows]
            sharing = SHARED.model_copy(update={"seed": seed})
            for name, shared in ((APART, 0), (SHARING, SHARED.dimension // 2)):
                found = linear_theory(sharing.model_copy(update={"shared": shared}))
                fitting[name].append(float(sum(float(row[error]) < SOLVED for row in found.rows)))
            errors["while they fit"].append(max(value for size, value in rows if size <= units))
            errors["beyond"].append(min(value for size, value in rows if size > units))
            if seed == 0 and finding.draw is not None:
                axes = figure.subplots()
                finding.draw(axes)
                axes.axvline(units, linestyle=":", color="black", label="n_h")
                axes.legend(fontsize=8)
        command = f"perdure analyse theory --units {units} --dimension {dimension} --tasks {tasks}"
        cells = [
            TableCell(
                f"relative error, {when}", "error", number(values), command=command, values=tuple(values)
            )
            for when, values in errors.items()
        ]
        for name, counts in fitting.items():
            words = f"perdure analyse theory --units {SHARED.units} --dimension {SHARED.dimension}"
            words += f" --tasks {SHARED.tasks}"
            words += f" --shared {SHARED.dimension // 2}" if name == SHARING else ""
            cells.append(
                TableCell(name, "tasks that fit", number(counts), command=words, values=tuple(counts))
            )
        caption = (
            f"Relative error of a linear RNN of {units} units as tasks of {dimension} dimensions are added."
        )
        return cells, [Drawn("error", self.title, caption, figure)]


ITEM = _Theory()
