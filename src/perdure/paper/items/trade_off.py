"""What weight importance must trade off and a hypernetwork need not: Fig. 1, computed instead of drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from perdure.analysis.statistics import number
from perdure.analysis.trade_off import TwoTasks, best_ewc, ewc_path, hypernetwork_paths, two_tasks
from perdure.paper.conclusions import Claim, Expectation
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, WithoutRuns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EWC, HNET = "EWC, at its best strength", "HNET"
COLUMN = "loss of both tasks"
MARGIN = 1e-3
"""A loss below this counts as none; psi = 0 has a loss of about 1."""
TASKS = ("#0072b2", "#d55e00")
"""Colours of task 1 and task 2."""
LEVELS = (0.02, 0.08, 0.2, 0.4)
"""Losses at which contours are drawn."""


@dataclass(frozen=True)
class _TradeOff(WithoutRuns):
    title: str = "Two tasks over two weights: EWC trades off, a hypernetwork does not"
    source: str = "Fig. 1 (fig:schematics)"
    about: str = (
        "The loss of each task is a quadratic valley over two weights. EWC has its exact Fisher and the "
        "strength that is best with hindsight; the hypernetwork is linear and follows the gradient of Eq. 2."
    )

    def seeds(self, scale: str) -> int:
        """Pairs of random tasks; each takes a fifth of a second."""
        return 2 if scale == "smoke" else 20

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """A trade-off for EWC, none for the hypernetwork."""
        del scale
        said: tuple[tuple[str, str, str, Expectation], ...] = (
            (
                "weight importance leads to a trade-off between tasks",
                "the loss of both tasks that EWC leaves at its best strength",
                EWC,
                "more",
            ),
            (
                "a hypernetwork can have the solutions of both tasks",
                "the loss of both tasks that it leaves",
                HNET,
                "same",
            ),
        )
        return tuple(
            Claim(paper, what, ((1.0, row, COLUMN),), expects, unit="in loss", margin=MARGIN)
            for paper, what, row, expects in said
        )

    def differs(self, scale: str, given: Mapping[str, Any] | None = None) -> str:
        """The paper's figure is a drawing."""
        del scale, given
        return (
            "The paper has a schematic drawing without numbers; this is computed. With two weights, the "
            "hypernetwork has more parameters than the network (8 against 2), unlike in all runs."
        )

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """The loss that each leaves on random pairs of tasks, and a figure of the first pair."""
        from matplotlib.figure import Figure

        left: dict[str, list[float]] = {EWC: [], HNET: []}
        for seed in range(results.seeds):
            tasks = two_tasks(seed)
            compromise = best_ewc(tasks)
            first, second = hypernetwork_paths(tasks, seed)
            left[EWC].append(tasks.total(compromise, compromise))
            left[HNET].append(tasks.total(first[-1], second[-1]))
        cells = [
            TableCell(
                row,
                COLUMN,
                number(values),
                command=results.command("trade-off"),
                values=tuple(values),
            )
            for row, values in left.items()
        ]
        figure = Figure(figsize=(9, 4), layout="constrained")
        schematic, landscape = figure.subplots(1, 2, width_ratios=(1, 1.25))
        _draw_hypernetwork(schematic)
        _draw_landscape(landscape, two_tasks(0))
        caption = (
            "Left: a hypernetwork h generates the weights psi of a recurrent network f from a task's "
            "embedding. Right: contours of the losses of two tasks, the solutions of EWC for all strengths, "
            "and the path of the weights that a hypernetwork generates for task 2; those for task 1 return "
            "to psi_1."
        )
        return cells, [Drawn("schematics", self.title, caption, figure)]


def _draw_hypernetwork(axes: Axes) -> None:
    """e_k -> h(e_k, theta) -> psi, the weights of f, which reads x_t and answers y_t."""
    boxes = {
        0.88: "$\\mathbf{e}_k$",
        0.54: "hypernetwork $h(\\mathbf{e}_k, \\theta)$",
        0.2: "recurrent network $f$",
    }
    style = {"boxstyle": "round,pad=0.6", "facecolor": "#eef2f6", "edgecolor": "#5a6572"}
    for y, label in boxes.items():
        axes.text(0.5, y, label, ha="center", va="center", bbox=style)
    straight, bent = "arc3,rad=0", "arc3,rad=-1.2"
    for start, end, way in (
        ((0.5, 0.81), (0.5, 0.61), straight),
        ((0.5, 0.47), (0.5, 0.27), straight),
        ((0.06, 0.2), (0.25, 0.2), straight),
        ((0.75, 0.2), (0.94, 0.2), straight),
        ((0.58, 0.13), (0.42, 0.13), bent),
    ):
        look = {"arrowstyle": "->", "color": "#2f343c", "linewidth": 1.3, "connectionstyle": way}
        axes.annotate("", xy=end, xytext=start, arrowprops=look)
    for x, y, label in (
        (0.55, 0.37, "$\\psi$"),
        (0.1, 0.25, "$x_t$"),
        (0.9, 0.25, "$y_t$"),
        (0.63, 0.08, "$h_t$"),
    ):
        axes.text(x, y, label, ha="center", va="center")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()


def _draw_landscape(axes: Axes, tasks: TwoTasks) -> None:
    """Contours of both losses, EWC's solutions, and the path of the hypernetwork."""
    from matplotlib.lines import Line2D

    solutions, path = ewc_path(tasks), hypernetwork_paths(tasks, 0)[1]
    shown = torch.cat([tasks.minima, solutions, path])
    low, high = shown.amin(0) - 1, shown.amax(0) + 1
    x, y = (torch.linspace(float(low[axis]), float(high[axis]), 200) for axis in range(2))
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).to(tasks.minima.dtype)
    for task, colour in enumerate(TASKS):
        axes.contour(x, y, tasks.loss(task, grid), levels=LEVELS, colors=colour, linewidths=0.8, alpha=0.8)
        axes.plot(*tasks.minima[task], "*", color=colour, markersize=13)
        axes.annotate(
            f"$\\psi_{task + 1}$", tuple(tasks.minima[task]), xytext=(7, 5), textcoords="offset points"
        )
    axes.plot(*solutions.t(), ":", color="black", linewidth=1.4)
    axes.plot(*best_ewc(tasks), "s", color="black")
    axes.plot(*path.t(), "-", color="#009e73", linewidth=1.6)
    axes.set(xlabel="first weight", ylabel="second weight")
    axes.set_aspect("equal")
    axes.legend(
        handles=[
            Line2D([], [], color="black", linestyle=":", marker="s", label="EWC, all strengths and the best"),
            Line2D([], [], color="#009e73", label="weights generated for task 2"),
            *(
                Line2D([], [], color=colour, label=f"loss of task {task}")
                for task, colour in enumerate(TASKS, 1)
            ),
        ],
        fontsize=7,
        loc="best",
    )


ITEM = _TradeOff()
