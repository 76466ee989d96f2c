"""The result of an analysis: a table of numbers, and a way to draw it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Value = str | float | int
Draw = Callable[["Axes"], None]
"""Draws a finding on matplotlib axes."""


@dataclass(frozen=True)
class Finding:
    """A title, a table, and optionally a drawing."""

    title: str
    columns: list[str]
    rows: list[list[Value]]
    """One value per column; NaN where there is none."""
    draw: Draw | None = None

    @property
    def json(self) -> dict[str, Any]:
        """As plain data; non-finite values become null, since JSON cannot represent them."""
        rows = [
            [None if isinstance(value, float) and not math.isfinite(value) else value for value in row]
            for row in self.rows
        ]
        return {"title": self.title, "columns": self.columns, "rows": rows}


def lines(
    x: Sequence[float], series: Mapping[str, Sequence[float]], across: str, upwards: str, *, log: bool = False
) -> Draw:
    """One line per named series; shorter series end earlier."""

    def draw(axes: Axes) -> None:
        for name, values in series.items():
            axes.plot(x[: len(values)], values, marker="o", markersize=3, label=name)
        axes.set(xlabel=across, ylabel=upwards)
        if log:
            axes.set_yscale("log")
        axes.grid(alpha=0.3)
        if len(series) > 1:
            axes.legend(fontsize=8)

    return draw


def matrix(values: Sequence[Sequence[float]], label: str) -> Draw:
    """A heat map of all pairs of tasks."""

    def draw(axes: Axes) -> None:
        image = axes.imshow(values, cmap="viridis")
        numbers = range(len(values))
        axes.set_xticks(numbers, [str(number + 1) for number in numbers])
        axes.set_yticks(numbers, [str(number + 1) for number in numbers])
        axes.set(xlabel="task", ylabel="task")
        axes.figure.colorbar(image, ax=axes, label=label, shrink=0.85)

    return draw


def pairs(title: str, tasks: Sequence[int], values: Sequence[Sequence[float]], label: str) -> Finding:
    """A finding about all pairs of tasks (counted from 0)."""
    columns = ["task", *(f"task {task + 1}" for task in tasks)]
    rows: list[list[Value]] = [[f"task {task + 1}", *row] for task, row in zip(tasks, values, strict=True)]
    return Finding(title, columns, rows, matrix(values, label))


def beside(title: str, first: str, series: Mapping[str, Sequence[float]], upwards: str) -> Finding:
    """A finding of several series over the same steps (from 1), one column each; NaN after a series ends."""
    longest = max((len(values) for values in series.values()), default=0)
    rows: list[list[Value]] = [
        [step + 1, *(values[step] if step < len(values) else math.nan for values in series.values())]
        for step in range(longest)
    ]
    return Finding(title, [first, *series], rows, lines(range(1, longest + 1), series, first, upwards))
