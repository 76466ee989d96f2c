"""What reproducing one item of the paper yields: numbers beside the published ones, and drawings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from perdure.analysis.statistics import Number as Number


@dataclass(frozen=True)
class Cell:
    """One number of a table: which row and column, ours, the published one, and how they compare."""

    row: str
    column: str
    ours: Number | None
    published: Number | None = None
    verdict: str = ""
    """agrees, higher or lower than published, by the rule of `analysis.statistics.verdict`."""
    command: str = ""
    """The command that makes this cell."""
    hashes: tuple[str, ...] = ()
    """The runs behind it."""


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG text, drawn from data."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Findings:
    """All that was found for one item of the paper."""

    name: str
    title: str
    source: str
    """Which table or figure of the paper it is."""
    about: str
    """One or two sentences: what it shows."""
    scale: str
    differs: str
    """What is smaller or otherwise different from the paper here; empty if nothing."""
    command: str
    cells: list[Cell] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    seconds: float = 0.0
    """Computing time of all runs behind it."""

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)
