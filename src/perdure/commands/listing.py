"""perdure list: what there is."""

from __future__ import annotations

from perdure.commands.arguments import check_count, check_names, parse
from perdure.methods import COMBINATIONS

HELP = """\
perdure list: benchmarks, methods and scales
"""


def listing(words: list[str]) -> int:
    """Print what there is."""
    read = parse(words)
    check_names(read, ())
    check_count(read, 0, "perdure list")
    if read.help:
        print(HELP, end="")
        return 0
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
    return 0


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0].rstrip(".")
