"""Orthogonal regularisation of hidden-to-hidden matrices (SM "Notes on optimization for the Copy Task").

strength * sum_W ||W W^T - I||_F^2 over all hidden-to-hidden matrices of the network that runs, each gate
of an LSTM or GRU by itself; so it also works on masked and on generated weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from perdure.networks.layout import Vectors
from perdure.options import Strength
from perdure.penalties.penalty import Penalty, PlainTerm, Running, Situation


class Orthogonal(Penalty):
    """Recurrent matrices are drawn towards orthogonal ones, so that memories neither fade nor explode."""

    strength: Strength = 0.0
    """Factor of the penalty; 0 turns it off."""

    def begin(self, memory: Vectors, situation: Situation) -> OrthogonalTerm:
        """The same term in every phase."""
        del memory, situation
        return OrthogonalTerm(self.strength)


class OrthogonalTerm(PlainTerm):
    """The penalty during one phase."""

    def __init__(self, strength: float) -> None:
        """Remember the strength."""
        self.strength = strength

    def loss(self, active: Vectors, running: Running) -> Tensor | None:
        """strength * sum_W ||W W^T - I||^2; weights that tasks share count once."""
        del active
        if self.strength == 0:
            return None
        matrices = {
            matrix.data_ptr(): matrix
            for network, weights in running
            for matrix in network.recurrent_matrices(weights)
        }
        return self.strength * sum(
            (deviation(matrix) for matrix in matrices.values()), torch.zeros(())
        )


def deviation(matrix: Tensor) -> Tensor:
    """||W W^T - I||_F^2 of a square matrix."""
    identity = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return (matrix @ matrix.t() - identity).square().sum()
