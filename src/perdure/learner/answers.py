"""What is predicted for a task: read from y when the task is learnt, given back as y was given.

A class per sequence, a class per step (None or -1: ignored), bits at the last P steps, or values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from perdure.benchmarks.sources.own.given import plain
from perdure.benchmarks.task import Array, Sequences
from perdure.errors import PerdureError
from perdure.learner.classes import (
    Owner,
    check_class,
    decode,
    encode,
    from_json,
    object_array,
    plain_class,
    sorted_classes,
    to_json,
)
from perdure.learner.faults import wrong, wrong_type
from perdure.learner.sequences import Inputs
from perdure.targets.classes import NOT_SCORED
from perdure.targets.finding import find_target
from perdure.targets.target import Target
from perdure.targets.value import Value

IGNORED_TAGS = (None, *NOT_SCORED)
"""Tags of steps that are not scored."""
FEW = 20
"""So many whole floating-point numbers may be classes; more of them are values."""


@dataclass(frozen=True)
class Format:
    """The answers of one task."""

    kind: str
    outputs: int
    classes: tuple[Any, ...] = ()
    """Names of the outputs, if they are classes."""
    steps: int = 1
    """P: the last steps of a sequence that are answered; for tags, which are everywhere, 0."""
    flat: bool = False
    """Whether values were given as [N]."""
    offset: tuple[float, ...] = ()
    factor: tuple[float, ...] = ()

    @property
    def target(self) -> Target:
        """The target of its data."""
        return Value(self.offset, self.factor) if self.offset else find_target(self.kind)

    def blank(self, count: int, steps: int) -> Array:
        """A y for sequences whose answers are unknown."""
        if self.target.everywhere:
            return np.full((count, steps), -1, dtype=np.int64)
        if self.target.categorical:
            return np.full(count, -1, dtype=np.int64)
        if self.offset:
            return np.full((count, self.outputs), np.nan, dtype=np.float32)
        return np.full((count, self.steps, self.outputs), -1, dtype=np.int8)

    def json(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "classes": [to_json(each) for each in self.classes]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Format:
        """The inverse of `json`."""
        listed = {name: tuple(data[name]) for name in ("offset", "factor")}
        return cls(**{**data, **listed, "classes": tuple(from_json(each) for each in data["classes"])})

    def predicted(self, logits: Tensor, inputs: Inputs) -> Any:
        """The most likely answers, in the form of y, from logits [N, P or T, outputs]."""
        if self.target.everywhere:
            return _by_step(decode(logits.argmax(2).numpy(), self.classes), inputs)
        if self.target.categorical:
            return decode(logits[:, 0].argmax(1).numpy(), self.classes)
        if self.offset:
            given = self.target.in_own_units(logits[:, 0].numpy())
            return given[:, 0] if self.flat else given
        return (logits >= 0).numpy().astype(np.uint8)

    def probabilities(self, logits: Tensor, inputs: Inputs) -> Any:
        """The probability of each class, or that a bit is 1."""
        if self.offset:
            raise wrong("task", "it predicts values, which have no probabilities; use predict.")
        if self.target.everywhere:
            return _by_step(logits.softmax(2).numpy(), inputs)
        if self.target.categorical:
            return logits[:, 0].softmax(1).numpy()
        return logits.sigmoid().numpy()


def _by_step(answers: Array, inputs: Inputs) -> Any:
    """Answers [N, T, ...]; for sequences that came as a list, a list of [T_i, ...]."""
    if not inputs.listed:
        return answers
    return [answer[:length] for answer, length in zip(answers, inputs.lengths.tolist(), strict=True)]


def read_answers(
    y: Any, inputs: Inputs, kind: str, known: Format | None, whose: Owner
) -> tuple[Format, Array]:
    """The format of a task's answers, and y as its target stores it; `known` is kept if it is given."""
    given = _listed(y, inputs)
    kind = known.kind if known is not None else kind
    found = _kind(given, inputs) if kind == "auto" else kind
    form, coded = {"label": _labels, "tags": _tags, "bits": _bits, "value": _values}[found](
        given, inputs, known, whose
    )
    fault = form.target.fault(coded, inputs.lengths, inputs.x.shape[1], form.outputs)
    if fault:
        raise wrong("y", f"{fault}.")
    return form, coded


def sequences(form: Format, inputs: Inputs, y: Array, scaling: tuple[Array, Array] | None) -> Sequences:
    """Data as the engine takes them."""
    return Sequences(form.target, inputs.x, y, inputs.lengths, None, scaling)


def _listed(y: Any, inputs: Inputs) -> Any:
    """An array, or a list with one entry per sequence."""
    y = y.to_numpy() if hasattr(y, "to_numpy") else plain(y)
    if y is None:
        raise wrong_type("y", "it is missing; give one target per sequence.")
    if isinstance(y, (str, bytes, dict, set)) or not hasattr(y, "__len__"):
        raise wrong_type(
            "y", f"it is a {type(y).__name__}; give an array or a list, one target per sequence."
        )
    if isinstance(y, np.ndarray) and y.dtype.kind == "c":
        raise wrong_type("y", "it holds complex numbers; targets are classes, bits or real numbers.")
    if isinstance(y, np.ndarray) and y.ndim == 0:
        raise wrong("y", "it is a single number; give one target per sequence.")
    if len(y) != len(inputs):
        raise wrong("y", f"it has {len(y)} targets, but x has {len(inputs)} sequences; each needs one.")
    if isinstance(y, np.ndarray) and y.dtype != object:
        return y
    if isinstance(y, np.ndarray) and y.shape[1:] == (1,) and inputs.x.shape[1] > 1:
        y = y[:, 0]  # a frame's only column
    each = [plain(value) for value in y]
    if any(isinstance(value, (list, np.ndarray)) and np.ndim(_array(value)) > 0 for value in each):
        return [_array(value) for value in each]
    return [plain_class(value) for value in each]


def _array(value: Any) -> Array:
    """One sequence's targets; objects stay what they are."""
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, list):
        raise wrong("y", f"some targets are lists, but one is {value!r}; all must be of one form.")
    kinds = {type(plain_class(part)) for part in value}
    if len(kinds) > 1 and not kinds <= {int, float}:  # 1 and "1" are two classes
        return object_array([plain_class(part) for part in value])
    try:
        array = np.asarray(value)
    except ValueError:
        raise wrong("y", "the targets of a sequence have rows of different sizes.") from None
    return array


def _kind(given: Any, inputs: Inputs) -> str:
    """The kind of targets, by shape and type; refused if numbers may be classes as well as values."""
    first = given[0]
    if isinstance(given, np.ndarray):
        dimensions, real = given.ndim, given.dtype.kind == "f"
    elif isinstance(first, np.ndarray):
        dimensions, real = 1 + first.ndim, all(each.dtype.kind == "f" for each in given)
    else:
        dimensions, real = 1, all(type(value) is float for value in given)
    if dimensions > 3:
        raise wrong("y", f"it has {dimensions} axes; targets have one to three.")
    if dimensions == 1 and real:
        numbers = np.unique(np.asarray(given, dtype=np.float64))
        if len(numbers) <= FEW and (numbers == np.round(numbers)).all():
            raise wrong(
                "y",
                "these floating-point numbers may be classes or values; give integers for classes, or say "
                "ContinualLearner(target='label') or target='value'.",
            )
    if isinstance(given, np.ndarray) and dimensions == 2 and real and _one_hot(given):
        raise wrong(
            "y",
            "each of its rows has a single 1, which may be a class or values; give classes as integers "
            "(y.argmax(1)), or say ContinualLearner(target='value').",
        )
    column = isinstance(given, np.ndarray) and given.shape[1:] == (1,) and inputs.x.shape[1] > 1
    if dimensions == 1 or (column and not real):
        return "value" if real else "label"
    return "bits" if dimensions == 3 else "value" if real else "tags"


def _one_hot(rows: Array) -> bool:
    """Whether rows [N, outputs] are all 0 but for a 1, as classes are often written."""
    bits = bool(((rows == 0) | (rows == 1)).all())
    return rows.shape[1] > 1 and bits and bool((rows.sum(1) == 1).all())


def _classes_of(values: Sequence[Any], known: Format | None, whose: Owner) -> tuple[Any, ...]:
    """The classes of a task: those it has, or those that occur."""
    if known is not None:
        return known.classes
    for value in dict.fromkeys(_hashable(values)):
        check_class(value)
    found = sorted_classes(values)
    if len(found) < 2:
        what = f"only the class {found[0]!r}" if found else "no class at all"
        raise wrong("y", f"{whose} has {what}; at least two are needed.")
    return found


def _hashable(values: Sequence[Any]) -> Sequence[Any]:
    for value in values:
        try:
            hash(value)
        except TypeError:
            raise wrong_type("y", f"a class is a {type(value).__name__}, which cannot be one.") from None
    return values


def _labels(given: Any, inputs: Inputs, known: Format | None, whose: Owner) -> tuple[Format, Array]:
    """One class per sequence."""
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if isinstance(given[0], np.ndarray):
        raise wrong("y", f"it must be one class per sequence, [{len(inputs)}].")
    values = _hashable([plain_class(value) for value in given])
    classes = _classes_of(values, known, whose)
    return Format("label", len(classes), classes), encode(values, classes, whose)


def _tags(given: Any, inputs: Inputs, known: Format | None, whose: Owner) -> tuple[Format, Array]:
    """One class per step; beyond the end nothing is read."""
    rows: list[list[Any]] = []
    for number, (tags, length) in enumerate(zip(given, inputs.lengths.tolist(), strict=True)):
        steps = inputs.x.shape[1]
        if np.shape(tags) not in ((length,), (steps,)):
            raise wrong(
                "y", f"sequence {number} has {length} steps, but {np.shape(tags)} tags; each step needs one."
            )
        rows.append([plain_class(tag) for tag in tags[:length]])
    flat = [tag for row in rows for tag in _hashable(row) if tag not in IGNORED_TAGS]
    classes = _classes_of(flat, known, whose)
    encode(flat, classes, whose)
    number_of = {each: output for output, each in enumerate(classes)}
    coded = np.full(inputs.x.shape[:2], -1, dtype=np.int64)
    for line, row in zip(coded, rows, strict=True):
        line[: len(row)] = [-1 if tag in IGNORED_TAGS else number_of[tag] for tag in row]
    return Format("tags", len(classes), classes, steps=0), coded


def _numbers(given: Any, dimensions: Sequence[int], shape: str) -> Array:
    """Targets that are numbers, as one array."""
    try:
        array = np.asarray(given if isinstance(given, np.ndarray) else [np.asarray(each) for each in given])
    except ValueError:
        raise wrong("y", f"its targets differ in shape; all must be {shape}.") from None
    if array.dtype.kind not in "biuf":
        raise wrong_type("y", f"it holds {array.dtype}, but must be numbers {shape}.")
    if array.ndim not in dimensions or 0 in array.shape:
        raise wrong("y", f"it has shape {array.shape}, but must be {shape}.")
    return array


def _bits(given: Any, inputs: Inputs, known: Format | None, whose: Owner) -> tuple[Format, Array]:
    """Zeros and ones at the last steps (-1: ignored)."""
    array = _numbers(given, (3,), "[N, P, outputs]")
    if not np.isin(array, (-1, 0, 1)).all():
        raise wrong("y", "bits must be 0 or 1 (-1: ignored); values are [N] or [N, outputs].")
    form = Format("bits", array.shape[2], steps=array.shape[1])
    if known is not None and known != form:
        raise wrong(
            "y",
            f"{whose} has bits [N, {known.steps}, {known.outputs}], but these are "
            f"[N, {form.steps}, {form.outputs}].",
        )
    return form, array.astype(np.int8)


def _values(given: Any, inputs: Inputs, known: Format | None, whose: Owner) -> tuple[Format, Array]:
    """Numbers at the last step, standardised as the task's first ones were (NaN: ignored)."""
    array = _numbers(given, (1, 2), "[N] or [N, outputs]").astype(np.float64)
    if np.isinf(array).any():
        raise wrong("y", "it holds infinite numbers; give finite ones (NaN: unknown).")
    flat = array.ndim == 1
    array = array[:, None] if flat else array
    if known is None:
        for output, column in enumerate(array.T):
            if len(np.unique(column[~np.isnan(column)])) < 2:
                raise wrong("y", f"output {output} never varies; there is nothing to learn.")
        fitted = Value.fitted(array)
        known = Format("value", array.shape[1], flat=flat, offset=fitted.offset, factor=fitted.factor)
    elif known.outputs != array.shape[1]:
        raise wrong("y", f"{whose} has {known.outputs} values per sequence, but these are {array.shape[1]}.")
    target = known.target
    assert isinstance(target, Value)
    coded = target.standardised(array)
    if np.isinf(coded).any():
        raise wrong("y", "its numbers are too large for 32 bits.")
    return known, coded


def unknown_kind(kind: object) -> PerdureError | None:
    """The error for a kind of target that there is not."""
    kinds = ("auto", "label", "tags", "bits", "value")
    return None if kind in kinds else wrong("target", f"{kind!r} is not one of {', '.join(kinds)}.")


def entropies(form: Format, logits: Tensor, lengths: Tensor) -> Tensor:
    """The mean entropy of a sequence's answers [N], as a fraction of the largest possible one."""
    if form.offset:
        raise wrong("task", "values have no predictive entropy, so the task cannot be inferred; name it.")
    each = form.target.uncertainty(logits.flatten(0, 1)).view(logits.shape[:2])
    if not form.target.everywhere:
        return each.mean(1)
    inside = torch.arange(each.shape[1]) < lengths[:, None]
    return (each * inside).sum(1) / lengths
