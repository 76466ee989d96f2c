"""Small charts as SVG text within the page: points on two axes, which take their colours from its styles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

WIDTH, HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 12, 42
"""Margins around the area of the points."""
LETTER, LINE = 6.0, 12.0
"""Width of a letter and height of a line of a label, roughly, to keep labels apart."""

Shape = Literal["dot", "ring", "star"]


@dataclass(frozen=True)
class Scale:
    """Values along an axis, and which of them are written."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """The position of a value, from 0 to 1; values outside are at the edge, one alone in the middle."""
        low, high, at = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return min(max((at - low) / (high - low), 0.0), 1.0) if high > low else 0.5


@dataclass(frozen=True)
class Mark:
    """A point, with the interval of its height, its label beside it, and what it tells when asked."""

    x: float
    y: float
    style: str = ""
    """Class of the page's styles, which colours it."""
    label: str = ""
    tip: str = ""
    interval: tuple[float, float] | None = None
    shape: Shape = "dot"


def linear(values: Sequence[float], text: Callable[[float], str] = "{:g}".format) -> Scale:
    """A scale with round ticks around all values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    step = _round_step((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [(n * step, text(n * step)) for n in range(first, last + 1)]
    return Scale(first * step, last * step, ticks)


def logarithmic(values: Sequence[float], text: Callable[[float], str] = "{:g}".format) -> Scale:
    """A scale by ratio, with ticks at 1, 10, 100 (or 1, 2, 5, 10 if there is little between)."""
    low, high = min(values), max(values)
    low, high = low / 1.3, high * 1.3
    decades = math.log10(high / low)
    heads = (1.0, 2.0, 5.0) if decades < 2.2 else (1.0,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [head * 10.0**power for power in powers for head in heads]
    inside = [value for value in found if low <= value <= high]
    every = max(1, math.ceil(len(inside) / 6))
    return Scale(low, high, [(value, text(value)) for value in inside[::every]], log=True)


def categories(texts: Sequence[str]) -> Scale:
    """A scale of alternatives at 0, 1, 2, ..."""
    return Scale(-0.5, len(texts) - 0.5, [(float(place), text) for place, text in enumerate(texts)])


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(head * power for head in (1.0, 2.0, 5.0, 10.0) if head * power >= step * (1 - 1e-9))


def chart(
    marks: Sequence[Mark],
    x: Scale,
    y: Scale,
    *,
    titles: tuple[str, str],
    told: str,
    line: Sequence[tuple[float, float]] = (),
    line_style: str = "",
) -> Markup:
    """A chart with the titles of its axes; `told` describes it to those who cannot see it."""

    def place(at: tuple[float, float]) -> tuple[float, float]:
        across, up = x.share(at[0]), y.share(at[1])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [*_axes(x, y, titles, place)]
    if len(line) > 1:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in map(place, line))
        parts.append(Markup('<polyline class="front {}" points="{}"/>').format(line_style, path))
    parts += [_mark(mark, place) for mark in marks]
    parts += _labels(marks, place)
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, told, Markup("").join(parts)
    )


Place = Callable[[tuple[float, float]], tuple[float, float]]


def _axes(x: Scale, y: Scale, titles: tuple[str, str], place: Place) -> list[Markup]:
    parts = []
    for value, text in y.ticks:
        _, at = place((x.low, value))
        parts.append(
            Markup('<line class="level" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                LEFT, WIDTH - RIGHT, at, at
            )
        )
        parts.append(
            Markup('<text class="at left" x="{}" y="{:.1f}">{}</text>').format(LEFT - 6, at + 4, text)
        )
    size = max((len(text) for _, text in x.ticks), default=0) * len(x.ticks) * LETTER
    turned = size > (WIDTH - LEFT - RIGHT) * 0.95  # every other one, if they would touch
    for number, (value, text) in enumerate(x.ticks):
        at, _ = place((value, y.low))
        if not (turned and number % 2):
            parts.append(
                Markup('<text class="at" x="{:.1f}" y="{}">{}</text>').format(at, HEIGHT - BOTTOM + 15, text)
            )
        parts.append(
            Markup('<line class="notch" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(
                at, at, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 3
            )
        )
    parts.append(
        Markup('<text class="axis" x="{}" y="{}">{}</text>').format(
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, titles[0]
        )
    )
    parts.append(
        Markup('<text class="axis" transform="translate(11 {}) rotate(-90)">{}</text>').format(
            (TOP + HEIGHT - BOTTOM) / 2, titles[1]
        )
    )
    return parts


def _mark(mark: Mark, place: Place) -> Markup:
    a, b = place((mark.x, mark.y))
    parts = [Markup("<title>{}</title>").format(mark.tip)] if mark.tip else []
    if mark.interval is not None:
        low, high = (place((mark.x, end))[1] for end in mark.interval)
        parts.append(
            Markup('<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(a, a, low, high)
        )
    if mark.shape == "star":
        points = " ".join(
            f"{a + r * math.sin(n * math.pi / 5):.1f},{b - r * math.cos(n * math.pi / 5):.1f}"
            for n, r in enumerate([8.0, 3.4] * 5)
        )
        parts.append(Markup('<polygon points="{}"/>').format(points))
    else:
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4"/>').format(a, b))
    return Markup('<g class="mark {} {}">{}</g>').format(mark.shape, mark.style, Markup("").join(parts))


def _labels(marks: Sequence[Mark], place: Place) -> list[Markup]:
    """Labels beside their points, moved up or down until they do not touch each other."""
    taken: list[tuple[float, float, float]] = []
    parts = []
    for mark in sorted((each for each in marks if each.label), key=lambda each: -each.y):
        a, b = place((mark.x, mark.y))
        width = len(mark.label) * LETTER
        right = a + 8 + width <= WIDTH
        start = a + 8 if right else a - 8 - width
        for shift in (0, LINE, -LINE, 2 * LINE, -2 * LINE, 3 * LINE):
            at = b + 4 + shift
            clear = all(
                abs(at - other) >= LINE or start > end or start + width < begin for begin, end, other in taken
            )
            if clear and TOP <= at <= HEIGHT - BOTTOM:
                break
        taken.append((start, start + width, at))
        kind, anchor = ("", a + 8) if right else ("left", a - 8)
        parts.append(
            Markup('<text class="by {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
                kind, anchor, at, escape(mark.label)
            )
        )
    return parts
