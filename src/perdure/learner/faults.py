"""Errors of arguments: one sentence that names the argument, as a ValueError or a TypeError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from perdure.errors import PerdureError


class ArgumentError(PerdureError, ValueError):
    """An argument of the right type has an impossible value."""


class ArgumentTypeError(PerdureError, TypeError):
    """An argument has the wrong type."""


def wrong(argument: str, said: str) -> ArgumentError:
    """The error for a wrong value: `x: it holds NaN; ...`."""
    return ArgumentError(f"{argument}: {said}")


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
        raise wrong(argument, str(error)) from None


@contextmanager
def part_of(argument: str) -> Iterator[None]:
    """Errors within that name an argument then name the one of which it is a part: `validation, y: ...`."""
    try:
        yield
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"{argument}, {error}") from None
