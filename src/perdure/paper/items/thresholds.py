"""Intrinsic dimensions of the hidden state with other thresholds and with kernel PCA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perdure.analysis.dimensionality import THRESHOLD, dimension_per_step
from perdure.analysis.opened import OpenedRun
from perdure.paper.conclusions import Claim
from perdure.paper.findings import TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting
from perdure.paper.items.intuition import FORMS, SAMPLES
from perdure.paper.solved import RULE, counted, counting_cell

FISHER = FORMS[0]
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
KERNEL = f"kernel PCA, {100 * THRESHOLD:g} %"


def _column(threshold: float) -> str:
    return f"{100 * threshold:g} %"


def _row(i: int) -> str:
    return f"i = p = {i}"


@dataclass(frozen=True)
class _Thresholds(Item):
    title: str = "Intrinsic dimensions: thresholds and kernel PCA"
    source: str = "Sec. 4, footnote, and SM text (supp:exp:details:copy)"
    about: str = (
        "The largest dimension of h_t over all steps, by the fraction of the variance to be explained, and "
        "by kernel PCA with the cosine kernel; the runs are those of the intuition figure."
    )
    note: str = RULE

    def settings(self, scale: str) -> list[Setting]:
        """Patterns as long as the input."""
        return FISHER.tied(scale)

    def seeds(self, scale: str) -> int:
        """As the intuition figure."""
        return 1 if scale == "smoke" else 5

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """Other thresholds show the same; kernel PCA shows growth where PCA ends."""
        lengths = FISHER.lengths[scale]
        shortest, longest = _row(lengths[0]), _row(lengths[-1])
        claims = [
            Claim(
                f"the dimension grows with the pattern also with a threshold of {_column(threshold)}",
                f"largest dimension at {_column(threshold)}, {longest} minus {shortest}",
                ((1.0, longest, _column(threshold)), (-1.0, shortest, _column(threshold))),
                "more",
                unit="dimensions",
            )
            for threshold in THRESHOLDS
        ]
        before = _row(lengths[-3]) if len(lengths) > 2 else shortest
        return [
            *claims,
            Claim(
                "by kernel PCA the dimension still grows for the longest patterns",
                f"largest dimension by kernel PCA, {longest} minus {before}",
                ((1.0, longest, KERNEL), (-1.0, before, KERNEL)),
                "more",
                unit="dimensions",
            ),
        ]

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """A row for each length, a column for each threshold; and a figure of them."""
        from matplotlib.figure import Figure

        cells: list[TableCell] = []
        lengths = FISHER.lengths[results.scale]
        for i, setting in zip(lengths, self.settings(results.scale), strict=True):
            records, _ = counted(results, setting)
            states = [OpenedRun(results.folder(each), each).states(0, 0, SAMPLES) for each in records]
            found = {
                _column(threshold): [max(dimension_per_step(each, threshold)) for each in states]
                for threshold in THRESHOLDS
            }
            found[KERNEL] = [max(dimension_per_step(each, kernel=True)) for each in states]
            for column, dimensions in found.items():
                values = tuple(float(value) for value in dimensions)
                cell = counting_cell(results, setting, column, values, "thresholds")
                cells.append(replace(cell, row=_row(i)))
        figure = Figure(figsize=(6, 3.8), layout="constrained")
        axes = figure.subplots()
        for column in [*(_column(threshold) for threshold in THRESHOLDS), KERNEL]:
            places = [
                (i, cell.ours.mean)
                for i in lengths
                for cell in cells
                if (cell.row, cell.column) == (_row(i), column) and cell.ours
            ]
            style = ":" if column == KERNEL else "-"
            axes.plot(
                [i for i, _ in places],
                [mean for _, mean in places],
                marker="o",
                linestyle=style,
                label=column,
            )
        axes.set(xlabel="input length i = p", ylabel="largest dimension of h_t")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
        return cells, [Drawn("dimensions", self.title, "Mean over seeds.", figure)]


ITEM = _Thresholds()
