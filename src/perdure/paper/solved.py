"""Only networks that have learnt their task count: the paper's rule for what it measures inside of them."""

from __future__ import annotations

from perdure.analysis.statistics import number
from perdure.paper.findings import TableCell
from perdure.paper.item import FinishedRuns, Setting
from perdure.storage.record import Record

SOLVED = 99.0
"""Test accuracy in percent above which a network counts (paper Sec. 4)."""
EVERY = ("smoke",)
"""Scales at which all networks count, since nothing is learnt."""
RULE = f"As in the paper, only networks with a test accuracy above {SOLVED:g} % count."


def counted(results: FinishedRuns, setting: Setting) -> tuple[list[Record], tuple[int, ...]]:
    """The runs of a setting whose networks count, and the seeds of those that do not."""
    records = dict(enumerate(results.of(setting)))
    every = results.scale in EVERY
    left_out = tuple(seed for seed, record in records.items() if record.final <= SOLVED and not every)
    return [record for seed, record in records.items() if seed not in left_out], left_out


def counting_cell(
    results: FinishedRuns, setting: Setting, column: str, values: tuple[float, ...], item: str
) -> TableCell:
    """A cell over the networks that count, one value for each; without a number if none does."""
    records, (_, left_out) = results.of(setting), counted(results, setting)
    remark = f"{len(left_out)} of {len(records)} networks below {SOLVED:g} % left out" if left_out else ""
    return TableCell(
        setting.label,
        column,
        number(values) if values else None,
        command=results.command(item),
        hashes=tuple(record.hash for record in records),
        values=values,
        remark=remark,
        left_out=left_out,
    )
