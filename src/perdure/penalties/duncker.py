"""Two-sided projection for recurrent networks (Duncker et al. 2020).

From "Organizing recurrent network dynamics by task-computation to enable continual learning". A map z = W a,
with a = (x_t, 1, h_{t-1}, 1) in a recurrent layer, changes by dW <- P_out dW P_in. There P_in = V diag(alpha
/ (alpha + lambda)) V^T from the eigenvectors V and eigenvalues lambda of E[a a^T] over old tasks, and P_out
likewise from E[z z^T]: the inputs that old tasks use, and the images that they reach, are both left alone.
Heads change under the same rule. Moments are sums over old tasks of means over a task's rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import PositiveFloat
from torch import Tensor

from perdure.networks.activity import Moments
from perdure.networks.layout import Vectors
from perdure.penalties.projection import Projecting, Projectors, averaged, shrunk


class Duncker(Projecting):
    """Weights move only where old states and their images hardly reach."""

    name: ClassVar[str] = "duncker"
    revision: ClassVar[int] = 1
    summarises: ClassVar[bool] = True

    alpha: PositiveFloat = 1e-3
    """Directions with a mean square well below alpha are free; larger: more is free."""

    def projectors(self, memory: Mapping[str, Tensor]) -> Projectors:
        """Alpha (C + alpha I)^-1 on both sides."""
        return Projectors(shrunk(memory["inputs"], self.alpha), shrunk(memory["outputs"], self.alpha))

    def remembered(self, memory: Mapping[str, Tensor], found: Moments) -> Vectors:
        """Both moments, added up."""
        if not memory:
            return {"inputs": found.inputs, "outputs": found.outputs}
        return {
            "inputs": memory["inputs"] + found.inputs,
            "outputs": memory["outputs"] + found.outputs,
        }

    def joined(self, earlier: Vectors, latest: Vectors, share: float) -> Vectors:
        """The mean moments of all visits of a task."""
        return averaged(earlier, latest, share)
