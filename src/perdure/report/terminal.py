"""Printing to standard output, without heavy imports."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.measure import Measurement


def show(*items: RenderableType) -> None:
    """Print texts and tables; a table keeps its digits even if it is wider than the terminal."""
    console = Console(highlight=False)
    for item in items:
        needed = Measurement.get(console, console.options.update(max_width=10_000), item).maximum
        wide = Console(highlight=False, width=max(console.width, needed))
        wide.print(item, markup=False, soft_wrap=True, crop=False)
