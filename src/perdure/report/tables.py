"""Tables of records for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from perdure.analysis.finding import Finding
from perdure.analysis.statistics import NOT_DECIDED, Number, mean_and_sem
from perdure.paper.findings import Findings
from perdure.paper.pairs import order_summary
from perdure.report.numbers import would_decide
from perdure.storage.record import Record


def accuracy_tables(record: Record) -> list[Table]:
    """The accuracy matrix: one row per phase, one column per task; green is good.

    If targets are values, a similar table of their errors follows.
    """
    title = f"{record.benchmark}, {record.method}, seed {record.seed}: test"
    percent = [[Text(f"{value:.2f}", style=_shade(value)) for value in row] for row in record.accuracy]
    tables = [_matrix(f"{title} {record.score} in percent", percent)]
    if record.error:
        plain = [[Text(f"{value:.4g}") for value in row] for row in record.error]
        tables.append(_matrix(f"{title} error (root mean square, in the units of the data)", plain))
    return tables


def _matrix(title: str, rows: Sequence[Sequence[Text]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("after task")
    for task in range(len(rows[0])):
        table.add_column(f"task {task + 1}", justify="right")
    for phase, row in enumerate(rows):
        table.add_row(str(phase + 1), *row)
    return table


def _shade(value: float) -> str:
    return "green" if value >= 95 else "yellow" if value >= 70 else "red"


def summary(records: Sequence[Record]) -> str:
    """During and final over seeds, as mean +- SEM with n."""
    parts = []
    for name in ("during", "final"):
        mean, sem = mean_and_sem([getattr(record, name) for record in records])
        parts.append(f"{name} {mean:.2f}" + ("" if sem is None else f" ± {sem:.2f}"))
    count = f" (n = {len(records)}, mean ± SEM)" if len(records) > 1 else ""
    return ", ".join(parts) + " %" + _unusual(records[0]) + count


def _unusual(record: Record) -> str:
    """What the percentages measure, if not accuracy."""
    return "" if record.score == Record.score else f" {record.score}"


def list_table(records: Sequence[Record]) -> Table:
    """All runs of a folder, one per line."""
    table = Table()
    for column in ("run", "benchmark", "method"):
        table.add_column(column)
    for column in ("seed", "during", "final", "seconds"):
        table.add_column(column, justify="right")
    for record in sorted(records, key=lambda r: (r.benchmark, r.method, r.seed)):
        table.add_row(
            record.hash,
            record.benchmark,
            record.method,
            str(record.seed),
            f"{record.during:.2f}{_unusual(record)}",
            f"{record.final:.2f}{_unusual(record)}",
            f"{record.seconds:.0f}",
        )
    return table


def findings_table(findings: Findings) -> Table:
    """An item's cells: ours, published, difference and verdict."""
    table = Table(title=Text(f"{findings.title} ({findings.source})"), title_justify="left")
    table.add_column("")
    table.add_column("")
    for column in ("ours", "published", "difference"):
        table.add_column(column, justify="right")
    table.add_column("")
    for cell in findings.cells:
        ours, published = cell.ours, cell.published
        gap = f"{ours.mean - published.mean:+.2f}" if ours and published else ""
        judged = cell.verdict + (f" ({would_decide(cell.needed)})" if cell.verdict == NOT_DECIDED else "")
        table.add_row(cell.row, cell.column, number_text(ours), number_text(published), gap, judged)
    below = [words for words in (order_summary(findings.pairs), findings.differs) if words]
    if below:
        table.caption, table.caption_justify = Text("\n".join(below)), "left"
    return table


def number_text(value: Number | None) -> str:
    """Mean ± SEM (n), without n if it is unknown."""
    if value is None:
        return ""
    digits = ".2f" if abs(value.mean) >= 1 else ".3g"  # importance values are far smaller than percentages
    error = "" if value.sem is None else f" ± {value.sem:{digits}}"
    count = f" ({value.n})" if value.n else ""
    return f"{value.mean:{digits}}{error}{count}"


def finding_table(finding: Finding) -> Table:
    """The table of an analysis."""
    table = Table(title=Text(finding.title), title_justify="left")
    for place, column in enumerate(finding.columns):
        table.add_column(column, justify="right" if place else "left")
    for row in finding.rows:
        table.add_row(*(value_text(value) for value in row))
    return table


def value_text(value: str | float | int) -> str:
    """A value of a table: four significant digits, empty for NaN."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)
