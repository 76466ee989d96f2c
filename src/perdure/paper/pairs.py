"""Methods of a table two by two: the paired comparison over seeds, and whether their order is the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from perdure.analysis.statistics import Number, order, paired
from perdure.paper.findings import Pair
from perdure.paper.item import Results, draws

if TYPE_CHECKING:
    from perdure.paper.comparison import Row

COLUMN = "final"
"""What methods are ranked by."""


def pairs_of(rows: Sequence[Row], results: Results) -> list[Pair]:
    """All pairs of rows that were run on the same task sequences, the row that should be ahead first."""
    return [
        _pair(*_ranked(one, other, results), results)
        for one, other in combinations(rows, 2)
        if _problem(one) == _problem(other)
    ]


def _problem(row: Row) -> tuple[str, dict[str, object]]:
    """What is learnt: accuracies on different benchmarks say nothing of who is better."""
    options = {name: value for name, value in row.setting.options.items() if name.startswith("benchmark.")}
    return row.setting.benchmark, options


def _ranked(one: Row, other: Row, results: Results) -> tuple[Row, Row]:
    """By the published means, or by ours where these are missing or equal."""
    published = [row.published.get(COLUMN) for row in (one, other)]
    first, second = (
        published[0].mean if published[0] else math.nan,
        published[1].mean if published[1] else math.nan,
    )
    if math.isnan(first - second) or first == second:
        first, second = (results.number(row.setting, COLUMN).mean for row in (one, other))
    return (one, other) if first >= second else (other, one)


def _pair(first: Row, second: Row, results: Results) -> Pair:
    labels = first.setting.label, second.setting.label
    ahead, behind = (results.values(row.setting, COLUMN) for row in (first, second))
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
    # At smoke scale the numbers mean nothing, so there is nothing to judge.
    judged = order(ours, published) if published and results.scale != "smoke" else ""
    return Pair(*labels, ours, p, p_signs, published, judged)


def _difference(first: Number | None, second: Number | None) -> Number | None:
    """Of two published numbers; their seeds are not known, so errors add as those of independent ones."""
    if first is None or second is None:
        return None
    known = first.sem is not None and second.sem is not None
    sem = math.hypot(first.sem or 0.0, second.sem or 0.0) if known else None
    return Number(first.mean - second.mean, sem, min(first.n, second.n))


def order_summary(pairs: Sequence[Pair]) -> str:
    """How many pairs stand in the paper's order, and which do not; empty if none was judged."""
    judged = [pair for pair in pairs if pair.order]
    if not judged:
        return ""
    kept = sum(pair.order == "as published" for pair in judged)
    parts = [f"{kept} of {len(judged)} pairs of methods are ordered as published by {COLUMN} accuracy"]
    for kind in ("too close to call", "the other way round"):
        named = [f"{pair.first} / {pair.second}" for pair in judged if pair.order == kind]
        if named:
            parts.append(f"{len(named)} {kind} ({', '.join(named)})")
    return "; ".join(parts) + "."
