"""Errors of arguments: one sentence that names the argument, as a ValueError or a TypeError."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.errors import PerdureError

OPTION = re.compile(r"--(\w+)\.(\w+(?:[.-]\w+)*)(?: (\w+))?")
"""An option of the command line, as errors of other parts advise it: --network.heads multi."""
PHRASES = {
    "load it with --plugin FILE": "load it first with perdure.load_plugin(FILE), or perdure.register",
    "run it again": "teach a new learner",
}
"""What errors of other parts advise, and what is meant in Python."""


class ArgumentError(PerdureError, ValueError):
    """An argument of the right type has an impossible value."""


class ArgumentTypeError(PerdureError, TypeError):
    """An argument has the wrong type."""


def wrong(argument: str, said: str) -> ArgumentError:
    """The error for a wrong value: `x: it holds NaN; ...`."""
    return ArgumentError(f"{argument}: {said}")


def an_instance(value: object) -> str:
    """What a value is, in words that do not print all of it: of type ndarray and shape (60, 8)."""
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return "None" if value is None else f"of type {name}" + (f" and shape {tuple(shape)}" if shape else "")


def wrong_type(argument: str, said: str) -> ArgumentTypeError:
    """The error for a wrong type."""
    return ArgumentTypeError(f"{argument}: {said}")


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Any other helpful error within becomes one that names the argument."""
    try:
        yield
    except (ArgumentError, ArgumentTypeError):
        raise
    except PerdureError as error:
        raise wrong(argument, in_python(str(error))) from None


@contextmanager
def part_of(argument: str) -> Iterator[None]:
    """Errors within that name an argument then name the one of which it is a part: `validation, y: ...`."""
    try:
        yield
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"{argument}, {error}") from None


@contextmanager
def writing(argument: str, path: Path) -> Iterator[None]:
    """What cannot be written is told as an error of the argument that named it."""
    try:
        yield
    except (PerdureError, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        if cause.errno == errno.ENOSPC:
            said = "the disk is full; what was written before is intact, so free some space and try again."
            raise wrong(argument, f"'{path}' cannot be written: {said}") from cause
        said = f"({cause.strerror or cause}); choose a folder that you may write to."
        raise wrong(argument, f"'{path}' cannot be written {said}") from cause


@contextmanager
def for_python() -> Iterator[None]:
    """Errors within that advise options of the command line then advise a learner's arguments."""
    try:
        yield
    except PerdureError as error:
        said = in_python(str(error))
        if said == str(error):
            raise
        raise type(error)(said) from None


def in_python(said: str) -> str:
    """A sentence for the command line, with the arguments of a learner in place of options."""
    for phrase, meant in PHRASES.items():
        said = said.replace(phrase, meant)
    return OPTION.sub(_as_argument, said)


def _as_argument(found: re.Match[str]) -> str:
    """--network.heads multi as network={'heads': 'multi'}."""
    section, option, value = found.groups()
    given = "..." if value is None else value if value.isdecimal() else repr(value)
    if section in ("network", "training"):
        return f"{section}={{'{option}': {given}}}"
    return f"options={{'{section}.{option}': {given}}}"
