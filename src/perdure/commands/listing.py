"""perdure list: the available benchmarks, methods, scales and pieces."""

from __future__ import annotations

from perdure.commands.arguments import check_count, check_names, parse
from perdure.errors import unknown
from perdure.methods import COMBINATIONS
from perdure.report.terminal import show_names

HELP = """\
perdure list: benchmarks, methods and scales
perdure list pieces: the weight sources, penalties, rehearsals, cells and bodies they are made of

  --plugin FILE        a Python file with pieces of your own
"""

TITLES = {
    "weights": "Weight sources: where the weights of a task come from",
    "penalties": "Penalties: what protects old knowledge",
    "rehearsal": "Rehearsals: what old tasks are trained on again",
    "cells": "Recurrent cells (--network.cell)",
    "bodies": "Bodies of networks (--network.body)",
}


SCALES = {
    "smoke": "seconds: to check that it runs",
    "demo": "minutes: a first impression of Table 1 (permuted-copy only)",
    "laptop": "minutes: less data or fewer iterations, higher learning rates (default)",
    "paper": "the paper's sizes, iterations and hyper-parameters",
}


def listing(words: list[str]) -> int:
    """Print what is available."""
    read = parse(words)
    check_names(read, ())
    check_count(read, 1, "perdure list")
    if read.positional not in ([], ["pieces"]):
        raise unknown("argument", read.positional[0], ["pieces"])
    if read.help:
        print(HELP, end="")
    elif read.positional:
        _list_pieces()
    else:
        _list_methods()
    return 0


def _list_pieces() -> None:
    """Pieces by kind; those from plugins with the file they came from."""
    from perdure.registry import origin, pieces

    for kind, title in TITLES.items():
        print(title)
        found = []
        for name, piece in sorted(pieces(kind).items()):
            source = origin(piece)
            found.append((name, f"{_first_line(piece.__doc__)}{f' ({source.name})' if source else ''}"))
        show_names(found)
        print()


def _list_methods() -> None:
    """Benchmarks, methods and scales; without torch, unless a plugin needs it."""
    from perdure.registry import methods, pieces

    print("Benchmarks")
    show_names((name, _first_line(kind.__doc__)) for name, kind in sorted(pieces("benchmarks").items()))
    print("\nMethods (combine with +)")
    show_names((name, method.about) for name, method in methods().items())
    show_names([("combined, such as", ", ".join(COMBINATIONS))])
    print("\nScales (--scale)")
    show_names(SCALES.items())


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0].rstrip(".")
