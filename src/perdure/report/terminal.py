"""Printing to standard output, without heavy imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from perdure.errors import printable
from perdure.report.table import Table, wrapped

NAMES = 22
"""Columns for a name in a list of names, unless one is longer."""


def show(*items: Table | str) -> None:
    """Print texts and tables so that they fit the terminal; elsewhere, at full width."""
    limit, colour = width(), colours()
    for item in items:
        if isinstance(item, Table):
            lines = item.lines(limit, colour=colour)
        else:
            lines = [line for text in item.split("\n") for line in wrapped(printable(text), limit)]
        print("\n".join(lines))


def tell(text: str) -> None:
    """Print a line on standard error; in a terminal, it breaks between words."""
    limit = width(sys.stderr) if sys.stderr.isatty() else None
    print("\n".join(wrapped(printable(text), limit)), file=sys.stderr)


def show_names(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and what they mean, indented; meanings that do not fit go on below themselves."""
    limit, named = width(), [(printable(name), about) for name, about in pairs]
    room = max([NAMES, *(len(name) + 2 for name, _ in named)])
    for name, about in named:
        head = f"  {name:<{room}}"
        first, *rest = wrapped(printable(about), None if limit is None else max(limit - len(head), NAMES))
        print("\n".join([f"{head}{first}".rstrip(), *(" " * len(head) + line for line in rest)]))


def width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal, or as COLUMNS says; None if the output is no terminal."""
    stream = sys.stdout if stream is None else stream
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and 0 < int(named[:6]) <= 10_000:
        return int(named)
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else None
    except (OSError, ValueError):
        return None


def colours() -> bool:
    """Whether the output is a terminal that shows colours, and nobody said that it should not."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    old_windows = os.name == "nt" and not {"WT_SESSION", "ANSICON", "TERM"} & set(os.environ)
    return sys.stdout.isatty() and not old_windows
