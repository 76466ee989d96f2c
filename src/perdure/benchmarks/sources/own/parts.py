"""Sequences as found, before they become a task: flat rows, targets as written, and their places.

Whatever the format of a file, its reader turns it into parts; from there on all formats are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from perdure.benchmarks.task import Array
from perdure.errors import PerdureError
from perdure.targets.target import Target

SPLITS = ("train", "val", "test")
"""The names of the splits, in files as in arrays."""
MANY = 10
"""Number of faults of one kind in one file that are reported individually; the rest are only counted."""

Label = int | str
"""A class as named by the user."""


class Faults:
    """Everything that is wrong, one sentence each; reading continues after a fault where possible."""

    def __init__(self) -> None:
        """Start without faults."""
        self.found: list[str] = []

    def add(self, sentence: str) -> None:
        """Add one fault, on one line, whatever the file's cells contain."""
        self.found.append("".join(letter if letter.isprintable() else " " for letter in sentence))

    def add_some(self, where: str, sentences: Iterable[str], count: int) -> None:
        """Add the first of `count` faults of one kind, and the number of the others."""
        for told, sentence in enumerate(sentences):
            if told == MANY:
                self.add(f"'{where}' has {count - MANY} more faults of this kind.")
                return
            self.add(sentence)

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Collect errors raised within, and continue."""
        try:
            yield
        except PerdureError as error:
            self.add(str(error))

    def settle(self, hint: str = "") -> None:
        """Raise the first fault, if there is one; `hint` follows if there are more."""
        if len(self.found) > 1:
            more = len(self.found) - 1
            raise PerdureError(
                f"{self.found[0].rstrip('.')} (and {more} more fault{'s' * (more > 1)}{hint})."
            )
        if self.found:
            raise PerdureError(self.found[0])


@dataclass(frozen=True)
class OwnSequences:
    """N sequences of one file (or Python object) that belong to one split.

    rows [S, F] are the steps of all sequences, concatenated; or [S], row indices of the table.
    targets are as written: [N] classes, [S] classes, [N, P, outputs] bits, or [N, outputs] numbers.
    """

    where: str
    """Its name in error messages: a file, or the name of a task."""
    split: str | None
    """The split it belongs to; None: not specified, splits are to be drawn from it."""
    rows: Array
    lengths: Array
    targets: Array
    target: Target | None
    """The target implied by shape and type; None: a string per step, which may be the same at every step."""
    place: Callable[[int], str]
    """The name of a flat row in error messages."""
    names: tuple[str, ...] | None = None
    """Names of the features, if the file has them."""
    table: Array | None = None
    classes: tuple[Label, ...] | None = None
    """All classes in the order of the outputs, if the file lists them."""
    doubt: str = ""
    """Why the targets may be ambiguous, and what to do if the user does not specify them."""
    labelled: Callable[[int], str] | None = None
    """The name of a flat row's target in error messages; None: that of the row, which it stands in."""

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.lengths)

    @property
    def starts(self) -> Array:
        """The flat rows at which sequences begin: [N]."""
        starts: Array = self.lengths.cumsum() - self.lengths
        return starts

    @property
    def features(self) -> int:
        """The number of input features."""
        return int((self.rows if self.table is None else self.table).shape[1])

    @property
    def per_step(self) -> bool:
        """Whether there is a target for each step."""
        return self.target is None or self.target.everywhere

    def place_of_target(self, index: int) -> str:
        """The name of one of the targets in error messages."""
        row = index if self.per_step else int(self.starts[index])
        return (self.labelled or self.place)(row)

    def take(self, index: Array, split: str | None) -> OwnSequences:
        """Some of the sequences, as part of a split."""
        flat = flat_rows(self.starts[index], self.lengths[index])
        labelled = self.labelled
        return replace(
            self,
            split=split,
            rows=self.rows[flat],
            lengths=self.lengths[index],
            targets=self.targets[flat if self.per_step else index],
            place=lambda row: self.place(int(flat[row])),
            labelled=None if labelled is None else lambda row: labelled(int(flat[row])),
        )


def flat_rows(starts: Array, lengths: Array) -> Array:
    """The row indices of sequences that begin at `starts` and have the given lengths."""
    begins = lengths.cumsum() - lengths
    rows: Array = np.arange(int(lengths.sum())) + np.repeat(starts - begins, lengths)
    return rows


def compact(x: Array) -> Array:
    """Numbers as they are stored: small integers unchanged, everything else as 32-bit floats."""
    if x.dtype == bool:
        return x.astype(np.uint8)
    if x.dtype in (np.uint8, np.int8, np.int16):
        return x.astype(x.dtype.newbyteorder("="))
    with np.errstate(over="ignore"):  # overflow gives infinity, which is reported
        return x.astype(np.float32)


def check_numbers(part: OwnSequences, faults: Faults) -> None:
    """Report each row with NaN or infinite values."""
    rows = part.rows
    if rows.dtype.kind != "f":
        return
    finite = np.isfinite(rows)
    wrong = np.flatnonzero(~finite.all(axis=1))
    faults.add_some(part.where, (_not_finite(part, int(row), finite[row]) for row in wrong), len(wrong))


def _not_finite(part: OwnSequences, row: int, finite: Array) -> str:
    column = int(finite.argmin())
    name = f"column '{part.names[column]}'" if part.names else f"feature {column}"
    value = part.rows[row, column]
    said = "NaN" if np.isnan(value) else "infinite, or too large for 32 bits"
    return (
        f"'{part.where}', {part.place(row)}: {name} is {said}; every step needs finite numbers "
        f"(leave the sequence out, or fill the gap)."
    )
