"""The forms in which data come: arrays and lists, data sets, data loaders, frames in long format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset

from perdure.benchmarks.sources.own.given import plain
from perdure.benchmarks.task import Array
from perdure.learner.faults import wrong, wrong_type
from perdure.learner.knowledge import Given
from perdure.learner.sequences import read_inputs

SEQUENCE, LABEL = "sequence", "label"
"""Columns of a frame in long format: whose row it is, and the target; all others are features."""


def read_given(x: Any, y: Any, lengths: Any, features: int | None, names: tuple[str, ...] | None) -> Given:
    """Sequences and their answers, whatever form they have."""
    if _is_frame(x):
        return _from_frame(x, y, features, names, answered=True)
    if isinstance(x, (Dataset, DataLoader)):
        if y is not None:
            raise wrong("y", f"a {type(x).__name__} has its own targets; leave this argument out.")
        x, y = _pairs(x)
    elif y is None and isinstance(x, list) and x and all(type(one) is tuple and len(one) == 2 for one in x):
        x, y = (list(part) for part in zip(*x, strict=True))  # a list is a data set too
    return Given(read_inputs(x, lengths, features), y)


def read_questions(x: Any, lengths: Any, features: int, names: tuple[str, ...] | None) -> Given:
    """Sequences whose answers are to be predicted."""
    if _is_frame(x):
        return _from_frame(x, None, features, names, answered=False)
    if isinstance(x, (Dataset, DataLoader)):
        x, _ = _pairs(x)
    return Given(read_inputs(x, lengths, features), None)


def _pairs(source: Any) -> tuple[list[Any], list[Any]]:
    """Sequences and targets of a data set of pairs, or of a loader of batches (x, y) or (x, y, lengths)."""
    x: list[Any] = []
    y: list[Any] = []
    batched = isinstance(source, DataLoader) and source.batch_size is not None
    items = source if isinstance(source, DataLoader) or not hasattr(source, "__len__") else _items(source)
    for number, item in enumerate(items):
        if batched:
            _add_batch(number, item, x, y)
        elif isinstance(item, (tuple, list)) and len(item) == 2:
            x.append(item[0])
            y.append(item[1])
        else:
            raise wrong_type("x", f"item {number} of the data set must be a pair (sequence, target).")
    if not x:
        raise wrong("x", "the data set is empty; give at least one sequence.")
    return x, y


def _add_batch(number: int, batch: Any, x: list[Any], y: list[Any]) -> None:
    """Append the sequences and targets of a loader's batch."""
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise wrong_type("x", f"batch {number} of the loader must be (x, y) or (x, y, lengths).")
    rows, targets = plain(batch[0]), plain(batch[1])
    if len(batch) == 2:
        x += list(rows)
        y += list(targets)
        return
    if isinstance(rows, (list, tuple)):
        raise wrong(
            "x",
            f"batch {number} of the loader has lengths beside a list of sequences, which have their own; "
            f"give (x, y) with the list, or pad x to an array [B, T, F].",
        )
    lengths = np.asarray(plain(batch[2]))
    whole = lengths.dtype.kind in "iu" and lengths.shape == (len(rows),)
    if not whole or lengths.min() < 1 or lengths.max() > np.shape(rows)[1]:
        raise wrong(
            "x",
            f"batch {number} of the loader must be (x, y, lengths), in this order; the third must be "
            f"integers [{len(rows)}] from 1 to the {np.shape(rows)[1]} steps of x.",
        )
    ends = lengths.tolist()
    x += [row[:end] for row, end in zip(rows, ends, strict=True)]
    tagged = not isinstance(targets, (list, tuple)) and np.shape(targets) == np.shape(rows)[:2]
    y += [target[:end] if tagged else target for target, end in zip(targets, ends, strict=True)]


def _items(source: Any) -> Iterable[Any]:
    """By index: a data set need not know where to stop when it is iterated over."""
    return (source[number] for number in range(len(source)))


def _is_frame(x: Any) -> bool:
    return hasattr(x, "columns") and hasattr(x, "iloc")


def _from_frame(
    frame: Any, target: Any, features: int | None, names: tuple[str, ...] | None, *, answered: bool
) -> Given:
    """Sequences of a frame with one row per step; the rows of a sequence are contiguous and in order."""
    if target is not None and not isinstance(target, str):
        raise wrong_type("y", "with a frame, y is the name of the column that holds the target.")
    target = target or LABEL
    columns = [str(column) for column in frame.columns]
    needed = [("x", SEQUENCE), *([("y", target)] if answered else [])]
    for argument, column in needed:
        if column not in columns:
            raise wrong(
                argument, f"the frame has no column '{column}'; it has {', '.join(columns) or 'none'}."
            )
    if names is None:
        names = tuple(column for column in columns if column not in (SEQUENCE, target))
    missing = [name for name in names if name not in columns]
    if missing or not names or not len(frame):
        said = (
            f"the column '{missing[0]}' of the first task is missing"
            if missing
            else "it has no rows or features"
        )
        raise wrong("x", f"{said}; give one row per step with the same features as before.")
    rows = [_numeric(frame[name], name) for name in names]
    starts = _starts(frame[SEQUENCE].to_numpy())
    steps = np.split(np.stack(rows, axis=1), starts[1:])
    y = _answers(frame[target].to_numpy(), starts) if answered else None
    return Given(read_inputs(steps, features=features), y, names)


def _numeric(column: Any, name: str) -> Array:
    values: Array = column.to_numpy()
    if values.dtype.kind not in "biuf":
        raise wrong_type("x", f"the column '{name}' holds {values.dtype}; features are numbers.")
    return values


def _starts(owners: Array) -> Array:
    """The rows at which sequences begin."""
    begins = np.concatenate([[True], owners[1:] != owners[:-1]])
    starts = np.flatnonzero(begins)
    if len(set(owners[starts].tolist())) < len(starts):
        raise wrong(
            "x", f"the rows of a sequence must be contiguous; sort the frame by '{SEQUENCE}' and time."
        )
    return starts


def _answers(column: Array, starts: Array) -> list[Any]:
    """One target per sequence if it never changes within one; tags if it does in at least half of them."""
    parts = [part.tolist() for part in np.split(column, starts[1:])]
    changing = [number for number, part in enumerate(parts) if any(each != part[0] for each in part)]
    if not changing:
        return [part[0] for part in parts]
    longer = sum(len(part) > 1 for part in parts)
    if 2 * len(changing) < longer:
        raise wrong(
            "y",
            f"the label changes within {len(changing)} of {longer} sequences (the first is number "
            f"{changing[0]}); correct them, or give tags for all.",
        )
    return parts
