"""Sequences as users have them: arrays, tensors, lists of arrays; one padded array inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perdure.benchmarks.sources.own.given import plain
from perdure.benchmarks.sources.own.parts import compact
from perdure.benchmarks.task import Array
from perdure.learner.faults import wrong, wrong_type

COARSE = 0.01
"""Rounding errors of a feature above this part of its standard deviation are refused."""


@dataclass(frozen=True)
class Inputs:
    """N sequences: x [N, T, F], zero beyond their ends, and lengths [N]."""

    x: Array
    lengths: Array
    listed: bool
    """Whether the sequences came as a list, so that answers for each step are a list too."""
    coarse: str = ""
    """What 32 bits cannot tell apart in these numbers, if anything; too little data say nothing of it."""

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.x)

    @property
    def inside(self) -> Array:
        """Which steps belong to a sequence [N, T]."""
        inside: Array = np.arange(self.x.shape[1]) < self.lengths[:, None]
        return inside

    def take(self, index: Array) -> Inputs:
        """Some of the sequences, without steps that none of them has."""
        lengths = self.lengths[index]
        return Inputs(self.x[index, : int(lengths.max())], lengths, self.listed)

    def prefixes(self, steps: int) -> Inputs:
        """The first steps of each sequence, at most this many."""
        lengths = np.minimum(self.lengths, steps)
        x = self.x[:, : int(lengths.max())]
        return Inputs(x, lengths, self.listed)


def read_inputs(x: Any, lengths: Any = None, features: int | None = None) -> Inputs:
    """Inputs from an array or tensor [N, T, F], or a list of [T_i, F]; errors name x or lengths."""
    x = plain(x)
    if x is None or isinstance(x, (str, bytes)) or not (hasattr(x, "__len__") or hasattr(x, "__array__")):
        raise wrong_type("x", f"it is {_said(x)}; give an array [N, T, F] or a list of arrays [T_i, F].")
    if isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1):
        if lengths is not None:
            raise wrong("lengths", "a list of sequences has its own lengths; leave this argument out.")
        inputs = _from_list(list(x))
    else:
        inputs = _from_array(x, lengths, features)
    if features is not None and inputs.x.shape[2] != features:
        raise wrong(
            "x",
            f"it has {inputs.x.shape[2]} features, but the first task had {features}; give the same ones.",
        )
    return inputs


def _said(value: object) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"


def _from_array(x: Any, lengths: Any, features: int | None) -> Inputs:
    """Inputs of a padded array."""
    array = np.asarray(x)
    _check_numeric(array, "it")
    if array.ndim != 3:
        single = array.ndim == 2 and array.shape[1] == features
        hint = "; for one sequence write x[None]" if single else "; for one feature write x[:, :, None]"
        hint = hint if array.ndim == 2 else ""
        raise wrong("x", f"it has shape {array.shape}, but must be [N, T, F]{hint}.")
    if 0 in array.shape:
        raise wrong(
            "x", f"it is empty, with shape {array.shape}; give at least one sequence, step and feature."
        )
    count, steps, _ = array.shape
    return _finite(array, _lengths(lengths, count, steps), listed=False)


def _lengths(lengths: Any, count: int, steps: int) -> Array:
    if lengths is None:
        return np.full(count, steps, dtype=np.int64)
    try:
        given = np.asarray(plain(lengths))
    except ValueError:
        given = np.empty((0, 0), dtype=object)
    if given.dtype.kind not in "iu" or given.shape != (count,):
        raise wrong(
            "lengths",
            f"they are {given.dtype} {given.shape}, but must be integers [{count}], one per sequence.",
        )
    if given.min() < 1 or given.max() > steps:
        outside = given.min() if given.min() < 1 else given.max()
        raise wrong("lengths", f"{outside} is not between 1 and the {steps} steps of x.")
    return given.astype(np.int64)


def _from_list(given: Sequence[Any]) -> Inputs:
    """Inputs of a list of sequences of any lengths."""
    if not given:
        raise wrong("x", "it is empty; give at least one sequence.")
    each = [_one(number, value) for number, value in enumerate(given)]
    features = each[0].shape[1]
    for number, sequence in enumerate(each):
        if sequence.shape[1] != features:
            raise wrong(
                "x", f"sequence {number} has {sequence.shape[1]} features, but the first has {features}."
            )
    lengths = np.array([len(sequence) for sequence in each])
    kind = np.result_type(*{sequence.dtype for sequence in each})
    padded = np.zeros((len(each), int(lengths.max()), features), dtype=kind)
    for row, sequence in zip(padded, each, strict=True):
        row[: len(sequence)] = sequence
    return _finite(padded, lengths, listed=True)


def _one(number: int, value: Any) -> Array:
    """One sequence [T, F]."""
    try:
        array = np.asarray(plain(value))
    except ValueError:  # rows of different lengths
        raise wrong("x", f"sequence {number} has steps of different sizes; it must be [T, F].") from None
    _check_numeric(array, f"sequence {number}")
    if array.ndim != 2 or 0 in array.shape:
        hint = "; for one feature write [:, None]" if array.ndim == 1 else ""
        raise wrong(
            "x", f"sequence {number} has shape {array.shape}, but must be [T, F] and not empty{hint}."
        )
    return array


def _check_numeric(array: Array, what: str) -> None:
    if array.dtype.kind not in "biuf":
        raise wrong_type("x", f"{what} holds {array.dtype}; sequences are made of real numbers.")


def _finite(x: Array, lengths: Array, *, listed: bool) -> Inputs:
    """Compact numbers; whatever is beyond an end becomes zero."""
    inputs = Inputs(compact(x), lengths, listed)
    inputs = replace(inputs, coarse=_coarse(x, inputs))
    inside = inputs.inside
    if not inside.all():
        inputs.x[~inside] = 0
    if inputs.x.dtype.kind == "f" and not np.isfinite(inputs.x).all():
        number, step, feature = np.argwhere(~np.isfinite(inputs.x))[0].tolist()
        raise wrong(
            "x",
            f"sequence {number}, step {step}, feature {feature} is NaN, infinite, or too large for 32 bits; "
            f"fill the gap, or leave the sequence out.",
        )
    return inputs


def _coarse(x: Array, inputs: Inputs) -> str:
    """The first feature whose values differ by hardly more than what rounding to 32 bits changes."""
    if inputs.x.dtype != np.float32 or x.dtype.itemsize < 4 or x.dtype == np.float32:
        return ""
    exact = x[inputs.inside].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        spread = exact.std(axis=0)
        error = np.abs(exact - inputs.x[inputs.inside]).max(axis=0)
        worse = np.flatnonzero((spread > 0) & (error > COARSE * spread))
    if not len(worse):
        return ""
    return f"feature {worse[0]} varies by {spread[worse[0]]:.3g} around {exact[:, worse[0]].mean():.10g}"
