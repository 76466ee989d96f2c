"""Errors that users can act on."""

from __future__ import annotations

import difflib
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate


class PerdureError(Exception):
    """One sentence that says what is wrong, where, and what would be right.

    The command line prints it without a traceback and exits with code 2.
    """


class Interrupted(PerdureError):
    """The run was asked to stop; its checkpoint is on disk."""

    code = 2
    """Exit code; 130 for Ctrl-C, 143 for SIGTERM."""


class Diverged(PerdureError):
    """A loss or gradient is no longer finite; what was stored before is good."""


class Busy(PerdureError):
    """Another process is working on the same; later it will be free, or done."""


class Refused(PerdureError):
    """A worker will not work for this driver: its numbers would be others."""


def with_extra(name: str) -> str:
    """How to install what an extra of the package brings, such as `search`."""
    return f"pip install '.[{name}]' in a clone of Perdure"


SIZE_ERRORS = (MemoryError, RuntimeError, ValueError, OverflowError)
"""What sizes beyond all memory cause; `out_of_memory` tells whether they did."""
_SIZE_WORDS = ("allocat", "Maximum allowed dimension", "array is too big", "too large to convert")


def counted(number: int, word: str) -> str:
    """A number of things in words: 1 trial, 2 trials."""
    return f"{number} {word}" + ("" if number == 1 else "s")


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, or never could be enough: Python's, numpy's or torch's."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, SIZE_ERRORS) and any(words in str(error) for words in _SIZE_WORDS)


TOO_LARGE = "Not enough memory for these sizes; choose smaller ones."


NEAR = 0.6
"""How alike a name must be to be suggested: 1 is the same, 0 has nothing in common."""
LISTED = 360
"""Number of characters of the names that an error lists; of more, only the first ones are named."""
SUGGESTED = 3
"""Number of names that are suggested at most."""
LONGEST = 1200
"""Number of characters of the longest sentence; of longer ones, the middle is left out."""
ELSEWHERE = {
    "lr": "learning_rate",
    "epochs": "iterations",
    "steps": "iterations",
    "batch": "batch_size",
    "wd": "weight_decay",
    "optimizer": "optimiser",
    "lambda": "strength",
}
"""Names of options that people bring from elsewhere, and those here."""
SPACES = "\u00a0\u2007\u2009\u202f\u3000"
"""Spaces of other widths, or where no line breaks; a terminal gets a plain one."""
SHOWN = 60
"""Number of characters of a given value that an error repeats."""


def unknown(what: str, given: str, known: Iterable[str]) -> PerdureError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = _nearest(given[:200], names)
    within = [name for name in names if len(given) > 1 and given.lower() in name.lower()]
    if within and (near is None or near not in within):
        hint = f"did you mean {' or '.join(repr(name) for name in sorted(within, key=len)[:SUGGESTED])}?"
    elif near is not None:
        hint = f"did you mean '{near}'?"
    else:
        section = given.rpartition(".")[0]
        names = [name for name in names if section and name.startswith(f"{section}.")] or names
        ends = list(accumulate(len(name) + 2 for name in names))
        fitting = bisect(ends, LISTED)
        more = f" and {len(names) - fitting} more" if len(names) > fitting + 1 else ""
        listed = ", ".join(names[: fitting if more else None])
        hint = f"choose from {listed}{more}." if names else "there are none here."
    return PerdureError(f"Unknown {what} '{shortened(given)}': {hint}")


def _nearest(given: str, names: Sequence[str]) -> str | None:
    """The name most like the given one, whatever the case of its letters; None if none is near.

    What all names of a section begin with (--benchmark.) makes none of them more alike than another.
    """
    section, dot, last = given.lower().rpartition(".")
    last = ELSEWHERE.get(last.lstrip("-"), last)
    alike = [name for name in names if dot and name.lower().endswith(f".{last}")]
    if alike:  # only the section is wrong
        return difflib.get_close_matches(given.lower(), alike, n=1, cutoff=0)[0]
    inside = {name[len(section + dot) :]: name for name in names if name.lower().startswith(section + dot)}
    elsewhere = [name for name in names if not dot and name.endswith(f".{last}")]
    if elsewhere:
        return elsewhere[0]
    if not dot or not inside:
        last, inside = given.lower(), {name: name for name in names}
    lower = {short.lower(): name for short, name in inside.items()}
    near = difflib.get_close_matches(last, lower, n=1, cutoff=NEAR)
    return lower[near[0]] if near else None


def shortened(text: str) -> str:
    """A text, cut off where it is too long for a sentence."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def sentence(text: str) -> str:
    """A text as it is told to the user: on one line, and no longer than one can read."""
    told = printable(text)
    return told if len(told) <= LONGEST else f"{told[: LONGEST // 2]} ... {told[-LONGEST // 2 :]}"


def printable(text: str) -> str:
    r"""A text on one line, with visible codes in place of what would control a terminal.

    Escape codes, line ends, text that runs the other way and halves of characters show as \x1b, \n and so on.
    """
    if text.isprintable():
        return text
    plain = "".join(" " if letter in SPACES else letter for letter in text)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in plain
    )
