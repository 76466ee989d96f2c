"""Tables that compare methods: during and final accuracy, next to the published numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from perdure.analysis.statistics import NOT_DECIDED, Number, number, seeds_needed, verdict
from perdure.config import DATA_SEED, OWN_SEED
from perdure.paper.conclusions import Claim
from perdure.paper.findings import Pair, TableCell
from perdure.paper.item import Drawn, FinishedRuns, Item, Setting
from perdure.paper.pairs import pairs_of
from perdure.storage.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("during", "final")
VARIED = "final, data vary with the seed"
"""A further column, for rows that were also run with data of their own for each seed."""
OURS, PUBLISHED = "#1f77b4", "#7f7f7f"
ROW_HEIGHT = 0.34
"""Height of a row of a figure in inches."""


def percent(mean: float, sem: float | None = None, n: int = 10) -> Number:
    """A published number."""
    return Number(mean, sem, n)


@dataclass(frozen=True)
class Row:
    """A row of a table: a setting, and its published numbers."""

    setting: Setting
    published: Mapping[str, Number] = field(default_factory=dict)
    """By column; missing if the paper has none."""


def row(
    label: str,
    benchmark: str,
    method: str,
    during: tuple[float, float] | None = None,
    final: tuple[float, float] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    n: int = 10,
) -> Row:
    """Shorthand for a row: published mean and SEM of both columns, and options beyond the preset."""
    given = {"during": during, "final": final}
    published = {name: percent(*pair, n) for name, pair in given.items() if pair is not None}
    return Row(Setting(label, benchmark, method, options or {}), published)


@dataclass(frozen=True)
class RowsItem(Item):
    """An item whose numbers are those of rows, each of one setting, with what the paper concludes of them."""

    from_records: ClassVar[bool] = True

    title: str
    source: str
    about: str
    _: KW_ONLY
    claims: Sequence[Claim] = ()
    """What the paper concludes."""
    note: str = ""
    laptop_seeds: int = 5
    """Seeds at laptop scale: fewer for what takes long."""
    scales: Sequence[str] = Item.scales

    @abstractmethod
    def rows_at(self, scale: str) -> Sequence[Row]:
        """All rows that it has at a scale."""

    def settings(self, scale: str) -> list[Setting]:
        """One setting per row."""
        return [row.setting for row in self.rows_at(scale)]

    def seeds(self, scale: str) -> int:
        """The default number of seeds."""
        return self.laptop_seeds if scale == "laptop" else super().seeds(scale)

    def findings_of_the_paper(self, scale: str) -> Sequence[Claim]:
        """The same at every scale."""
        del scale
        return self.claims

    def pairs(self, results: FinishedRuns) -> list[Pair]:
        """All pairs of rows of the same benchmark."""
        return pairs_of(finished(self.rows_at(results.scale), results), results)


@dataclass(frozen=True)
class ComparisonItem(RowsItem):
    """A table of methods."""

    rows: Sequence[Row]

    def rows_at(self, scale: str) -> Sequence[Row]:
        """The same at every scale."""
        del scale
        return self.rows

    def evaluate(self, results: FinishedRuns) -> tuple[list[TableCell], list[Drawn]]:
        """Two cells per row, and one figure of all rows."""
        cells = [cell for row in finished(self.rows, results) for cell in cells_of(row, results)]
        return cells, [self._drawn(cells)]

    def _drawn(self, cells: Sequence[TableCell]) -> Drawn:
        from matplotlib.figure import Figure

        rows = len({cell.row for cell in cells})
        figure = Figure(figsize=(7.2, 1.1 + ROW_HEIGHT * rows), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, column in ((left, "during"), (right, "final")):
            draw_column(axes, [cell for cell in cells if cell.column == column])
            axes.set_title(column)
        left.set_ylim(rows - 0.5, -0.5)  # the first row at the top, none at the edge
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
        caption = "Accuracy in percent, mean and standard error over seeds; hollow: published."
        return Drawn("comparison", self.title, caption, figure)


def finished(rows: Sequence[Row], results: FinishedRuns) -> list[Row]:
    """The rows that have records; all of them, unless seeds may be missing."""
    return [row for row in rows if results.of(row.setting)]


def cells_of(row: Row, results: FinishedRuns) -> list[TableCell]:
    """During and final of one row, and final with varying data if there are such runs."""
    records = results.of(row.setting)
    hashes = tuple(record.hash for record in records)
    label, remark = row.setting.label, records[0].oversized
    command = row.setting.given(results.given, results.scale).command(results.scale, len(records))
    cells = []
    for column in COLUMNS:
        ours, published = results.number(row.setting, column), row.published.get(column)
        judged = verdict(ours, published) if published and results.comparable(row.setting) else ""
        needed = seeds_needed(ours, published) if published and judged == NOT_DECIDED else None
        values = tuple(results.values(row.setting, column))
        cells.append(
            TableCell(label, column, ours, published, judged, command, hashes, needed, values, remark)
        )
    varied = None if DATA_SEED in results.given else results.with_own_data(row.setting)
    if varied is not None:
        cells.append(_varied(row.setting, varied, results))
    return cells


def _varied(setting: Setting, records: Sequence[Record], results: FinishedRuns) -> TableCell:
    """Final accuracy with data that vary with the seed; the paper has no such runs."""
    own = setting.given({**results.given, DATA_SEED: OWN_SEED}, results.scale)
    values = tuple(record.final for record in records)
    return TableCell(
        setting.label,
        VARIED,
        number(values),
        command=own.command(results.scale, len(records)),
        hashes=tuple(record.hash for record in records),
        values=values,
        remark=records[0].oversized,
    )


def draw_column(axes: Axes, cells: Sequence[TableCell]) -> None:
    """Our numbers as dots with error bars, published ones as hollow markers; one line per row."""
    axes.grid(axis="x", alpha=0.3)
    for place, cell in enumerate(cells):
        for value, colour, fill, label in (
            (cell.published, PUBLISHED, "none", "published"),
            (cell.ours, OURS, OURS, "ours"),
        ):
            if value is not None:
                axes.errorbar(
                    value.mean,
                    place,
                    xerr=value.sem or 0,
                    fmt="o",
                    color=colour,
                    markerfacecolor=fill,
                    capsize=2,
                    label=label if place == len(cells) - 1 else None,
                )
    axes.set_yticks(range(len(cells)), [cell.row for cell in cells])
    axes.set_xlabel("accuracy (%)")
