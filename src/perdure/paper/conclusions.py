"""What the paper finds, and beside it what our numbers show: sentences computed from the cells of an item."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from perdure.analysis.statistics import (
    MARGIN,
    NOT_DECIDED,
    SAME,
    Number,
    beyond,
    number,
    pairs_needed,
    sign,
)
from perdure.paper.findings import ASKED, CONTRADICTED, SUPPORTED, THE_PAPER, WEAKER, Conclusion, TableCell

Expectation = Literal["more", "less", "same"]
"""Whether a contrast is above zero, below zero, or closer to zero than the margin."""

Part = tuple[float, str, str]
"""Coefficient, row and column of a cell."""

FACTOR = 2.0
"""Factor below which two positive quantities, such as Fisher values, count as alike."""

SMALL = 0.01
"""Margin below which two decimals do not show a contrast."""


@dataclass(frozen=True)
class Claim:
    """A finding of the paper as a contrast of cells: a weighted sum over cells, seed by seed."""

    paper: str
    """What the paper finds, after "The paper finds that"."""
    what: str
    """What the contrast is, in words."""
    parts: tuple[Part, ...]
    expects: Expectation
    factors: bool = False
    """Whether logarithms are contrasted, so that the result is a factor."""
    unit: str = "points"
    margin: float = MARGIN
    """Differences smaller than this do not matter; for factors FACTOR is used."""
    against: float = 0.0
    """A number that is subtracted from the sum, such as a published mean."""

    def judged(self, cells: Sequence[TableCell]) -> Conclusion | None:
        """The claim beside what our cells show; None if a cell is missing."""
        places = {(cell.row, cell.column): cell for cell in cells}
        if not all((row, column) in places for _, row, column in self.parts):
            return None
        chosen = [(factor, places[row, column]) for factor, row, column in self.parts]
        contrast = self._contrast(chosen)
        left_out = sum(len(cell.left_out) for _, cell in chosen)
        if contrast is None:
            return self._nothing(left_out) if left_out else None
        margin = math.log10(FACTOR) if self.factors else self.margin
        verdict = self._verdict(contrast, margin)
        undecided = verdict == NOT_DECIDED
        alike = self.expects == "same"
        return Conclusion(
            paper=f"{THE_PAPER}{self.paper}.",
            ours=f"Ours: {self.what}, {self._said(contrast, chosen)}{self._in_words(contrast, margin)}.",
            verdict=verdict,
            contrast=contrast,
            needed=pairs_needed(contrast, margin=margin, alike=alike) if undecided else None,
        )

    def _verdict(self, contrast: Number, margin: float) -> str:
        """`more` and `less` by the sign, `same` by the margin, with a verdict for what is in between."""
        found = sign(contrast, margin=margin)
        if self.expects == "same":
            if found == SAME:
                return SUPPORTED
            return CONTRADICTED if beyond(contrast, margin=margin) else NOT_DECIDED
        if found is None:
            return NOT_DECIDED
        expected = 1 if self.expects == "more" else -1
        if found == SAME:
            return WEAKER if _direction(contrast) == expected else CONTRADICTED
        return SUPPORTED if found == expected else CONTRADICTED

    def _contrast(self, chosen: Sequence[tuple[float, TableCell]]) -> Number | None:
        """The contrast of each seed that counts in all cells, as a number over seeds; None if none does."""
        values = [(factor, cell.by_seed) for factor, cell in chosen]
        seeds = sorted(set.intersection(*(set(each) for _, each in values)))
        if not seeds or (self.factors and any(one <= 0 for _, each in values for one in each.values())):
            return None
        of = math.log10 if self.factors else float
        sums = [sum(factor * of(each[seed]) for factor, each in values) for seed in seeds]
        return number([one - self.against for one in sums])

    def _nothing(self, left_out: int) -> Conclusion:
        """What is said if no seed counts in all cells."""
        return Conclusion(
            paper=f"{THE_PAPER}{self.paper}.",
            ours=f"Ours: {self.what}: no seed counts in all of them ({_networks(left_out)} left out).",
            verdict=NOT_DECIDED,
            contrast=Number(0.0, None, 0),
        )

    def _said(self, contrast: Number, chosen: Sequence[tuple[float, TableCell]]) -> str:
        """Mean and interval in words, and over which seeds."""
        if self.factors:
            low, high = (None if end is None else f"{10**end:.3g}" for end in (contrast.low, contrast.high))
            text = f"factor {10**contrast.mean:.3g}"
        else:
            digits = "+.2f" if self.margin >= SMALL else "+.3g"
            low, high = (None if end is None else f"{end:{digits}}" for end in (contrast.low, contrast.high))
            text = f"{contrast.mean:{digits}} {self.unit}"
        left_out = sum(len(cell.left_out) for _, cell in chosen)
        fewer = any(len(cell.values) > contrast.n for _, cell in chosen) and not left_out
        count = f"n = {contrast.n}" + (" seeds that all of these have" if fewer else "")
        count += f", {_networks(left_out)} left out" if left_out else ""
        if low is None or high is None:
            return f"{text} ({count})"
        return f"{text} (95 % interval {low} to {high}, {count})"

    def _in_words(self, contrast: Number, margin: float) -> str:
        """What is shown of a contrast."""
        found = sign(contrast, margin=margin)
        if found is None:
            return ""
        unit = self.unit.removesuffix("s") if margin == 1 else self.unit
        size = f"a factor of {FACTOR:g}" if self.factors else f"{margin:g} {unit}"
        zero = "1" if self.factors else "zero"
        if found == SAME:
            side = {1: f"above {zero}, by ", -1: f"below {zero}, by ", 0: ""}[_direction(contrast)]
            return f": shown to be {side}less than {size}"
        said = f"{'above' if found > 0 else 'below'} {zero}"
        if self.expects == "same" and not beyond(contrast, margin=margin):
            return f": shown to be {said}, but not to be more than {size}"
        return f": shown to be {said}"


def _direction(contrast: Number) -> int:
    """1 or -1 if the interval is above or below 0, else 0."""
    if contrast.low is None or contrast.high is None:
        return 0
    return int(contrast.low > 0) - int(contrast.high < 0)


def _networks(count: int) -> str:
    """A number of networks."""
    return f"{count} network{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Asked(Claim):
    """A question that the paper does not answer, such as one of its findings for another cell."""

    def judged(self, cells: Sequence[TableCell]) -> Conclusion | None:
        """The claim beside what our cells show; it is not said to be the paper's."""
        found = super().judged(cells)
        return None if found is None else replace(found, paper=f"{ASKED}{self.paper}.")


def asked(claim: Claim) -> Asked:
    """The same claim, not said to be the paper's."""
    return Asked(**{field.name: getattr(claim, field.name) for field in fields(claim)})


def difference(
    paper: str, first: str, second: str, expects: Expectation = "more", column: str = "final"
) -> Claim:
    """A claim about two rows: first minus second."""
    named = column if "accuracy" in column else f"{column} accuracy"
    what = f"{first} minus {second} ({named})"
    return Claim(paper, what, ((1.0, first, column), (-1.0, second, column)), expects)


def reaches(paper: str, row: str, published: float, margin: float, column: str = "final") -> Claim:
    """A claim that a row is as good as a published mean, whose standard error is not known."""
    what = f"{row} ({column} accuracy) minus {published:g}"
    return Claim(paper, what, ((1.0, row, column),), "same", margin=margin, against=published)


def forgotten(paper: str, row: str, expects: Expectation = "more") -> Claim:
    """A claim about what a method forgets: during minus final."""
    parts = ((1.0, row, "during"), (-1.0, row, "final"))
    return Claim(paper, f"{row}, during minus final accuracy", parts, expects)


def interaction(
    paper: str, what: str, rows: tuple[str, str, str, str], expects: Expectation = "more"
) -> Claim:
    """A claim about two falls: (first minus second) minus (third minus fourth), final accuracy."""
    signs = (1.0, -1.0, -1.0, 1.0)
    return Claim(paper, what, tuple((s, r, "final") for s, r in zip(signs, rows, strict=True)), expects)


def conclusions_of(claims: Sequence[Claim], cells: Sequence[TableCell]) -> list[Conclusion]:
    """Every claim that the cells can say something about."""
    return [found for claim in claims if (found := claim.judged(cells)) is not None]
