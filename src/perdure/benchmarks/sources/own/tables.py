"""Sequences from tables with one row per time step, in any format.

Columns: `sequence` (rows of a sequence must be contiguous), `label` (the same at all steps of a sequence, or
a tag per step), optionally `split` (train, val or test); every other column is a feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perdure.benchmarks.sources.own.parts import SPLITS, Faults, OwnSequences, check_numbers, compact
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError, unknown

SEQUENCE, LABEL, SPLIT = "sequence", "label", "split"
"""Names of the columns that are not features."""
RESERVED = (SEQUENCE, LABEL, SPLIT)
"""All of them."""
LONGEST = 500
"""Maximum length in characters of a label or of a sequence's name."""


@dataclass(frozen=True)
class Table:
    """The columns of one file: strings [S] as written, features as numbers [S, F], and lines for errors."""

    where: str
    sequence: Array
    label: Array
    split: Array | None
    features: Array
    names: tuple[str, ...]
    lines: Array
    """The number of each row in the file."""


def checked_header(path: Path, cells: list[str]) -> list[str]:
    """The names of the columns, checked."""
    header = [cell.strip() for cell in cells]
    header = [name.lower() if name.lower() in RESERVED else name for name in header]
    for name in (SEQUENCE, LABEL):
        if name not in header:
            found = ", ".join(header)[:80] or "nothing"
            raise PerdureError(
                f"'{path}', row 1: the header has no column '{name}'; it must name the columns "
                f"{SEQUENCE}, {LABEL} and at least one feature (found: {found})."
            )
    _check_names(path, header)
    return header


def _check_names(path: Path, header: Sequence[str]) -> None:
    twice = [name for name, count in Counter(header).items() if count > 1]
    if "" in header:
        raise PerdureError(
            f"'{path}', row 1: column {header.index('') + 1} has no name; every column needs one."
        )
    if twice:
        raise PerdureError(f"'{path}', row 1: the column '{twice[0]}' appears twice; names must be unique.")
    if not set(header) - set(RESERVED):
        raise PerdureError(
            f"'{path}', row 1: there is no feature; every column other than {', '.join(RESERVED)} is one."
        )


def checked_texts(path: Path, name: str, cells: Sequence[str], lines: Array, faults: Faults) -> Array:
    """A column [S] as strings without surrounding blanks; each one that is too long is reported."""
    stripped = [cell.strip() for cell in cells]
    wrong = [row for row, cell in enumerate(stripped) if len(cell) > LONGEST]
    told = (
        f"'{path}', row {lines[row]}: column '{name}' holds {len(stripped[row])} characters; at most "
        f"{LONGEST} are allowed."
        for row in wrong
    )
    faults.add_some(str(path), told, len(wrong))
    return np.array([] if wrong else stripped, dtype=str)


def parts_of_table(table: Table, split: str | None, faults: Faults) -> list[OwnSequences]:
    """One part per split of a table, or one for all."""
    before = len(faults.found)
    changes = np.flatnonzero(table.sequence[1:] != table.sequence[:-1]) + 1
    starts = np.concatenate([[0], changes])
    lengths = np.diff(np.concatenate([starts, [len(table.sequence)]]))
    _check_sequences(table, starts, faults)
    splits = _splits(table, starts, lengths, split, faults)

    def place(row: int) -> str:
        return f"row {table.lines[row]}"

    whole = OwnSequences(
        table.where, split, compact(table.features), lengths, table.label, None, place, table.names
    )
    check_numbers(whole, faults)
    if len(faults.found) > before:
        return []
    if splits is None:
        return [whole]
    return [
        whole.take(np.flatnonzero(splits == name), name) for name in SPLITS if bool((splits == name).any())
    ]


def _check_sequences(table: Table, starts: Array, faults: Faults) -> None:
    """Check that each row has a sequence, and that the rows of a sequence are contiguous."""
    nameless = np.flatnonzero(table.sequence == "")
    faults.add_some(
        table.where,
        (
            f"'{table.where}', row {table.lines[row]}: column '{SEQUENCE}' is empty; each row must name its "
            f"sequence."
            for row in nameless
        ),
        len(nameless),
    )
    names = table.sequence[starts]
    _, first = np.unique(names, return_index=True)
    again = np.setdiff1d(np.arange(len(names)), first)
    faults.add_some(
        table.where,
        (
            f"'{table.where}', row {table.lines[starts[n]]}: sequence '{names[n]}' begins a second time; the "
            f"rows of a sequence must be contiguous, and different sequences need different names."
            for n in again
            if names[n]
        ),
        len(again),
    )


def _splits(table: Table, starts: Array, lengths: Array, split: str | None, faults: Faults) -> Array | None:
    """The split of each sequence, if there is a column for it."""
    if table.split is None:
        return None
    if split is not None:
        raise PerdureError(
            f"'{table.where}' is the {split} split by its name, but has a column '{SPLIT}'; use only one."
        )
    names = np.char.lower(table.split)
    wrong = np.flatnonzero(~np.isin(names, SPLITS))
    faults.add_some(
        table.where,
        (
            f"'{table.where}', row {table.lines[row]}: {unknown('split', str(table.split[row]), SPLITS)}"
            for row in wrong
        ),
        len(wrong),
    )
    by_sequence: Array = names[starts]
    moved = np.flatnonzero(names != np.repeat(by_sequence, lengths))
    if len(moved) and not len(wrong):
        faults.add(
            f"'{table.where}', row {table.lines[moved[0]]}: the split changes to '{names[moved[0]]}' within "
            f"sequence '{table.sequence[moved[0]]}'; a sequence belongs to one split."
        )
    return by_sequence
