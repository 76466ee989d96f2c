"""Tables of records for the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from perdure.report.numbers import size, would_decide, would_decide_claim
from perdure.report.table import Shaded, Table
from perdure.storage.record import Record

if TYPE_CHECKING:  # numpy takes a while to load, and a list of runs needs none of these
    from perdure.analysis.finding import Finding
    from perdure.analysis.statistics import Number
    from perdure.paper.findings import Conclusion, Findings

MOST_TASKS = 24
"""Matrices of more tasks are summarised."""
GROUPS = 20
"""Number of groups of tasks in a summary, at most."""
LABELS = re.compile(r" \([a-z]+:[^)]*\)")
"""The names of figures and sections in the source of the paper, which its readers do not see."""
SHORTEST = 6
"""Digits of a run's name in a list, or more if these are not enough to tell it apart."""


def accuracy_tables(record: Record) -> list[Table]:
    """The accuracy matrix: one row per phase, one column per task; green is good.

    If targets are values, a similar table of their errors follows. Many tasks are summarised in groups.
    """
    title = f"{record.benchmark}, {record.method}, seed {record.seed}: test"
    percent = [[Shaded(percent_text(value), _shade(value)) for value in row] for row in record.accuracy]
    if len(record.tasks) > MOST_TASKS:
        return [_summary_table(f"{title} {record.score} in percent", record)]
    named = _task_names(record.tasks)
    tables = [_matrix(f"{title} {record.score} in percent", percent, named)]
    if record.error:
        plain = [[Shaded(f"{value:.4g}", "") for value in row] for row in record.error]
        tables.append(_matrix(f"{title} error (root mean square, in the units of the data)", plain, named))
    return tables


def _task_names(tasks: Sequence[str]) -> str:
    """Which task is which; nothing if their names are just their numbers."""
    numbered = list(enumerate(tasks, start=1))
    if len({re.sub(rf"{number}$", "", name) for number, name in numbered}) == 1:
        return ""
    return f"Tasks: {', '.join(f'{number} {name}' for number, name in numbered)}"


def kept_table(record: Record) -> Table:
    """What must outlive each task, by what keeps it, and in all."""
    table = Table("What must outlive a task, after each of them")
    table.add_column("")
    for task in range(len(record.kept)):
        table.add_column(f"task {task + 1}", justify="right")
    names = list(dict.fromkeys(name for each in record.kept for name in each))
    for name in names:
        table.add_row(name, *(size(each.get(name, 0)) for each in record.kept))
    if len(names) > 1:
        table.add_row("in all", *(size(total) for total in record.kept_bytes))
    return table


def _matrix(title: str, rows: Sequence[Sequence[Shaded]], caption: str) -> Table:
    table = Table(title, caption)
    table.add_column("after task")
    for task in range(len(rows[0])):
        table.add_column(f"task {task + 1}", justify="right")
    for phase, row in enumerate(rows):
        table.add_row(str(phase + 1), *row)
    return table


def _summary_table(title: str, record: Record) -> Table:
    """Means over groups of tasks: right after each was learnt, at the end, and the lowest at the end."""
    count = len(record.tasks)
    each = math.ceil(count / GROUPS)
    table = Table(title, f"Means of {each} tasks each; --json has all {count} by {count} numbers.")
    table.add_column("tasks")
    for name in ("during", "final", "lowest final"):
        table.add_column(name, justify="right")
    last = record.accuracy[-1]
    for first in range(0, count, each):
        tasks = range(first, min(first + each, count))
        values = [
            sum(record.accuracy[task][task] for task in tasks) / len(tasks),
            sum(last[task] for task in tasks) / len(tasks),
            min(last[task] for task in tasks),
        ]
        named = f"{first + 1} to {tasks[-1] + 1}"
        table.add_row(named, *(Shaded(percent_text(value), _shade(value)) for value in values))
    return table


def _shade(value: float) -> str:
    return "green" if value >= 95 else "yellow" if value >= 70 else "red"


def percent_text(value: float) -> str:
    """Two decimals, unless the number is so large that its digits say nothing."""
    return f"{value:.2f}" if abs(value) < 1e6 else f"{value:.3g}"


def summary(records: Sequence[Record]) -> str:
    """During and final over seeds, as mean +- SEM with n."""
    from perdure.analysis.statistics import mean_and_sem

    parts = []
    for name in ("during", "final"):
        mean, sem = mean_and_sem([getattr(record, name) for record in records])
        parts.append(f"{name} {percent_text(mean)}" + ("" if sem is None else f" ± {percent_text(sem)}"))
    count = f" (n = {len(records)}, mean ± SEM)" if len(records) > 1 else ""
    remark = f"; {records[0].oversized}" if records[0].oversized else ""
    return ", ".join(parts) + " %" + _unusual(records[0]) + count + remark


def _unusual(record: Record) -> str:
    """What the percentages measure, if not accuracy."""
    return "" if record.score == Record.score else f" {record.score}"


def list_table(records: Sequence[Record]) -> Table:
    """All runs of a folder, one per line."""
    table = Table()
    for column in ("run", "benchmark", "method"):
        table.add_column(column)
    for column in ("seed", "during", "final", "kept", "seconds"):
        table.add_column(column, justify="right")
    digits = telling(record.hash for record in records)
    for record in sorted(records, key=lambda r: (r.benchmark, r.method, r.seed)):
        table.add_row(
            record.hash[:digits],
            record.benchmark,
            record.method + (f" ({record.oversized})" if record.oversized else ""),
            str(record.seed),
            f"{percent_text(record.during)}{_unusual(record)}",
            f"{percent_text(record.final)}{_unusual(record)}",
            size(record.kept_bytes[-1]) if record.kept else "",
            f"{record.seconds:.0f}" if record.seconds < 1e9 else f"{record.seconds:.3g}",
        )
    return table


def telling(names: Iterable[str]) -> int:
    """How many first digits tell all names apart."""
    known = set(names)
    longest = max(map(len, known), default=0)
    return next(
        (n for n in range(SHORTEST, longest) if len({name[:n] for name in known}) == len(known)), longest
    )


def findings_table(findings: Findings) -> Table:
    """An item's cells: ours, published, difference and verdict."""
    from perdure.analysis.statistics import NOT_DECIDED
    from perdure.paper.pairs import order_summary

    table = Table(f"{findings.title} ({LABELS.sub('', findings.source)})")
    table.add_column("")
    table.add_column("")
    for column in ("ours", "published", "difference"):
        table.add_column(column, justify="right")
    table.add_column("")
    for cell in findings.cells:
        ours, published = cell.ours, cell.published
        gap = f"{ours.mean - published.mean:+.2f}" if ours and published else ""
        judged = cell.verdict + (f" ({would_decide(cell.needed)})" if cell.verdict == NOT_DECIDED else "")
        row = cell.row + (f" ({cell.remark})" if cell.remark else "")
        table.add_row(row, cell.column, number_text(ours), number_text(published), gap, judged)
    concluded = [conclusion_text(each) for each in findings.conclusions]
    below = [words for words in (*concluded, order_summary(findings.pairs), findings.differs) if words]
    table.caption = "\n".join(below)
    return table.without_empty_columns()


def conclusion_text(found: Conclusion) -> str:
    """What the paper finds, what ours show, and the verdict, as one line."""
    from perdure.analysis.statistics import NOT_DECIDED

    more = f" ({would_decide_claim(found.contrast.n, found.needed)})" if found.verdict == NOT_DECIDED else ""
    return f"{found.paper} {found.ours} {found.verdict.capitalize()}{more}."


def number_text(value: Number | None) -> str:
    """Mean ± SEM (n), without n if it is unknown."""
    if value is None:
        return ""
    if not value.n and value.sem is None and value.mean == round(value.mean):
        return f"{value.mean:.0f}"  # a count
    digits = ".2f" if abs(value.mean) >= 1 else ".3g"  # importance values are far smaller than percentages
    error = "" if value.sem is None else f" ± {value.sem:{digits}}"
    count = f" ({value.n})" if value.n else ""
    return f"{value.mean:{digits}}{error}{count}"


def finding_table(finding: Finding) -> Table:
    """The table of an analysis."""
    table = Table(finding.title)
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
