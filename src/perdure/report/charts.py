"""Small static drawings inside tables: our number next to the published one, and differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perdure.paper.findings import Number, TableCell

WIDTH, HEIGHT, MARGIN = 108, 18, 7
"""Size of a strip in pixels."""

STEPS = (1.0, 2.0, 5.0, 10.0)
"""Leading digits of round numbers."""

FARTHEST = 10.0
"""Differences beyond this are drawn at the edge, so that one of them does not hide all others."""


@dataclass(frozen=True)
class ChartAxis:
    """A range of values on a strip."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """The position of a value in pixels from the left; values outside are at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return MARGIN + (WIDTH - 2 * MARGIN) * min(max(share, 0.0), 1.0)


def axis_of(cells: Sequence[TableCell]) -> ChartAxis:
    """The range of all numbers of cells that are drawn on one scale."""
    ends = [
        end for cell in cells for number in (cell.ours, cell.published) if number for end in ends_of(number)
    ]
    if not ends:
        return ChartAxis(0, 1)
    low, high = min(ends), max(ends)
    return ChartAxis(low, high) if high > low else ChartAxis(low - 0.5, high + 0.5)


def ends_of(number: Number) -> tuple[float, float]:
    """The 95 % interval if there is one, otherwise mean ± SEM."""
    if number.low is not None and number.high is not None:
        return number.low, number.high
    sem = number.sem or 0.0
    return number.mean - sem, number.mean + sem


def strip(cell: TableCell, axis: ChartAxis) -> Markup:
    """Ours as a dot and the published number as a diamond, each with its interval."""
    middle = HEIGHT / 2
    parts = [f'<line class="rail" x1="0" x2="{WIDTH}" y1="{middle:g}" y2="{middle:g}"/>']
    if cell.published is not None:
        x = axis.place(cell.published.mean)
        parts.append(_interval(cell.published, axis, "theirs", middle))
        parts.append(f'<path class="theirs" d="M{x:.1f} {middle - 5:g}l5 5-5 5-5-5z"/>')
    if cell.ours is not None:
        parts.append(_interval(cell.ours, axis, "ours", middle))
        parts.append(f'<circle class="ours" cx="{axis.place(cell.ours.mean):.1f}" cy="{middle:g}" r="3.5"/>')
    return _svg(parts)


def _interval(number: Number, axis: ChartAxis, kind: str, y: float) -> str:
    low, high = (axis.place(end) for end in ends_of(number))
    return f'<line class="{kind}" x1="{low:.1f}" x2="{high:.1f}" y1="{y:g}" y2="{y:g}"/>'


def reach(differences: Sequence[float]) -> float:
    """A round number that bounds the differences of all items, or nearly all."""
    farthest = min(max((abs(value) for value in differences), default=1.0), FARTHEST)
    if farthest == 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(farthest))
    return next(step * power for step in STEPS if step * power >= farthest * (1 - 1e-9))


def differences_strip(differences: Sequence[float], half: float) -> Markup:
    """Each difference, ours minus published, as a dot around zero; from -half to half."""
    axis, middle = ChartAxis(-half, half), HEIGHT / 2
    zero = axis.place(0)
    parts = [
        f'<line class="rail" x1="0" x2="{WIDTH}" y1="{middle:g}" y2="{middle:g}"/>',
        f'<line class="zero" x1="{zero:g}" x2="{zero:g}" y1="1" y2="{HEIGHT - 1}"/>',
    ]
    for value in sorted(differences, key=abs, reverse=True):
        x = axis.place(value)
        if abs(value) > half:
            base = x - math.copysign(6, value)
            parts.append(f'<path class="spot" d="M{base:.1f} {middle - 4:g}v8L{x:.1f} {middle:g}z"/>')
        else:
            parts.append(f'<circle class="spot" cx="{x:.1f}" cy="{middle:g}" r="3.5"/>')
    return _svg(parts)


def _svg(parts: Sequence[str]) -> Markup:
    # The numbers are next to it as text, so screen readers can skip the drawing.
    extent = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return Markup(f'<svg class="strip" {extent} aria-hidden="true">{"".join(parts)}</svg>')


@dataclass(frozen=True)
class Tick:
    """An axis mark: its text, and its position in percent."""

    text: str
    place: float


def percent_axis(values: Sequence[float]) -> tuple[float, float, list[Tick]]:
    """An axis for accuracies up to 100 %, starting at a round number below all of them: low, high, ticks."""
    low = min(10.0 * math.floor(min(values, default=0.0) / 10.0), 90.0)
    step = 5.0 if low >= 80 else 10.0 if low >= 50 else 20.0
    count = math.floor((100 - low) / step + 1e-9)
    marks = [100 - step * number for number in range(count, -1, -1)]
    return (
        low,
        100.0,
        [Tick(f"{mark:g}", 100 * (mark - low) / (100 - low)) for mark in marks],
    )
