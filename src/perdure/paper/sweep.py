"""Figures of accuracy as a function of difficulty: one line per method, one point per setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.paper.comparison import COLUMNS, Row, RowsItem, cells_of
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns


@dataclass(frozen=True)
class SweepPoint:
    """One setting on a line."""

    line: str
    x: float
    row: Row


@dataclass(frozen=True)
class SweepItem(RowsItem):
    """A figure of lines, with all its numbers as a table."""

    axis: str
    """The label of the x axis."""
    points: Sequence[SweepPoint]

    def rows_at(self, scale: str) -> Sequence[Row]:
        """One row per point; lines may share some. At smoke scale only the ends of each line."""
        return [point.row for point in self._points(scale)]

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Cells of all points, and two panels of lines."""
        points = [point for point in self._points(results.scale) if results.of(point.row.setting)]
        cells = [cells_of(point.row, results) for point in points]
        return [cell for pair in cells for cell in pair], [self._drawn(points, cells)]

    def _points(self, scale: str) -> Sequence[SweepPoint]:
        """The points at a scale; for smoke, where all need only run, the ends of each line."""
        if scale != "smoke":
            return self.points
        lines: dict[str, list[SweepPoint]] = {}
        for point in self.points:
            lines.setdefault(point.line, []).append(point)
        return [end for line in lines.values() for end in (line[0], line[-1])]

    def _drawn(self, points: Sequence[SweepPoint], cells: Sequence[Sequence[TableCell]]) -> Drawn:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.4, 3.8), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        lines = list(dict.fromkeys(point.line for point in points))
        for number, column in enumerate(COLUMNS):
            axes = panels[number]
            for place, line in enumerate(lines):
                chosen = [
                    (point.x, pair[number])
                    for point, pair in zip(points, cells, strict=True)
                    if point.line == line
                ]
                colour = f"C{place}"
                ours = [(x, cell.ours) for x, cell in chosen if cell.ours]
                axes.errorbar(
                    [x for x, _ in ours],
                    [value.mean for _, value in ours],
                    yerr=[value.sem or 0 for _, value in ours],
                    marker="o",
                    capsize=2,
                    color=colour,
                    label=line,
                )
                theirs = [(x, cell.published) for x, cell in chosen if cell.published]
                axes.plot(
                    [x for x, _ in theirs], [value.mean for _, value in theirs], "--", color=colour, alpha=0.5
                )
            axes.set(xlabel=self.axis, title=column)
            axes.grid(alpha=0.3)
        panels[0].set_ylabel("accuracy (%)")
        panels[1].legend(fontsize=7)
        known = any(cell.published for pair in cells for cell in pair)
        caption = "Mean and standard error over seeds" + ("; dashed lines: published." if known else ".")
        return Drawn("lines", self.title, caption, figure)
