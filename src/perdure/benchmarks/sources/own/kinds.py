"""Which kind of target parts have: arrays say it by their shape, tables by whether labels change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perdure.benchmarks.sources.own.parts import Faults, Part
from perdure.benchmarks.task import Array, Kind
from perdure.errors import PerdureError


def decide(parts: Sequence[Part], asked: Kind | None, faults: Faults) -> Kind | None:
    """The kind of all tasks; None where parts do not agree, or none can be had, which is told."""
    with faults.gathering():
        tables = [part for part in parts if part.kind is None]
        if asked is Kind.PATTERN and tables:
            raise PerdureError(
                f"'{tables[0].where}': a table cannot hold patterns; give arrays with y as [N, P, outputs]."
            )
        kinds = {part.kind: part for part in reversed(parts) if part.kind is not None}
        if tables and asked is None:
            kinds.setdefault(_of_tables(tables), tables[0])
        for kind, part in kinds.items():
            if asked is not None and kind is not asked:
                raise PerdureError(
                    f"'{part.where}' has targets of kind {kind}, but --benchmark.kind {asked} is given; "
                    f"the shape of y must fit it."
                )
        if len(kinds) > 1:
            (one, first), (other, second) = list(kinds.items())[:2]
            raise PerdureError(
                f"'{second.where}' has targets of kind {other}, but '{first.where}' of kind {one}; all tasks "
                f"need the same."
            )
        return asked or next(iter(kinds))
    return None


def of_kind(part: Part, kind: Kind) -> Part:
    """A part whose kind is decided: of tables that ask for labels, one label a sequence."""
    if part.kind is not None:
        return part
    if kind is Kind.TAGS:
        return replace(part, kind=kind)
    rows = _changing_rows(part)
    if len(rows):
        raise PerdureError(_changed(part, int(rows[0])) + "; a sequence has one label.")
    return replace(part, kind=kind, targets=part.targets[part.starts])


def _of_tables(parts: Sequence[Part]) -> Kind:
    """Labels if they change within no sequence, tags if they do in at least half; else it must be said."""
    changing = [_changing_rows(part) for part in parts]
    count = sum(_sequences_of(part, rows) for part, rows in zip(parts, changing, strict=True))
    longer = sum(int((part.lengths > 1).sum()) for part in parts)
    if count == 0:
        return Kind.LABEL
    if 2 * count >= longer:
        return Kind.TAGS
    part, rows = next((part, rows) for part, rows in zip(parts, changing, strict=True) if len(rows))
    raise PerdureError(
        f"{_changed(part, int(rows[0]))}, as in {count} of {longer} sequences; correct it, or say "
        f"--benchmark.kind tags if each step has a class of its own."
    )


def _changing_rows(part: Part) -> Array:
    """The flat rows whose label differs from the one before, within a sequence."""
    changed = np.concatenate([[False], part.targets[1:] != part.targets[:-1]])
    changed[part.starts] = False
    return np.flatnonzero(changed)


def _sequences_of(part: Part, rows: Array) -> int:
    """How many sequences some flat rows belong to."""
    return len(np.unique(np.searchsorted(part.starts, rows, side="right")))


def _changed(part: Part, row: int) -> str:
    return (
        f"'{part.where}', {part.place(row)}: the label changes from '{part.targets[row - 1]}' to "
        f"'{part.targets[row]}' within a sequence"
    )
