"""Pairs of methods of a table: the paired comparison over seeds, and whether their order is the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from perdure.analysis.statistics import (
    AS_PUBLISHED,
    MARGIN,
    NOT_DECIDED,
    REVERSED,
    TOO_CLOSE,
    Number,
    order,
    paired,
)
from perdure.paper.findings import Pair
from perdure.paper.item import FinishedRuns, draws

if TYPE_CHECKING:
    from perdure.paper.comparison import Row

COLUMN = "final"
"""The column that methods are ranked by."""


def pairs_of(rows: Sequence[Row], results: FinishedRuns) -> list[Pair]:
    """All pairs of rows that were run on the same task sequences, the one expected to be better first."""
    return [
        _pair(*_ranked(one, other, results), results)
        for one, other in combinations(rows, 2)
        # Accuracies on different problems say nothing about which method is better.
        if results.problem(one.setting) == results.problem(other.setting)
    ]


def _ranked(one: Row, other: Row, results: FinishedRuns) -> tuple[Row, Row]:
    """By the published means, or by ours if these are missing or equal."""
    means = [row.published[COLUMN].mean for row in (one, other) if COLUMN in row.published]
    if len(set(means)) < 2:
        means = [results.number(row.setting, COLUMN).mean for row in (one, other)]
    return (one, other) if means[0] >= means[1] else (other, one)


def _pair(first: Row, second: Row, results: FinishedRuns) -> Pair:
    labels = first.setting.label, second.setting.label
    ahead, behind = (results.values(row.setting, COLUMN) for row in (first, second))
    seeds = min(len(ahead), len(behind))  # both begin with seed 0
    ahead, behind = ahead[:seeds], behind[:seeds]
    if len(ahead) > 1:
        compared = paired(ahead, behind, draws(*labels))
        ours, p, p_signs = (
            Number(compared.difference, compared.sem, len(ahead)),
            compared.p_t,
            compared.p_signs,
        )
    else:
        ours, p, p_signs = Number(ahead[0] - behind[0]), None, None
    published = _difference(first.published.get(COLUMN), second.published.get(COLUMN))
    judged = order(ours, published) if published and results.comparable(first.setting) else ""
    return Pair(*labels, ours, p, p_signs, published, judged)


def _difference(first: Number | None, second: Number | None) -> Number | None:
    """The difference of two published numbers; seeds are unknown, so errors add as if independent."""
    if first is None or second is None:
        return None
    known = first.sem is not None and second.sem is not None
    sem = math.hypot(first.sem or 0.0, second.sem or 0.0) if known else None
    return Number(first.mean - second.mean, sem, min(first.n, second.n))


def order_summary(pairs: Sequence[Pair]) -> str:
    """How many pairs are in the paper's order, and which are not; empty if none was judged."""
    judged = [pair for pair in pairs if pair.order]
    if not judged:
        return ""
    kept = sum(pair.order == AS_PUBLISHED for pair in judged)
    close = [pair.published for pair in judged if pair.order == TOO_CLOSE]
    alike = sum(abs(published.mean) <= MARGIN for published in close if published)
    undecided = sum(pair.order == NOT_DECIDED for pair in judged)
    swapped = [f"{pair.first} / {pair.second}" for pair in judged if pair.order == REVERSED]
    return (
        f"Pairs of methods by {COLUMN} accuracy: {kept} of {len(judged)} ordered as published, "
        + (f"{len(close)} too close to call ({alike} of them in the paper too), " if close else "")
        + (f"{undecided} not decided, " if undecided else "")
        + (
            f"{len(swapped)} the other way round ({', '.join(swapped)})."
            if swapped
            else "none the other way round."
        )
    )
