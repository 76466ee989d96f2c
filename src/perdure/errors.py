"""Errors that users can act on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PerdureError(Exception):
    """One sentence that says what is wrong, where, and what would be right.

    The command line prints it without a traceback and exits with code 2.
    """


class Interrupted(PerdureError):
    """The run was asked to stop; its checkpoint is on disk."""

    code = 2
    """Exit code; 130 for Ctrl-C."""


class Busy(PerdureError):
    """Another process is working on the same; later it will be free, or done."""


class Refused(PerdureError):
    """A worker will not work for this driver: its numbers would be others."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out: Python's, numpy's or torch's."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocat" in str(error))


TOO_LARGE = "Not enough memory for these sizes; choose smaller ones."


def unknown(what: str, given: str, known: Iterable[str]) -> PerdureError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean '{near[0]}'?"
    else:
        hint = f"choose from {', '.join(names)}." if names else "there are none here."
    return PerdureError(f"Unknown {what} '{given}': {hint}")
