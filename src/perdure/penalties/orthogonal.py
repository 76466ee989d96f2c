"""Orthogonal regularisation of hidden-to-hidden matrices (SM "Notes on optimization for the Copy Task").

strength * sum_W ||W W^T - I||_F^2 over all hidden-to-hidden matrices of the network that runs, each gate
of an LSTM or GRU by itself; so it also works on masked and on generated weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.layout import Vectors
from perdure.networks.orthogonality import Deviation
from perdure.penalties.annealing import Annealed
from perdure.penalties.penalty import Penalty, PlainTerm, Running, Situation


class Orthogonal(Annealed, Penalty):
    """Recurrent matrices are drawn towards orthogonal ones, so that memories neither fade nor explode.

    For hnet the paper tried a factor that begins very high (`first`).
    """

    def begin(self, memory: Vectors, situation: Situation) -> OrthogonalTerm:
        """The same term in every phase."""
        del memory, situation
        return OrthogonalTerm(self)


class OrthogonalTerm(PlainTerm):
    """The penalty during one phase."""

    def __init__(self, options: Orthogonal) -> None:
        """Start at the first iteration."""
        self.options = options
        self.iteration = 0

    def loss(self, active: Vectors, running: Running) -> Tensor | None:
        """Strength * sum_W ||W W^T - I||^2; weights that tasks share count once."""
        del active
        if self.options.strength == 0:
            return None
        strength = self.options.at(self.iteration)
        self.iteration += 1
        matrices = {
            matrix.data_ptr(): matrix
            for network, weights in running
            for matrix in network.recurrent_matrices(weights)
        }
        deviations = [Deviation.apply(matrix) for matrix in matrices.values()]
        return strength * torch.stack(deviations).sum()

    def state(self) -> Vectors:
        """How far the annealing is."""
        return {"iteration": torch.tensor(self.iteration)}

    def restore(self, state: Vectors) -> None:
        """Anneal on as before."""
        self.iteration = int(state["iteration"])
