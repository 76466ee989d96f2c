"""Figures of records."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perdure.analysis.finding import Finding
from perdure.errors import PerdureError, shortened
from perdure.storage.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")


def draw_accuracy(record: Record, path: Path) -> None:
    """The accuracy matrix as a heat map next to each task's accuracy over phases."""
    check_format(path)
    # The object interface needs no global figure manager and no screen.
    from matplotlib.figure import Figure

    tasks = len(record.tasks)
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    heat, course = figure.subplots(1, 2, width_ratios=(1, 1.15))
    image = heat.imshow(record.accuracy, vmin=0, vmax=100, cmap="viridis")
    for row, values in enumerate(record.accuracy):
        for column, value in enumerate(values):
            colour = "white" if value < 60 else "black"
            heat.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=9)
    numbers = range(tasks)
    heat.set_xticks(numbers, [str(n + 1) for n in numbers])
    heat.set_yticks(numbers, [str(n + 1) for n in numbers])
    heat.set(xlabel="tested on task", ylabel="after learning task", title=f"{record.score.capitalize()} (%)")
    figure.colorbar(image, ax=heat, shrink=0.85)
    for task in numbers:
        after = [row[task] for row in record.accuracy][task:]
        course.plot(range(task + 1, tasks + 1), after, marker="o", label=f"task {task + 1}")
    course.set(xlabel="after learning task", ylabel=f"{record.score} (%)", title="Retention of each task")
    course.set_xticks(range(1, tasks + 1))
    lowest = min(min(row) for row in record.accuracy)
    course.set_ylim(min(lowest, 45) - 2, 102)
    course.grid(alpha=0.3)
    course.legend(fontsize=8)
    figure.suptitle(
        f"{record.benchmark}, {record.method}, seed {record.seed}: "
        f"during {record.during:.2f} %, final {record.final:.2f} %"
    )
    save(figure, path)


def draw_findings(findings: Sequence[Finding], path: Path) -> None:
    """Analyses side by side, one set of axes each."""
    check_format(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(findings), 4.2), layout="constrained")
    for axes, finding in zip(figure.subplots(1, len(findings), squeeze=False)[0], findings, strict=True):
        if finding.draw is not None:
            finding.draw(axes)
            _whole_ticks(axes)
        axes.set_title(textwrap.fill(finding.title, 60), fontsize=9)
    save(figure, path)


def _whole_ticks(axes: Axes) -> None:
    """No ticks between tasks or steps, which are counted; ticks that were chosen stay."""
    from matplotlib.ticker import AutoLocator, MaxNLocator

    found = [np.asarray(line.get_xdata(orig=False), dtype=float) for line in axes.get_lines()]
    places = [float(x) for each in found for x in each]
    chosen = not isinstance(axes.xaxis.get_major_locator(), AutoLocator)
    if places and not chosen and all(x.is_integer() for x in places):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def check_format(path: Path) -> None:
    """Raise a helpful error if a file name has no figure format."""
    if path.suffix.lower() not in FORMATS:
        given = shortened(str(path))
        raise PerdureError(f"A figure's name must end in .png, .pdf or .svg (given: '{given}').")


def check_writable(path: Path) -> None:
    """Raise a helpful error if a figure could not be written there; before the work that it shows."""
    check_format(path)
    try:
        if path.exists():
            with path.open("ab"):
                pass
        else:
            path.open("xb").close()
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> PerdureError:
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        reason = f"make the folder '{shortened(str(path.parent))}' first"
    return PerdureError(f"Cannot write the figure '{shortened(str(path))}' ({reason}).")


def save(figure: Figure, path: Path) -> None:
    """Write a figure."""
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise _unwritable(path, error) from error
