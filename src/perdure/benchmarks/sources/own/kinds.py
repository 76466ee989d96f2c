"""What parts have as targets: inferred from shape and type of arrays, and from the labels of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perdure.benchmarks.sources.own.parts import Faults, OwnSequences
from perdure.benchmarks.sources.own.values import as_values, number_of
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from perdure.targets.target import Target
from perdure.targets.value import Value


def decide(parts: Sequence[OwnSequences], asked: Target | None, faults: Faults) -> Target | None:
    """The target of all tasks; None if parts disagree or none is possible, which is reported."""
    with faults.gathering():
        tables = [part for part in parts if part.target is None]
        if asked == Bits() and tables:
            raise PerdureError(
                f"'{tables[0].where}': a table cannot hold bits; give arrays with y as [N, P, outputs]."
            )
        found = {part.target: part for part in reversed(parts) if part.target is not None}
        if tables and asked is None:
            found.setdefault(_of_tables(tables), tables[0])
        for target, part in found.items():
            if asked is not None and target != asked and not _can_be(part, asked):
                raise PerdureError(
                    f"'{part.where}' has targets of kind {target.name}, not --benchmark.kind {asked.name}; "
                    f"the shape and type of y must fit it."
                )
        if asked is not None:
            return asked
        if len(found) > 1:
            (one, first), (other, second) = list(found.items())[:2]
            raise PerdureError(
                f"'{second.where}' has targets of kind {other.name}, but '{first.where}' of kind {one.name}; "
                f"all tasks need the same."
            )
        _check_doubts(parts)
        return next(iter(found))
    return None


def of_kind(part: OwnSequences, target: Target) -> OwnSequences:
    """A part with the target decided: tables with one label or value per sequence are reduced to it."""
    if part.target is None and not target.everywhere:
        rows = _changing_rows(part)
        if len(rows):
            raise PerdureError(_changed(part, int(rows[0])) + "; a sequence has one label.")
        part = replace(part, targets=part.targets[part.starts])
    part = replace(part, target=target)
    return as_values(part) if target == Value() else part


def _can_be(part: OwnSequences, asked: Target) -> bool:
    """Whether targets of one kind can be read as another: one number per sequence as its value."""
    return asked == Value() and part.target == Label()


def _check_doubts(parts: Sequence[OwnSequences]) -> None:
    """Raise a helpful error if every part is ambiguous; one that is certain decides for all."""
    doubts = [part.doubt for part in parts]
    if all(doubts):
        raise PerdureError(doubts[0])


def _of_tables(parts: Sequence[OwnSequences]) -> Target:
    """Labels if they never change within a sequence, tags if they do in at least half; else the user decides.

    Labels that are all numbers, but not all whole, are values.
    """
    changing = [_changing_rows(part) for part in parts]
    count = sum(_sequences_of(part, rows) for part, rows in zip(parts, changing, strict=True))
    longer = sum(int((part.lengths > 1).sum()) for part in parts)
    numbers = _hold_numbers(parts)
    if count == 0:
        return Value() if numbers else Label()
    part, rows = next((part, rows) for part, rows in zip(parts, changing, strict=True) if len(rows))
    if numbers:
        raise PerdureError(
            f"{_changed(part, int(rows[0]))}, but values are predicted at the last step only; give each "
            f"sequence one value, or use --benchmark.kind tags if these are classes."
        )
    if 2 * count >= longer:
        return Tags()
    raise PerdureError(
        f"{_changed(part, int(rows[0]))}, as in {count} of {longer} sequences; correct it, or use "
        f"--benchmark.kind tags if each step has its own class."
    )


def _hold_numbers(parts: Sequence[OwnSequences]) -> bool:
    """Whether all labels are numbers, some of them not whole."""
    texts = {str(text) for part in parts for text in np.unique(part.targets).tolist()} - {""}
    numbers = [number_of(text) for text in texts]
    return None not in numbers and any(number is not None and number % 1 > 0 for number in numbers)


def _changing_rows(part: OwnSequences) -> Array:
    """The flat rows whose label differs from the one before, within a sequence."""
    changed = np.concatenate([[False], part.targets[1:] != part.targets[:-1]])
    changed[part.starts] = False
    return np.flatnonzero(changed)


def _sequences_of(part: OwnSequences, rows: Array) -> int:
    """The number of sequences that some flat rows belong to."""
    return len(np.unique(np.searchsorted(part.starts, rows, side="right")))


def _changed(part: OwnSequences, row: int) -> str:
    return (
        f"'{part.where}', {part.place(row)}: the label changes from '{part.targets[row - 1]}' to "
        f"'{part.targets[row]}' within a sequence"
    )
