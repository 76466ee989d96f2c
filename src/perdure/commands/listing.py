"""perdure list: what there is."""

from __future__ import annotations

from perdure.commands.arguments import check_count, check_names, parse
from perdure.errors import unknown
from perdure.methods import COMBINATIONS

HELP = """\
perdure list: benchmarks, methods and scales
perdure list pieces: weight sources, penalties, rehearsals, cells and bodies, of which they are made

  --plugin FILE        a Python file with pieces of your own
"""

TITLES = {
    "weights": "Weight sources: where the weights of a task come from",
    "penalties": "Penalties: what protects old knowledge",
    "rehearsal": "Rehearsals: what old tasks are trained on again",
    "cells": "Recurrent cells (--network.cell)",
    "bodies": "Bodies of networks (--network.body)",
}


def listing(words: list[str]) -> int:
    """Print what there is."""
    read = parse(words)
    check_names(read, ())
    check_count(read, 1, "perdure list")
    if read.positional not in ([], ["pieces"]):
        raise unknown("list", read.positional[0], ["pieces"])
    if read.help:
        print(HELP, end="")
    elif read.positional:
        _list_pieces()
    else:
        _list_methods()
    return 0


def _list_pieces() -> None:
    """Pieces by kind; those from outside with the file they came from."""
    from perdure.registry import origin, pieces

    for kind, title in TITLES.items():
        print(title)
        for name, piece in sorted(pieces(kind).items()):
            source = origin(piece)
            print(f"  {name:<26}{_first_line(piece.__doc__)}{f' ({source.name})' if source else ''}")
        print()


def _list_methods() -> None:
    """Benchmarks, methods and scales; without torch, unless a plugin needs it."""
    from perdure.registry import methods, pieces

    print("Benchmarks")
    for name, kind in sorted(pieces("benchmarks").items()):
        print(f"  {name:<22}{_first_line(kind.__doc__)}")
    print("\nMethods (combine with +)")
    for name, method in methods().items():
        print(f"  {name:<22}{method.about}")
    for name in COMBINATIONS:
        print(f"  {name:<22}both together")
    print("\nScales (--scale)")
    print("  smoke                 seconds: does it run?")
    print(
        "  laptop                minutes: near the paper's accuracy, by higher learning rates (the default)"
    )
    print("  paper                 the paper's sizes, iterations and hyper-parameters")


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0].rstrip(".")
