"""Sequences from Python objects: arrays, ragged lists of arrays, or data sets of (x, y) pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perdure.benchmarks.sources.own.bundles import parts_of_arrays
from perdure.benchmarks.sources.own.parts import SPLITS, Faults, OwnSequences
from perdure.benchmarks.task import Array
from perdure.errors import PerdureError, unknown


def parts_of_given(name: str, given: Any, faults: Faults) -> list[OwnSequences]:
    """The parts of one task: from (x, y), a data set, or a mapping from splits to either."""
    where = f"task {name}"
    if not isinstance(given, Mapping):
        return _parts(where, given, None, faults)
    parts = []
    for split, some in given.items():
        if split not in SPLITS:
            raise PerdureError(f"'{where}': {unknown('split', str(split), SPLITS)}")
        parts += _parts(f"{where}, {split}", some, split, faults)
    return parts


def _parts(where: str, given: Any, split: str | None, faults: Faults) -> list[OwnSequences]:
    x, y = given if isinstance(given, tuple) and len(given) == 2 else _pairs(where, given)
    x = plain(x)
    if isinstance(x, np.ndarray) and x.dtype != object:
        arrays = {"x": x, "y": _classes(where, y)}
        return parts_of_arrays(arrays, where, split, faults)
    steps = [_sequence(where, number, sequence) for number, sequence in enumerate(x)]
    if not steps:
        raise PerdureError(f"'{where}' has no sequences; a task needs some.")
    _check_widths(where, steps)
    arrays = {
        "x": np.concatenate(steps),
        "lengths": np.array([len(sequence) for sequence in steps]),
        "y": _targets(where, y, steps),
    }
    return parts_of_arrays(arrays, where, split, faults)


def plain(value: Any) -> Any:
    """A torch tensor as an array; anything else as it is."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _pairs(where: str, given: Any) -> tuple[list[Any], list[Any]]:
    """Sequences and targets of a data set, which has a length and returns (x, y) by index."""
    if not (hasattr(given, "__len__") and hasattr(given, "__getitem__")) or isinstance(given, (str, bytes)):
        raise PerdureError(
            f"'{where}' is a {type(given).__name__}; give (x, y), or a data set whose items are (x, y)."
        )
    x, y = [], []
    for number in range(len(given)):
        item = given[number]
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise PerdureError(f"'{where}', item {number}: it must be a pair (x, y).")
        x.append(item[0])
        y.append(item[1])
    return x, y


def _sequence(where: str, number: int, value: Any) -> Array:
    """One sequence [T, F]."""
    try:
        array = np.asarray(plain(value))
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise PerdureError(
            f"'{where}', sequence {number}: it is {array.dtype} {array.shape}; it must be numbers [T, F] "
            f"with at least one step and one feature."
        )
    return array


def _check_widths(where: str, steps: Sequence[Array]) -> None:
    for number, sequence in enumerate(steps):
        if sequence.shape[1] != steps[0].shape[1]:
            raise PerdureError(
                f"'{where}', sequence {number}: it has {sequence.shape[1]} features, but the first has "
                f"{steps[0].shape[1]}; all need the same number."
            )


def _targets(where: str, y: Any, steps: Sequence[Array]) -> Array:
    """Targets of a list of sequences: classes [N], values [N, outputs], concatenated tags [S], or bits.

    The target of one sequence is an array of floats if it is values, of integers if it is tags.
    """
    y = plain(y)
    if len(y) != len(steps):
        raise PerdureError(f"'{where}' has {len(steps)} sequences, but {len(y)} targets; each needs one.")
    each = [np.asarray(plain(target)) for target in y]
    by_step = all(one.shape == (len(sequence),) for one, sequence in zip(each, steps, strict=True))
    if each[0].ndim != 1 or (each[0].dtype.kind == "f" and not by_step):
        return _classes(where, each)
    for number, (tags, sequence) in enumerate(zip(each, steps, strict=True)):
        if tags.shape != (len(sequence),):
            raise PerdureError(
                f"'{where}', sequence {number}: it has {len(sequence)} steps, but {tags.shape} tags, "
                f"but each step needs one."
            )
    return np.concatenate(each)


def _classes(where: str, y: Any) -> Array:
    try:
        array = np.asarray(plain(y))
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype == object:
        raise PerdureError(f"'{where}': the targets differ in shape or type; all must have the same.")
    return array
