"""Successive halving over tasks: after which of them the worse half of the trials is stopped."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple


class Rung(NamedTuple):
    """A point at which trials are compared."""

    phases: int | None
    """Number of phases learnt by then; None at the end of a run."""
    share: float = 1.0
    """Fraction of the time for trials at which the rung must be reached."""


def rungs(phases: int) -> list[Rung]:
    """A quarter and half of a run's phases, and its end.

    One task says nothing about forgetting, so the first rung has at least two if possible. Shares of time
    follow from the phases that are learnt until each rung, by half as many trials after each.
    """
    parts = {max(math.ceil(phases / part), min(2, phases - 1)) for part in (4, 2)}
    ends = sorted(part for part in parts if 0 < part < phases)
    costs = [(end - before) / 2**n for n, (before, end) in enumerate(pairwise([0, *ends, phases]))]
    shares = [sum(costs[: n + 1]) / sum(costs) for n in range(len(costs))]
    return [*(Rung(end, share) for end, share in zip(ends, shares, strict=False)), Rung(None)]
