"""Orthogonal weights modification (Zeng et al. 2019).

From "Continual learning of context-dependent processing in neural networks". A map's change is projected on
its input side, dW <- dW P with P = I - A (A^T A + alpha I)^-1 A^T, A the inputs seen in old tasks as columns.
That is P = alpha (A A^T + alpha I)^-1, so it is enough to remember A A^T. Zeng et al. update P sample by
sample; the result is the same. Here A A^T is the sum over old tasks of the mean over a task's rows, so that
alpha does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import PositiveFloat
from torch import Tensor

from perdure.networks.activity import Moments
from perdure.networks.layout import Vectors
from perdure.penalties.projection import Projecting, Projectors, averaged, shrunk


class OWM(Projecting):
    """Weights move only where old inputs hardly reach."""

    name: ClassVar[str] = "owm"
    revision: ClassVar[int] = 1
    summarises: ClassVar[bool] = True

    alpha: PositiveFloat = 1e-3
    """Inputs with a mean square well below alpha are free; larger: more is free."""

    def projectors(self, memory: Mapping[str, Tensor]) -> Projectors:
        """Alpha (C + alpha I)^-1 on the input side."""
        return Projectors(shrunk(memory["inputs"], self.alpha))

    def remembered(self, memory: Mapping[str, Tensor], found: Moments) -> Vectors:
        """C <- C + E[a a^T]."""
        return {"inputs": memory["inputs"] + found.inputs if memory else found.inputs}

    def joined(self, earlier: Vectors, latest: Vectors, share: float) -> Vectors:
        """The mean moments of all visits of a task."""
        return averaged(earlier, latest, share)
