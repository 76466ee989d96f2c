"""The result of reproducing one item of the paper: numbers next to the published ones, and drawings."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from perdure.analysis.statistics import Number as Number
from perdure.files import Damaged, read_json

SUPPORTED, CONTRADICTED = "supported", "contradicted"
WEAKER = "in the paper's direction, but within the margin"
"""Verdicts on findings of the paper, apart from not decided."""

THE_PAPER = "The paper finds that "
"""How a finding of the paper begins."""

ASKED = "Asked here: "
"""How a question of our own begins."""

FOLDER = "findings"
"""Folder below the folder of runs, with one file per item."""


@dataclass(frozen=True)
class TableCell:
    """One number of a table: its row and column, ours, the published one, and how they compare."""

    row: str
    column: str
    ours: Number | None
    published: Number | None = None
    verdict: str = ""
    """agrees, higher or lower than published, or not decided; see `analysis.statistics.verdict`."""
    command: str = ""
    """The command that produces this cell."""
    hashes: tuple[str, ...] = ()
    """The runs behind it."""
    needed: int | None = None
    """Seeds needed for a decision, if mean and spread stay the same; None if even 1000 would not suffice."""

    values: tuple[float, ...] = ()
    """Our number of each seed."""
    remark: str = ""
    """What a reader must know about its runs, such as a hypernetwork that is larger than allowed."""
    left_out: tuple[int, ...] = ()
    """Seeds that do not count, such as networks that have not learnt the task; `values` has the others."""

    @property
    def by_seed(self) -> dict[int, float]:
        """Our number of each seed that counts; seeds begin at 0."""
        seeds = range(len(self.values) + len(self.left_out))
        return dict(zip((seed for seed in seeds if seed not in self.left_out), self.values, strict=True))


@dataclass(frozen=True)
class Conclusion:
    """A finding of the paper, and beside it what our numbers show."""

    paper: str
    ours: str
    verdict: str
    """supported, in the paper's direction but within the margin, contradicted or not decided."""
    contrast: Number
    """The quantity that decides; a logarithm to base 10 if it is a factor."""
    needed: int | None = None
    """Seeds needed for a decision, if mean and spread stay the same; None if unknown or more than 1000."""

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper finds it; otherwise it is a question of our own."""
        return self.paper.startswith(THE_PAPER)


@dataclass(frozen=True)
class Pair:
    """Two methods on the same seeds: first minus second, ours and published."""

    first: str
    second: str
    ours: Number
    """Mean difference and its standard error over pairs of seeds."""
    p: float | None
    """Two-sided p-value of the paired t-test; None for one seed."""
    p_signs: float | None
    """The same for the sign-flip permutation test."""
    published: Number | None = None
    order: str = ""
    """as published, the other way round, too close to call or not decided: `analysis.statistics.order`."""


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG text, drawn from data."""

    title: str
    caption: str
    svg: str


OUTSIDE = "not in the paper"
"""How the source of an item begins that the paper does not have."""


def in_paper(source: str) -> bool:
    """Whether a source names a table or figure of the paper."""
    return not source.startswith(OUTSIDE)


@dataclass(frozen=True)
class Findings:
    """Everything found for one item of the paper."""

    name: str
    title: str
    source: str
    """Which table or figure of the paper it is; begins with OUTSIDE if it is none."""
    about: str
    """What it shows, in one or two sentences."""
    scale: str
    differs: str
    """What is different from the paper; of an item that it does not have, how it was run."""
    command: str
    cells: list[TableCell] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    seconds: float = 0.0
    """Computing time of all its runs."""
    pairs: list[Pair] = field(default_factory=list)
    """Pairs of methods, if the item compares methods."""

    conclusions: list[Conclusion] = field(default_factory=list)
    """What the paper finds, and what our numbers show."""
    given: dict[str, str] = field(default_factory=dict)
    """Options that all runs were given, beyond those of the item's settings."""

    @property
    def file(self) -> str:
        """Its name among files: the item, the scale, and what was given in addition."""
        extra = [f"{name.rpartition('.')[2]}-{value}" for name, value in self.given.items()]
        words = re.sub(r"[^\w.+-]", "_", "-".join([self.name, self.scale, *extra]))
        return words

    @property
    def json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def from_json(data: Any) -> Findings:
    """The findings written by `Findings.json`; raises Damaged if a part is missing or wrong."""
    try:
        json.dumps(data, allow_nan=False)
        return TypeAdapter(Findings).validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"]) or "the whole file"
        raise Damaged(f"{place}: {fault['msg']}") from None
    except ValueError:
        raise Damaged("a number is not finite") from None


def all_findings(runs: Path) -> tuple[list[Findings], list[str]]:
    """The findings below a folder of runs in the paper's order, and warnings about damaged files."""
    found, warnings = [], []
    for path in sorted((runs / FOLDER).glob("*.json")):
        try:
            found.append(from_json(read_json(path)))
        except (Damaged, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            warnings.append(
                f"'{path}' cannot be used ({reason}) and is left out; perdure reproduce creates it again."
            )
    return sorted(found, key=_place), warnings


def _place(findings: Findings) -> tuple[bool, bool, list[int], str, str]:
    """Tables before figures, each by its number; what is in the supplement comes last."""
    numbers = [int(digits) for digits in re.findall(r"\d{1,9}", re.split(r"[(,]", findings.source)[0])]
    source = findings.source.lower()
    return not numbers, source.startswith("fig"), numbers, findings.name, findings.scale
