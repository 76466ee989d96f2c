"""Class names of any plain type: numbers, strings, dates, tuples; outputs are their positions."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.benchmarks.task import Array
from perdure.learner.faults import wrong, wrong_type

WRITTEN: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
}
"""Types with a name in JSON, and how they are written and read; str, int, float and bool are themselves."""


def plain_class(value: Any) -> Any:
    """A class as Python has it: scalars of numpy, torch and pandas become numbers, strings or dates."""
    if isinstance(value, np.datetime64) and np.datetime_data(value)[0] in ("ns", "ps", "fs", "as"):
        value = value.astype("datetime64[us]")  # otherwise `item` gives a bare number
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return tuple(plain_class(part) for part in value) if isinstance(value, tuple) else value


def check_class(value: Any) -> None:
    """Raise unless a class can be told apart, and written down without pickle."""
    if isinstance(value, tuple):
        for part in value:
            check_class(part)
    elif isinstance(value, float) and math.isnan(value):
        raise wrong("y", "it holds NaN, which is no class; leave such sequences out.")
    elif value is None:
        raise wrong("y", "it holds None, which is no class; leave such sequences out.")
    elif type(value) not in (str, int, float, bool, *(kind for kind, _, _ in WRITTEN.values())):
        raise wrong_type(
            "y",
            f"a class is a {type(value).__name__}; classes are strings, numbers, dates, bytes, or tuples of "
            f"these.",
        )


def sorted_classes(values: Iterable[Any]) -> tuple[Any, ...]:
    """Classes in their natural order if they have one, otherwise by type and text."""
    distinct = list(dict.fromkeys(values))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(sorted(distinct, key=lambda value: (type(value).__name__, repr(value))))


@dataclass(frozen=True)
class Owner:
    """Whose answers are read, and what to do with classes that it does not have."""

    name: str
    classes: str = ""
    """Whose classes they are, if not its own."""
    advice: str = "a head cannot grow, so learn new classes as a new task"

    def __str__(self) -> str:
        """As errors name it."""
        return self.name

    def lacks(self, value: Any, classes: Sequence[Any]) -> str:
        """The sentence for a class that it does not have."""
        known = ", ".join(repr(each) for each in classes[:10]) + (", ..." if len(classes) > 10 else "")
        subject = f"the class {value!r} of {self} is not one of {self.classes}"
        if not self.classes:
            subject = f"the class {value!r} is not one of {self}"
        return f"{subject} ({known}); {self.advice}."


def encode(values: Sequence[Any], classes: Sequence[Any], whose: Owner) -> Array:
    """The outputs [N] that stand for classes; a class that is not there is refused."""
    number = {each: output for output, each in enumerate(classes)}
    for value in dict.fromkeys(values):
        if value not in number:
            raise wrong("y", whose.lacks(value, classes))
    return np.array([number[value] for value in values], dtype=np.int64)


def decode(outputs: Array, classes: Sequence[Any]) -> Array:
    """The classes that outputs of any shape stand for, in an array of their type."""
    table = object_array(classes)
    if len({type(each) for each in classes}) == 1 and isinstance(classes[0], (str, int, float, bool)):
        table = np.array(classes)
    chosen: Array = table[outputs]
    return chosen


def object_array(values: Sequence[Any]) -> Array:
    """An array of Python objects, also where these are tuples."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def to_json(value: Any) -> Any:
    """A class as JSON."""
    if isinstance(value, tuple):
        return {"tuple": [to_json(part) for part in value]}
    for name, (kind, write, _) in WRITTEN.items():
        if type(value) is kind:
            return {name: write(value)}
    return value


def from_json(data: Any) -> Any:
    """The inverse of `to_json`."""
    if not isinstance(data, dict):
        return data
    ((name, value),) = data.items()
    return tuple(from_json(part) for part in value) if name == "tuple" else WRITTEN[name][2](value)
