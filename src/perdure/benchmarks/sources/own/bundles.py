"""Sequences from arrays: an npz file, a folder of npy files, or Python objects.

`x` is [N, T, F] (with `lengths` [N] if sequences end earlier), or the rows [sum of lengths, F] of all
sequences, concatenated. `y` is [N] (one class per sequence), one class per step (shaped like the steps of x),
[N, P, outputs] bits, or [N] or [N, outputs] floating-point values. Names may end in _train, _val and _test.
Optional: `split` [N], `classes` (all of them, in the order of the outputs), `table` [V, F] (x then holds
its row indices, without the axis F).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perdure.benchmarks.sources.archives import npy, npz
from perdure.benchmarks.sources.own.parts import SPLITS, Faults, Label, OwnSequences, check_numbers, compact
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError, unknown
from perdure.targets.bits import Bits
from perdure.targets.label import Label as LabelTarget
from perdure.targets.tags import Tags
from perdure.targets.target import Target
from perdure.targets.value import Value

PER_SPLIT = ("x", "y", "lengths")
"""Arrays whose names may end in a split."""
SINGLE = ("split", "classes", "table")
"""Arrays shared by all splits."""
KNOWN = (*PER_SPLIT, *SINGLE, *(f"{name}_{split}" for split in SPLITS for name in PER_SPLIT))
"""All known names."""


def read_npz(path: Path, split: str | None, faults: Faults) -> list[OwnSequences]:
    """The parts of an npz file."""
    return parts_of_arrays(npz(path), str(path), split, faults)


def read_npy(folder: Path, split: str | None, faults: Faults) -> list[OwnSequences]:
    """The parts in the npy files of a folder: x.npy, y.npy and so on."""
    arrays = {path.stem: npy(path) for path in sorted(folder.glob("*.npy"))}
    return parts_of_arrays(arrays, str(folder), split, faults)


def parts_of_arrays(
    arrays: Mapping[str, Array], where: str, split: str | None, faults: Faults
) -> list[OwnSequences]:
    """One part per split of the arrays, or one for all."""
    for name in arrays:
        if name not in KNOWN:
            raise PerdureError(f"'{where}': {unknown('array', name, KNOWN)}")
    plain = [name for name in PER_SPLIT if name in arrays]
    endings = [ending for ending in SPLITS if any(f"{name}_{ending}" in arrays for name in PER_SPLIT)]
    if plain and endings:
        raise PerdureError(
            f"'{where}' has '{plain[0]}' as well as arrays that end in _{endings[0]}; either all names must "
            f"end in a split, or none."
        )
    if endings and split:
        raise PerdureError(
            f"'{where}' is the {split} split by its name, but its arrays end in _{endings[0]}; use only one."
        )
    shared = _Shared(_table(arrays, where), _classes(arrays, where))
    parts = []
    for ending in endings or (None,):
        with faults.gathering():
            part = _part(_Named(arrays, where, ending), shared, ending or split)
            check_numbers(part, faults)
            parts += _by_split(part, arrays.get("split"))
    return parts


class _Shared(NamedTuple):
    """What all splits have in common."""

    table: Array | None
    classes: tuple[Label, ...] | None


@dataclass(frozen=True)
class _Named:
    """The arrays of one split, with names for errors."""

    arrays: Mapping[str, Array]
    where: str
    ending: str | None

    def name(self, name: str) -> str:
        return f"{name}_{self.ending}" if self.ending else name

    def needed(self, name: str) -> Array:
        if self.name(name) not in self.arrays:
            found = ", ".join(self.arrays) or "none"
            raise PerdureError(f"'{self.where}' lacks the array '{self.name(name)}'; it has {found}.")
        return self.arrays[self.name(name)]

    def fault(self, name: str, said: str) -> PerdureError:
        return PerdureError(f"'{self.where}': {self.name(name)} {said}.")


def _part(given: _Named, shared: _Shared, split: str | None) -> OwnSequences:
    """The arrays of one split as a part."""
    x, y = given.needed("x"), given.needed("y")
    _check_dtypes(given, x, y, shared.table)
    features = 0 if shared.table is not None else 1
    flat = x.ndim == 1 + features
    if x.ndim not in (1 + features, 2 + features) or x.size == 0:
        wanted = "[N, T, F] or [sum of lengths, F]" if features else "[N, T] or [sum of lengths]"
        raise given.fault("x", f"has shape {x.shape}; it must be {wanted} and not empty")
    lengths = _lengths(given, x, flat)
    inside = None if flat else np.arange(x.shape[1]) < lengths[:, None]
    rows = x if inside is None else x[inside]
    target, targets, doubt = _targets(given, y, lengths, inside)

    def place(row: int, name: str = "x") -> str:
        if inside is None:
            return f"{given.name(name)}[{row}]"
        sequence, step = np.argwhere(inside)[row]
        return f"{given.name(name)}[{sequence}, {step}]"

    def labelled(row: int) -> str:
        if target.everywhere:
            return place(row, "y")
        return f"{given.name('y')}[{np.searchsorted(lengths.cumsum(), row, side='right')}]"

    if shared.table is None:
        rows = compact(rows)
    else:
        _check_numbers_of_rows(given, rows, len(shared.table), place)
    return OwnSequences(
        given.where,
        split,
        rows,
        lengths,
        targets,
        target,
        place,
        table=shared.table,
        classes=shared.classes,
        doubt=doubt,
        labelled=labelled,
    )


def _check_dtypes(given: _Named, x: Array, y: Array, table: Array | None) -> None:
    allowed = "biuf" if table is None else "iu"
    if x.dtype.kind not in allowed:
        wanted = "numbers" if table is None else "integers, since there is a table"
        raise given.fault("x", f"is of type {x.dtype}; it must hold {wanted}")
    if y.dtype.kind not in "biuUf":
        raise given.fault(
            "y", f"is of type {y.dtype}; classes are integers or strings, values are floating-point numbers"
        )


def _lengths(given: _Named, x: Array, flat: bool) -> Array:
    """The length of each sequence [N], checked."""
    if given.name("lengths") not in given.arrays:
        if flat:
            raise given.fault(
                "x",
                f"has shape {x.shape} and there is no '{given.name('lengths')}'; add it, or make x [N, T, F]",
            )
        return np.full(len(x), x.shape[1])
    lengths = given.needed("lengths")
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths):
        raise given.fault("lengths", f"is {lengths.dtype} {lengths.shape}; it must be integers [N]")
    lengths = lengths.astype(np.int64)
    most = len(x) if flat else x.shape[1]
    wrong = np.flatnonzero((lengths < 1) | (lengths > most))
    if len(wrong):
        raise given.fault(
            "lengths", f"[{wrong[0]}] is {lengths[wrong[0]]}; a sequence here has 1 to {most} steps"
        )
    if flat and lengths.sum() != len(x):
        raise given.fault(
            "lengths",
            f"add up to {lengths.sum()}, but {given.name('x')} has {len(x)} rows; the two must be equal",
        )
    if not flat and len(lengths) != len(x):
        raise given.fault("lengths", f"has {len(lengths)} entries for {len(x)} sequences; each needs one")
    return lengths


def _targets(given: _Named, y: Array, lengths: Array, inside: Array | None) -> tuple[Target, Array, str]:
    """The target implied by the type and shape of y, y as a part stores it, and why this may be ambiguous."""
    if y.dtype.kind == "f":
        return Value(), *_values(given, y, lengths, inside)
    count, total = len(lengths), int(lengths.sum())
    if y.shape == (count,):
        return LabelTarget(), y, ""
    if inside is None and y.shape == (total,):
        return Tags(), y, ""
    if inside is not None and y.shape == inside.shape:
        return Tags(), y[inside], ""
    if y.ndim == 3 and len(y) == count and y.size:
        return Bits(), _bits(given, y, lengths), ""
    steps = f"[{total}]" if inside is None else f"[{count}, {inside.shape[1]}]"
    raise given.fault(
        "y",
        f"has shape {y.shape}; it must be [{count}] (a class per sequence), {steps} (a class per step) or "
        f"[{count}, P, outputs] (bits)",
    )


def _values(given: _Named, y: Array, lengths: Array, inside: Array | None) -> tuple[Array, str]:
    """Values [N, outputs], and why they may be meant as something else."""
    count = len(lengths)
    if y.shape[:1] != (count,) or y.ndim > 2 or not y.size:
        raise given.fault(
            "y",
            f"is {y.dtype} {y.shape}; values are predicted at the last step of a sequence, so they must be "
            f"[{count}] or [{count}, outputs] (for classes or bits that are whole numbers use y.astype(int))",
        )
    values: Array = y.reshape(count, -1).astype(np.float64)
    if np.isinf(values).any():
        first = int(np.flatnonzero(np.isinf(values).any(axis=1))[0])
        raise given.fault("y", f"[{first}] is infinite; values must be finite (NaN: ignored)")
    doubt = ""
    if not (values % 1 > 0).any():
        doubt = (
            f"'{given.where}': {given.name('y')} is of type {y.dtype}, but all its numbers are whole; use "
            f"y.astype(int) if they are classes, or --benchmark.kind value if they are values."
        )
    elif inside is not None and y.shape == inside.shape and y.shape[1] > 1:
        doubt = (
            f"'{given.where}': {given.name('y')} has a number for each step of x, but values are predicted "
            f"at the last step only; use --benchmark.kind value if these are its {y.shape[1]} outputs."
        )
    return values, doubt


def _bits(given: _Named, y: Array, lengths: Array) -> Array:
    """Patterns [N, P, outputs], checked."""
    if y.dtype.kind == "U" or int(y.min()) < -1 or int(y.max()) > 1:
        raise given.fault("y", "must contain only bits 0 and 1 (-1: ignored), since it is [N, P, outputs]")
    if y.shape[1] > lengths.min():
        raise given.fault(
            "y",
            f"has {y.shape[1]} steps, but sequence {lengths.argmin()} has only {lengths.min()}; a "
            f"pattern is recalled in the last steps of a sequence",
        )
    return y.astype(np.int8)


def _check_numbers_of_rows(given: _Named, rows: Array, size: int, place: Callable[[int], str]) -> None:
    wrong = np.flatnonzero((rows < 0) | (rows >= size))
    if len(wrong):
        raise PerdureError(
            f"'{given.where}', {place(int(wrong[0]))}: it is {rows[wrong[0]]}, but the table has rows 0 "
            f"to {size - 1}."
        )


def _table(arrays: Mapping[str, Array], where: str) -> Array | None:
    table = arrays.get("table")
    if table is None:
        return None
    if table.ndim != 2 or table.dtype.kind not in "biuf" or not table.size:
        raise PerdureError(f"'{where}': table is {table.dtype} {table.shape}; it must be numbers [V, F].")
    table = table.astype(np.float32)
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise PerdureError(
            f"'{where}': row {row} of the table has NaN or infinite values; its numbers must be finite."
        )
    return table


def _classes(arrays: Mapping[str, Array], where: str) -> tuple[Label, ...] | None:
    classes = arrays.get("classes")
    if classes is None:
        return None
    if classes.ndim != 1 or classes.dtype.kind not in "iuU" or len(np.unique(classes)) != len(classes):
        raise PerdureError(
            f"'{where}': classes must be a list of distinct integers or strings, one per output."
        )
    return tuple(classes.tolist())


def _by_split(part: OwnSequences, splits: Array | None) -> list[OwnSequences]:
    """The part as it is, or one part for each split named by an array."""
    if splits is None:
        return [part]
    if part.split is not None:
        raise PerdureError(
            f"'{part.where}' specifies splits twice: as '{part.split}' and by the array 'split'."
        )
    if splits.shape != (len(part),) or splits.dtype.kind != "U":
        raise PerdureError(f"'{part.where}': split must be strings [{len(part)}], one per sequence.")
    wrong = np.flatnonzero(~np.isin(splits, SPLITS))
    if len(wrong):
        raise PerdureError(
            f"'{part.where}', split[{wrong[0]}]: {unknown('split', str(splits[wrong[0]]), SPLITS)}"
        )
    return [
        part.take(np.flatnonzero(splits == name), name) for name in SPLITS if bool((splits == name).any())
    ]
