"""Whether plain data from a file are what a type hint says, without heavy imports.

Records are read hundreds at a time, so lists of numbers are checked as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from perdure.files import Damaged

LONGEST = 10_000
"""Characters of the longest text."""
NUMBERS = {int, float}

_WORDS = {
    int: "a whole number",
    float: "a finite number",
    str: f"a text of at most {LONGEST} characters",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    NoneType: "null",
}


def check(value: Any, hint: Any, where: str) -> None:
    """Raise Damaged, naming the place, if a value is not of the type; numbers must be finite."""
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        _check_one_of(value, get_args(hint), where)
    elif kind is list:
        _is(value, list, where)
        _check_all(value, (get_args(hint) or (Any,))[0], where)
    elif kind is dict:
        _is(value, dict, where)
        _check_all(value.values(), (get_args(hint) or (str, Any))[1], where, list(value))
    elif kind is float:
        if type(value) not in NUMBERS or not finite([value]):
            raise _wrong(value, float, where)
    elif kind is str:
        if type(value) is not str or len(value) > LONGEST:
            raise _wrong(value, str, where)
    elif kind in (int, bool, NoneType):
        _is(value, kind, where)


def _check_one_of(value: Any, hints: Iterable[Any], where: str) -> None:
    """Whether a value is of one of several types; the last fault is the one that is told."""
    fault: Damaged | None = None
    for hint in hints:
        try:
            return check(value, hint, where)
        except Damaged as error:
            fault = error
    if fault is not None:
        raise fault


def _check_all(values: Iterable[Any], hint: Any, where: str, names: Sequence[Any] = ()) -> None:
    """All entries of a list, or of a mapping with these names."""
    values = list(values)
    kinds = {*map(type, values)}
    if hint is Any or (hint is int and kinds <= {int}) or (hint is float and _are_numbers(values)):
        return
    within = chain.from_iterable(map(dict.values, values)) if kinds <= {dict} else [None]
    if hint == dict[str, float] and _are_numbers([*within]):  # curves: most of what a record holds
        return
    for number, value in enumerate(values):
        check(value, hint, f"{where}.{names[number]}" if names else f"{where}[{number}]")


def _is(value: Any, kind: type, where: str) -> None:
    if type(value) is not kind:
        raise _wrong(value, kind, where)


def _are_numbers(values: Sequence[Any]) -> bool:
    return {*map(type, values)} <= NUMBERS and finite(values)


def finite(values: Iterable[Any]) -> bool:
    """Whether numbers are finite, and small enough to be floats."""
    try:
        return all(map(isfinite, values))
    except OverflowError:
        return False


def _wrong(value: Any, kind: type, where: str) -> Damaged:
    told = (
        repr(value)
        if isinstance(value, (str, int, float, NoneType)) and _short(value)
        else _WORDS.get(type(value))
    )
    return Damaged(f"'{where[:80]}' must be {_WORDS[kind]}, but is {told or 'something else'}")


def _short(value: object) -> bool:
    if isinstance(value, int) and value.bit_length() > 200:
        return False
    return len(repr(value)) <= 40


def check_matrix(rows: Any, tasks: int, where: str) -> None:
    """Raise Damaged if a matrix does not have a row and a column for each task."""
    if len(rows) != tasks or any(len(row) != tasks for row in rows):
        raise Damaged(f"'{where}' must have a row and a column for each of the {tasks} tasks")


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """A value that must be a mapping."""
    if not isinstance(value, dict):
        raise _wrong(value, dict, where)
    return value
