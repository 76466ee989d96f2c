"""Validation accuracy against each searched value: one panel per option, one point per trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.options import option_text
from perdure.report.figures import check_format, save
from perdure.report.palette import method_colours
from perdure.report.searches import short_name
from perdure.search.spaces import Range, Space
from perdure.search.state import Search, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 3
BINS = 6
"""Number of bins of a range; the line joins the best trial of each."""


def draw_sensitivity(searches: Sequence[Search], path: Path) -> None:
    """Panels for each search; the line joins the best trial for each value."""
    check_format(path)
    from matplotlib.figure import Figure

    panels = [(search, name) for search in searches for name in ordered(search.design.space)]
    columns = min(COLUMNS, len(panels)) or 1
    rows = math.ceil(len(panels) / columns) or 1
    figure = Figure(figsize=(4.2 * columns, 3.1 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    colours = method_colours(search.design.method for search in searches)
    for number, axes in enumerate(grid.flat):
        if number < len(panels):
            search, name = panels[number]
            _panel(axes, search, name, colours[search.design.method][0])
            if number % columns == 0:
                axes.set_ylabel("validation final (%)")
        else:
            axes.set_visible(False)
    save(figure, path)


def ordered(space: Space) -> list[str]:
    """Searched options, strengths first, since they matter most."""
    return sorted(space.varied, key=lambda name: not name.endswith(("strength", "fraction")))


def _panel(axes: Axes, search: Search, name: str, colour: str) -> None:
    trials = [t for t in search.trials if t.final is not None and name in t.values]
    place, labels = positions(search.design.space, name)
    finished = [trial for trial in trials if trial.status == "finished"]
    for filled, some in ((True, finished), (False, [t for t in trials if t.status == "stopped"])):
        axes.scatter(
            [place(trial.values[name]) for trial in some],
            [trial.final or 0.0 for trial in some],
            s=18,
            color=colour if filled else "none",
            edgecolors=colour,
            alpha=0.6,
            label=None if filled else "ended early",
        )
    line = best_line([(place(trial.values[name]), trial) for trial in finished], grouped=labels is not None)
    axes.plot([x for x, _ in line], [y for _, y in line], color=colour, linewidth=1.5)
    chosen = [trial for trial in finished if trial.number == search.chosen]
    for trial in chosen:
        axes.scatter([place(trial.values[name])], [trial.final or 0.0], marker="*", s=130, color=colour)
    if labels is not None:
        axes.set_xticks(range(len(labels)), labels, fontsize=7)
        axes.set_xlim(-0.5, len(labels) - 0.5)
    elif is_log(search.design.space, name):
        axes.set_xscale("log")
    names = search.design.space.varied
    axes.set(xlabel=short_name(name, names), title=search.design.method)
    axes.grid(alpha=0.3)


def best_line(points: Sequence[tuple[float, Trial]], *, grouped: bool) -> list[tuple[float, float]]:
    """The best trial at each value; for ranges, in each of BINS bins with equal counts."""
    ordered = sorted(points, key=lambda point: point[0])
    if grouped:
        groups: list[list[tuple[float, Trial]]] = [
            [point for point in ordered if point[0] == place] for place in sorted({x for x, _ in ordered})
        ]
    else:
        size = max(math.ceil(len(ordered) / BINS), 1)
        groups = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    tops = [max(group, key=lambda point: point[1].final or 0.0) for group in groups]
    return [(x, trial.final or 0.0) for x, trial in tops]


def positions(space: Space, name: str) -> tuple[Any, list[str] | None]:
    """The position of a value on the axis; for alternatives also their labels."""
    domains = [each.domain for each in space.dimensions if each.name == name]
    if any(isinstance(domain, Range) for domain in domains):
        return float, None
    texts = list(
        dict.fromkeys(option_text(v) for d in domains if not isinstance(d, Range) for v in _sorted(d))
    )
    return lambda value: texts.index(option_text(value)), texts


def _sorted(values: Sequence[Any]) -> list[Any]:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return sorted(values) if numbers else list(values)


def is_log(space: Space, name: str) -> bool:
    """Whether an option is searched by ratio."""
    return any(
        isinstance(each.domain, Range) and each.domain.scale == "log"
        for each in space.dimensions
        if each.name == name
    )
