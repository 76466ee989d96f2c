"""Orthogonal regularisation of hidden-to-hidden matrices (SM "Notes on optimization for the Copy Task").

strength * sum_W ||W W^T - I||_F^2 over all hidden-to-hidden matrices of the network that runs, each gate
of an LSTM or GRU separately; so it also works on masked and on generated weights.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from perdure.hooks import PhaseContext, Step, Term
from perdure.networks.layout import Vectors
from perdure.networks.orthogonality import Deviation
from perdure.networks.together import distinct_bodies
from perdure.penalties.annealing import Annealed
from perdure.penalties.penalty import Penalty


class Orthogonal(Annealed, Penalty):
    """Pulls recurrent matrices towards orthogonal ones, so that memories neither fade nor explode.

    For hnet, the paper tried a factor that starts very high (`first`).
    """

    protects: ClassVar[bool] = False

    def begin(self, memory: Vectors, context: PhaseContext) -> OrthogonalTerm:
        """The same term in every phase."""
        del memory, context
        return OrthogonalTerm(self)


class OrthogonalTerm(Term):
    """The penalty during one phase."""

    def __init__(self, options: Orthogonal) -> None:
        """Store the options."""
        self.options = options

    def losses(self, step: Step) -> dict[str, Tensor]:
        """Strength * sum_W ||W W^T - I||^2; weights that tasks share count once."""
        if self.options.strength == 0:
            return {}
        deviations = [
            Deviation.apply(matrix)
            for network, weights in distinct_bodies(step.networks.values())
            for matrix in network.recurrent_matrices(weights)
        ]
        if not deviations:
            return {}
        return {self.options.name: self.options.at(step.number) * torch.stack(deviations).sum()}
